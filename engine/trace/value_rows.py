"""Rows of values that somebody reads at the hit: texts among them, so their sizes differ."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from engine.fetch.evaluate import FetchContext, Recorder
from engine.trace.rows import EventInfo, pack_row

ReadValues: TypeAlias = Callable[[tuple[int, ...]], Sequence[int | bytes]]
"""Reads an event's values at a hit, given what was kept at the function's entry."""


def value_recorder(
    info: EventInfo, address: int, read: ReadValues, context: FetchContext
) -> Recorder:
    """Make the recorder of an event whose values are read as a whole.

    Args:
        info: the event.
        address: of the probe, as rows show it; of the function for a return event.
        read: its values.
        context: where rows go, and the clock.
    """
    sink, now = context.sink, context.cpu.now

    def put(row: bytes) -> None:
        if sink.position + len(row) > sink.limit:
            sink.drain()
        position = sink.position
        sink.buffer[position : position + len(row)] = row
        sink.position = position + len(row)

    def entered(thread: int) -> None:
        put(pack_row(info, thread, now(), address, read(())))

    def returned(thread: int, returned_to: int = 0, entry: tuple[int, ...] = ()) -> None:
        put(pack_row(info, thread, now(), address, (returned_to, *read(entry))))

    return returned if info.returns else entered
