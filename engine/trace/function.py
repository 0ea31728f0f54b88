"""Calls of many functions as rows: what ftrace's function tracer records."""

import struct
from collections.abc import Callable, Sequence
from typing import Final

from engine.arch.program import ROW_HEAD, FieldType, ValueKind, row_head
from engine.errors import GuestFaultError
from engine.fetch.evaluate import RowSink
from engine.trace.graph import GROUP, Shown
from engine.trace.rows import Column, EventInfo, pack_row

FUNCTION: Final = "function"
_PLACE: Final = FieldType(ValueKind.SYMBOL, 8)


def function_info(number: int, args: Sequence[Shown] = ()) -> EventInfo:
    """The event of calls (TRACE_FN): where they return to, then arguments."""
    columns = [Column("parent", _PLACE, ROW_HEAD)]
    columns += [
        Column(name, kind, ROW_HEAD + 1 + index, form=form)
        for index, (name, kind, form) in enumerate(args)
    ]
    words = ROW_HEAD + len(columns)
    return EventInfo(number, GROUP, FUNCTION, tuple(columns), words, symbolic=True)


def is_function(info: EventInfo) -> bool:
    """True if rows are calls that the function tracer has seen."""
    return info.name == FUNCTION and info.group == GROUP


def function_recorder(
    function: int,
    info: EventInfo,
    sink: RowSink,
    now: Callable[[], int],
    frame: Callable[[], tuple[int, int]],
    capture: Callable[[], tuple[int, ...]] | None,
    values: Callable[[], Sequence[int | bytes]] | None = None,
) -> Callable[[int], None]:
    """Make the recorder of a probe on a function's entry.

    Args:
        function: address as rows show it.
        info: the event.
        sink: where rows go.
        now: the clock.
        frame: stack pointer and return address at a function's entry.
        capture: reads the arguments; None without.
        values: reads them in its place where texts are among them.
    """
    pack_into = struct.Struct(f"<II{info.words - 1}Q").pack_into
    head, more = row_head(info.id, info.words)
    size, buffer = info.words * 8, sink.buffer

    def record(thread: int) -> None:
        try:
            parent = frame()[1]
        except GuestFaultError:
            parent = 0
        if values is not None:
            row = pack_row(info, thread, now(), function, (parent, *values()))
            if sink.position + len(row) > sink.limit:
                sink.drain()
            position = sink.position
            buffer[position : position + len(row)] = row
            sink.position = position + len(row)
            return
        position = sink.position
        if position + size > sink.limit:
            sink.drain()
            position = sink.position
        args = () if capture is None else capture()
        pack_into(buffer, position, head, more | thread, now(), function, parent, *args)
        sink.position = position + size

    return record
