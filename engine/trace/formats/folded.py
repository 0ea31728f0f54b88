"""Folded stacks: `PROGRAM;OUTER;INNER;EVENT COUNT`, what flame graphs are made from.

A sample of the clock is `PROGRAM;OUTER;INNER TICKS`, without an event. Calls of `graph` are
`PROGRAM;OUTER;INNER TIME`, the time that was spent in INNER itself, or with `--tracer function`
`PROGRAM;CALLER;FUNCTION COUNT`; with `--weigh calls` the number of calls.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import ClassVar, Final, cast

from engine.arch.program import EVENT_MOST, THREAD_MOST
from engine.escaping import escaped
from engine.trace.formats import WEIGH_CALLS
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.callstacks import CallStacks
from engine.trace.formats.values import frames, function_name
from engine.trace.rows import HEAD, EventSource, EventTable, whole
from engine.trace.sample import is_sample, period

_STACKS: Final = 1 << 12
"""Stacks whose text is kept."""


class FoldedFormat:
    """Counts events by their call stack, or time by calls; everything comes at the end."""

    name: ClassVar[str] = "folded"
    wants_stacks: ClassVar[bool] = True
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table; of the options only `WEIGH_CALLS` means something."""
        self._events = events
        self._by_calls = WEIGH_CALLS in options
        self._names = names
        self._counts: Counter[str] = Counter()
        self._programs: ByProgram[str] = ByProgram()
        self._functions = self._programs.symbols(0)
        self._stacks: dict[bytes, str] = {}
        self._comms: dict[bytes, str] = {}
        self._before = ""
        self._weight = 1
        self._calls: CallStacks[str] = CallStacks(events, self._grown, self._weigh)

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
                raw = data[position + info.words * 8 : position + words * 8]
                stack = self._stacks.get(raw)
                if stack is None:
                    stack = self._chain(raw, frames(info, data, position))
                stack = self._program(thread) + stack
                if self._before:
                    stack = f"{stack};{self._before}"
                self._counts[stack] += self._weight
            elif is_sample(info):
                self._before, self._weight = "", period(data, position)
            elif not self._calls.take(event_id, thread, data, position):
                self._before, self._weight = info.name, 1
            position += words * 8
        return b""

    def _chain(self, raw: bytes, found: Sequence[int]) -> str:
        """The names of a stack's functions, outermost first, a semicolon before each."""
        if len(self._stacks) >= _STACKS:
            self._stacks.clear()
        names = [self._function(pc, index > 0) for index, pc in enumerate(found)]
        text = self._stacks[raw] = "".join(f";{name}" for name in reversed(names))
        return text

    def _program(self, thread: int) -> str:
        """The name of a thread's program."""
        comm = self._names.comm(thread)
        if comm is None:
            return "?"
        found = self._comms.get(comm)
        if found is None:
            found = self._comms[comm] = _word(escaped(comm))
        return found

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
        self._stacks.clear()
        self._functions = self._programs.symbols(number)

    def state(self) -> object:
        """The counts, the event whose stack may come next, and calls that are open."""
        return [dict(self._counts), self._before, self._calls.state(), self._weight]

    def restore(self, state: object) -> None:
        """Go on counting."""
        counts, before, calls, weight = cast("tuple[dict[str, int], str, object, int]", state)
        self._calls.restore(calls, str)
        self._counts = Counter({str(stack): int(count) for stack, count in counts.items()})
        self._before, self._weight = str(before), int(weight)

    def _grown(self, caller: str | None, thread: int, function: int) -> str:
        if caller is None:
            caller = self._program(thread)
        return f"{caller};{self._function(function, False)}"

    def _weigh(self, stack: str, calls: int, time: int) -> None:
        by_time = self._calls.is_timed and not self._by_calls
        self._counts[stack] += time if by_time else calls

    def _function(self, pc: int, calls: bool) -> str:
        """Name of the function; a return address belongs to the call before it."""
        place = pc - calls
        found = self._functions.get(place)
        if found is None:
            symbol = self._names.symbol(place)
            known = function_name(symbol) if symbol != f"{place:#x}" else f"{pc:#x}"
            found = self._functions[place] = _word(escaped(known))
        return found


def _word(name: str) -> str:
    """A name without the signs that separate names and counts."""
    return name.replace(";", ":").replace(" ", "_")
