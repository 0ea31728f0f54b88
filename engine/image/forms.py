"""The forms of DWARF attributes: how many bytes a value has, and how it is read.

DWARF 5, 7.5.6, with the GNU forms of split units and of dwz. A value stays what the file
says - a number, an offset, an index, bytes - until somebody asks what it stands for.
"""

from typing import Final

from msgspec import Struct

from engine.image.reader import DamagedError, Reader

ADDR, BLOCK2, BLOCK4, STRING, BLOCK, BLOCK1 = 0x01, 0x03, 0x04, 0x08, 0x09, 0x0A
SDATA, STRP, UDATA, REF_ADDR, INDIRECT = 0x0D, 0x0E, 0x0F, 0x10, 0x16
REF_UDATA, SEC_OFFSET, EXPRLOC, FLAG_PRESENT = 0x15, 0x17, 0x18, 0x19
STRX, ADDRX, STRP_SUP, LINE_STRP, REF_SIG8 = 0x1A, 0x1B, 0x1D, 0x1F, 0x20
IMPLICIT_CONST, LOCLISTX, RNGLISTX = 0x21, 0x22, 0x23
GNU_ADDR_INDEX, GNU_STR_INDEX, GNU_REF_ALT, GNU_STRP_ALT = 0x1F01, 0x1F02, 0x1F20, 0x1F21

UNIT_REFS: Final = frozenset((0x11, 0x12, 0x13, 0x14, REF_UDATA))
SUP_REFS: Final = frozenset((0x1C, 0x24, GNU_REF_ALT))
STRING_INDEXES: Final = frozenset((STRX, 0x25, 0x26, 0x27, 0x28, GNU_STR_INDEX))
ADDRESS_INDEXES: Final = frozenset((ADDRX, 0x29, 0x2A, 0x2B, 0x2C, GNU_ADDR_INDEX))

_FIXED: Final = {
    0x05: 2,
    0x06: 4,
    0x07: 8,
    0x0B: 1,
    0x0C: 1,
    0x11: 1,
    0x12: 2,
    0x13: 4,
    0x14: 8,
    0x1C: 4,
    0x1E: 16,
    REF_SIG8: 8,
    0x24: 8,
    0x25: 1,
    0x26: 2,
    0x27: 3,
    0x28: 4,
    0x29: 1,
    0x2A: 2,
    0x2B: 3,
    0x2C: 4,
    FLAG_PRESENT: 0,
    IMPLICIT_CONST: 0,
}
_OFFSETS: Final = frozenset((STRP, SEC_OFFSET, STRP_SUP, LINE_STRP, GNU_REF_ALT, GNU_STRP_ALT))
_ULEBS: Final = frozenset(
    (UDATA, REF_UDATA, STRX, ADDRX, LOCLISTX, RNGLISTX, GNU_ADDR_INDEX, GNU_STR_INDEX)
)
_BLOCKS: Final = {BLOCK1: 1, BLOCK2: 2, BLOCK4: 4, BLOCK: 0, EXPRLOC: 0}

LEB, CSTRING, NESTED = -1, -2, -3
"""Steps over a value: a LEB128 number, a string, a form that stands in the data."""
BLOCK_STEPS: Final = {-10: 0, -11: 1, -12: 2, -14: 4}
"""Steps over a block: to the size of its length, 0 for a LEB128 number."""


class Widths(Struct, frozen=True):
    """Widths that the sizes of forms depend on: of an offset, of an address, and the version."""

    offset: int
    address: int
    version: int


def step(form: int, widths: Widths) -> int:
    """The step over a value: its bytes, or one of the negative steps above."""
    size = _FIXED.get(form)
    if size is not None:
        return size
    if form in _OFFSETS:
        return widths.offset
    if form == ADDR:
        return widths.address
    if form == REF_ADDR:  # as wide as an address in DWARF 2
        return widths.address if widths.version <= 2 else widths.offset
    if form in _ULEBS or form == SDATA:
        return LEB
    if form == STRING:
        return CSTRING
    if form in _BLOCKS:
        return -10 - _BLOCKS[form]
    if form == INDIRECT:
        return NESTED
    raise DamagedError(f"an attribute of the unknown form {form:#x}")


def read(reader: Reader, form: int, widths: Widths, implicit: int) -> tuple[int, int | bytes]:
    """One value with its form, which is another one behind DW_FORM_indirect."""
    if form == INDIRECT:
        form = reader.uleb()
        if form in (INDIRECT, IMPLICIT_CONST):
            raise DamagedError("an indirect form that cannot be one")
    if form == FLAG_PRESENT:
        return form, 1
    if form == IMPLICIT_CONST:
        return form, implicit
    if form == SDATA:
        return form, reader.sleb()
    size = step(form, widths)
    if size == LEB:
        return form, reader.uleb()
    if size == CSTRING:
        return form, reader.cstring()
    if size < 0:
        width = BLOCK_STEPS[size]
        return form, reader.block(reader.uint(width) if width else reader.uleb())
    if size in (1, 2, 4, 8):
        return form, reader.uint(size)
    return form, int.from_bytes(reader.block(size), "little" if reader.order == "<" else "big")
