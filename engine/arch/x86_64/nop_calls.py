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


_ASIDE: Final = 32
_TABLE: Final = 1024
_STUBS: Final = 3072
_SLOW: Final = _ASIDE + 19


def _stub(place: int, returns: int, elsewhere: int, code: int) -> bytes | None:
    """The code leaves the flags alone; rcx, r11 and rax are on the stack, rax is what returns."""
    distance = code - (place + 35)
    if not -_REACH <= distance < _REACH:
        return None
    # mov rcx, -returns; lea rcx, [rcx+rax]; jrcxz +5; jmp elsewhere
    # pop rax, r11, rcx; lea rsp, [rsp+8]; jmp code
    return b"".join(
        (
            *(b"\x48\xb9", struct.pack("<q", -returns), bytes.fromhex("488d0c01 e305")),
            *(b"\xe9", struct.pack("<i", elsewhere - (place + 21))),
            bytes.fromhex("58 415b 59 488d642408"),
            *(b"\xe9", struct.pack("<i", distance)),
        )
    )


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
    aside=_ASIDE,
    # mov rax, [rsp+24]; movzx ecx, al; lea r11, [rip+table]; jmp [r11+rcx*8]
    # pop rax, r11, rcx; int3
    detour=b"".join(
        (
            *(bytes.fromhex("488b442418 0fb6c8 4c8d1d"), struct.pack("<i", _TABLE - _ASIDE - 15)),
            bytes.fromhex("41ff24cb 58 415b 59 cc"),
        )
    ),
    slow=_SLOW,
    jump=bytes.fromhex("eb13"),
    aside_pops=((_SLOW + 1, "rax"), (_SLOW + 3, "r11"), (_SLOW + 4, "rcx")),
    table=_TABLE,
    stubs=_STUBS,
    stub_size=35,
    stub_pops=((22, "rax"), (24, "r11"), (25, "rcx"), (30, "")),
    stub=_stub,
    pops=((14, "rax"), (16, "r11"), (17, "rcx")),
    result="rax",
    leaves=("r11", "rcx"),
    flags="eflags",
)
