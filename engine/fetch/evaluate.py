"""The host evaluator: fetch arguments compiled to a closure that records one hit as a row.

What an argument fetches is the kernel's business (kernel/trace/trace_probe_tmpl.h) but for what
it leaves undefined:

- Unreadable memory gives 0 for a number (the kernel leaves what the buffer held before) and no
  bytes for a string, which prints as "(fault)".
- Every element of an array is fetched on its own: one that is unreadable harms no other.
- A string without a NUL in 4,096 bytes is cut (a uprobe of Linux shows "(fault)" for it).

What a hit costs is a batch read of registers, a look into memory for each dereference, and one
`pack_into`: `emit` makes one function of all arguments.
"""

from collections.abc import Callable
from typing import cast

from engine.arch.base import Arch
from engine.arch.program import EVENT_LOW, EVENT_MOST, RecordLayout
from engine.fetch.bases import argument
from engine.fetch.context import (
    ROW_MAX,
    STRING_MAX,
    FetchContext,
    FetchCpu,
    FetchMemory,
    FetchSite,
    Recorder,
    RowSink,
    SharedRecorder,
)
from engine.fetch.emit import capture_code, captured_by, recorder_code
from engine.fetch.functiontext import Bound, Target

__all__ = [
    "ROW_MAX",
    "STRING_MAX",
    "FetchContext",
    "FetchCpu",
    "FetchMemory",
    "FetchSite",
    "Recorder",
    "RowSink",
    "SharedRecorder",
    "capturer",
    "recorder",
    "shared_recorder",
]


def recorder(
    event_id: int, layout: RecordLayout, site: FetchSite, context: FetchContext
) -> Recorder:
    """Compile an event's arguments for one probe.

    Args:
        event_id: up to `EVENT_MOST`, its low half not 0.
        layout: of its rows; says whether it is a return event.
        site: the probe.
        context: the guest.

    Raises:
        ValueError: an argument that no definition can contain: a string or an array of
            something that is not in memory.
    """
    if not event_id & EVENT_LOW or not 0 < event_id <= EVENT_MOST:
        raise ValueError(f"event id {event_id} does not fit a row")
    sink = context.sink
    room = min(ROW_MAX * 8, sink.capacity)
    cursor: memoryview | None = getattr(sink, "cursor", None)
    has_cursor = cursor is not None
    machine, wide = _machine(context.arch), event_id > EVENT_LOW
    code = recorder_code(layout, machine, has_cursor=has_cursor, room=room, wide=wide)
    return cast(Recorder, code.bind(Bound(site, context, event_id, room, cursor)))


def shared_recorder(layout: RecordLayout, context: FetchContext) -> SharedRecorder:
    """Compile what records an event's arguments at any probe: `recorder` is quicker at a hit.

    Args:
        layout: of its rows, which have no strings; none of its arguments depends on the place.
        context: the guest.
    """
    sink = context.sink
    room = min(ROW_MAX * 8, sink.capacity)
    cursor: memoryview | None = getattr(sink, "cursor", None)
    machine, has_cursor = _machine(context.arch), cursor is not None
    code = recorder_code(layout, machine, has_cursor=has_cursor, room=room, shared=True)
    bound = Bound(FetchSite(0, 0), context, room=room, cursor=cursor)
    return cast(SharedRecorder, code.bind(bound))


def capturer(
    layout: RecordLayout, site: FetchSite, context: FetchContext
) -> Callable[[], tuple[int, ...]] | None:
    """The reader for the entry of a return event's function; None if nothing is read there.

    The values are words: arguments of the function, what other fetches give there, the time.
    """
    captured = captured_by(layout)
    if not captured:
        return None
    wanted = tuple(
        (argument(context.arch, one), ()) if isinstance(one, int) else one for one in captured
    )
    code = capture_code(wanted, _machine(context.arch))
    return cast("Callable[[], tuple[int, ...]]", code.bind(Bound(site, context)))


def _machine(arch: Arch) -> Target:
    return Target(arch.bits, arch.byteorder, arch.roles.sp, arch.probes.retval, arch.roles.pc)
