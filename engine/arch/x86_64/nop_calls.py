"""Calls in place of a uprobe's five-byte no-operation (6.18, arch/x86/kernel/uprobes.c)."""

import struct
from typing import Final

from engine.arch.nop_call import NopCalls
from engine.arch.x86_64.decode import LEGACY, Decoded, decode

_SIZE: Final = 5
_REACH: Final = 1 << 31


def _is_nop(raw: bytes) -> bool:
    """True for what Linux 6.18 takes for a no-operation: 90 with any prefixes, 0f 1f /0."""
    insn = _decoded(raw)
    return insn is not None and (insn.key == 0x90 or (insn.key == 0x11F and not insn.reg))


def _does_something(raw: bytes) -> bool:
    """True for xchg with r8, which Linux 6.18 takes for one."""
    insn = _decoded(raw)
    return insn is not None and insn.key == 0x90 and bool(insn.base_high)


def _decoded(raw: bytes) -> Decoded | None:
    insn = decode(raw)
    return insn if insn is not None and insn.size == _SIZE and insn.encoding == LEGACY else None


def _call(place: int, target: int) -> bytes | None:
    """`call rel32`; None beyond 2 GiB."""
    distance = target - (place + _SIZE)
    return b"\xe8" + struct.pack("<i", distance) if -_REACH <= distance < _REACH else None


NOP_CALLS: Final = NopCalls(
    size=_SIZE,
    page=0x1000,
    is_nop=_is_nop,
    does_something=_does_something,
    call=_call,
    # uprobe_trampoline_entry: push rcx, r11, rax; mov rax, 336; syscall; pop rax, r11, rcx; ret
    code=bytes.fromhex("51 4153 50 48c7c050010000 0f05 58 415b 59 c3 cc"),
    syscall=11,
    pushes=((1, "rcx"), (3, "r11"), (4, "rax")),
    aside=32,
    detour=bytes.fromhex("58 415b 59 cc"),  # pop rax, r11, rcx; int3
    jump=bytes.fromhex("eb13"),
    aside_pops=((33, "rax"), (35, "r11"), (36, "rcx")),
    pops=((14, "rax"), (16, "r11"), (17, "rcx")),
    result="rax",
    leaves=("r11", "rcx"),
    flags="eflags",
)
