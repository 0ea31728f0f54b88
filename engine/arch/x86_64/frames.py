"""Effects of x86-64 instructions on the stack, for unwinding without a table.

Source: Intel SDM volume 2; System V ABI (AMD64), section 3.2.1, for the preserved registers;
struct rt_sigframe of arch/x86/include/asm/sigframe.h.
"""

import re
from collections.abc import Callable
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
from engine.arch.x86_64.decode import LEGACY, OPERAND_SIZE, Decoded, decode, opcodes
from engine.arch.x86_64.effects import RBP, RSP, written_registers
from engine.arch.x86_64.kernel_orc import ORC
from engine.arch.x86_64.operations import relative_target
from engine.arch.x86_64.signal_frames import SAVED_REGISTERS

_NAMES: Final = (
    *("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"),
    *(f"r{number}" for number in range(8, 16)),
)
_BRANCHES: Final = frozenset((*range(0x70, 0x80), *range(0xE0, 0xE4), *range(0x180, 0x190)))
_RETURNS: Final = frozenset({0xC2, 0xC3})
_STOPS: Final = frozenset({0xCC, 0xF4, 0x10B, 0x1B9, 0x1FF, 0xCB, 0xCF})
_READS_ONLY: Final = frozenset(
    [*opcodes("38-3d 84 85 a8 a9 90 88 c6 c7")]
    + [0x100 | key for key in opcodes("18-1f a3 11 29 7f d6 2e 2f")]
)


def _push(source: str) -> tuple[Effect, ...]:
    return Copy("rsp", "rsp", -8), Store("rsp", 0, source)


def _pop(target: str) -> tuple[Effect, ...]:
    if target == "rsp":
        return (Load("rsp", "rsp", 0),)
    return Load(target, "rsp", 0), Copy("rsp", "rsp", 8)


def read(raw: bytes, address: int) -> StackInsn | None:
    """Read the effect on the stack of the instruction at the front of some bytes."""
    insn = decode(raw)
    if insn is None or not insn.known:
        return None
    if insn.encoding != LEGACY:
        return StackInsn(insn.size, _unknown(insn))
    key = insn.key
    target = relative_target(insn, raw, address) if _is_direct(key) else None
    if key == 0xE8:
        return StackInsn(insn.size, (), Flow.CALL, target)
    if key in (0xE9, 0xEB):
        return StackInsn(insn.size, (), Flow.JUMP, target)
    if key in _BRANCHES:
        return StackInsn(insn.size, (), Flow.BRANCH, target)
    if key in _RETURNS:
        return StackInsn(insn.size, (), Flow.RETURN)
    if key in _STOPS:
        return StackInsn(insn.size, (), Flow.STOP)
    if key == 0xFF and insn.reg in (2, 3):
        return StackInsn(insn.size, (), Flow.CALL)
    if key == 0xFF and insn.reg in (4, 5):
        return StackInsn(insn.size, (), Flow.JUMP)
    return StackInsn(insn.size, _effects(insn, raw))


def _is_direct(key: int) -> bool:
    return key in (0xE8, 0xE9, 0xEB) or key in _BRANCHES


def _effects(insn: Decoded, raw: bytes) -> tuple[Effect, ...]:
    key = insn.key
    if 0x50 <= key <= 0x57:
        return _push(_NAMES[key & 7 | insn.base_high << 3])
    if 0x58 <= key <= 0x5F:
        return _pop(_NAMES[key & 7 | insn.base_high << 3])
    if key in (0x68, 0x6A, 0x9C, 0x1A0, 0x1A8) or (key == 0xFF and insn.reg == 6):
        return _push("")
    if key in (0x9D, 0x1A1, 0x1A9, 0x8F):
        return (
            (*_unknown(insn), Copy("rsp", "rsp", 8)) if key == 0x8F else (Copy("rsp", "rsp", 8),)
        )
    if key == 0xC9:
        return Copy("rsp", "rbp"), *_pop("rbp")
    if key == 0xC8:
        return Copy("rsp", ""), Copy("rbp", "")
    if 0xB8 <= key <= 0xBF:
        return (_constant(insn, raw),)
    special = _MOVES.get(key)
    if special is not None and (insn.wide or key == 0xC7):
        return special(insn, raw)
    return _unknown(insn)


def _constant(insn: Decoded, raw: bytes) -> Effect:
    register = _NAMES[insn.key & 7 | insn.base_high << 3]
    if insn.prefixes & OPERAND_SIZE:
        return Copy(register, "")
    return Constant(register, _signed(raw, insn.immediate_at, insn.immediate_size, signed=False))


def _signed(raw: bytes, at: int, size: int, *, signed: bool = True) -> int:
    return int.from_bytes(raw[at : at + size], "little", signed=signed)


def _reg(insn: Decoded) -> str:
    return _NAMES[insn.reg | (insn.rex & 4) << 1]


def _rm(insn: Decoded) -> str:
    """The register that ModRM.rm names; "" for memory."""
    return _NAMES[insn.modrm & 7 | insn.base_high << 3] if insn.modrm >= 0xC0 else ""


def _place(insn: Decoded, raw: bytes) -> tuple[str, int] | None:
    """(base register, displacement) of a memory operand without an index."""
    base = insn.modrm & 7
    if base == 4:
        if insn.sib >> 3 & 7 != 4 or insn.index_high:
            return None
        base = insn.sib & 7
    if insn.modrm >> 6 == 0 and base == 5:
        return None
    offset = 0
    if insn.displacement_size:
        offset = _signed(raw, insn.displacement_at, insn.displacement_size)
    return _NAMES[base | insn.base_high << 3], offset


def _mov_store(insn: Decoded, raw: bytes) -> tuple[Effect, ...]:
    if insn.modrm >= 0xC0:
        return (Copy(_rm(insn), _reg(insn)),)
    place = _place(insn, raw)
    return (Store(*place, _reg(insn)),) if place else ()


def _mov_load(insn: Decoded, raw: bytes) -> tuple[Effect, ...]:
    if insn.modrm >= 0xC0:
        return (Copy(_reg(insn), _rm(insn)),)
    place = _place(insn, raw)
    return (Load(_reg(insn), *place),) if place else (Copy(_reg(insn), ""),)


def _lea(insn: Decoded, raw: bytes) -> tuple[Effect, ...]:
    place = _place(insn, raw)
    return (Copy(_reg(insn), *place),) if place else (Copy(_reg(insn), ""),)


def _immediate(insn: Decoded, raw: bytes) -> tuple[Effect, ...]:
    """81, 83: add, or, adc, sbb, and, sub, xor, cmp with an immediate."""
    register = _rm(insn)
    if not register or insn.reg == 7:
        return ()
    value = _signed(raw, insn.immediate_at, insn.immediate_size)
    if insn.reg in (0, 5):
        return (Copy(register, register, value if insn.reg == 0 else -value),)
    return (Copy(register, ""),)


def _mov_immediate(insn: Decoded, raw: bytes) -> tuple[Effect, ...]:
    """C7 /0; the 32-bit form clears the upper half."""
    if insn.modrm < 0xC0:
        place = _place(insn, raw)
        return (Store(*place, ""),) if place else ()
    if insn.prefixes & OPERAND_SIZE:
        return (Copy(_rm(insn), ""),)
    value = _signed(raw, insn.immediate_at, insn.immediate_size, signed=insn.wide)
    return (Constant(_rm(insn), value),)


def _sum(insn: Decoded, raw: bytes) -> tuple[Effect, ...]:
    """01, 03, 29, 2b: add and sub of two registers."""
    if insn.modrm < 0xC0:
        return () if insn.key in (0x01, 0x29) else (Copy(_reg(insn), ""),)
    target, other = _rm(insn), _reg(insn)
    if insn.key in (0x03, 0x2B):
        target, other = other, target
    return (Add(target, target, other, 1 if insn.key < 0x10 else -1),)


_MOVES: Final[dict[int, Callable[[Decoded, bytes], tuple[Effect, ...]]]] = {
    0x89: _mov_store,
    0x8B: _mov_load,
    0x8D: _lea,
    0x81: _immediate,
    0x83: _immediate,
    0xC7: _mov_immediate,
    **dict.fromkeys((0x01, 0x03, 0x29, 0x2B), _sum),
}


def _unknown(insn: Decoded) -> tuple[Effect, ...]:
    """Whatever registers an instruction names may have changed; rsp and rbp are known better."""
    found = {_NAMES[number] for number in written_registers(insn)}
    if insn.encoding == LEGACY and insn.modrm >= 0 and insn.key not in _READS_ONLY:
        found |= {_reg(insn), _rm(insn)} - {_NAMES[RSP], _NAMES[RBP], ""}
    return tuple(Copy(name, "") for name in sorted(found))


_ENDBR64: Final = b"\xf3\x0f\x1e\xfa"
_FRAMES: Final = (b"\x55\x48\x89\xe5", b"\x55\x48\x8b\xec", b"\x55\x89\xe5", b"\x55\x8b\xec")
"""`push %rbp; mov %rsp,%rbp` in the forms that compilers write."""
_ALIGNED: Final = re.compile(
    # lea 8(%rsp),%REG; and $-N,%rsp; push -8(%REG), or the same behind push %REG
    rb"(?:\x41?[\x50-\x57])?[\x48\x4c]\x8d.\x24[\x08\x10]"
    rb"\x48(?:\x83\xe4.|\x81\xe4....)\x41?\xff.\xf8",
    re.DOTALL,
)


def _frame_made(code: bytes) -> int:
    """Bytes of the instructions that make a frame by %rbp (gdb's amd64_analyze_prologue)."""
    at = len(_ENDBR64) if code.startswith(_ENDBR64) else 0
    aligned = _ALIGNED.match(code, at)
    at = aligned.end() if aligned is not None else at
    frame = next((one for one in _FRAMES if code.startswith(one, at)), b"")
    return at + len(frame) if frame else 0


UNWIND: Final = ArchUnwind(
    read=read,
    preserved=("rbx", "rbp", "r12", "r13", "r14", "r15"),
    alignment=8,
    sigreturn=(
        (bytes.fromhex("48c7c00f0000000f05"), (0, 7)),  # mov rax, 15; syscall
        (bytes.fromhex("b80f0000000f05"), (0, 5)),  # mov eax, 15; syscall
    ),
    saved=SAVED_REGISTERS,
    strip=lambda address: address,
    orc=ORC,
    frame_made=_frame_made,
)
