"""The parts of structures and arrays, and values read from their bytes.

A part whose type scripts do not have (a floating-point number) is there without a value: it is
shown as `null`, as in bpftrace.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from msgspec import Struct

from engine.image.datatypes import MAX_DEPTH, DataType, Member, TypeKind
from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.c_types import Space, value_type
from engine.trace.bpftrace.type_rules import type_size

T = TypeVar("T")

MOST_PARTS: Final = 4096
"""Parts of a structure, or elements of an array, that are read and shown."""


class StructurePart(Struct, frozen=True):
    """A member of a structure as scripts see it.

    Attributes:
        name: its name.
        type: its type.
        offset: bytes from the structure's start.
        size: bytes that it takes, or those that its bits are in.
        bits: of a bitfield, how many; 0 for other members.
        shift: of a bitfield, how many lower bits are before it in its bytes.
    """

    name: str
    type: kinds.Type
    offset: int
    size: int
    bits: int = 0
    shift: int = 0


class PartBudget(Struct):
    """The number of parts of structures in structures that are still shown.

    Damaged debug information may say that a structure contains itself, any number of times.

    Attributes:
        left: how many.
        depth: structures around.
    """

    left: int = MOST_PARTS
    depth: int = 0

    def parts(self, structure: kinds.Structure) -> tuple[StructurePart, ...] | None:
        """The members of a structure; None if there are too many, or too many around it."""
        if self.depth > MAX_DEPTH or self.left <= 0:
            return None
        found = parts_of(structure)
        self.left -= len(found) + 1
        return found

    def shown(
        self, parts: Iterable[StructurePart], show: Callable[[kinds.Type], T]
    ) -> list[tuple[str, T]]:
        """The names of members and what shows them, which may be structures themselves."""
        self.depth += 1
        found = [(part.name, show(part.type)) for part in parts]
        self.depth -= 1
        return found


def parts_of(structure: kinds.Structure, space: Space = "none") -> tuple[StructurePart, ...]:
    """The members of a structure or union, those of anonymous ones in it among them."""
    found: list[StructurePart] = []
    waiting: list[Iterator[tuple[Member, int]]] = [_members(structure.layout, 0)]
    for _ in range(MOST_PARTS):
        while waiting:
            member, at = next(waiting[-1], (None, 0))
            if member is not None:
                break
            waiting.pop()
        else:
            break
        if member.name:
            found.append(_part(member, space, at))
        elif member.type.kind is TypeKind.RECORD and not member.bit_size:
            waiting.append(_members(member.type, at + member.offset))
    return tuple(found)


def _members(layout: DataType, at: int) -> Iterator[tuple[Member, int]]:
    return ((member, at) for member in layout.members)


def _part(member: Member, space: Space, at: int) -> StructurePart:
    kind = value_type(member.type, space) or kinds.VOID
    name = member.name or ""
    if not member.bit_size:
        size = member.type.size  # of a pointer, 4 bytes on small machines
        return StructurePart(
            name, kind, at + member.offset, type_size(kind) if size is None else size
        )
    first = member.bit_offset // 8
    behind = (member.bit_offset + member.bit_size + 7) // 8
    return StructurePart(
        name, kind, at + first, behind - first, member.bit_size, member.bit_offset % 8
    )


def part_named(
    structure: kinds.Structure, name: str, space: Space = "none"
) -> StructurePart | None:
    """A member by its name; None if there is none."""
    return next((part for part in parts_of(structure, space) if part.name == name), None)


def part_value(part: StructurePart, data: bytes, little: bool = True) -> Any:
    """The value of a member, from the bytes of its structure."""
    return value_at(part, data, part.offset, little)


def value_at(part: StructurePart, data: bytes, offset: int, little: bool = True) -> Any:
    """The value of a member, from bytes where it is at some other offset."""
    raw = data[offset : offset + part.size]
    if not part.bits:
        return value_of(part.type, raw, little)
    number = int.from_bytes(raw, "little" if little else "big")
    # On big-endian machines a bitfield is counted from the other end of its bytes.
    shift = part.shift if little else 8 * part.size - part.shift - part.bits
    number = number >> shift & (1 << part.bits) - 1
    # bpftrace puts nothing above these bits: one below zero is so only in a field that is full.
    integer = part.type.integer if isinstance(part.type, kinds.Enumeration) else part.type
    if isinstance(integer, kinds.Integer) and integer.signed and number >> integer.bits - 1:
        number -= 1 << integer.bits
    return bool(number) if isinstance(part.type, kinds.Boolean) else number


def value_of(kind: kinds.Type, data: bytes, little: bool = True) -> Any:
    """A value from its bytes in memory; what is missing at the end is zero.

    Args:
        kind: its type, one that memory can have: no stack, no aggregate.
        data: the bytes.
        little: the machine is little-endian.
    """
    match kind:
        case kinds.Integer():
            raw = data[: kind.bits // 8]
            return int.from_bytes(raw, "little" if little else "big", signed=kind.signed)
        case kinds.Enumeration():
            return value_of(kind.integer, data, little)
        case kinds.Boolean():
            return any(data[:1])
        case kinds.Pointer():
            return int.from_bytes(data[:8], "little" if little else "big")
        case kinds.TextType():
            return data[: kind.size].split(b"\0", 1)[0]
        case kinds.BufferType():
            return bytes(data[: kind.size])
        case kinds.Structure():
            return bytes(data[: kind.size]).ljust(kind.size, b"\0")
        case kinds.Array():
            size = _element_size(kind, len(data))
            starts = range(0, kind.count * size, size) if size else ()
            return tuple([value_of(kind.element, data[at : at + size], little) for at in starts])
        case _:
            return None


def _element_size(kind: kinds.Array, size: int) -> int:
    whole = type_size(kind.element)
    is_short = isinstance(kind.element, kinds.Pointer) and size == kind.count * whole // 2
    return whole // 2 if is_short else whole
