"""Values as the ABIs pass and return them: the shape of a type, and the parts that registers hold.

A shape is what a calling convention asks about a type: its size and the scalars in it. Each
architecture divides a shape into parts, each of a bank of registers, or says that the value is in
memory (`ElfAbi.divide`). Arguments and results are divided alike; which register of a bank a part
is in depends on what is passed before it, so that is not said here.
"""

from collections.abc import Callable, Mapping
from enum import Enum

from msgspec import Struct

EIGHTBYTE = 8
"""Bytes of a general register, and of the units that x86-64's ABI divides values into."""


class ScalarKind(Enum):
    """The kind of a scalar, as far as conventions tell them apart."""

    INTEGER = "integer, pointer, truth value or bitfield"
    FLOAT = "IEEE floating-point number"
    EXTENDED = "floating-point number of 80 bits"
    VECTOR = "vector"


class Scalar(Struct, frozen=True):
    """A scalar in a value.

    Attributes:
        kind: its kind.
        offset: its first byte in the value; of a bitfield the one with its lowest bit.
        size: its bytes; of a bitfield those that it touches.
        is_bitfield: it is one, and so it need not be aligned.
    """

    kind: ScalarKind
    offset: int
    size: int
    is_bitfield: bool = False


class ValueShape(Struct, frozen=True):
    """A type as calling conventions see it.

    Attributes:
        size: bytes.
        scalars: those in it in the order of their declaration; of a value that is too large for
            registers everywhere, none.
        is_record: it is a structure, class or union.
        has_union: there is a union in it, or it is one.
        by_reference: its address is passed: a C++ object that must not be copied bytewise.
    """

    size: int
    scalars: tuple[Scalar, ...]
    is_record: bool = False
    has_union: bool = False
    by_reference: bool = False


class Bank(Enum):
    """Registers of one kind that values are passed in."""

    GENERAL = "general"
    FLOAT = "floating point or vector"
    X87 = "x87 stack"


class RegisterPart(Struct, frozen=True):
    """The part of a value that is in one register.

    Attributes:
        bank: of that register.
        offset: the part's first byte in the value.
        size: its bytes.
    """

    bank: Bank
    offset: int
    size: int


Divide = Callable[[ValueShape], "tuple[RegisterPart, ...] | None"]
"""The parts of a value in the order of their registers; None for a value that is in memory."""


def _low_bytes(number: int, size: int) -> bytes:
    """The low bytes of a register."""
    return (number & (1 << 8 * size) - 1).to_bytes(size, "little")


class ResultPlaces(Struct, frozen=True):
    """Registers that a function's result comes in.

    Attributes:
        banks: registers of each bank, in the order in which parts take them.
        entry: register in which a function gets the address of a result in memory.
        exit: register that holds this address when the function returns; "" for none.
        upper: further bits of registers, in registers of their own.
        decode: (content of a register of Bank.FLOAT, bytes of a part) to these bytes.
    """

    banks: Mapping[Bank, tuple[str, ...]]
    entry: str
    exit: str
    upper: Mapping[str, str] = {}
    decode: Callable[[int, int], bytes] = _low_bytes


def in_words(size: int) -> tuple[RegisterPart, ...]:
    """A value in as many general registers as it has words."""
    return tuple(
        RegisterPart(Bank.GENERAL, at, min(EIGHTBYTE, size - at))
        for at in range(0, size, EIGHTBYTE)
    )


def homogeneous(
    shape: ValueShape, most: int, kinds: Mapping[ScalarKind, tuple[int, ...]]
) -> tuple[RegisterPart, ...] | None:
    """The elements of a value that consists of equal floating-point numbers or vectors.

    Args:
        shape: the value's.
        most: elements.
        kinds: sizes of elements, by their kinds.

    Returns:
        None for any other value. Elements that a union has in the same place count once.
    """
    found = dict.fromkeys((one.offset, one.size, one.kind) for one in shape.scalars)
    if not 0 < len(found) <= most:
        return None
    _, size, kind = next(iter(found))
    wanted = {(number * size, size, kind) for number in range(len(found))}
    if size not in kinds.get(kind, ()) or set(found) != wanted or len(found) * size != shape.size:
        return None
    return tuple(
        RegisterPart(Bank.FLOAT, at, size) for at, _, _ in sorted(wanted, key=lambda one: one[0])
    )
