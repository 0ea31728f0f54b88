"""What the tracers of functions record, for code in the guest; and arguments of functions."""

from collections.abc import Sequence
from typing import Final

from engine.arch.base import Arch
from engine.arch.program import Base, FetchArg, FieldType, Kind, RecordLayout, Source
from engine.arch.recording import CallWord, Recording
from engine.fetch.variables import VariableError
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import CallEnd, CallWork
from engine.session.program.places import Place
from engine.trace.rows import EventInfo
from engine.trace.variables import ScopeVariables

_ARGUMENTS_MAX: Final = 16


def call_row(
    arch: Arch, probe: Kprobe, place: Place, info: EventInfo, args: tuple[FetchArg, ...]
) -> Recording:
    """A call as the function tracer records it: where it returns to, and arguments."""
    link = arch.roles.link
    parent = Base(Source.STACK) if link is None else Base(Source.REGISTER, link)
    return _recording(probe, place, info, (parent,), args)


def calls_of(
    probe: Kprobe, place: Place, info: EventInfo, args: tuple[FetchArg, ...], end: CallEnd
) -> CallWork:
    """The calls of a function as function_graph records them."""
    columns = (_of_call(CallWord.DEPTH), _of_call(CallWord.RETURN))
    row = _recording(probe, place, info, columns, args)
    return CallWork(row.address, row.image_base, row.pc, (), row, end)


def call_end(exits: EventInfo, *, retval: bool) -> CallEnd:
    """Their returns.

    Args:
        exits: the event.
        retval: whether the value returned is recorded.
    """
    zero, value = Base(Source.IMMEDIATE), Base(Source.RETVAL)
    of_call = (_of_call(word) for word in (CallWord.DEPTH, CallWord.TIME))
    bases = (*of_call, zero, value if retval else zero)
    layout = RecordLayout.of(tuple(_word(base) for base in bases), returns=True)
    return CallEnd(Recording(exits.id, layout, 0, 0, 0), of_call=True)


def arguments(scope: ScopeVariables) -> tuple[FetchArg, ...]:
    """What a function is called with, as far as debug information says and words hold it."""
    args: list[FetchArg] = []
    seen: set[object] = set()
    try:
        names = scope.parameters()[:_ARGUMENTS_MAX]
        for name in names:
            found = scope.resolve(name)
            kind, where = found.kind, (found.base, found.derefs)
            if kind is None or kind.is_string or kind.count or kind.width or where in seen:
                continue
            seen.add(where)
            base = Base(Source.AT_ENTRY, fetch=where)
            args.append(FetchArg(name, name, base, (), FieldType(kind.kind, kind.size)))
    except VariableError:
        return ()
    return tuple(args)


def _recording(
    probe: Kprobe,
    place: Place,
    info: EventInfo,
    columns: Sequence[Base],
    args: tuple[FetchArg, ...],
) -> Recording:
    """A row with some words and the arguments of a function."""
    fetches = [arg.base.fetch for arg in args if arg.base.fetch is not None]
    words = [*map(_word, columns), *(_word(base, derefs) for base, derefs in fetches)]
    address = probe.addr or 0
    base, layout = address - (place.file_offset or 0), RecordLayout.of(tuple(words))
    return Recording(info.id, layout, address - place.offset, base, address)


def _word(base: Base, derefs: tuple[int, ...] = ()) -> FetchArg:
    return FetchArg("", "", base, derefs, FieldType(Kind.HEX, 8))


def _of_call(word: CallWord) -> Base:
    return Base(Source.CALL, value=word)
