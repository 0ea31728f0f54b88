"""A filter of a function graph's rows by what comes later: a call's length, calls made in it.

As uftrace's `-t` and `-C`: a call shorter than a time is left out with its return, its time stays
with its caller; and of calls only those stay that lead to a call of some functions. A row waits
until its call is decided, and what comes behind it waits with it: rows keep their order.
"""

import struct
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from engine.arch.program import THREAD_MOST
from engine.trace.graph import is_entry, is_exit
from engine.trace.rows import HEAD, EventTable, whole

_CALL: Final = struct.Struct("<8xQQQ").unpack_from
"""Time, function, depth."""
_RETURN: Final = struct.Struct("<8xQQ8xQQ").unpack_from
"""Time, function, depth, time of the call."""
_NONE, _ENTRY, _EXIT = range(3)
WAITING_MOST: Final = 1 << 18
"""Rows that wait; where there are more, the oldest call is shown without being decided."""


class _WaitingCall(Struct):
    """A call that has not returned.

    Attributes:
        number: of its row.
        depth: of the call.
        began: time of its entry.
        leads: one of the wanted functions is called in it, or it is one.
        shown: it is shown, whatever is still to come.
    """

    number: int
    depth: int
    began: int
    leads: bool
    shown: bool = False


class _WaitingRow(Struct):
    """A row that is not out yet, and its call if that is still open."""

    data: bytes
    call: _WaitingCall | None = None


class _CallsOfThread(Struct):
    calls: list[_WaitingCall] = field(default_factory=list)


class CallFilter:
    """Lets rows of some calls pass.

    Attributes:
        functions: addresses of those that calls must lead to.
        assumed: calls that are shown undecided, as too many rows have waited.
    """

    def __init__(self, events: EventTable, shortest: int, *, leads_on: bool) -> None:
        """Nothing has come yet.

        Args:
            events: the event table.
            shortest: time that a call takes at least.
            leads_on: calls must lead to one of `functions`.
        """
        self.functions: set[int] = set()
        self.assumed = 0
        self._events = events
        self._shortest = shortest
        self._leads_on = leads_on
        self._kinds: dict[int, int] = {}
        self._threads: dict[int, _CallsOfThread] = {}
        self._waiting: OrderedDict[int, _WaitingRow] = OrderedDict()
        self._next = 0
        self._now = 0

    def passed(self, data: bytes) -> bytes:
        """Take rows; those that are decided by now, in their order."""
        position, end = 0, len(data)
        out: list[bytes] = []
        while position < end:
            event_id, words, thread = HEAD.unpack_from(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            row = data[position : position + words * 8]
            kind = self._kinds.get(event_id)
            if kind is None:
                info = self._events[event_id]
                kind = _ENTRY if is_entry(info) else _EXIT if is_exit(info) else _NONE
                self._kinds[event_id] = kind
            if kind == _ENTRY:
                self._enter(thread, row)
            elif kind == _EXIT:
                self._leave(thread, row)
            else:
                self._wait(row)
            self._release(out)
            position += words * 8
        return b"".join(out)

    def rest(self) -> bytes:
        """The rows that still wait: calls that are open are as long as they are by now."""
        found = [
            row.data
            for row in self._waiting.values()
            if row.call is None or self._is_decided(row.call)
        ]
        self._waiting.clear()
        self._threads.clear()
        return b"".join(found)

    def remarks(self) -> Iterator[str]:
        """Remarks for the user at the end."""
        if self.assumed:
            yield (
                f"{self.assumed} calls are shown although nobody knew yet how long they take or "
                f"where they lead: {WAITING_MOST} rows waited for them"
            )

    def _wait(self, row: bytes, call: _WaitingCall | None = None) -> None:
        self._waiting[self._next] = _WaitingRow(bytes(row), call)
        self._next += 1

    def _enter(self, thread: int, row: bytes) -> None:
        time, function, depth = _CALL(row, 0)
        self._now = max(self._now, time)
        calls = self._threads.setdefault(thread, _CallsOfThread()).calls
        while calls and calls[-1].depth >= depth:
            self._end(calls.pop())
        call = _WaitingCall(self._next, depth, time, not self._leads_on)
        calls.append(call)
        if not call.leads and function in self.functions:
            for each in reversed(calls):
                if each.leads:
                    break
                each.leads = True
        self._wait(row, call)

    def _leave(self, thread: int, row: bytes) -> None:
        time, _, depth, began = _RETURN(row, 0)
        self._now = max(self._now, time)
        calls = self._threads.setdefault(thread, _CallsOfThread()).calls
        while calls and calls[-1].depth > depth:
            self._end(calls.pop())
        if calls and calls[-1].depth == depth:
            shown = self._end(calls.pop())
        else:  # its entry has never come
            shown = not self._leads_on and time - began >= self._shortest
        if shown:
            self._wait(row)

    def _end(self, call: _WaitingCall) -> bool:
        """Decide a call that is over; True if it is shown."""
        shown = self._is_decided(call)
        waiting = self._waiting.get(call.number)
        if waiting is not None:
            waiting.call = None
            if not shown:
                del self._waiting[call.number]
        return shown

    def _is_decided(self, call: _WaitingCall) -> bool:
        """True if a call is shown for certain."""
        return call.shown or (call.leads and self._now - call.began >= self._shortest)

    def _release(self, out: list[bytes]) -> None:
        """Let rows go up to the first one that is not decided."""
        waiting = self._waiting
        while waiting:
            number, row = next(iter(waiting.items()))
            call = row.call
            if call is not None and not self._is_decided(call):
                if len(waiting) <= WAITING_MOST:
                    return
                self.assumed += 1
            if call is not None:
                call.shown = True
            out.append(row.data)
            del waiting[number]
