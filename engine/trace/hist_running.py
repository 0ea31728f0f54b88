"""The handlers of a hist trigger at a hit, and their part of its table."""

from typing import Any, Final

from engine.fetch.predicate import row_thread
from engine.trace.hist_actions import Act, HistAction, HistBinding, HistMoment, SavedField
from engine.trace.hist_readers import HistNames, HistReaders, Key, Reader
from engine.trace.histtable import HistTable

_WORDS: Final = {HistMoment.MAX: b"max", HistMoment.CHANGE: b"changed"}


class TrackedSnapshot:
    """The one snapshot that `onmax` or `onchange` of a trace takes.

    Attributes:
        value: of the tracked variable when the last one was taken.
        text: of that, for the table.
    """

    def __init__(self) -> None:
        """None was taken."""
        self.value: Key = 0
        self.text: bytes = b""


class HistActions:
    """The handlers of a trigger and what they keep."""

    def __init__(self, binding: HistBinding, table: HistTable) -> None:
        """Nothing was done yet."""
        self._binding = binding
        self._table = table
        self._snapshot = TrackedSnapshot()

    def bound(self, readers: HistReaders) -> "BoundActions":
        """The actions for rows that are read in some way."""
        return BoundActions(self._binding, self._table, self._snapshot, readers)

    def lines(self, variables: dict[int, Key], names: HistNames) -> list[bytes]:
        """The part of an entry behind its values (track_data_print)."""
        out: list[bytes] = []
        for action in self._binding.actions:
            word = _WORDS.get(action.handler.when)
            if word is None or action.handler.act is Act.SNAPSHOT:
                continue
            out.append(b"\n\t%s: %10d" % (word, _number(variables.get(action.slot, 0))))
            out += [_saved(one, variables, names) for one in self._binding.saved]
        return out

    def snapshot_lines(self) -> list[bytes]:
        """The part of the table behind its entries (track_data_snapshot_print)."""
        text = self._snapshot.text
        return [b"", b"Snapshot taken (see tracing/snapshot).  Details:", text] if text else []


class BoundActions:
    """The actions of a trigger at hits of one event."""

    def __init__(
        self,
        binding: HistBinding,
        table: HistTable,
        snapshot: TrackedSnapshot,
        readers: HistReaders,
    ) -> None:
        """Set up for rows that `readers` read."""
        self._actions = binding.actions
        self._table = table
        self._snapshot = snapshot
        self._values = readers.outer
        self._fields = _readers(binding.fields, readers)
        self._saved = _readers(binding.saved, readers)

    def keep(self, variables: dict[int, Key], data: Any, position: int) -> None:
        """Keep the fields that actions are made of."""
        for slot, read in self._fields:
            variables[slot] = read(data, position)

    def act(
        self,
        variables: dict[int, Key],
        data: Any,
        position: int,
        key: tuple[Key, ...],
        comm: bytes,
    ) -> None:
        """Do what is to be done."""
        for action in self._actions:
            if action.tracked is not None:
                value, last = self._values[id(action.tracked)], variables.get(action.slot, 0)
                if not _moved(action, value, last):
                    continue
                variables[action.slot] = value
            match action.handler.act:
                case Act.SAVE:
                    for slot, read in self._saved:
                        variables[slot] = read(data, position)
                case Act.SNAPSHOT:
                    self._take(action, variables[action.slot], key, comm)
                case Act.TRACE:
                    self._make(action, row_thread(data, position))

    def _make(self, action: HistAction, thread: int) -> None:
        assert action.event is not None
        values = [self._values[id(one)] for one in action.params]
        self._table.names.make(action.event, thread, values)

    def _take(self, action: HistAction, value: Key, key: tuple[Key, ...], comm: bytes) -> None:
        snapshot, keep = self._snapshot, self._table.names.snapshot
        if keep is None or not _moved(action, value, snapshot.value):
            return
        snapshot.value = value
        handler = action.handler
        about = f"{handler.when.value}({handler.tracked})".encode(errors="surrogateescape")
        text = b"\ttriggering value { %s }: %10d" % (about, _number(value))
        where = self._table.key_text(key, comm)
        snapshot.text = text + b"\ttriggered by event with key: " + where
        keep()


def _moved(action: HistAction, value: Key, last: Key) -> bool:
    """True if a tracked variable is higher, or another one, than it was."""
    if action.handler.when is HistMoment.MAX and isinstance(value, int) and isinstance(last, int):
        return value > last
    return value != last


def _readers(fields: list[SavedField], readers: HistReaders) -> list[tuple[int, Reader]]:
    return [(one.slot, readers.of(one.field)) for one in fields]


def _saved(one: SavedField, variables: dict[int, Key], names: HistNames) -> bytes:
    name = one.name.encode(errors="surrogateescape")
    value = variables.get(one.slot, 0)
    if isinstance(value, bytes) or one.field.is_string:
        text = value if isinstance(value, bytes) else b""
        return b"  %s: %-32s" % (name, names.shown(text))
    return b"  %s: %10d" % (name, _number(value))


def _number(value: Key) -> int:
    """A value as a number; strings and stacks have addresses in a kernel, and none here."""
    return value if isinstance(value, int) else 0
