"""Effects of AArch64 instructions on the stack, for unwinding without a table.

Source: Arm Architecture Reference Manual for A-profile (DDI 0487), chapter C4; AAPCS64,
section 6.1.1, for the preserved registers; struct rt_sigframe of arch/arm64/kernel/signal.c.
"""

import struct
from typing import Final

from engine.arch.aarch64.decode import Kind, branch_target, classify, signed
from engine.arch.aarch64.signal_frames import SAVED_REGISTERS
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

_FLOWS: Final = {
    Kind.B: Flow.JUMP,
    Kind.BL: Flow.CALL,
    Kind.BLR: Flow.CALL,
    Kind.BR: Flow.JUMP,
    Kind.RET: Flow.RETURN,
    Kind.RET_AUTH_PC: Flow.RETURN,
    Kind.B_COND: Flow.BRANCH,
    Kind.BC_COND: Flow.BRANCH,
    Kind.CBZ: Flow.BRANCH,
    Kind.TBZ: Flow.BRANCH,
    Kind.CMP_BRANCH: Flow.BRANCH,
    Kind.BRK: Flow.STOP,
    Kind.HLT: Flow.STOP,
    Kind.UNDEFINED: Flow.STOP,
}
_ADDRESS_BITS: Final = 48
_UPPER: Final = (1 << 64) - (1 << _ADDRESS_BITS)
"""Of user addresses; a pointer authentication code fills bits above but for 55."""


def read(raw: bytes, address: int) -> StackInsn | None:
    """Read the effect on the stack of the instruction at the front of some bytes."""
    if len(raw) < 4:
        return None
    word = int.from_bytes(raw[:4], "little")
    kind = classify(word)
    flow = _FLOWS.get(kind)
    if kind is Kind.BRANCH_AUTH:
        # braa, blraa, retaa differ in bits 21 and 22.
        flow = (Flow.JUMP, Flow.CALL, Flow.RETURN)[word >> 21 & 3]
    if kind is Kind.RET and word >> 5 & 31 != 30:
        flow = Flow.JUMP  # whoever keeps a return address elsewhere has rules of his own
    if flow is not None:
        return StackInsn(4, (), flow, branch_target(word, kind, address))
    return StackInsn(4, _effects(word))


def _effects(word: int) -> tuple[Effect, ...]:
    group = word >> 25 & 15
    if group & 0b0101 == 0b0100:
        if word & 0x3A000000 == 0x28000000:
            return _pair(word)
        if word & 0x3A000000 == 0x38000000:
            return _single(word)
        return _unknown(word)  # literals, exclusives and atomics, vectors
    if word & 0x7F800000 == 0x11000000 or word & 0x7F800000 == 0x51000000:
        return _add_immediate(word)
    if word & 0xFFE0FFE0 == 0xAA0003E0:  # mov (register)
        source = _x(word >> 16)
        return (Copy(_x(word), source),) if source else (Constant(_x(word), 0),)
    if word & 0x7F800000 == 0x52800000:  # movz
        value = (word >> 5 & 0xFFFF) << 16 * (word >> 21 & 3)
        return (Constant(_x(word), value),) if _x(word) else ()
    if word & 0xBFE0E000 == 0x8B206000:  # add, sub (extended register, uxtx): what sp needs
        if word >> 10 & 7 == 0:
            sign = -1 if word >> 30 & 1 else 1
            return (Add(_sp(word), _sp(word >> 5), _x(word >> 16), sign),)
        return (Copy(_sp(word), ""),)
    if group in (0b1000, 0b1001, 0b0101, 0b1101):
        return _unknown(word)
    return ()


def _x(field: int) -> str:
    """A register where 31 is the zero register; "" for that."""
    return f"x{field & 31}" if field & 31 != 31 else ""


def _sp(field: int) -> str:
    """A register where 31 is sp."""
    return f"x{field & 31}" if field & 31 != 31 else "sp"


def _unknown(word: int) -> tuple[Effect, ...]:
    register = _x(word)
    return (Copy(register, ""),) if register else ()


def _pair(word: int) -> tuple[Effect, ...]:
    """stp, ldp of all kinds."""
    opc, vector, load = word >> 30, word >> 26 & 1, word >> 22 & 1
    mode = word >> 23 & 3  # 0 no-allocate, 1 post-index, 2 offset, 3 pre-index
    size = 4 << opc if vector else 8 if opc == 2 else 4
    offset = signed(word, 15, 7) * size
    base, registers = _sp(word >> 5), (_x(word), _x(word >> 10))
    at = 0 if mode == 1 else offset
    effects: list[Effect] = []
    if vector or opc != 2:
        if load and not vector:
            effects = [Copy(register, "") for register in registers if register]
        elif not load:
            # Two words each of a d register or more; smaller ones spoil what they touch.
            places = range(at & -8, at + 2 * size, 8)
            effects = [Store(base, place, "") for place in places]
    elif load:
        places = range(at, at + 16, 8)
        effects = [
            Load(register, base, place)
            for register, place in zip(registers, places, strict=True)
            if register
        ]
    else:
        effects = [Store(base, at, registers[0]), Store(base, at + 8, registers[1])]
    return _with_index(effects, base, offset, mode)


def _single(word: int) -> tuple[Effect, ...]:
    """ldr, str and their kin with an immediate or a register offset."""
    size, vector, load = word >> 30, word >> 26 & 1, word >> 22 & 3
    base, register = _sp(word >> 5), _x(word)
    plain = size == 3 and not vector
    if word >> 24 & 1:
        mode, offset = 2, (word >> 10 & 0xFFF) << size
    elif word >> 21 & 1:  # register offset; atomics; with bit 10 authenticated loads
        return _unknown(word) if load or word >> 10 & 3 != 2 else ()
    else:
        # 0 unscaled, 1 post-index, 2 unprivileged, 3 pre-index
        mode = (2, 1, 2, 3)[word >> 10 & 3]
        offset = signed(word, 12, 9)
    at = 0 if mode == 1 else offset
    effects: list[Effect]
    if plain and load == 1:
        effects = [Load(register, base, at)] if register else []
    elif plain and load == 0:
        effects = [Store(base, at, register)]
    elif load == 0:
        effects = [Store(base, at & -8, "")]
    else:
        effects = [Copy(register, "")] if register and not vector and load != 0 else []
    return _with_index(effects, base, offset, mode)


def _with_index(effects: list[Effect], base: str, offset: int, mode: int) -> tuple[Effect, ...]:
    if mode == 3:
        moved = [_shifted(effect, base, offset) for effect in effects]
        if any(isinstance(effect, Load) and effect.target == base for effect in moved):
            return tuple(moved)
        return (Copy(base, base, offset), *moved)
    if mode == 1:
        return (*effects, Copy(base, base, offset))
    return tuple(effects)


def _shifted(effect: Effect, base: str, offset: int) -> Effect:
    """The same access after the base has moved."""
    if isinstance(effect, Load):
        return Load(effect.target, base, effect.offset - offset)
    if isinstance(effect, Store):
        return Store(base, effect.offset - offset, effect.source)
    return effect


def _add_immediate(word: int) -> tuple[Effect, ...]:
    target, source = _sp(word), _sp(word >> 5)
    if word >> 29 & 1:  # adds, subs: 31 is the zero register
        return _unknown(word)
    if not word >> 31:
        return (Copy(target, ""),)
    value = (word >> 10 & 0xFFF) << (12 if word >> 22 & 1 else 0)
    return (Copy(target, source, -value if word >> 30 & 1 else value),)


def _strip(address: int) -> int:
    """Without its authentication code: bit 55 says in which half of memory it lies."""
    low = address & (1 << _ADDRESS_BITS) - 1
    return low | _UPPER if address >> 55 & 1 else low


UNWIND: Final = ArchUnwind(
    read=read,
    preserved=tuple(f"x{number}" for number in range(19, 30)),
    alignment=16,
    sigreturn=((struct.pack("<II", 0xD2801168, 0xD4000001), (0, 4)),),  # mov x8, 139; svc 0
    saved=SAVED_REGISTERS,
    strip=_strip,
)
