"""Accesses to memory of an x86-64 instruction, as its fault tells of them.

Sources: Intel SDM volume 1, 3.7.4 (default segments), volume 2 (which instructions write what
they have read), volume 3, 4.7 (a read that a write follows is refused as a write).
"""

from typing import Final

from engine.arch.x86_64.decode import FS, GS, LEGACY, decode

_SUMS: Final = range(0x38)
"""Operations on two operands by their opcodes; behind them stands cmp."""
_GROUPS: Final = {
    **dict.fromkeys((0x80, 0x81, 0x83), frozenset(range(7))),
    **dict.fromkeys((0xF6, 0xF7), frozenset((2, 3))),
    **dict.fromkeys((0xFE, 0xFF), frozenset((0, 1))),
    0x1BA: frozenset((5, 6, 7)),
    0x1C7: frozenset((1,)),
}
"""Opcodes that have their operation in ModRM, to operations that write what they have read."""
_REWRITES: Final = frozenset(
    (
        *(0x86, 0x87, 0xC0, 0xC1, *range(0xD0, 0xD4)),
        *(0x1A4, 0x1A5, 0x1AB, 0x1AC, 0x1AD, 0x1B0, 0x1B1, 0x1B3, 0x1BB, 0x1C0, 0x1C1),
    )
)
_BYTES: Final = frozenset(
    (
        *(0x80, 0x86, 0x88, 0xA2, 0xA4, 0xAA, 0xC0, 0xC6, 0xD0, 0xD2, 0xF6, 0xFE),
        *(*range(0x190, 0x1A0), 0x1B0, 0x1C0, 0x314),
    )
)
_STACK: Final = frozenset(
    (
        *(*range(0x50, 0x60), 0x68, 0x6A, 0x8F, 0x9C, 0x9D, 0xC2, 0xC3, 0xC8, 0xC9, 0xCA, 0xCB),
        *(0xCF, 0xE8, 0x1A0, 0x1A1, 0x1A8, 0x1A9),
    )
)
_GROUP_5: Final = 0xFF
_CALLS_AND_PUSH: Final = (2, 3, 6)
_RSP, _RBP = 4, 5


def rewrites(raw: bytes) -> bool:
    """True if an instruction writes an operand in memory that it reads first."""
    insn = decode(raw)
    if insn is None or insn.encoding != LEGACY or not insn.memory:
        return False
    if insn.key in _SUMS:
        return insn.key & 7 < 2
    return insn.key in _REWRITES or insn.reg in _GROUPS.get(insn.key, ())


def stores_byte(raw: bytes) -> bool:
    """True if an instruction stores one byte, or each of many alone.

    The code that stands for VEX ones stores byte by byte, from the first one on.
    """
    insn = decode(raw)
    if insn is None or insn.encoding != LEGACY:
        return True
    return insn.key in _BYTES or (insn.key in _SUMS and insn.key & 7 == 0)


def uses_stack(raw: bytes) -> bool:
    """True if an access goes to the stack segment: by a push or pop, rsp or rbp."""
    insn = decode(raw)
    if insn is None or insn.prefixes & (FS | GS):
        return False
    if insn.encoding == LEGACY and insn.key in _STACK:
        return True
    if insn.encoding == LEGACY and insn.key == _GROUP_5 and insn.reg in _CALLS_AND_PUSH:
        return True
    if not insn.memory or insn.base_high:
        return False
    rm, plain = insn.modrm & 7, insn.modrm < 0x40
    if rm == _RSP:
        base = insn.sib & 7
        return base == _RSP or (base == _RBP and not plain)
    return rm == _RBP and not plain
