"""Python for values that become values of another type.

A number wraps as it does in the registers of a machine: its lower bits, with the sign of its new
type (bpftrace's src/ast/passes/codegen_llvm.cpp, `visit(Cast &)`).
"""

from typing import Any, Final

from engine.trace.bpftrace.layouts import value_of
from engine.trace.bpftrace.maps import aggregate_number
from engine.trace.bpftrace.source_lines import SourceLines
from engine.trace.bpftrace.type_rules import type_size
from engine.trace.bpftrace.types import (
    Aggregate,
    Array,
    Boolean,
    BufferType,
    Enumeration,
    Integer,
    Pointer,
    Record,
    ShownType,
    TextType,
    Tuple,
    Type,
)

NUMBER: Final = (Integer, Boolean, Enumeration, Pointer)
_ADDRESS: Final = Integer(64, signed=False)


def integer_of(kind: Type) -> Integer:
    """The integer that values of a type are; one of 64 bits for those that are none."""
    match kind:
        case Integer():
            return kind
        case Enumeration():
            return kind.integer
        case Boolean():
            return Integer(8, signed=False)
        case Pointer():
            return _ADDRESS
        case Aggregate():
            return Integer(64, signed=kind.signed and kind.kind != "count")
        case _:
            return Integer(64, signed=True)


def fits(inner: Integer, outer: Integer) -> bool:
    """All values of one type are values of the other."""
    if inner.signed == outer.signed:
        return inner.bits <= outer.bits
    return outer.signed and inner.bits < outer.bits


def wrapped(code: str, kind: Integer) -> str:
    """A number brought into the range of a type."""
    mask = (1 << kind.bits) - 1
    if code.lstrip("-").isdecimal():
        value = int(code) & mask
        return str(value - (mask + 1) if kind.signed and value >> kind.bits - 1 else value)
    if not kind.signed:
        return f"({code} & {mask})"
    half = 1 << kind.bits - 1
    return f"(({code} + {half} & {mask}) - {half})"


def converted(lines: SourceLines, code: str, source: Type, target: Type) -> str:
    """The code of a value that becomes one of another type.

    Args:
        lines: where it stands.
        code: of the value.
        source: its type.
        target: the type it is to have.
    """
    if source == target:
        return code
    if isinstance(target, Boolean):
        return _truth(code, source)
    if isinstance(source, NUMBER) and isinstance(target, Integer | Enumeration | Pointer):
        outer = integer_of(target)
        return _plain(code, source) if fits(integer_of(source), outer) else wrapped(code, outer)
    if isinstance(target, TextType) and isinstance(source, TextType | ShownType):
        return code if _size(source) <= target.size else f"{code}[:{max(target.size - 1, 0)}]"
    convert = Conversion(source, target)
    return f"{lines.constant(convert, ('conversion', source, target))}({code})"


def _plain(code: str, source: Type) -> str:
    return f"int({code})" if isinstance(source, Boolean) else code


def _truth(code: str, source: Type) -> str:
    return f"({code} is not None)" if source is None else f"bool({code})"


def _size(kind: TextType | ShownType) -> int:
    return kind.size if isinstance(kind, TextType) else 64


class Conversion:
    """Converts values of one type to those of another, part by part."""

    def __init__(self, source: Type, target: Type) -> None:
        """Take two types that can be converted, which was checked."""
        self._source = source
        self._target = target

    def __call__(self, value: Any) -> Any:
        """Convert a value."""
        return convert(value, self._source, self._target)


def convert(value: Any, source: Type, target: Type) -> Any:
    """A value of one type as one of another type."""
    if source == target:
        return value
    if isinstance(source, Aggregate) and not isinstance(target, Aggregate):
        return convert(aggregate_number(source, value), integer_of(source), target)
    match target:
        case Boolean():
            return bool(value)
        case Integer() | Enumeration() | Pointer():
            return _number(value, source, integer_of(target))
        case Tuple():
            inner = _elements(source)
            return tuple(map(convert, value, inner, target.elements))
        case Record():
            return _record(value, source, target)
        case TextType() if isinstance(value, bytes):
            return value[: max(target.size - 1, 0)]
        case BufferType() if isinstance(value, bytes):
            return value[: target.size]
        case Array():
            return value_of(target, memory_bytes(value, source).ljust(type_size(target), b"\0"))
        case _:
            return value


def _number(value: Any, source: Type, target: Integer) -> int:
    number: int
    if isinstance(value, int):
        number = value
    else:
        number = int.from_bytes(memory_bytes(value, source)[: target.bits // 8], "little")
    mask = (1 << target.bits) - 1
    number &= mask
    return number - mask - 1 if target.signed and number >> target.bits - 1 else number


def _elements(kind: Type) -> tuple[Type, ...]:
    if isinstance(kind, Record):
        return tuple([each for _, each in kind.fields])
    return kind.elements if isinstance(kind, Tuple) else ()


def _record(value: Any, source: Type, target: Record) -> Any:
    if not isinstance(source, Record):
        return value
    places = {name: index for index, (name, _) in enumerate(source.fields)}
    return tuple(
        [
            convert(value[places[name]], source.fields[places[name]][1], kind)
            for name, kind in target.fields
        ]
    )


def memory_bytes(value: Any, source: Type) -> bytes:
    """The bytes that a value has in memory."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, tuple) and isinstance(source, Array):
        return b"".join([memory_bytes(each, source.element) for each in value])
    kind = integer_of(source)
    return (int(value) & (1 << kind.bits) - 1).to_bytes(kind.bits // 8, "little")
