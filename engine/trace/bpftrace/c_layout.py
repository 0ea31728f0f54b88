"""Places that compilers give the members of a structure (System V ABI, section "Aggregates").

The ABIs of x86-64, AArch64 and RISC-V agree but for bitfields without a name, which align the
structure on AArch64 only (AAPCS64, section "Bit-fields subdivision"). `packed` and `aligned` are
GCC's ("Common Variable Attributes" of its manual).
"""

from typing import cast

from engine.image.datatypes import DataType, Member, TypeKind
from engine.language.made_records import alignment
from engine.language.value_types import INTEGERS, CType


class MemberLayout:
    """A structure or union that grows member by member.

    Args:
        is_union: all members begin at its start.
        unnamed_align: bitfields without a name align it, as on AArch64.
    """

    def __init__(self, *, is_union: bool, unnamed_align: bool = False) -> None:
        self._is_union, self._unnamed_align = is_union, unnamed_align
        self._parts: list[Member] = []
        self._bits = 0
        self._size_bits = 0
        self._boundary = 1

    def add(
        self, name: str | None, kind: CType, bits: int | None, *, packed: bool, boundary: int
    ) -> str:
        """Put a member behind the others; what is wrong with it, "" if nothing is.

        Args:
            name: of it; "" of a bitfield without one, None of an anonymous structure.
            kind: its type.
            bits: of a bitfield.
            packed: it is not aligned.
            boundary: bytes that it is aligned to at least; 0 for none.
        """
        needed = max(1 if packed else alignment(kind), boundary)
        if self._is_union:
            self._bits = 0
        if bits is None:
            at = _up(self._bits, 8 * needed)
            self._parts.append(Member(name, cast("DataType", kind), at // 8))
            self._bits = at + 8 * (kind.resolved.size or 0)
        else:
            fault = self._add_bits(name, kind, bits, packed=packed, boundary=boundary)
            if fault:
                return fault
        if bits is None or name:
            self._boundary = max(self._boundary, needed)
        elif self._unnamed_align:
            # One of no bits does so where all is packed, too.
            self._boundary = max(self._boundary, needed if bits else alignment(kind), boundary)
        self._size_bits = max(self._size_bits, self._bits)
        return ""

    def _add_bits(
        self, name: str | None, kind: CType, bits: int, *, packed: bool, boundary: int
    ) -> str:
        whole = kind.resolved
        unit = 8 * (whole.size or 0)
        if whole.kind not in INTEGERS and whole.kind is not TypeKind.ENUM:
            return f"bit-field '{name}' has a type that is no integer"
        if not 0 <= bits <= unit or (not bits and name):
            return f"width of bit-field '{name}' does not fit its type"
        if not bits:
            self._bits = _up(self._bits, unit)
            return ""
        at = _up(self._bits, 8 * boundary) if boundary else self._bits
        straddles = at // unit != (at + bits - 1) // unit
        if straddles and not packed:
            at = _up(at, unit)
        if name:
            offset = at // 8 if packed and straddles else at // unit * unit // 8
            self._parts.append(
                Member(name, cast("DataType", kind), offset, bit_offset=at, bit_size=bits)
            )
        self._bits = at + bits
        return ""

    def finished(self, boundary: int) -> tuple[tuple[Member, ...], int, int]:
        """The members, the size and the alignment of the whole, which is at least `boundary`."""
        aligned = max(self._boundary, boundary)
        return tuple(self._parts), _up(_up(self._size_bits, 8), 8 * aligned) // 8, aligned


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
