"""Effects of RISC-V instructions on the stack, for unwinding where no table says it.

Source: The RISC-V Instruction Set Manual, volume I (20191213), chapter 24; RISC-V Calling
Conventions (psABI), section 2.1, for the preserved registers; struct rt_sigframe of
arch/riscv/kernel/signal.c.
"""

import struct
from typing import Final

from engine.arch.frames import (
    Add,
    ArchUnwind,
    Constant,
    Copy,
    Effect,
    Flow,
    Load,
    StackInsn,
    Store,
)
from engine.arch.riscv64.decode import (
    AMO,
    LOAD,
    LUI,
    MASK,
    NAMES,
    OP,
    OP_FP,
    OP_IMM,
    OP_IMM_32,
    RA,
    STORE,
    STORE_FP,
    T0,
    ZERO,
    InsnKind,
    branch_target,
    classify,
    i_immediate,
    length,
    rd,
    rs1,
    rs2,
    s_immediate,
    u_immediate,
    word_of,
)
from engine.arch.riscv64.signal_frames import SAVED_REGISTERS

_LINKS: Final = frozenset({RA, T0})
"""Registers that tell calls and returns from jumps (volume I, section 2.5); a linkage stub jumps
with another one."""

_WRITES_GENERAL: Final = frozenset({0x03, 0x13, 0x17, 0x1B, 0x2F, 0x33, 0x37, 0x3B, 0x73})
"""Opcodes whose rd is a general register, jumps apart."""

_FLOAT_TO_GENERAL: Final = frozenset({0x50, 0x51, 0x60, 0x61, 0x70, 0x71})
"""funct7 of OP-FP with a general rd: comparisons, fcvt to an integer, fclass and fmv.x."""


def read(raw: bytes, address: int) -> StackInsn | None:
    """Read what the instruction at the front of some bytes does to the stack."""
    size = length(raw)
    if not size:
        return None
    word = word_of(raw)
    kind = classify(word)
    if kind is InsnKind.JAL:
        flow = Flow.CALL if rd(word) in _LINKS else Flow.JUMP
        return StackInsn(size, (), flow, branch_target(word, kind, address))
    if kind is InsnKind.JALR:
        if rd(word) in _LINKS:
            return StackInsn(size, (), Flow.CALL)
        returns = rd(word) == ZERO and rs1(word) in _LINKS and not i_immediate(word)
        return StackInsn(size, (), Flow.RETURN if returns else Flow.JUMP)
    if kind is InsnKind.BRANCH:
        return StackInsn(size, (), Flow.BRANCH, branch_target(word, kind, address))
    if kind in (InsnKind.EBREAK, InsnKind.UNDEFINED):
        return StackInsn(size, (), Flow.STOP)
    return StackInsn(size, _effects(word, address))


def _effects(word: int, address: int) -> tuple[Effect, ...]:
    opcode, funct3 = word & 0x7F, word >> 12 & 7
    base = NAMES[rs1(word)]
    if opcode == STORE:
        offset = s_immediate(word)
        if funct3 == 3:
            return (Store(base, offset, NAMES[rs2(word)] if rs2(word) else ""),)
        return (Store(base, offset & -8, ""),)
    if opcode == STORE_FP:
        return (Store(base, s_immediate(word) & -8, ""),)
    if opcode == OP_FP:
        return _unknown(word) if word >> 25 in _FLOAT_TO_GENERAL else ()
    target = rd(word)
    if opcode not in _WRITES_GENERAL or target == ZERO:
        return (Store(base, 0, ""),) if opcode == AMO else ()
    name = NAMES[target]
    if opcode == LOAD and funct3 == 3:
        return (Load(name, base, i_immediate(word)),)
    if opcode in (OP_IMM, OP_IMM_32) and funct3 == 0:
        return _added(word, name, base, narrow=opcode == OP_IMM_32)
    if opcode == OP and funct3 == 0 and word >> 25 in (0, 32):
        return _sum(word, name)
    if opcode == LUI:
        return (Constant(name, u_immediate(word)),)
    if opcode == 0x17:
        return (Constant(name, address + u_immediate(word) & MASK),)
    if opcode == AMO:
        return (Copy(name, ""), Store(base, 0, ""))
    return _unknown(word)


def _added(word: int, name: str, base: str, *, narrow: bool) -> tuple[Effect, ...]:
    """Effects of addi, and of addiw (`narrow`), whose sum is taken to fit: sizes of frames do."""
    value = i_immediate(word)
    if rs1(word) == ZERO:
        return (Constant(name, value),)
    if narrow and not value:  # sext.w
        return (Copy(name, ""),)
    return (Copy(name, base, value),)


def _sum(word: int, name: str) -> tuple[Effect, ...]:
    """Sums and differences of registers."""
    left, right = rs1(word), rs2(word)
    sign = -1 if word >> 30 & 1 else 1
    if right == ZERO:
        return (Copy(name, NAMES[left]),) if left else (Constant(name, 0),)
    if left == ZERO:
        return (Copy(name, NAMES[right] if sign == 1 else ""),)
    return (Add(name, NAMES[left], NAMES[right], sign),)


def _unknown(word: int) -> tuple[Effect, ...]:
    return (Copy(NAMES[rd(word)], ""),) if rd(word) else ()


UNWIND: Final = ArchUnwind(
    read=read,
    preserved=("s0", "s1", *(f"s{number}" for number in range(2, 12))),
    alignment=16,
    sigreturn=((struct.pack("<II", 0x08B00893, 0x00000073), (0, 4)),),  # li a7, 139; ecall
    saved=SAVED_REGISTERS,
    strip=lambda address: address,
    frame_end=0,
)
