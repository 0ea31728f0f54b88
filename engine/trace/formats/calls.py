"""Calls of functions as JSON: an object with a list of calls, each there once it is over.

Times are ticks of the guest's clock, which counts blocks. Calls of `--tracer function`, of which
no more is known, have a caller and no end.
"""

import json
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Any, ClassVar, Final, cast

from engine.arch.program import EVENT_MOST, THREAD_MOST
from engine.trace.formats.base import ByProgram, Names
from engine.trace.formats.values import Plain, function_name, plain, text
from engine.trace.function import is_function
from engine.trace.graph import is_entry, is_exit
from engine.trace.rows import HEAD, Event, EventInfo, EventTable, FormKind, decode, whole

_RETVALS: Final = frozenset({"funcgraph-retval", "funcgraph-retval-hex"})
_DEPTH_AND_PARENT: Final = 2
"""Columns in front of the arguments of a call in a graph."""
_CALLER: Final = 1
"""The same of the function tracer's."""
_DEEPEST: Final = 1 << 16
"""Open calls of a thread that are kept; deeper ones come without their begin."""


class CallsFormat:
    """The object."""

    name: ClassVar[str] = "calls"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table; of the options those count that show what is returned."""
        self._events = events
        self._names = names
        self._retval = not _RETVALS.isdisjoint(options)
        self._open: dict[int, list[dict[str, Any]]] = {}
        self._lost = 0
        self._before = "\n"
        self._programs: ByProgram[tuple[str, str]] = ByProgram()
        self._functions = self._programs.symbols(0)

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """The object's begin."""
        return b'{"kind": "calls", "unit": "blocks", "calls": ['

    def rows(self, data: bytes) -> bytes:
        """The calls that are over."""
        out: list[str] = []
        position, end = 0, len(data)
        while position < end:
            event_id, words, thread = HEAD.unpack_from(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            info = self._events[event_id]
            if is_entry(info):
                self._enter(info, decode(self._events, data, position))
            elif is_exit(info):
                out.append(self._told(self._left(info, decode(self._events, data, position))))
            elif is_function(info):
                event = decode(self._events, data, position)
                call = self._call(event, 0, event.time)
                call["caller"] = self._function(cast("int", event.values[0]) - 1)[1]
                call["args"] = self._arguments(info, event, _CALLER)
                out.append(self._told(call))
            position += words * 8
        return "".join(out).encode()

    def _call(self, event: Event, depth: int, start: int) -> dict[str, Any]:
        file, function = self._function(event.address)
        comm = self._names.comm(event.thread_id)
        return {
            "function": function,
            "object": file,
            "process": self._names.process(event.thread_id),
            "thread": event.thread_id,
            "name": None if comm is None else text(comm),
            "depth": depth,
            "start": start,
            "end": None,
            "blocks": None,
            "left": False,
            "args": {},
        }

    def _enter(self, info: EventInfo, event: Event) -> None:
        calls = self._open.setdefault(event.thread_id, [])
        call = self._call(event, cast("int", event.values[0]), event.time)
        call["args"] = self._arguments(info, event, _DEPTH_AND_PARENT)
        if len(calls) < _DEEPEST:
            calls.append(call)

    def _left(self, info: EventInfo, event: Event) -> dict[str, Any]:
        """The call that an exit's row ends."""
        depth, start, left, _ = cast("tuple[int, int, int, int]", event.values)
        calls = self._open.get(event.thread_id, [])
        while calls and calls[-1]["depth"] > depth:
            calls.pop()
        known = calls and calls[-1]["depth"] == depth and calls[-1]["start"] == start
        call = calls.pop() if known else self._call(event, depth, start)
        call |= {"end": event.time, "blocks": event.time - start, "left": bool(left)}
        column = info.columns[3]
        void = column.form is not None and column.form.kind is FormKind.NOTHING
        if self._retval and not left and not void:
            call["ret"] = plain(event.values[3], column.type, self._names)
        return call

    def _arguments(self, info: EventInfo, event: Event, skip: int) -> dict[str, Plain]:
        """The arguments of a call; so many columns stand in front."""
        pairs = zip(info.columns[skip:], event.values[skip:], strict=True)
        return {column.name: plain(value, column.type, self._names) for column, value in pairs}

    def _function(self, address: int) -> tuple[str, str]:
        found = self._functions.get(address)
        if found is None:
            file = self._names.file(address)
            path = "" if file is None else file.name or file.path
            name = function_name(self._names.symbol(address))
            found = self._functions[address] = PurePosixPath(path).name, name
        return found

    def _told(self, call: dict[str, Any]) -> str:
        before, self._before = self._before, ",\n"
        return before + json.dumps(call)

    def lost(self, count: int) -> bytes:
        """The end will say how many."""
        self._lost += count
        return b""

    def end(self) -> bytes:
        """The calls that are open, and the object's end."""
        rest = [self._told(call) for calls in self._open.values() for call in calls]
        self._open.clear()
        return "".join((*rest, f'\n], "lost": {self._lost}}}\n')).encode()

    def renamed(self, thread_id: int) -> None:
        """The next call asks for the name anyway."""

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._functions = self._programs.symbols(number)

    def state(self) -> object:
        """The open calls, and whether any was told."""
        return [self._lost, self._before, [[key, calls] for key, calls in self._open.items()]]

    def restore(self, state: object) -> None:
        """Go on behind them."""
        lost, before, found = cast("Any", state)
        self._lost, self._before = int(lost), str(before)
        self._open = {int(key): [dict(call) for call in calls] for key, calls in found}
