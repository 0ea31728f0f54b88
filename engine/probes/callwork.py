"""Work of code in the guest for the calls of a return event."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.program import (
    Base,
    FetchArg,
    FieldType,
    RecordField,
    RecordLayout,
    Source,
    ValueKind,
)
from engine.arch.recording import CallEntry, CallWord, Recording
from engine.fetch.bases import argument
from engine.fetch.emit import captured_by
from engine.fetch.functiontext import Captured
from engine.probes.kretprobe import CallEnd, CallWork

COUNTED: Final = "the instances of a return probe are counted there"
"""Why one with a limit (`maxactive`) takes the engine."""


def call_work(arch: Arch, row: Recording) -> CallWork:
    """Values kept from the entry in the record of a call, and the row made of it.

    Args:
        arch: the guest's architecture.
        row: of the return event, as the engine would record it.
    """
    captured = captured_by(row.layout)
    places = {wanted: CallWord.KEPT + index for index, wanted in enumerate(captured)}
    word = FieldType(ValueKind.HEX, arch.bits // 8)
    kept: list[FetchArg | None] = []
    for one in captured:
        fetch = (argument(arch, one), ()) if isinstance(one, int) else one
        kept.append(None if fetch is None else FetchArg("", "", *fetch, word))
    end = CallEnd(replace(row, layout=_of_calls(row.layout, places)))
    return CallWork(row.address, row.image_base, row.pc, tuple(kept), None, end)


def call_entry(call: CallWork, number: int, kind: int, *, deeper: bool) -> CallEntry:
    """Work at the entry of a function.

    Args:
        call: what a return probe wants.
        number: of the probe.
        kind: which code may end its calls.
        deeper: whether a tracker counts them.
    """
    return CallEntry(
        number, kind, call.function, deeper, call.image_base, call.pc, call.kept, call.row
    )


def _of_calls(layout: RecordLayout, places: Mapping[Captured, int]) -> RecordLayout:
    """A layout for code that finds what was captured in a call's record."""

    def moved(field: RecordField) -> RecordField:
        base = field.arg.base
        wanted = base.value if base.source is Source.ENTRY else base.fetch
        if base.source in (Source.ENTRY, Source.AT_ENTRY):
            base = Base(Source.CALL, value=places[wanted])
        elif base.source is Source.DURATION:
            base = replace(base, value=places[None])
        return replace(field, arg=replace(field.arg, base=base))

    return replace(layout, fields=tuple(map(moved, layout.fields)))
