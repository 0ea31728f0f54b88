"""The table behind a hist trigger: counts rows, prints as the event's `hist` file does."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from engine.escaping import escaped
from engine.fetch.predicate import row_thread
from engine.trace.hist_fields import HITCOUNT, HistField, HistKind, HistReference
from engine.trace.hist_readers import HistNames, HistReaders, Key
from engine.trace.histogram import HistSpec

if TYPE_CHECKING:
    from engine.trace.hist_running import HistActions

_MASK: Final = (1 << 64) - 1
_BAR: Final = 20


class _HistogramEntry(Struct):
    sums: list[int]
    comm: bytes = b""
    symbols: dict[int, bytes] = field(default_factory=dict)  # as they were called at the hit
    variables: dict[int, Key] = field(default_factory=dict)
    """Variables that are set, by slot."""


class HistTable(Struct, eq=False):
    """Entries by key.

    Attributes:
        spec: what is counted.
        names: for reading and printing.
        hits: rows counted.
        dropped: rows for which there was no room.
        actions: what is done at a hit; `HistActions` of the trigger.
    """

    spec: HistSpec
    names: HistNames
    hits: int = 0
    dropped: int = 0
    actions: "HistActions | None" = None
    _entries: dict[tuple[Key, ...], _HistogramEntry] = field(default_factory=dict)

    @property
    def variables(self) -> tuple[HistField, ...]:
        """Variables that the trigger sets, by slot."""
        return self.spec.variables

    @property
    def references(self) -> list[HistReference]:
        """Variables that the trigger reads."""
        return self.spec.references

    def counter(self, spec: HistSpec) -> Callable[[Any, int], None]:
        """A counter of rows at a position; `spec` says where another event has the fields."""
        outer: dict[int, Key] = {}
        readers = HistReaders(self.names, outer)
        keys = [readers.of(key) for key in spec.keys]
        values = [readers.of(value) for value in spec.values]
        execname = any(one.modifier == "execname" for one in (*spec.keys, *spec.variables))
        named = [at for at, key in enumerate(spec.keys) if _is_named(key)]
        entries, size = self._entries, self.spec.size
        variables = readers.slots(spec.variables)
        actions = self.actions.bound(readers) if self.actions is not None else None
        # Which are read before an entry is found, and which are its own.
        others = [one for one in self.references if one.owner not in (None, self)]
        mine = [one for one in self.references if one.owner in (None, self)]

        def count(data: Any, position: int) -> None:
            key = tuple([read(data, position) for read in keys])
            for one in others:
                assert one.owner is not None
                if not one.owner.read(one, key, outer):
                    return
            entry = entries.get(key)
            if entry is None:
                if len(entries) >= size:
                    self.dropped += 1
                    return
                entry = entries[key] = _HistogramEntry([0] * (1 + len(values)))
                if execname:
                    entry.comm = self.names.comm(row_thread(data, position)) or b""
                for at in named:
                    self._name(entry, key[at])
            self.hits += 1
            sums = entry.sums
            sums[0] += 1
            for index, read in enumerate(values, 1):
                value = read(data, position)
                assert isinstance(value, int)
                sums[index] = sums[index] + value & _MASK
            for slot, read in variables:
                entry.variables[slot] = read(data, position)
            if actions is None:
                return
            actions.keep(entry.variables, data, position)
            for one in mine:
                if one.slot not in entry.variables:
                    return
                outer[id(one)] = entry.variables[one.slot]
            actions.act(entry.variables, data, position, key, entry.comm)

        return count

    def read(self, reference: HistReference, key: tuple[Key, ...], into: dict[int, Key]) -> bool:
        """Read a variable of the entry with a key; False if it is not set (resolve_var_refs)."""
        entry = self._entries.get(key[: len(self.spec.keys)])
        if entry is None or reference.slot not in entry.variables:
            return False
        take = entry.variables.pop if reference.once else entry.variables.__getitem__
        into[id(reference)] = take(reference.slot)
        return True

    def _name(self, entry: _HistogramEntry, value: Key) -> None:
        """Names of addresses are those of now: later another program may be there."""
        for each in value if isinstance(value, tuple) else (value,):
            assert isinstance(each, int)
            entry.symbols[each] = self.names.symbol_text(each)

    def clear(self) -> None:
        """Forget everything counted."""
        self._entries.clear()
        self.hits = self.dropped = 0

    def take(self, other: "HistTable") -> None:
        """Count on from what another table of the same form has."""
        self._entries.clear()
        self._entries.update(other._entries)
        self.hits, self.dropped = other.hits, other.dropped

    # -- printing -------------------------------------------------------------------------

    def lines(self, condition: str = "", paused: bool = False) -> list[bytes]:
        """The text of the event's `hist` file, a line each."""
        listing = escaped(self.spec.listing(condition, paused)).encode()
        out = [b"# event histogram", b"#", b"# trigger info: " + listing, b"#", b""]
        rows = self._sorted()
        sums = [entry.sums for _, entry in rows]
        out += [self._line(key, entry, sums) for key, entry in rows]
        if self.actions is not None:
            out += self.actions.snapshot_lines()
        out += [b"", b"Totals:", b"    Hits: %d" % self.hits, b"    Entries: %d" % len(rows)]
        out.append(b"    Dropped: %d" % self.dropped)
        return out

    def _sorted(self) -> list[tuple[tuple[Key, ...], _HistogramEntry]]:
        rows = list(self._entries.items())
        values = len(self.spec.values)
        for order in reversed(self.spec.sort):
            if order.index <= values:
                rows.sort(key=lambda row: row[1].sums[order.index], reverse=order.descending)
                continue
            number = order.index - values - 1
            one = self.spec.keys[number]
            if one.is_stack:
                continue
            # As the field's number is, whatever a bucket makes of it (create_tracing_map_fields).
            field = one.field
            size, signed = (8, one.signed) if field is None else (field.size, field.signed)
            if one.is_string:
                size = 0
            place = partial(_sorted_by, number=number, size=size, signed=signed)
            rows.sort(key=place, reverse=order.descending)
        return rows

    def _line(self, key: tuple[Key, ...], entry: _HistogramEntry, sums: list[list[int]]) -> bytes:
        text = self._keys(key, entry)
        shown = [_value(HITCOUNT, "", entry.sums, 0, sums)] if self.spec.hitcount else []
        for index, one in enumerate(self.spec.values, 1):
            if one.kind is HistKind.EXPRESSION:
                continue  # its sum orders entries, and is not printed
            more = b" " + _value(one.name, one.modifier, entry.sums, index, sums)
            shown.append(more)
        if self.actions is not None:
            shown += self.actions.lines(entry.variables, self.names)
        return text + b"".join(shown)

    def key_text(self, key: tuple[Key, ...], comm: bytes) -> bytes:
        """A key alone, as of an entry of a thread."""
        entry = _HistogramEntry([], comm)
        for at, one in enumerate(self.spec.keys):
            if _is_named(one):
                self._name(entry, key[at])
        return self._keys(key, entry)

    def _keys(self, key: tuple[Key, ...], entry: _HistogramEntry) -> bytes:
        parts = [
            self._key(one, value, entry) for one, value in zip(self.spec.keys, key, strict=True)
        ]
        stacked = any(one.is_stack for one in self.spec.keys)
        return b"{ " + b", ".join(parts) + (b"}" if stacked else b" }")

    def _key(self, one: HistField, value: Key, entry: _HistogramEntry) -> bytes:
        name = one.name.encode()
        if isinstance(value, tuple):
            text = b"".join(b"         %s\n" % entry.symbols[each] for each in value)
            return b"common_stacktrace:\n" + text
        if one.is_stack:
            assert isinstance(value, bytes)
            frames = [line.removeprefix(b"=> ") for line in value.split(b"\n")[1:] if line]
            return name + b".stacktrace" + b"".join(b"         %s\n" % one for one in frames)
        if isinstance(value, bytes):
            return b"%s: %-50s" % (name, self.names.shown(value))
        if one.modifier == "hex":
            return b"%s: %x" % (name, value)
        if one.modifier in ("sym", "sym-offset"):
            symbol = entry.symbols[value]
            if one.modifier == "sym":
                symbol = symbol.rpartition(b"+0x")[0] or symbol
            width = 45 if one.modifier == "sym" else 55
            return b"%s: [%x] %s" % (name, value, symbol.ljust(width))
        if one.modifier == "execname":
            return b"%s: %-16s[%10d]" % (name, self.names.shown(entry.comm), value)
        if one.modifier == "syscall":
            call = self.names.syscall(value)
            text = b"unknown_syscall" if call is None else b"sys_" + call.encode()
            return b"%s: %-30s[%3d]" % (name, text, value)
        if one.modifier == "log2":
            return b"%s: ~ 2^%-2d" % (name, value)
        if one.modifier == "buckets":
            return b"%s: ~ %d-%d" % (name, value, value + one.buckets - 1 & _MASK)
        return b"%s: %10d" % (name, value)


def _is_named(key: HistField) -> bool:
    """True if addresses of a key are shown by their names."""
    return (key.is_stack and key.field is None) or key.modifier in ("sym", "sym-offset")


def _percentage(value: int, total: int) -> int | None:
    """Hundredths of a per cent; None where the kernel prints an error."""
    if not total:
        return None if value else 0
    return value * 10000 // total


def _value(name: str, modifier: str, sums: list[int], index: int, every: list[list[int]]) -> bytes:
    value = sums[index]
    if modifier == "percent":
        share = _percentage(value, sum(row[index] for row in every) & _MASK)
        if share is None:
            return b" %s (%%):[ERROR]" % name.encode()
        return b" %s (%%): %3d.%02d" % (name.encode(), share // 100, share % 100)
    if modifier == "graph":
        share = _percentage(value, max(row[index] for row in every)) or 0
        return b" %s: %s" % (name.encode(), (b"#" * (share * _BAR // 10000)).ljust(_BAR))
    return (
        b" %s: %10x" % (name.encode(), value)
        if modifier == "hex"
        else (b" %s: %10d" % (name.encode(), value))
    )


def _sorted_by(
    row: tuple[tuple[Key, ...], _HistogramEntry], *, number: int, size: int, signed: bool
) -> Any:
    """The key of a row by its number, as a number of so many bytes; 0 bytes for a text."""
    value = row[0][number]
    if not size or not isinstance(value, int):
        return value
    value &= (1 << 8 * size) - 1
    negative = signed and value >> 8 * size - 1
    return value - (1 << 8 * size) if negative else value
