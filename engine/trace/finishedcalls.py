"""Calls of a function graph as they end, with the time in each and in what it called.

A call's total time goes from its entry to its return, as in ftrace's durations and in uftrace:
other threads' turns are part of it. Its self time is the total without the calls that it made and
that are traced. A call that does not return lasts until the last row of its thread, as in
`add_remaining_fstack` of uftrace's cmds/report.c.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, cast

from msgspec import Struct, field
from msgspec.structs import astuple

from engine.trace.graph import is_entry, is_exit
from engine.trace.rows import EventTable

_CALL: Final = struct.Struct("<8xQQQ").unpack_from
"""Time, function, depth."""
_RETURN: Final = struct.Struct("<8xQQ8xQQ").unpack_from
"""Time, function, depth, time of the call."""
_NONE, _ENTRY, _EXIT = range(3)


class OpenCall(Struct):
    """A call that has not returned.

    Attributes:
        name: of the function.
        depth: of the call among those that are traced.
        began: time of its entry.
        inside: time in the calls that it made and that are over.
        node: whatever the listener remembers of it.
    """

    name: str
    depth: int
    began: int
    inside: int = 0
    node: int = 0


class ThreadCalls(Struct):
    """The calls of one thread.

    Attributes:
        last: time of its newest row.
        loose: time in finished calls whose caller has no entry among the rows.
        calls: those that are open, the newest last.
        names: how many of them are of each function.
    """

    last: int = 0
    loose: int = 0
    calls: list[OpenCall] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)


class EndedCall(Struct, frozen=True):
    """A call that is over.

    Attributes:
        call: what it was.
        total: time from its entry to its end.
        own: the same without the calls that it made.
        nested: whether it was made within another call of its function.
    """

    call: OpenCall
    total: int
    own: int
    nested: bool


class FinishedCalls:
    """Follows the calls of threads through rows."""

    def __init__(
        self,
        events: EventTable,
        name: Callable[[int], str],
        ended: Callable[[int, EndedCall, ThreadCalls], None],
        began: Callable[[ThreadCalls], None] = lambda calls: None,
    ) -> None:
        """Follow nothing yet.

        Args:
            events: the event table.
            name: of the function at an address, in the program of the rows at hand.
            ended: is told of a thread, a call of it that is over, and the calls around that.
            began: is told of a thread's calls when another one has been added to them.
        """
        self._events = events
        self._name = name
        self._ended = ended
        self._began = began
        self._kinds: dict[int, int] = {}
        self._threads: dict[int, ThreadCalls] = {}

    def take(self, event_id: int, thread: int, data: bytes, position: int) -> bool:
        """Take a row of the graph; False for any other row."""
        kind = self._kinds.get(event_id)
        if kind is None:
            info = self._events[event_id]
            kind = _ENTRY if is_entry(info) else _EXIT if is_exit(info) else _NONE
            self._kinds[event_id] = kind
        if kind == _NONE:
            return False
        found = self._threads.get(thread)
        if found is None:
            found = self._threads[thread] = ThreadCalls()
        calls = found.calls
        if kind == _ENTRY:
            time, function, depth = _CALL(data, position)
            while calls and calls[-1].depth >= depth:  # their returns are lost
                self._end(thread, found, time)
            found.last = time
            name = self._name(function)
            calls.append(OpenCall(name, depth, time))
            found.names[name] = found.names.get(name, 0) + 1
            self._began(found)
            return True
        time, function, depth, start = _RETURN(data, position)
        while calls and calls[-1].depth > depth:
            self._end(thread, found, time)
        found.last = time
        if not calls or calls[-1].depth < depth:  # made before the first row, or before a fork
            name = self._name(function)
            orphan = OpenCall(name, depth, start)
            if not calls:
                orphan.inside, found.loose = found.loose, 0
            calls.append(orphan)
            found.names[name] = found.names.get(name, 0) + 1
            self._began(found)
        self._end(thread, found, time)
        return True

    def finish(self) -> None:
        """End the calls that are open with the last row of their thread."""
        for thread, found in self._threads.items():
            while found.calls:
                self._end(thread, found, found.last)
        self._threads.clear()

    def state(self) -> object:
        """The open calls, as plain data."""
        return [
            [thread, one.last, one.loose, [astuple(call) for call in one.calls]]
            for thread, one in self._threads.items()
        ]

    def restore(self, state: object) -> None:
        """Go on where another one was.

        Raises:
            ValueError, LookupError or TypeError: it is no state of one.
        """
        self._threads = {}
        for thread, last, loose, calls in cast("Any", state):
            found = self._threads[int(thread)] = ThreadCalls(int(last), int(loose))
            for name, *numbers in calls:
                found.calls.append(OpenCall(str(name), *map(int, numbers)))
                found.names[str(name)] = found.names.get(str(name), 0) + 1

    def _end(self, thread: int, found: ThreadCalls, time: int) -> None:
        """End the newest call of a thread."""
        call = found.calls.pop()
        found.names[call.name] -= 1
        nested = found.names[call.name] > 0
        if not nested:
            del found.names[call.name]
        total = max(time - call.began, 0)
        if found.calls:
            found.calls[-1].inside += total
        else:
            found.loose += total
        ended = EndedCall(call, total, max(total - call.inside, 0), nested)
        self._ended(thread, ended, found)
