"""Call stacks of the rows of the tracers of functions, with the time spent in each.

Rows of `graph` have no stack of their own: calls and returns of a thread make it. The time from
one row of a thread to its next was spent in the newest call between them; as in ftrace's
durations, other threads' turns are part of it. Calls of `--tracer function` are counted by
function and caller, as nothing else is known of them.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

from msgspec import Struct, field

from engine.trace.function import is_function
from engine.trace.graph import is_entry, is_exit
from engine.trace.rows import EventTable

DEEPEST: Final = 128
"""Calls of a stack that are told apart; deeper ones count as the last of these. Else a recursion
of n calls would have n stacks of up to n names."""

_CALL: Final = struct.Struct("<8xQQQ").unpack_from
"""Time, function, depth (of the function tracer: the caller)."""
_RETURN: Final = struct.Struct("<8xQQ8xQ").unpack_from
"""Time, function, depth."""
_NONE, _ENTRY, _EXIT, _FUNCTION = range(4)

Stack = TypeVar("Stack")


class _OpenCalls(Struct, Generic[Stack]):
    """The open calls of a thread: (depth, stack up to the call), the newest last."""

    last: int
    calls: list[tuple[int, Stack]] = field(default_factory=list)


class CallStacks(Generic[Stack]):
    """Follows calls of threads through rows.

    Attributes:
        is_timed: stacks are weighed by time so far; else nothing was, or calls were counted.
    """

    def __init__(
        self,
        events: EventTable,
        grown: Callable[[Stack | None, int, int], Stack],
        count: Callable[[Stack, int, int], None],
    ) -> None:
        """Follow nothing yet.

        Args:
            events: the event table.
            grown: makes the stack of a call from that of its caller, None for an outermost one,
                the thread and the address of the function.
            count: is told of a stack, calls and time; the time is 0 where only calls are known.
        """
        self.is_timed = False
        self._events = events
        self._grown = grown
        self._count = count
        self._kinds: dict[int, int] = {}
        self._threads: dict[int, _OpenCalls[Stack]] = {}

    def take(self, event_id: int, thread: int, data: bytes, position: int) -> bool:
        """Take a row of a tracer of functions; False for any other row."""
        kind = self._kinds.get(event_id)
        if kind is None:
            kind = self._kind(event_id)
        if kind == _NONE:
            return False
        if kind == _FUNCTION:
            _, function, parent = _CALL(data, position)
            caller = self._grown(None, thread, parent - 1)  # in the call that it returns behind
            self._count(self._grown(caller, thread, function), 1, 0)
            return True
        self.is_timed = True
        read = _CALL if kind == _ENTRY else _RETURN
        time, function, depth = read(data, position)
        found = self._threads.get(thread)
        if found is None:
            found = self._threads[thread] = _OpenCalls[Stack](time)
        calls = found.calls
        if calls:
            self._count(calls[-1][1], 0, time - found.last)
        elif kind == _EXIT:  # its call came before the first row, or is lost
            self._count(self._grown(None, thread, function), 0, time - found.last)
        found.last = time
        while calls and calls[-1][0] >= depth:
            calls.pop()
        if kind == _ENTRY:
            top = calls[-1][1] if calls else None
            stack = self._grown(top, thread, function) if len(calls) < DEEPEST else calls[-1][1]
            calls.append((depth, stack))
            self._count(stack, 1, 0)
        return True

    def state(self) -> object:
        """The open calls, as plain data."""
        return [
            self.is_timed,
            [[thread, one.last, one.calls] for thread, one in self._threads.items()],
        ]

    def restore(self, state: object, stack_of: Callable[[object], Stack]) -> None:
        """Go on where another one was.

        Raises:
            ValueError, LookupError or TypeError: it is no state of one.
        """
        timed, threads = cast("tuple[object, Any]", state)
        self.is_timed = bool(timed)
        self._threads = {}
        for thread, last, calls in threads:
            made = [(int(depth), stack_of(stack)) for depth, stack in calls]
            self._threads[int(thread)] = _OpenCalls(int(last), made)

    def _kind(self, event_id: int) -> int:
        info = self._events[event_id]
        kind = _NONE
        for one, matches in ((_ENTRY, is_entry), (_EXIT, is_exit), (_FUNCTION, is_function)):
            if matches(info):
                kind = one
        self._kinds[event_id] = kind
        return kind
