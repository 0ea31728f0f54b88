"""Synthetic events of a session's trace: lines define them, triggers of others make them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from engine.fetch.evaluate import FetchContext, Recorder
from engine.trace.rows import EventInfo, pack_row
from engine.trace.staging import put_row
from engine.trace.synthetic import SyntheticEvent, SyntheticField, exists_error, parse_definition

if TYPE_CHECKING:
    from engine.trace.hist_readers import Key


class SyntheticEvents:
    """The synthetic events of a trace; a `KernelEvents`.

    Attributes:
        known: the events by name, for triggers that make them.
    """

    def __init__(self, symbol: Callable[[int], str]) -> None:
        """None is defined; `symbol` names an address of the program that runs."""
        self.known: dict[str, SyntheticEvent] = {}
        self._symbol = symbol
        self._infos: dict[str, EventInfo] = {}
        self._records: dict[str, Recorder] = {}
        self._silent: frozenset[str] = frozenset()

    @property
    def infos(self) -> list[EventInfo]:
        """The events in the order they were defined."""
        return list(self._infos.values())

    def choose(
        self, glob: str, number: Callable[[], int], known: Callable[[str], bool]
    ) -> list[EventInfo]:
        """Define an event.

        Args:
            glob: the line that does, as `synthetic.parse_definition` reads it.
            number: the next free event id.
            known: whether an event of that name is there already.

        Raises:
            ProbeSyntaxError: it is not accepted; one that is silent is recorded again.
        """
        event = parse_definition(glob)
        if event.name in self._silent and self.known[event.name] == event:
            self._silent -= {event.name}
            return []
        if known(event.name):
            raise exists_error(event, glob)
        info = event.info(number())
        self.known[event.name], self._infos[event.name] = event, info
        return [info]

    def is_mine(self, info: EventInfo) -> bool:
        """True if an event is one of these."""
        return self._infos.get(info.name) is info

    def make(self, info: EventInfo, context: FetchContext) -> Recorder:
        """Compile the recorder of one of the events."""
        return partial(self._write, info, self.known[info.name].fields, context)

    def install(self, info: EventInfo, record: Recorder) -> None:
        """Have an event recorded by a function of (thread, values, place)."""
        self._records[info.name] = record

    def record_only(self, globs: Sequence[str]) -> None:
        """Of the events only those with such definitions are recorded from now on."""
        wanted = {parse_definition(line).name for line in globs}
        self._silent = frozenset(name for name in self._infos if name not in wanted)

    def happened(
        self, event: SyntheticEvent, thread: int, values: "list[Key]", place: int
    ) -> None:
        """A trigger makes an event of a thread at a place."""
        record = self._records.get(event.name)
        if record is not None and event.name not in self._silent:
            record(thread, values, place)

    def remove(self, info: EventInfo) -> None:
        """Take one of the events away."""
        for each in (self.known, self._infos, self._records):
            each.pop(info.name, None)

    def listed(self) -> list[tuple[str, str]]:
        """The definitions, as `dynamic_events` lists them and as lines that define them again."""
        lines = [f"s:synthetic/{event.listing()}" for event in self.known.values()]
        return [(line, line.replace("\t", " ")) for line in lines]

    def _write(
        self,
        info: EventInfo,
        fields: tuple[SyntheticField, ...],
        context: FetchContext,
        thread: int,
        values: "list[Key]",
        place: int,
    ) -> None:
        found = [self._value(one, value) for one, value in zip(fields, values, strict=True)]
        put_row(context.sink, pack_row(info, thread, context.cpu.now(), place, found))

    def _value(self, field: SyntheticField, value: "Key") -> int | bytes:
        if isinstance(value, tuple) and field.is_stack:
            lines = "".join(f"=> {self._symbol(address)}\n" for address in value)
            return f"STACK:\n{lines}".encode(errors="surrogateescape") + b"\0"
        text = field.is_string or field.is_stack
        if isinstance(value, tuple):
            return b"" if text else 0
        if isinstance(value, bytes):
            return value.partition(b"\0")[0] + b"\0" if text else 0
        if text:  # a number that is as wide as the string is no address of one
            return b""
        value &= (1 << 8 * field.size) - 1
        return value - (1 << 8 * field.size) if _negative(field, value) else value


def _negative(field: SyntheticField, value: int) -> bool:
    return field.signed and bool(value >> 8 * field.size - 1)
