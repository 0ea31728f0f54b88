"""Values of scripts as text: numbers, structures, tuples, stacks and what has a name.

A function for a type is made once and then shows any number of values: printing a map of
thousands of entries does not look at the type for each. Source: format in bpftrace's
src/types_format.cpp and TextEmitter in its src/output/text.cpp.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.arithmetic import truncated_quotient
from engine.trace.bpftrace.layouts import PartBudget, part_value
from engine.trace.bpftrace.maps import aggregate_number, average_of, number_of
from engine.trace.bpftrace.value_names import ValueNames, timestamp_text
from engine.trace.bpftrace.values import (
    UNWOUND_NO_FURTHER,
    CgroupPathValue,
    StackValue,
    SymbolValue,
    TimestampValue,
    UsernameValue,
)

Shower = Callable[[Any], bytes]
"""Shows a value of one type."""

_INDENT: Final = b" " * 8
NULL: Final = b"null"


def shower(
    kind: kinds.Type,
    names: ValueNames,
    div: int = 1,
    *,
    plus: bool = False,
    budget: PartBudget | None = None,
) -> Shower:
    """A function that shows values of a type.

    Args:
        kind: the type.
        names: for what is shown by name.
        div: numbers are divided by it.
        plus: a sign is shown for positive numbers of signed types, too.
        budget: parts of structures that may still be shown; None at the outermost one.
    """
    budget = PartBudget() if budget is None else budget

    def inner(part: kinds.Type) -> Shower:
        return shower(part, names, div, plus=plus, budget=budget)

    match kind:
        case kinds.Integer():
            return _integer(kind, div, plus)
        case kinds.Boolean():
            return lambda value: b"true" if value else b"false"
        case kinds.TextType():
            return _text(kind.size, names.strings_cut)
        case kinds.BufferType():
            return hexed
        case kinds.Pointer():
            return b"%#x".__mod__
        case kinds.Enumeration():
            return _enumeration(kind)
        case kinds.Array():
            return _sequence(b"[", b",", b"]", [inner(kind.element)] * kind.count)
        case kinds.Tuple():
            return _sequence(b"(", b", ", b")", list(map(inner, kind.elements)))
        case kinds.Record():
            return _record([(name, inner(one)) for name, one in kind.fields])
        case kinds.Structure():
            return _structure(kind, inner, budget, names.little_endian)
        case kinds.StackType():
            return lambda value: stack_text(kind, value, names)
        case kinds.SymbolType():
            return lambda value: symbol_text(kind, value, names)
        case kinds.ShownType():
            return lambda value: named_text(value, names)
        case kinds.Aggregate():
            return _aggregate(kind, div, plus)
        case _:
            return lambda value: NULL


def _integer(kind: kinds.Integer, div: int, plus: bool) -> Shower:
    form = b"%+d" if plus and kind.signed else b"%d"
    if div == 1:
        return form.__mod__
    return lambda value: form % truncated_quotient(value, div)


def _text(size: int, cut: bytes) -> Shower:
    return lambda value: value + cut if len(value) >= size else value


def _enumeration(kind: kinds.Enumeration) -> Shower:
    names = {value: name.encode() for value, name in reversed(kind.names)}
    mask = (1 << kind.integer.bits) - 1
    return lambda value: names.get(value) or b"%d" % (value & mask)


def _sequence(start: bytes, between: bytes, end: bytes, showers: Sequence[Shower]) -> Shower:
    return lambda values: (
        start
        + between.join([show(value) for show, value in zip(showers, values, strict=True)])
        + end
    )


def _record(fields: Sequence[tuple[str, Shower]]) -> Shower:
    if not fields:
        return lambda value: b"{}"
    parts = [(f".{name} = ".encode(), show) for name, show in fields]
    return lambda values: (
        b"{ "
        + b", ".join(
            [name + show(value) for (name, show), value in zip(parts, values, strict=True)]
        )
        + b" }"
    )


def _structure(
    kind: kinds.Structure, inner: Callable[[kinds.Type], Shower], budget: PartBudget, little: bool
) -> Shower:
    parts = budget.parts(kind)
    if parts is None:
        return lambda data: NULL
    fields = _record(budget.shown(parts, inner))
    return lambda data: fields([part_value(part, data, little) for part in parts])


def _aggregate(kind: kinds.Aggregate, div: int, plus: bool) -> Shower:
    form = b"%+d" if plus and kind.signed else b"%d"
    if kind.kind == "stats":
        return lambda cell: (
            b"{ .count = %d, .average = %d, .total = %d }" % stats_of(kind, cell, div)
        )
    return lambda cell: form % truncated_quotient(aggregate_number(kind, cell), div)


def stats_of(kind: kinds.Aggregate, cell: Any, div: int = 1) -> tuple[int, int, int]:
    """The count, the average and the total of a cell of `stats`; div divides the average."""
    count, total = cell or (0, 0)
    return (
        count,
        truncated_quotient(average_of(kind, [count, total]), div),
        number_of(kind, total),
    )


_HARMLESS: Final = [
    bytes([byte]) if 32 <= byte <= 126 else b"\\x%02x" % byte for byte in range(256)
]


def hexed(data: bytes) -> bytes:
    r"""Bytes of a buffer: what is ASCII and prints as it is, the rest as `\x00`."""
    return b"".join([_HARMLESS[byte] for byte in data])


def symbol_text(kind: kinds.SymbolType, value: SymbolValue, names: ValueNames) -> bytes:
    """The name of what is at an address; the address if there is none."""
    if kind.space == "kernel":
        found = names.kernel_symbols(value.address)
    else:
        found = names.user_symbols(value.address, value.process)
    return found[-1].name.encode() if found else _address(value.address)


def _address(address: int) -> bytes:
    return b"%#x" % address if address else b"0"  # as C++ prints a void *


def stack_text(kind: kinds.StackType, stack: StackValue, names: ValueNames) -> bytes:
    """A stack as it is shown: a newline, then a line for each frame."""
    if kind.mode == "build_id":
        return b"\n" + b"".join(
            b"%b %#04x\n" % (ident.hex().encode(), offset) if ident else b"%x\n" % offset
            for ident, offset in stack.build_ids
        )
    lines = [b"\n"]
    for address in stack.frames[: kind.limit]:
        if address == UNWOUND_NO_FURTHER:
            lines.append(_INDENT + b"<unwind failure>\n")
            break
        if kind.mode == "raw":
            lines.append(b"%x\n" % address)
            continue
        for name in _frame_names(kind, address, stack.process, names):
            if kind.mode == "perf":
                lines.append(b"\t%x %b\n" % (address, name))
            else:
                lines.append(b"%b%b\n" % (_INDENT, name))
    return b"".join(lines)


def _frame_names(
    kind: kinds.StackType, address: int, process: int, names: ValueNames
) -> list[bytes]:
    perf, kernel = kind.mode == "perf", kind.space == "kernel"
    found = names.kernel_symbols(address) if kernel else names.user_symbols(address, process)
    if not found:
        return [_address(address) + (b" ([unknown])" if perf and not kernel else b"")]
    return [name.text(offset=True, perf=perf, kernel=kernel).encode() for name in found]


def named_text(value: Any, names: ValueNames) -> bytes:
    """The text of a function's result that has a way of its own to be shown."""
    match value:
        case bytes():
            return value
        case TimestampValue():
            base = names.booted_at if value.clock == "boot" else 0
            return timestamp_text(base + value.nanoseconds, value.format, names)
        case UsernameValue():
            return names.username(value.user).encode()
        case CgroupPathValue():
            return names.cgroup_path(value.group, value.filter).encode()
        case _:
            return str(value).encode()
