"""Rules of the types of a script: names, sizes, what promotes to what, what fits.

The rules are those of bpftrace 0.26 (src/types.cpp: `typestr`, `IsCompatible`, `FitsInto`,
`get_promoted_type`; src/ast/integer_types.cpp). A number that is written has the smallest signed
type that holds it, and its sign bends to that of what it meets: `FlexibleInteger`.
"""

from collections.abc import Sequence
from typing import Final

from engine.trace.bpftrace.types import (
    BOOL,
    INT64,
    UINT64,
    Aggregate,
    Array,
    Boolean,
    BufferType,
    Enumeration,
    Integer,
    Pointer,
    Record,
    ShownType,
    StackType,
    Structure,
    SymbolType,
    TextType,
    Tuple,
    Type,
    Void,
)


class FlexibleInteger(Integer, frozen=True):
    """The type of a number that is written and not negative: of either sign."""


_BUFFER_HEAD: Final = 4
"""Bytes that bpftrace adds to the size of a buffer (AsyncEvent::Buf)."""

_SHOWN_NAMES: Final = {
    "mac": "mac_address",
    "username": "username_t",
    "timestamp": "timestamp",
    "strerror": "string[64]",
    "syscall_name": "string[64]",
    "cgroup_path": "cgroup_path_t",
    "inet": "inet[24]",
}
_SHOWN_SIZES: Final = {
    "mac": 6,
    "username": 8,
    "timestamp": 16,
    "strerror": 64,
    "syscall_name": 64,
    "cgroup_path": 16,
    "inet": 24,
}
_CASTABLE: Final = frozenset(("count", "sum", "min", "max", "avg"))
_HISTOGRAMS: Final = frozenset(("hist", "lhist", "tseries"))
_SIGNED_NAMES: Final = frozenset(("sum", "min", "max", "avg", "stats"))
COMPARISONS: Final = frozenset(("==", "!=", "<", ">", "<=", ">=", "&&", "||"))
"""Operators whose value is a truth value."""


# -- what types are ---------------------------------------------------------------------------


def type_name(kind: Type | None) -> str:
    """The name of a type in errors: "int8", "string[2]", "(int8,string[6])"."""
    match kind:
        case None:
            return "none"
        case Integer():
            return f"{'int' if kind.signed else 'uint'}{kind.bits}"
        case Enumeration():
            return f"enum {kind.name}"
        case TextType():
            return f"string[{kind.size}]" if kind.size else "string"
        case BufferType():
            return f"buffer[{kind.size + _BUFFER_HEAD}]"
        case Pointer():
            return f"{type_name(kind.target)} *"
        case Array():
            return f"{type_name(kind.element)}[{kind.count}]"
        case Structure():
            return kind.name
        case Tuple():
            return "(" + ",".join([type_name(each) for each in kind.elements]) + ")"
        case Record():
            fields = [f".{name} = {type_name(each)}" for name, each in kind.fields]
            return "record { " + ", ".join(fields) + " }"
        case StackType():
            return f"{kind.space[0]}stack_{kind.mode}_{kind.limit}"
        case Aggregate():
            unsigned = kind.kind in _SIGNED_NAMES and not kind.signed
            return f"{'u' if unsigned else ''}{kind.kind}_t"
        case ShownType():
            return _SHOWN_NAMES[kind.kind]
        case SymbolType():
            return f"{kind.space[0]}sym_t"
        case Void():
            return "void"
        case Boolean():
            return "bool"


def kind_name(kind: Type | None) -> str:
    """The name of the kind of a type: "int", "string", "pointer", "c_type"."""
    match kind:
        case Integer() | Enumeration():
            return "int"
        case TextType():
            return "string"
        case BufferType():
            return "buffer"
        case Pointer():
            return "pointer"
        case Array():
            return "array"
        case Structure():
            return "c_type"
        case Tuple():
            return "tuple"
        case Record():
            return "record"
        case StackType():
            return f"{kind.space[0]}stack"
        case Aggregate():
            return f"{kind.kind}_t"
        case ShownType() if kind.kind in ("strerror", "syscall_name"):
            return "string"
        case ShownType() if kind.kind == "inet":
            return "inet"
        case _:
            return type_name(kind)


def type_size(kind: Type) -> int:
    """Bytes of values of a type, as `sizeof` tells them."""
    match kind:
        case Integer():
            return kind.bits // 8
        case Enumeration():
            return kind.integer.bits // 8
        case TextType():
            return kind.size
        case BufferType():
            return kind.size + _BUFFER_HEAD
        case Pointer() | Aggregate():
            return 8
        case Array():
            return kind.count * type_size(kind.element)
        case Structure():
            return kind.size
        case Tuple():
            return _laid_out(kind.elements)
        case Record():
            return _laid_out([each for _, each in kind.fields])
        case StackType():
            return kind.limit * 8 + (8 if kind.space == "kernel" else 16)
        case ShownType():
            return _SHOWN_SIZES[kind.kind]
        case SymbolType():
            return 8 if kind.space == "kernel" else 16
        case Boolean():
            return 1
        case Void():
            return 0


def _laid_out(kinds: Sequence[Type]) -> int:
    offset, most = 0, 1
    for kind in kinds:
        align = _alignment(kind)
        most = max(most, align)
        offset += -offset % align + type_size(kind)
    return offset + -offset % most


def _alignment(kind: Type) -> int:
    match kind:
        case TextType() | BufferType() | ShownType():
            return 1
        case SymbolType(space="user"):
            return 1
        case Tuple():
            return max([1, *[_alignment(each) for each in kind.elements]])
        case Record():
            return max([1, *[_alignment(each) for _, each in kind.fields]])
        case Structure():
            return 1  # of C, which bpftrace does not align in tuples (its src/struct.h)
        case Array():
            return _alignment(kind.element)
        case _:
            size = type_size(kind)
            return max(size, 1) if size <= 2 else 4 if size <= 4 else 8


def integer_of(kind: Type | None) -> Integer | None:
    """The number behind a number or an enumeration; None for anything else."""
    if isinstance(kind, Enumeration):
        return kind.integer
    return kind if isinstance(kind, Integer) else None


def settled(kind: Type) -> Type:
    """A type without flexible signs."""
    match kind:
        case FlexibleInteger():
            return Integer(kind.bits, kind.signed)
        case Tuple():
            return Tuple(tuple([settled(each) for each in kind.elements]))
        case Record():
            return Record(tuple([(name, settled(each)) for name, each in kind.fields]))
        case Pointer():
            return Pointer(settled(kind.target), kind.space)
        case Array():
            return Array(settled(kind.element), kind.count)
        case _:
            return kind


def same(one: Type | None, other: Type | None) -> bool:
    """Two types are one, whosever memory pointers lead to."""
    if one is None or other is None:
        return one is other
    match one, other:
        case Integer(), Integer():
            return one.bits == other.bits and one.signed == other.signed
        case Enumeration(), Enumeration():
            return one.name == other.name and one.integer == other.integer
        case Structure(), Structure():
            return one.name == other.name and one.size == other.size
        case Pointer(), Pointer():
            return same(one.target, other.target)
        case Array(), Array():
            return one.count == other.count and same(one.element, other.element)
        case Tuple(), Tuple():
            return len(one.elements) == len(other.elements) and all(
                map(same, one.elements, other.elements)
            )
        case Record(), Record():
            return [name for name, _ in one.fields] == [name for name, _ in other.fields] and all(
                same(a, b) for (_, a), (_, b) in zip(one.fields, other.fields, strict=True)
            )
        case _:
            return type(one) is type(other) and one == other


def is_castable(kind: Type | None) -> bool:
    """A type of a map that stands for a number: `count()`, `sum()`, `min()`, `max()`, `avg()`."""
    return isinstance(kind, Aggregate) and kind.kind in _CASTABLE


def is_histogram(kind: Type | None) -> bool:
    """A type of a map whose entries are several numbers each."""
    return isinstance(kind, Aggregate) and kind.kind in _HISTOGRAMS


def is_signed(kind: Type | None) -> bool:
    """A number that may be negative; an aggregate of such."""
    if isinstance(kind, Aggregate):
        return kind.kind != "count" and kind.signed
    number = integer_of(kind)
    return number is not None and number.signed


_WRITTEN: Final = tuple([FlexibleInteger(bits, signed=True) for bits in (8, 16, 32, 64)])
_NEGATIVE: Final = tuple([Integer(bits, signed=True) for bits in (8, 16, 32, 64)])


def smallest(value: int) -> Integer:
    """The type of a number that is written."""
    for kind in _NEGATIVE if value < 0 else _WRITTEN:
        if -1 << (kind.bits - 1) <= value < 1 << (kind.bits - 1):
            return kind
    return UINT64


def bends(kind: Type | None) -> tuple[bool, ...]:
    """Which of the numbers in a type are of either sign."""
    match kind:
        case Integer():
            return (isinstance(kind, FlexibleInteger),)
        case Tuple():
            return sum(map(bends, kind.elements), ())
        case Record():
            return sum([bends(each) for _, each in kind.fields], ())
        case Pointer():
            return bends(kind.target)
        case _:
            return ()


def part_count(kind: Type) -> int:
    """The number of values in one of a type, those of tuples in tuples counted singly."""
    match kind:
        case Tuple():
            return 1 + sum(map(part_count, kind.elements))
        case Record():
            return 1 + sum([part_count(each) for _, each in kind.fields])
        case _:
            return 1


def holds(kind: Integer, value: int) -> bool:
    """A number is one of a type."""
    if kind.signed:
        return -(1 << (kind.bits - 1)) <= value < 1 << (kind.bits - 1)
    return 0 <= value < 1 << kind.bits


# -- how they get along -----------------------------------------------------------------------


def compatible(one: Type, other: Type) -> bool:
    """Values of two types can be one variable's, perhaps promoted."""
    match one, other:
        case ((Integer() | Enumeration()), (Integer() | Enumeration())):
            return True
        case (TextType(), TextType()) | (BufferType(), BufferType()) | (Boolean(), Boolean()):
            return True
        case Structure(), Structure():
            return one.name == other.name
        case Pointer(), Pointer():
            return compatible(one.target, other.target)
        case Tuple(), Tuple():
            return len(one.elements) == len(other.elements) and all(
                map(compatible, one.elements, other.elements)
            )
        case Record(), Record():
            rest = dict(other.fields)
            return len(one.fields) == len(other.fields) and all(
                name in rest and compatible(each, rest[name]) for name, each in one.fields
            )
        case Array(), Array():
            sizes = one.count == other.count or not one.count or not other.count
            return sizes and same(one.element, other.element)
        case Aggregate(), Aggregate():
            return one.kind == other.kind
        case _:
            return type(one) is type(other) and one == other


def _promoted_number(one: Integer, other: Integer) -> Integer:
    flexible = [isinstance(each, FlexibleInteger) for each in (one, other)]
    bits = max(one.bits, other.bits)
    if one.signed == other.signed:
        return (FlexibleInteger if all(flexible) else Integer)(bits, one.signed)
    if any(flexible):
        signed = any(
            each.signed and not free for each, free in zip((one, other), flexible, strict=True)
        )
        return Integer(bits, signed)
    wide, narrow = (one, other) if one.signed else (other, one)
    if wide.bits > narrow.bits:
        return wide
    return Integer(min(2 * bits, 64), signed=True)


def promoted(now: Type | None, new: Type) -> Type | None:
    """The type that a variable has to have to hold values of two types; None if there is none.

    Args:
        now: the type so far; None if it has none yet.
        new: the type of another value.
    """
    if now is None:
        if is_castable(new):
            return Integer(64, is_signed(new))
        return new
    if same(now, new):
        return _promoted_part(now, new)
    if not compatible(now, new):
        for number, aggregate in ((now, new), (new, now)):
            held = integer_of(number)
            if held is not None and is_castable(aggregate):
                return _promoted_number(held, Integer(64, is_signed(aggregate)))
        return None
    return _promoted_part(now, new)


def _promoted_part(now: Type, new: Type) -> Type | None:
    one, other = integer_of(now), integer_of(new)
    if one is not None and other is not None:
        if same(now, new):
            return new if isinstance(now, FlexibleInteger) else now
        return _promoted_number(one, other)
    match now, new:
        case Aggregate(), Aggregate():
            return now if is_signed(now) or not is_signed(new) else new
        case TextType(), TextType():
            return TextType(max(now.size, new.size))
        case Pointer(), Pointer():
            target = _promoted_part(now.target, new.target)
            return None if target is None else Pointer(target, new.space)
        case Tuple(), Tuple():
            parts = [_promoted_part(a, b) for a, b in zip(now.elements, new.elements, strict=True)]
            known = tuple([part for part in parts if part is not None])
            return Tuple(known) if len(known) == len(parts) else None
        case Record(), Record():
            rest = dict(new.fields)
            fields = [(name, _promoted_part(kind, rest[name])) for name, kind in now.fields]
            sure = tuple([(name, kind) for name, kind in fields if kind is not None])
            return Record(sure) if len(sure) == len(fields) else None
        case _:
            return now


def fits(kind: Type, into: Type) -> bool:
    """Every value of a type is one of another type."""
    if not compatible(kind, into):
        return False
    one, other = integer_of(kind), integer_of(into)
    if one is not None and other is not None:
        if one.signed == other.signed or isinstance(one, FlexibleInteger):
            return one.bits <= other.bits
        return not one.signed and one.bits < other.bits
    match kind, into:
        case TextType(), TextType():
            return kind.size <= into.size
        case Tuple(), Tuple():
            return all(map(fits, kind.elements, into.elements))
        case Record(), Record():
            rest = dict(into.fields)
            return all(fits(each, rest[name]) for name, each in kind.fields)
        case _:
            return same(kind, into)


def assignable(value: Type, now: Type | None, *, to_map: bool = False) -> bool:
    """A value may be put into a variable or a map that has a type already.

    An aggregate is a number only where a number is wanted; histograms never are.
    """
    if isinstance(value, Void):
        return False
    if isinstance(value, Aggregate):
        if not is_castable(value):
            return False
        if integer_of(now) is None and (to_map or now is not None):
            return False
    return True


def arithmetic_type(operator: str, left: Type, right: Type) -> tuple[Type, str]:
    """The type of `left operator right` for numbers, and what is odd about it; "" if nothing."""
    one, other = _number(left), _number(right)
    if isinstance(one, FlexibleInteger) and not isinstance(other, FlexibleInteger):
        one = Integer(one.bits, other.signed)
    elif isinstance(other, FlexibleInteger) and not isinstance(one, FlexibleInteger):
        other = Integer(other.bits, one.signed)
    if operator in COMPARISONS:
        return BOOL, ""
    odd = ""
    alike = one.bits == other.bits and one.signed == other.signed and type(left) is type(right)
    if operator in ("/", "%") and (one.signed or other.signed) and not alike:
        odd = (
            f"signed operands for '{operator}' can lead to undefined behavior "
            "(cast to unsigned to silence warning)"
        )
    if one.signed or other.signed or operator == "-":
        return INT64, odd
    return UINT64, odd


def _number(kind: Type) -> Integer:
    if isinstance(kind, Boolean):
        return Integer(8, signed=False)
    if isinstance(kind, Aggregate):
        return Integer(64, is_signed(kind))
    number = integer_of(kind)
    return INT64 if number is None else number


def is_number(kind: Type | None) -> bool:
    """A type that arithmetic takes: numbers, truth values, aggregates that stand for a number."""
    return integer_of(kind) is not None or isinstance(kind, Boolean) or is_castable(kind)
