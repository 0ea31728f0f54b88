"""An event's arguments as the source of one Python function, which records a hit.

Closures within closures cost a call for each step of each argument; a function that was written
for the event costs what it does. The text depends on the layout of the rows alone, so probes of
one shape share it, and thousands of them are armed for the price of one compilation. What differs
between them (addresses, the guest, the sink) comes in through the factory around the function.

Nothing that a user has typed gets into the text: only numbers, and names that are made here.
"""

import struct
from functools import lru_cache
from typing import Final

from engine.arch.program import (
    RETURN_HEAD,
    Base,
    FetchArg,
    FieldType,
    RecordLayout,
    Source,
    ValueKind,
    row_head,
)
from engine.fetch.context import STRING_MAX
from engine.fetch.functiontext import Captured, FunctionText, Target, UnboundFunction
from engine.fetch.rowparts import Shapes, packers

_SHAPES: Final = 512
"""Functions of different layouts that are kept."""


def captured_by(layout: RecordLayout) -> list[Captured]:
    """The fetches of a return event at the function's entry, in order; the time comes last."""
    found: list[Captured] = []
    timed = False
    for field in layout.fields:
        base = field.arg.base
        wanted = base.value if base.source is Source.ENTRY else base.fetch
        timed = timed or base.source is Source.DURATION
        if wanted is not None and wanted not in found:
            found.append(wanted)
    return [*found, None] if timed else found


@lru_cache(_SHAPES)
def capture_code(
    wanted: tuple[tuple[Base, tuple[int, ...]] | None, ...], machine: Target
) -> UnboundFunction:
    """Reads what is captured at an entry: a function without arguments that gives a tuple."""
    text = FunctionText(machine)
    word = FieldType(ValueKind.HEX, machine.bits // 8)
    values = [
        "now()" if one is None else text.number(FetchArg("", "", *one, word)) for one in wanted
    ]
    if None in wanted:
        text.needs["now"] = lambda bound: bound.context.cpu.now
    return text.function("", [*text.lines, f"return ({', '.join(values)},)"])


@lru_cache(_SHAPES)
def recorder_code(
    layout: RecordLayout,
    machine: Target,
    *,
    has_cursor: bool,
    room: int,
    wide: bool = False,
    shared: bool = False,
) -> UnboundFunction:
    """Records a hit: a function of the thread id and, for a return, what `Recorder` says.

    Args:
        layout: of the rows.
        machine: what runs the guest.
        has_cursor: whether the sink has `engine.trace.staging`'s cursor.
        room: bytes of the longest row.
        wide: the event's id is higher than `EVENT_LOW`.
        shared: it is a `SharedRecorder`, of rows of an entry event without strings.

    Raises:
        ValueError: a string or an array of something that is not in memory, or a row that
            does not fit without strings.
    """
    if layout.words * 8 > room:
        raise ValueError(f"a row of {layout.words} words does not fit")
    captured = captured_by(layout)
    strings = [field.arg for field in layout.fields if field.arg.type.is_string]
    texts = sum(max(arg.type.count, 1) for arg in strings)
    roomy = layout.words * 8 + texts * STRING_MAX <= room
    single = roomy and len(strings) == 1 and _is_short(strings[0])
    returns = layout.head == RETURN_HEAD
    # A return's handlers find the caller's pc (kretprobe's and uretprobe's trampoline handlers).
    text = FunctionText(machine, captured, single=single, pc="returned_to" if returns else "")
    words = [word for field in layout.fields for word in text.argument(field.arg)]
    lines, fixed = text.lines, layout.words * 8
    thread = "thread_id"
    if wide:
        text.needs["event"] = lambda bound: row_head(bound.event_id, 0)[1]
        thread = "event | thread_id"
    head = [thread, "now()", "address", *(["returned_to"] if returns else [])]
    text.needs["now"] = lambda bound: bound.context.cpu.now
    if not shared:
        text.needs["address"] = lambda bound: bound.site.address
    text.needs["buffer"] = lambda bound: bound.context.sink.buffer
    text.needs["drain"] = lambda bound: bound.context.sink.drain
    if captured:
        lines[:0] = [f"({''.join(f'e{index}, ' for index in range(len(captured)))}) = entry"]
    if not text.texts:
        row = struct.Struct(f"<II{layout.words - 1}Q").pack_into
        text.needs["pack"] = lambda bound: row
        if not shared:
            text.needs["head"] = lambda bound: row_head(bound.event_id, layout.words)[0]
        size, pack = str(fixed), ["head", *head, *words]
    elif single:
        text.needs["shapes"] = lambda bound: Shapes(row_head(bound.event_id, 0)[0], layout.words)
        size, pack = "size", ["head", *head, *words, text.texts[0]]
        lines.append("pack, head, w0, size = shapes[length]")
    else:
        short = roomy and all(map(_is_short, strings))
        lines += text.short_texts(fixed) if short else text.any_texts(fixed)
        text.needs["packers"] = lambda bound: packers(layout.words)
        text.needs["number"] = lambda bound: row_head(bound.event_id, 0)[0]
        size, pack = "size", ["number | size << 13", *head, *words, "data"]
        lines.append("pack = packers[size]")
    lines += _placed(text, size, f"pack(buffer, AT, {', '.join(pack)})", has_cursor=has_cursor)
    parameters = "thread_id, head, address" if shared else "thread_id"
    if returns:
        absent = f"({'0, ' * len(captured)})"
        parameters += f", returned_to=0, entry={absent}"
    return text.function(parameters, lines)


def _is_short(arg: FetchArg) -> bool:
    """True if an argument is one string whose length is limited; a symbol's name is not."""
    return arg.type.kind is not ValueKind.SYMSTR and not arg.type.count


def _placed(text: FunctionText, size: str, pack: str, *, has_cursor: bool) -> list[str]:
    """The lines that put a row of a size where the sink wants it."""
    if has_cursor:
        text.needs["cursor"] = lambda bound: bound.cursor
        text.needs["start"] = lambda bound: bound.context.sink.limit - bound.context.sink.capacity
        text.needs["capacity"] = lambda bound: bound.context.sink.capacity
        return [
            "used = cursor[0]",
            f"if used + {size} > capacity:",
            "    drain()",
            "    used = cursor[0]",
            pack.replace("AT", "start + used"),
            f"cursor[0] = used + {size}",
        ]
    text.needs["sink"] = lambda bound: bound.context.sink
    return [
        "at = sink.position",
        f"if at + {size} > sink.limit:",
        "    drain()",
        "    at = sink.position",
        pack.replace("AT", "at"),
        f"sink.position = at + {size}",
    ]
