"""Events as people read them in the log: `NAME(ARGUMENTS) PLACE`."""

import struct
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from engine.arch.program import THREAD_MOST
from engine.trace.formats.base import Names
from engine.trace.formats.ftrace import FtraceFormat, argument_template, literal
from engine.trace.formats.lines import Complete, Words, words_layout
from engine.trace.rows import HEAD, EventInfo, EventTable, FormKind, whole

_Line: TypeAlias = tuple[
    str, bytes, EventInfo | None, Callable[[bytes, int], Words], Complete | None
]
"""Name, template of the arguments, the event, unpacking of a row's time and columns, and what is
left to do."""

_TIME = struct.Struct("<8xQ").unpack_from
_PLACE = struct.Struct("<16xQ").unpack_from
_PLACES = struct.Struct("<16xQQ").unpack_from


class EventText(Struct, frozen=True):
    """The parts of a line, with text of the guest escaped.

    Attributes:
        time: of the clock of the trace.
        thread: id of the thread.
        task: COMM-ID.
        name: of the event.
        arguments: "n=4, s=..." without the parentheses.
        place: where it was hit; for a return, where it returns to and from.
        returns: whether it is a return.
        address: of the probe; where it returns to for a return.
    """

    time: int
    thread: int
    task: bytes
    name: str
    arguments: bytes
    place: bytes
    returns: bool
    address: int


class EventLines:
    """Makes the text of rows."""

    def __init__(self, events: EventTable, names: Names) -> None:
        """For the events of a table, which may still grow."""
        self._events = events
        self._names = names
        self._ftrace = FtraceFormat(events, names)
        self._lines: dict[int, _Line] = {}
        self._tasks: dict[int, bytes] = {}

    def renamed(self, thread_id: int) -> None:
        """A thread has another name from here on."""
        self._tasks.pop(thread_id, None)
        self._ftrace.renamed(thread_id)

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._ftrace.program(number)

    def ftrace(self, rows: bytes) -> bytes:
        """Rows as ftrace prints them; nothing while the first one's description is on its way."""
        event_id, _, thread_id = HEAD.unpack_from(rows)
        known = whole(event_id, thread_id)[0] in self._events
        return self._ftrace.rows(rows) if known else b""

    def parts(self, row: bytes) -> EventText:
        """The parts of a row's line."""
        event_id, _, thread_id = HEAD.unpack_from(row)
        if thread_id > THREAD_MOST:
            event_id, thread_id = whole(event_id, thread_id)
        name, arguments, info, unpack, complete = self._line(event_id)
        words = unpack(row, 0)
        shown = words if complete is None else complete(words, row, 0)
        returns = info is not None and info.returns
        addresses = (_PLACES if returns else _PLACE)(row, 0)
        return EventText(
            words[0],
            thread_id,
            self.task(thread_id),
            name,
            arguments % tuple(shown[1:]),
            self._place(info, addresses),
            returns,
            addresses[-1],
        )

    def typed(self, row: bytes) -> list[tuple[str, str]]:
        """Names and texts of a row's values whose types in the source are known."""
        event_id, _, thread_id = HEAD.unpack_from(row)
        if thread_id > THREAD_MOST:
            event_id, thread_id = whole(event_id, thread_id)
        info = self._events.get(event_id)
        shown = () if info is None else info.columns
        return [
            (column.name, self._ftrace.typed(column)(row, 0).decode(errors="backslashreplace"))
            for column in shown
            if column.form is not None and column.form.kind is not FormKind.NOTHING
        ]

    def rows(self, data: bytes) -> list[bytes]:
        """The searchable line of each row: TIME TASK NAME(ARGUMENTS) PLACE."""
        out: list[bytes] = []
        unpack_head, position, end = HEAD.unpack_from, 0, len(data)
        lines, tasks = self._lines, self._tasks
        while position < end:
            event_id, size, thread_id = unpack_head(data, position)
            if thread_id > THREAD_MOST:
                event_id, thread_id = whole(event_id, thread_id)
            line = lines.get(event_id) or self._line(event_id)
            name, arguments, info, unpack, complete = line
            task = tasks.get(thread_id) or self.task(thread_id)
            words = unpack(data, position)
            shown = words if complete is None else complete(words, data, position)
            addresses = (_PLACES if info and info.returns else _PLACE)(data, position)
            out.append(
                b"%d %s %s(%s) %s"
                % (
                    words[0],
                    task,
                    name.encode(),
                    arguments % tuple(shown[1:]),
                    self._place(info, addresses),
                )
            )
            position += size * 8
        return out

    def task(self, thread_id: int) -> bytes:
        """COMM-ID of a thread, remembered once its name is known."""
        task = self._tasks.get(thread_id)
        if task is None:
            task = b"%s-%d" % (self._names.comm_text(thread_id), thread_id)
            if self._names.comm(thread_id) is not None:
                self._tasks[thread_id] = task
        return task

    def _place(self, info: EventInfo | None, addresses: tuple[int, ...]) -> bytes:
        if info is None:
            return b"0x%x" % addresses[0]
        return self._ftrace.place(info, addresses)

    def _line(self, event_id: int) -> _Line:
        line = self._lines.get(event_id)
        if line is None:
            info = self._events.get(event_id)
            if info is None:
                # Its description is still on its way.
                return f"event {event_id}", b"", None, _TIME, None
            arguments = b", ".join(
                b"%s=%s" % (literal(column.name), argument_template(column))
                for column in info.columns
            )
            unpack = words_layout(info).unpack_from
            line = info.name, arguments, info, unpack, self._ftrace.completion(info)
            self._lines[event_id] = line
        return line
