"""Folded stacks: `PROGRAM;OUTER;INNER;EVENT COUNT`, what flame graphs are made from."""

from collections import Counter
from collections.abc import Collection
from typing import ClassVar, cast

from engine.arch.program import EVENT_MOST, THREAD_MOST
from engine.escaping import escaped
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.values import frames, function_name
from engine.trace.rows import HEAD, EventSource, EventTable, whole


class FoldedFormat:
    """Counts events by their call stack; everything comes at the end."""

    name: ClassVar[str] = "folded"
    wants_stacks: ClassVar[bool] = True
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table; options mean nothing here."""
        self._events = events
        self._names = names
        self._counts: Counter[str] = Counter()
        self._programs: ByProgram[str] = ByProgram()
        self._functions = self._programs.symbols(0)
        self._before = ""

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """Nothing."""
        return b""

    def rows(self, data: bytes) -> bytes:
        """Nothing yet."""
        position, end = 0, len(data)
        while position < end:
            event_id, words, thread = HEAD.unpack_from(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            info = self._events[event_id]
            if info.source is EventSource.STACK:
                found = frames(info, data, position)
                comm = self._names.comm(thread)
                names = [self._function(pc, index > 0) for index, pc in enumerate(found)]
                program = "?" if comm is None else escaped(comm)
                stack = ";".join((program, *reversed(names), self._before))
                self._counts[stack] += 1
            else:
                self._before = info.name
            position += words * 8
        return b""

    def lost(self, count: int) -> bytes:
        """Counted as a stack of their own."""
        self._counts["[lost]"] += count
        return b""

    def end(self) -> bytes:
        """All stacks, in order of their text."""
        lines = [f"{stack} {count}\n" for stack, count in sorted(self._counts.items())]
        self._counts.clear()
        return "".join(lines).encode()

    def renamed(self, thread_id: int) -> None:
        """The next stack asks for the name anyway."""

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._functions = self._programs.symbols(number)

    def state(self) -> object:
        """The counts, and the event whose stack may come next."""
        return [dict(self._counts), self._before]

    def restore(self, state: object) -> None:
        """Go on counting."""
        counts, before = cast("tuple[dict[str, int], str]", state)
        self._counts = Counter({str(stack): int(count) for stack, count in counts.items()})
        self._before = str(before)

    def _function(self, pc: int, calls: bool) -> str:
        """Name of the function; a return address belongs to the call before it."""
        place = pc - calls
        found = self._functions.get(place)
        if found is None:
            symbol = self._names.symbol(place)
            known = function_name(symbol) if symbol != f"{place:#x}" else f"{pc:#x}"
            found = self._functions[place] = escaped(known).replace(";", ":").replace(" ", "_")
        return found
