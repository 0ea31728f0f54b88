"""The graph of calls that events tell of, as lines; made as events come, in slices.

Rows of the function graph say how deep a call is. Probes on a function's entry and return say
it by their order: a return closes the newest call of its function, and what was called since
and has not returned was left some other way.
"""

import time
from array import array
from collections.abc import Callable, Collection
from typing import Final

from msgspec import Struct, field

from engine.session.protocol.rows import (
    HEAD,
    Event,
    EventInfo,
    EventSource,
    EventTable,
    decode,
    is_entry,
    is_exit,
)
from tui.store import EventStore

OPEN, LEAF, CLOSE, LEFT, POINT = range(5)
"""Kinds of lines: a call that called others, one that did not, its end, its end without a return,
an event that is no call."""

_BLOCK: Final = 256
_UNKNOWN: Final = -1


class GraphLine(Struct, frozen=True):
    """One line.

    Attributes:
        kind: OPEN, LEAF, CLOSE, LEFT or POINT.
        depth: how far in it stands.
        function: address of the function, or of the probe.
        program: number of the program that it is in.
        number: of the event.
        ticks: how long the call took; -1 while that is not known.
        count: calls that are shown as this one.
        ended: number of the event of the return; -1 while there is none.
    """

    kind: int
    depth: int
    function: int
    program: int
    number: int
    ticks: int
    count: int
    ended: int = -1


class Total(Struct):
    """The sum of the calls of one function.

    Attributes:
        calls: how many have returned.
        ticks: in them, what they called included; a call within another of the same function
            is in that one's.
        own: in them alone.
        every: in each of them, those within others of the same function, too.
        longest: in one of them.
    """

    calls: int = 0
    ticks: int = 0
    own: int = 0
    every: int = 0
    longest: int = 0


class _Call(Struct):
    """A call that is open."""

    function: int
    program: int
    line: int
    began: int
    inside: int = 0
    last: int = _UNKNOWN  # line of the newest call that was made in it and is over


class _Thread(Struct):
    calls: list[_Call] = field(default_factory=list)
    depths: dict[int, int] = field(default_factory=dict)  # open calls by function
    last: int = _UNKNOWN


class CallTree:
    """The lines of a store's calls.

    Attributes:
        fold: calls of one function that follow each other are shown as one.
        totals: by program and function.
        returning: addresses of functions whose returns are events, too.
        generation: changes whenever lines are no longer what they were.
    """

    def __init__(self, store: EventStore) -> None:
        """Nothing is looked at yet."""
        self.store = store
        self.fold = True
        self.returning: Collection[int] = frozenset()
        self.generation = 0
        self._clear()

    def _clear(self) -> None:
        self.totals: dict[tuple[int, int], Total] = {}
        self._threads: dict[int, _Thread] = {}
        self._next = self.store.first
        self._kinds, self._depths = array("B"), array("I")
        self._functions, self._programs, self._numbers = array("Q"), array("I"), array("q")
        self._ticks, self._counts = array("q"), array("I")
        self._ends = array("q")  # of a call's first line: its last line
        self._returns = array("q")  # the event of the return that a line shows

    def restart(self) -> None:
        """Make all lines anew, with other settings or for another run."""
        self.generation += 1
        self._clear()

    def __len__(self) -> int:
        return len(self._kinds)

    def __getitem__(self, index: int) -> GraphLine:
        return GraphLine(
            self._kinds[index],
            self._depths[index],
            self._functions[index],
            self._programs[index],
            self._numbers[index],
            self._ticks[index],
            self._counts[index],
            self._returns[index],
        )

    @property
    def pending(self) -> int:
        """Events that have still to be looked at."""
        return self.store.end - self._next

    def line_of(self, number: int) -> int:
        """The line of an event, or the last one in front of it."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._numbers[middle] <= number:
                low = middle + 1
            else:
                high = middle
        return max(low - 1, 0)

    def step(self, seconds: float, clock: Callable[[], float] = time.perf_counter) -> bool:
        """Look at events for so long; whether there are more."""
        store, until = self.store, clock() + seconds
        self._next = max(self._next, store.first)
        while self._next < store.end:
            data, count = store.stretch(self._next, _BLOCK)
            position, table = 0, store.events
            for _ in range(count):
                event_id, words, _ = HEAD.unpack_from(data, position)
                info = table.get(event_id)
                if info is None:
                    return True  # its description is still on its way
                self._take(decode(table, data, position), info, table)
                position += words * 8
                self._next += 1
            if clock() > until:
                break
        return self._next < store.end

    # -- events ---------------------------------------------------------------------------

    def _take(self, event: Event, info: EventInfo, table: EventTable) -> None:
        thread = self._threads.setdefault(event.thread_id, _Thread())
        if info.source is not EventSource.PROBE:
            return
        if is_entry(info) or is_exit(info):
            depth = event.values[0]
            assert isinstance(depth, int)
            known = len(thread.calls)
            for _ in range(known - depth - (1 if info.returns else 0)):
                self._close(thread, event, LEFT)
            if is_entry(info):
                self._enter(thread, event)
            elif len(thread.calls) == depth + 1:
                self._close(thread, event, LEFT if event.values[2] else CLOSE)
        elif info.returns:
            if any(call.function == event.address for call in thread.calls):
                while thread.calls[-1].function != event.address:
                    self._close(thread, event, LEFT)
                self._close(thread, event, CLOSE)
            else:
                self._add(
                    CLOSE, len(thread.calls), event.address, self._program(event), self._next
                )
        elif event.address in self.returning:
            self._enter(thread, event)
        else:
            self._add(POINT, len(thread.calls), event.address, self._program(event), self._next)

    def _enter(self, thread: _Thread, event: Event) -> None:
        line = len(self)
        program = self._program(event)
        self._add(OPEN, len(thread.calls), event.address, program, self._next)
        thread.calls.append(_Call(event.address, program, line, event.time))
        thread.depths[event.address] = thread.depths.get(event.address, 0) + 1

    def _close(self, thread: _Thread, event: Event, kind: int) -> None:
        call = thread.calls.pop()
        ticks = event.time - call.began
        outer = thread.calls[-1] if thread.calls else None
        if outer is not None:
            outer.inside += ticks
        total = self.totals.setdefault((call.program, call.function), Total())
        total.calls += 1
        thread.depths[call.function] -= 1
        if not thread.depths[call.function]:
            total.ticks += ticks
        total.own += ticks - call.inside
        total.every += ticks
        total.longest = max(total.longest, ticks)
        line = call.line
        before = thread.last if outer is None else outer.last
        if self._repeats(before, line, call.function, kind):
            self._counts[before] += 1
            self._ticks[before] += ticks
            self._cut(line)
            self.generation += 1
            return
        self._ticks[line] = ticks
        if kind == CLOSE:
            self._returns[line] = self._next
        if line == len(self) - 1 and kind == CLOSE:
            self._kinds[line] = LEAF
        else:
            self._add(kind, len(thread.calls), call.function, call.program, self._next, ticks)
        self._ends[line] = len(self) - 1
        if outer is None:
            thread.last = line
        else:
            outer.last = line

    def _repeats(self, before: int, line: int, function: int, kind: int) -> bool:
        """True if a call that is over is like the one right in front of it."""
        return (
            self.fold
            and len(self._threads) == 1  # else other threads' lines may stand in between
            and kind == CLOSE
            and before != _UNKNOWN
            and self._functions[before] == function
            and self._ends[before] == line - 1
            and self._kinds[line - 1] != LEFT
        )

    def _program(self, event: Event) -> int:
        return self.store.programs.of(event.thread_id, event.time)

    def _add(
        self,
        kind: int,
        depth: int,
        function: int,
        program: int,
        number: int,
        ticks: int = _UNKNOWN,
    ) -> None:
        self._kinds.append(kind)
        self._depths.append(depth)
        self._functions.append(function)
        self._programs.append(program)
        self._numbers.append(number)
        self._ticks.append(ticks)
        self._counts.append(1)
        self._ends.append(_UNKNOWN)
        self._returns.append(number if kind == CLOSE else _UNKNOWN)

    def _cut(self, line: int) -> None:
        for column in (
            self._kinds,
            self._depths,
            self._functions,
            self._programs,
            self._numbers,
            self._ticks,
            self._counts,
            self._ends,
            self._returns,
        ):
            del column[line:]
