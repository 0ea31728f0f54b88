"""The copies that instructions of RISC-V make (its manual, volume I, chapters 2, 5, 8, 11, 12)."""

from typing import Final

from engine.arch.dataflow import (
    NO_COPIES,
    DataFlow,
    InsnCopies,
    ValuePart,
    constant,
    copied,
    made,
    memory,
    register,
)
from engine.arch.machine import Insn, RegisterFile
from engine.arch.riscv64.decode import (
    AMO,
    AUIPC,
    BRANCH,
    FLOAT_NAMES,
    JAL,
    JALR,
    LOAD,
    LOAD_FP,
    LUI,
    MADD,
    MISC_MEM,
    MSUB,
    NAMES,
    NMADD,
    NMSUB,
    OP,
    OP_32,
    OP_FP,
    OP_IMM,
    OP_IMM_32,
    STORE,
    STORE_FP,
    SYSTEM,
    ZERO,
    i_immediate,
    rd,
    rs1,
    rs2,
    u_immediate,
    word_of,
)

_FUSED: Final = (MADD, MSUB, NMSUB, NMADD)
_TO_INTEGER: Final = (0x50, 0x51, 0x60, 0x61, 0x70, 0x71)
"""funct7 of OP-FP whose result is an integer: compare, fcvt to integers, fmv.x, fclass."""
_FROM_INTEGER: Final = (0x68, 0x69, 0x78, 0x79)
_SWAP, _LOAD_RESERVED, _STORE_CONDITIONAL = 1, 2, 3


def _source(number: int, size: int = 8) -> ValuePart:
    return register(NAMES[number], 0, size) if number else constant(0, size)


def _set(number: int, source: ValuePart, size: int, sign: str = "sign") -> InsnCopies:
    """A register gets some bytes, and above them their sign or 0; x0 stays 0."""
    if number == ZERO:
        return NO_COPIES
    return made((copied(register(NAMES[number], 0, size), source, 8 - size, sign),))


def copies(insn: Insn, registers: RegisterFile) -> InsnCopies:
    """The copies of an instruction; see `engine.arch.dataflow.DataFlow`."""
    word = word_of(insn.raw)
    opcode, funct3, funct7 = word & 0x7F, word >> 12 & 7, word >> 25
    size = 1 << (funct3 & 3)
    if opcode == LOAD:
        return _set(rd(word), memory(0, size), size, "zero" if funct3 & 4 else "sign")
    if opcode == STORE:
        return made((copied(memory(0, size), _source(rs2(word), size)),))
    if opcode == LOAD_FP:
        return made((copied(register(FLOAT_NAMES[rd(word)], 0, size), memory(0, size)),))
    if opcode == STORE_FP:
        return made((copied(memory(0, size), register(FLOAT_NAMES[rs2(word)], 0, size)),))
    if opcode == AMO:
        return _atomic(word, size)
    if opcode == OP_FP:
        return _float(word, funct3, funct7)
    return _integer(insn, word, opcode, funct3, funct7)


def _integer(insn: Insn, word: int, opcode: int, funct3: int, funct7: int) -> InsnCopies:
    if opcode == LUI:
        return _set(rd(word), constant(u_immediate(word), 8), 8)
    if opcode == AUIPC:
        return _set(rd(word), constant(insn.address + u_immediate(word), 8), 8)
    if opcode in (JAL, JALR):
        return _set(rd(word), constant(insn.address + insn.size, 8), 8)
    if opcode == OP_IMM and funct3 == 0 and rs1(word) == ZERO:
        return _set(rd(word), constant(i_immediate(word), 8), 8)
    if opcode in (OP_IMM, OP_IMM_32) and funct3 == 0 and not i_immediate(word):
        wide = 8 if opcode == OP_IMM else 4
        return _set(rd(word), _source(rs1(word), wide), wide)
    if opcode == OP_IMM and funct3 == 7 and i_immediate(word) == 0xFF:  # zext.b
        return _set(rd(word), _source(rs1(word), 1), 1, "zero")
    if opcode in (OP, OP_32) and funct3 == 0 and not funct7 and ZERO in (rs1(word), rs2(word)):
        wide = 8 if opcode == OP else 4
        return _set(rd(word), _source(rs1(word) or rs2(word), wide), wide)
    return NO_COPIES


def _atomic(word: int, size: int) -> InsnCopies:
    """An old value that is loaded, and one that is stored as it is."""
    kind = word >> 27
    found = []
    if kind != _STORE_CONDITIONAL and rd(word) != ZERO:
        target = register(NAMES[rd(word)], 0, size)
        found.append(copied(target, memory(0, size), 8 - size, "sign"))
    if kind in (_SWAP, _STORE_CONDITIONAL):
        found.append(copied(memory(0, size), _source(rs2(word), size)))
    return made(found)


def _float(word: int, funct3: int, funct7: int) -> InsnCopies:
    """Moves: fsgnj of a register with itself, fmv.x, and fmv to a floating-point register."""
    size = 8 if funct7 & 1 else 4
    if funct7 in (0x10, 0x11) and funct3 == 0 and rs1(word) == rs2(word):
        source = register(FLOAT_NAMES[rs1(word)], 0, size)
        return made((copied(register(FLOAT_NAMES[rd(word)], 0, size), source),))
    if funct7 in (0x70, 0x71) and funct3 == 0:
        return _set(rd(word), register(FLOAT_NAMES[rs1(word)], 0, size), size)
    if funct7 in (0x78, 0x79):
        target = register(FLOAT_NAMES[rd(word)], 0, size)
        return made((copied(target, _source(rs1(word), size)),))
    return NO_COPIES


def _writes(word: int) -> str:
    """The name of the register that an instruction writes; "" for none."""
    opcode = word & 0x7F
    if opcode in (STORE, STORE_FP, BRANCH, MISC_MEM):
        return ""
    if opcode == SYSTEM and not word >> 12 & 3:
        return ""
    to_float = opcode in (LOAD_FP, *_FUSED)
    if opcode == OP_FP:
        to_float = word >> 25 not in _TO_INTEGER
    if to_float:
        return FLOAT_NAMES[rd(word)]
    return NAMES[rd(word)] if rd(word) else ""


def accessed(insn: Insn) -> tuple[frozenset[str], frozenset[str]]:
    """The registers that an instruction reads and writes."""
    word = word_of(insn.raw)
    opcode = word & 0x7F
    written = _writes(word)
    left, right = NAMES[rs1(word)], NAMES[rs2(word)]
    if opcode in _FUSED or (opcode == OP_FP and word >> 25 not in _FROM_INTEGER):
        left, right = FLOAT_NAMES[rs1(word)], FLOAT_NAMES[rs2(word)]
    read: tuple[str, ...] = (left,)
    if opcode in (LUI, AUIPC, JAL, MISC_MEM) or (opcode == SYSTEM and word >> 14 & 1):
        read = ()
    elif opcode == STORE_FP:
        read = left, FLOAT_NAMES[rs2(word)]
    elif opcode in (STORE, BRANCH, OP, OP_32, AMO, *_FUSED) or (
        opcode == OP_FP and word >> 25 & 0x60 not in (0x40, 0x60)
    ):
        read = left, right
    if opcode in _FUSED:
        read = *read, FLOAT_NAMES[word >> 27]
    return frozenset(read) - {NAMES[ZERO]}, frozenset((written,)) - {""}


DATA_FLOW: Final = DataFlow(copies, accessed)
