"""RISC-V instructions: their length, what they are to a probe, and compressed ones written out.

Source: The RISC-V Instruction Set Manual, volume I (20191213): chapter 16 for the compressed
instructions of RV64C, chapter 24 for the opcodes of RV64G. A compressed instruction stands for
one of 32 bits, its expansion: all that is said of an instruction is said of that. Whether a word
is allocated is not looked at, apart from opcodes that RV64G leaves unused as a whole, and from the
groups of jumps, branches and system instructions.
"""

from enum import Enum
from functools import lru_cache
from typing import Final

MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
ZERO, RA, SP, T0 = 0, 1, 2, 5

LOAD, LOAD_FP, MISC_MEM, OP_IMM, AUIPC, OP_IMM_32 = 0x03, 0x07, 0x0F, 0x13, 0x17, 0x1B
STORE, STORE_FP, AMO, OP, LUI, OP_32 = 0x23, 0x27, 0x2F, 0x33, 0x37, 0x3B
MADD, MSUB, NMSUB, NMADD, OP_FP = 0x43, 0x47, 0x4B, 0x4F, 0x53
BRANCH, JALR, JAL, SYSTEM = 0x63, 0x67, 0x6F, 0x73

NAMES: Final = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{number}" for number in range(8)),
    *(f"s{number}" for number in range(2, 12)),
    *(f"t{number}" for number in range(3, 7)),
)
"""Names of x0 to x31 in the calling convention."""

FLOAT_NAMES: Final = (
    *(f"ft{number}" for number in range(8)),
    *("fs0", "fs1"),
    *(f"fa{number}" for number in range(8)),
    *(f"fs{number}" for number in range(2, 12)),
    *(f"ft{number}" for number in range(8, 12)),
)
"""Names of f0 to f31 in the calling convention."""

EBREAK, C_EBREAK, ECALL = 0x00100073, 0x9002, 0x00000073


class InsnKind(Enum):
    """Kinds of instructions that are treated differently; the value is their name in words."""

    OTHER = "instruction"
    JAL = "jal"
    JALR = "jalr"
    BRANCH = "branch"
    AUIPC = "auipc"
    LOAD_RESERVED = "load-reserved"
    STORE_CONDITIONAL = "store-conditional"
    FENCE = "fence"
    FENCE_I = "fence.i"
    MISC_MEM = "cache operation"
    ECALL = "ecall"
    EBREAK = "ebreak"
    CSR = "csr instruction"
    SYSTEM = "system instruction"
    UNDEFINED = "undefined instruction"


_PLAIN: Final = frozenset(
    {
        *(LOAD, LOAD_FP, OP_IMM, OP_IMM_32, STORE, STORE_FP, OP, LUI, OP_32),
        *(MADD, MSUB, NMSUB, NMADD, OP_FP),
    }
)


def length(raw: bytes) -> int:
    """Length of the instruction at the front of some bytes; 0 if they hold no whole one.

    Longer ones than 32 bits count as 32, as in Linux (GET_INSN_LENGTH of asm/bug.h).
    """
    if len(raw) < 2:
        return 0
    size = 4 if raw[0] & 3 == 3 else 2
    return size if len(raw) >= size else 0


def word_of(raw: bytes) -> int:
    """The instruction at the front of some bytes as one of 32 bits; 0 if there is none."""
    if len(raw) < 2:
        return 0
    if raw[0] & 3 != 3:
        return expand(raw[0] | raw[1] << 8)
    return int.from_bytes(raw[:4], "little") if len(raw) >= 4 else 0


def classify(word: int) -> InsnKind:
    """The kind of an instruction of 32 bits, or of an expanded one."""
    opcode, funct3 = word & 0x7F, word >> 12 & 7
    if opcode in _PLAIN:
        return InsnKind.OTHER
    if opcode == BRANCH:
        return InsnKind.UNDEFINED if funct3 in (2, 3) else InsnKind.BRANCH
    if opcode == JAL:
        return InsnKind.JAL
    if opcode == JALR:
        return InsnKind.UNDEFINED if funct3 else InsnKind.JALR
    if opcode == AUIPC:
        return InsnKind.AUIPC
    if opcode == AMO:
        return {2: InsnKind.LOAD_RESERVED, 3: InsnKind.STORE_CONDITIONAL}.get(
            word >> 27, InsnKind.OTHER
        )
    if opcode == MISC_MEM:
        return {0: InsnKind.FENCE, 1: InsnKind.FENCE_I, 2: InsnKind.MISC_MEM}.get(
            funct3, InsnKind.UNDEFINED
        )
    if opcode == SYSTEM:
        if word == ECALL:
            return InsnKind.ECALL
        if word == EBREAK:
            return InsnKind.EBREAK
        return InsnKind.SYSTEM if funct3 in (0, 4) else InsnKind.CSR
    return InsnKind.UNDEFINED


def branch_target(word: int, kind: InsnKind, address: int) -> int | None:
    """The address a direct jump or branch goes to; None for anything else."""
    if kind is InsnKind.JAL:
        return address + jal_offset(word) & MASK
    if kind is InsnKind.BRANCH:
        return address + branch_offset(word) & MASK
    return None


# -- fields of instructions of 32 bits ----------------------------------------------------


def rd(word: int) -> int:
    """Number of the register that is written."""
    return word >> 7 & 31


def rs1(word: int) -> int:
    """Number of the first register that is read."""
    return word >> 15 & 31


def rs2(word: int) -> int:
    """Number of the second register that is read."""
    return word >> 20 & 31


def signed(value: int, bits: int) -> int:
    """The lowest bits of a value as a signed number."""
    return (value & (1 << bits) - 1 ^ 1 << bits - 1) - (1 << bits - 1)


def i_immediate(word: int) -> int:
    """The immediate of I-type: loads, addi, jalr."""
    return signed(word >> 20, 12)


def s_immediate(word: int) -> int:
    """The immediate of S-type: stores."""
    return signed(word >> 25 << 5 | word >> 7 & 31, 12)


def u_immediate(word: int) -> int:
    """The immediate of U-type: lui, auipc."""
    return signed(word & 0xFFFF_F000, 32)


def branch_offset(word: int) -> int:
    """The offset of B-type."""
    return signed(
        word >> 31 << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 63) << 5 | (word >> 8 & 15) << 1,
        13,
    )


def jal_offset(word: int) -> int:
    """The offset of J-type."""
    return signed(
        word >> 31 << 20
        | (word >> 12 & 255) << 12
        | (word >> 20 & 1) << 11
        | (word >> 21 & 1023) << 1,
        21,
    )


# -- instructions put together ------------------------------------------------------------


def i_type(opcode: int, funct3: int, target: int, source: int, immediate: int) -> int:
    """An instruction of I-type."""
    return (immediate & 0xFFF) << 20 | source << 15 | funct3 << 12 | target << 7 | opcode


def s_type(opcode: int, funct3: int, base: int, source: int, immediate: int) -> int:
    """An instruction of S-type."""
    low, high = immediate & 31, immediate >> 5 & 127
    return high << 25 | source << 20 | base << 15 | funct3 << 12 | low << 7 | opcode


def r_type(opcode: int, funct3: int, funct7: int, target: int, left: int, right: int) -> int:
    """An instruction of R-type."""
    return funct7 << 25 | right << 20 | left << 15 | funct3 << 12 | target << 7 | opcode


def jal(target: int, offset: int) -> int:
    """`jal`; the offset is even and within 1 MiB."""
    bits = (
        (offset >> 20 & 1) << 31
        | (offset >> 1 & 1023) << 21
        | (offset >> 11 & 1) << 20
        | (offset >> 12 & 255) << 12
    )
    return bits | target << 7 | JAL


def branch(funct3: int, left: int, offset: int) -> int:
    """A branch that compares a register with zero; the offset is even and within 4 KiB."""
    low = (offset >> 1 & 15) << 8 | (offset >> 11 & 1) << 7
    high = (offset >> 12 & 1) << 31 | (offset >> 5 & 63) << 25
    return high | left << 15 | funct3 << 12 | low | BRANCH


# -- compressed instructions --------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def expand(half: int) -> int:
    """The instruction of 32 bits that a compressed one stands for; 0 if it stands for none."""
    funct3 = half >> 13
    quadrant = half & 3
    if quadrant == 0:
        return _quadrant0(half, funct3)
    if quadrant == 1:
        return _quadrant1(half, funct3)
    return _quadrant2(half, funct3)


def _bits(half: int, *pieces: tuple[int, int, int]) -> int:
    """Pieces (lowest bit, how many, where it goes) put together."""
    return sum((half >> at & (1 << count) - 1) << to for at, count, to in pieces)


def _quadrant0(half: int, funct3: int) -> int:
    """Loads and stores by one of eight registers; c.addi4spn."""
    low, base = half >> 2 & 7 | 8, half >> 7 & 7 | 8
    if funct3 == 0:
        value = _bits(half, (5, 1, 3), (6, 1, 2), (7, 4, 6), (11, 2, 4))
        return i_type(OP_IMM, 0, low, SP, value) if value else 0
    words = _bits(half, (5, 1, 6), (6, 1, 2), (10, 3, 3))
    doubles = _bits(half, (5, 2, 6), (10, 3, 3))
    if funct3 == 1:
        return i_type(LOAD_FP, 3, low, base, doubles)
    if funct3 == 2:
        return i_type(LOAD, 2, low, base, words)
    if funct3 == 3:
        return i_type(LOAD, 3, low, base, doubles)
    if funct3 == 5:
        return s_type(STORE_FP, 3, base, low, doubles)
    if funct3 == 6:
        return s_type(STORE, 2, base, low, words)
    if funct3 == 7:
        return s_type(STORE, 3, base, low, doubles)
    return 0


def _quadrant1(half: int, funct3: int) -> int:
    """Immediates, arithmetic, c.j and the branches."""
    target = half >> 7 & 31
    value = signed(_bits(half, (2, 5, 0), (12, 1, 5)), 6)
    if funct3 == 0:
        return i_type(OP_IMM, 0, target, target, value)
    if funct3 == 1:
        return i_type(OP_IMM_32, 0, target, target, value) if target else 0
    if funct3 == 2:
        return i_type(OP_IMM, 0, target, ZERO, value)
    if funct3 == 3:
        if target != SP:
            return (value << 12 & 0xFFFF_F000) | target << 7 | LUI if value else 0
        value = signed(_bits(half, (2, 1, 5), (3, 2, 7), (5, 1, 6), (6, 1, 4), (12, 1, 9)), 10)
        return i_type(OP_IMM, 0, SP, SP, value) if value else 0
    if funct3 == 4:
        return _arithmetic(half, value)
    if funct3 == 5:
        pieces = ((2, 1, 5), (3, 3, 1), (6, 1, 7), (7, 1, 6), (8, 1, 10), (9, 2, 8), (11, 1, 4))
        return jal(ZERO, signed(_bits(half, *pieces, (12, 1, 11)), 12))
    offset = signed(_bits(half, (2, 1, 5), (3, 2, 1), (5, 2, 6), (10, 2, 3), (12, 1, 8)), 9)
    return branch(funct3 & 1, half >> 7 & 7 | 8, offset)


def _arithmetic(half: int, value: int) -> int:
    target, right = half >> 7 & 7 | 8, half >> 2 & 7 | 8
    kind = half >> 10 & 3
    if kind == 0:
        return i_type(OP_IMM, 5, target, target, value & 63)
    if kind == 1:
        return i_type(OP_IMM, 5, target, target, value & 63 | 0x400)
    if kind == 2:
        return i_type(OP_IMM, 7, target, target, value)
    which = half >> 5 & 3
    if not half >> 12 & 1:
        funct3, funct7 = ((0, 32), (4, 0), (6, 0), (7, 0))[which]
        return r_type(OP, funct3, funct7, target, target, right)
    if which > 1:
        return 0
    return r_type(OP_32, 0, (32, 0)[which], target, target, right)


def _quadrant2(half: int, funct3: int) -> int:
    """Loads and stores by sp, c.slli, moves, jumps by register, c.ebreak."""
    target, right = half >> 7 & 31, half >> 2 & 31
    if funct3 == 0:
        return i_type(OP_IMM, 1, target, target, _bits(half, (2, 5, 0), (12, 1, 5)))
    doubles = _bits(half, (2, 3, 6), (5, 2, 3), (12, 1, 5))
    if funct3 == 1:
        return i_type(LOAD_FP, 3, target, SP, doubles)
    if funct3 == 2:
        words = _bits(half, (2, 2, 6), (4, 3, 2), (12, 1, 5))
        return i_type(LOAD, 2, target, SP, words) if target else 0
    if funct3 == 3:
        return i_type(LOAD, 3, target, SP, doubles) if target else 0
    if funct3 == 4:
        if not half >> 12 & 1:
            if right:
                return r_type(OP, 0, 0, target, ZERO, right)
            return i_type(JALR, 0, ZERO, target, 0) if target else 0
        if right:
            return r_type(OP, 0, 0, target, target, right)
        return i_type(JALR, 0, RA, target, 0) if target else EBREAK
    doubles = _bits(half, (7, 3, 6), (10, 3, 3))
    if funct3 == 5:
        return s_type(STORE_FP, 3, SP, right, doubles)
    if funct3 == 6:
        return s_type(STORE, 2, SP, right, _bits(half, (7, 2, 6), (9, 4, 2)))
    return s_type(STORE, 3, SP, right, doubles)
