"""Text as ftrace's function tracer prints it (print_fn_trace of kernel/trace/trace_output.c)."""

import struct
from collections.abc import Collection
from typing import ClassVar, Final

from engine.arch.program import EVENT_MOST, THREAD_MOST
from engine.trace.formats.base import Names
from engine.trace.formats.ftrace import FtraceFormat
from engine.trace.formats.graph import Arguments, argument_text, chosen
from engine.trace.formats.typed import placed
from engine.trace.function import is_function
from engine.trace.rows import HEAD, EventTable, whole

OPTIONS: Final = {"func-args": False, "print-parent": True, "sym-offset": False}
"""Trace options of the tracer and whether they are on at first."""

_ROW: Final = struct.Struct("<8xQQQ").unpack_from


class FunctionFormat:
    """ftrace's function text."""

    name: ClassVar[str] = "function"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = True
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table, which may still grow.

        Raises:
            CommandError: there is no such trace option.
        """
        self._events = events
        self._names = names
        self._on = chosen(OPTIONS, options)
        self._plain = FtraceFormat(events, names)
        self._arguments: dict[int, Arguments] = {}
        self._prefixes: dict[int, bytes] = {}

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """The tracer, the counts if there are any, and the legend."""
        return self._plain.header(kept, written).replace(b": nop", b": function", 1)

    def rows(self, data: bytes) -> bytes:
        """A line for each row."""
        out: list[bytes] = []
        head, position, end = HEAD.unpack_from, 0, len(data)
        texts = self._arguments
        while position < end:
            event_id, words, thread = head(data, position)
            if thread > THREAD_MOST:
                event_id, thread = whole(event_id, thread)
            arguments = texts.get(event_id)
            if arguments is None and is_function(self._events[event_id]):
                arguments = argument_text(self._events[event_id], 1, self._place)
                texts[event_id] = arguments
            if arguments is None:
                out.append(self._plain.rows(data[position : position + words * 8]))
            else:
                time, function, parent = _ROW(data, position)
                text = self._name(function)
                if self._on["func-args"]:
                    text += arguments(data, position)
                if self._on["print-parent"]:
                    text += b" <-" + self._name(parent)
                prefix = self._prefixes.get(thread) or self._prefix(thread)
                out.append(b"%s %12d: %s\n" % (prefix, time, text))
            position += words * 8
        return b"".join(out)

    def lost(self, count: int) -> bytes:
        """As trace_pipe prints it before the next event."""
        return self._plain.lost(count)

    def end(self) -> bytes:
        """Nothing."""
        return b""

    def renamed(self, thread_id: int) -> None:
        """A thread has another name from here on."""
        self._prefixes.pop(thread_id, None)
        self._plain.renamed(thread_id)

    def program(self, number: int) -> None:
        """The rows from here on are of another program."""
        self._plain.program(number)

    def state(self) -> object:
        """Each line stands for itself."""
        return None

    def restore(self, state: object) -> None:
        """Nothing to go on from."""

    def _prefix(self, thread: int) -> bytes:
        name = self._names.comm_text(thread)
        found = self._prefixes[thread] = b"%16s-%-7d [000] ....." % (name, thread)
        return found

    def _place(self, address: int) -> bytes:
        """The symbol of an address as debuggers write it; b"" where there is none."""
        return placed(self._plain.symbol(address))

    def _name(self, address: int) -> bytes:
        text = self._plain.symbol(address)
        name, plus, _ = text.rpartition(b"+0x")
        return text if self._on["sym-offset"] or not plus else name
