"""Breakpoint probes on x86-64."""

import re
import struct
from typing import Final

from engine.arch.flow import CodeFlow
from engine.arch.plan import (
    RETURN_ADDRESS,
    TRAMPOLINE_ADDRESS,
    ArchProbes,
    InsnPlan,
    Mode,
    Rules,
)
from engine.arch.x86_64.decode import LEGACY, decode, length, starts
from engine.arch.x86_64.operations import relative_target

_REACH: Final = 1 << 31
_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_JUMP_SIZE: Final = 5
_ENDBR: Final = (b"\xf3\x0f\x1e\xfa", b"\xf3\x0f\x1e\xfb")
_RELATIVE: Final = frozenset(
    (*range(0x70, 0x80), *range(0xE0, 0xE4), 0xE8, 0xE9, 0xEB, *range(0x180, 0x190))
)
_XBEGIN: Final = (0xC7, 0xF8)
_ESCAPE: Final = 0x0F
_PREFIXES: Final = rb"[\x26\x2e\x36\x3e\x40-\x4f\x64-\x67\xf0\xf2\xf3]"
_BRANCHING: Final = re.compile(
    _PREFIXES + rb"*(?:[\x70-\x7f\xe0-\xe3\xe8\xe9\xeb]|\x0f[\x80-\x8f]|\xc7\xf8)", re.DOTALL
)
"""The front of a relative branch."""


def _plain_size(byte: int) -> int:
    if byte in (0xE8, 0xE9):
        return _JUMP_SIZE
    if byte in _RELATIVE:
        return 2
    return -1 if byte in (_ESCAPE, 0xC7) or re.match(_PREFIXES, bytes((byte,))) else 0


_PLAIN: Final = [_plain_size(byte) for byte in range(256)]
"""By first byte: bytes of a relative branch that begins so, -1 if there may be one, else 0."""


# The tables of verdicts are read when they are needed: runs without probes do without.


def _analyze(raw: bytes, address: int, rules: Rules, mode: Mode, before: bytes) -> InsnPlan:
    from engine.arch.x86_64.analyze import analyze

    return analyze(raw, address, rules, mode, before)


def _anywhere(raw: bytes, rules: Rules, mode: Mode) -> InsnPlan | None:
    from engine.arch.x86_64.analyze import anywhere

    return anywhere(raw, rules, mode)


def _flow(data: bytes, start: int) -> CodeFlow:
    from engine.arch.x86_64.liveness import flow

    return flow(data, start)


def _jump(place: int, target: int) -> bytes | None:
    """`jmp rel32`; None beyond 2 GiB."""
    distance = (target - place - _JUMP_SIZE + (1 << 63) & _MASK) - (1 << 63)
    if not -_REACH <= distance < _REACH:
        return None
    return b"\xe9" + struct.pack("<i", distance)


def _target(raw: bytes, address: int) -> int | None:
    """Target of a relative branch; of xbegin, the place where an abort goes on."""
    size = _PLAIN[raw[0]] if raw else 0
    if size < 0:
        match = _BRANCHING.match(raw)
        if match is None:
            return None
        size = 6 if match.end() == 2 and raw[0] == _ESCAPE else 0
    elif not size:  # most instructions, at no cost
        return None
    if size:
        if len(raw) < size:
            return None
        at = 1 if size < _JUMP_SIZE else size - 4
        return address + size + int.from_bytes(raw[at:size], "little", signed=True) & _MASK
    insn = decode(raw)
    if insn is None or insn.encoding != LEGACY:
        return None
    if insn.key not in _RELATIVE and (insn.key, insn.modrm) != _XBEGIN:
        return None
    return relative_target(insn, raw, address)


def _landing_pad(raw: bytes) -> int:
    """`endbr64` or `endbr32`."""
    return 4 if raw[:4] in _ENDBR else 0


def _returns(code: bytes) -> tuple[int, ...]:
    """Near and far returns, with a prefix (rep, bnd) and with bytes to drop."""
    sizes = []
    if code[-1:] in (b"\xc3", b"\xcb"):
        sizes = [1, 2] if code[-2:-1] in (b"\xf3", b"\xf2") else [1]
    if code[-3:-2] in (b"\xc2", b"\xca"):
        sizes.append(3)
    return tuple(sizes)


PROBES = ArchProbes(
    kprobe=b"\xcc",
    uprobe=b"\xcc",
    after=b"\xcc",
    kprobe_slot=16,
    uprobe_slot=128,
    reach=_REACH - 64,  # the jump back stands inside the slot
    analyze=_analyze,
    length=length,
    starts=starts,
    jump=_jump,
    target=_target,
    landing_pad=_landing_pad,
    # regoffset_table of arch/x86/kernel/ptrace.c
    fetch_registers={
        **{name: f"r{name}" for name in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "ip")},
        **{f"r{number}": f"r{number}" for number in range(8, 16)},
        "flags": "eflags",
        "cs": "cs",
        "ss": "ss",
    },
    # The number of the system call that a program is in; a trap leaves -1 there (entry_64.S).
    fixed_registers={"orig_ax": _MASK},
    arguments=("rdi", "rsi", "rdx", "rcx", "r8", "r9"),
    retval="rax",
    nop=b"\x90",
    skips_landing_pad=True,
    returns=_returns,
    long_breakpoint=b"\xcd\x03",
    pushes={
        # arch/x86/kernel/uprobes.c, uretprobe_trampoline_entry
        Rules.UPROBE: ("rax", "rcx", "r11"),
        # arch/x86/kernel/rethook.c, arch_rethook_trampoline: struct pt_regs below a false
        # return address; ss and cs are the kernel's.
        Rules.KPROBE: (
            *(TRAMPOLINE_ADDRESS, 0x18, "rsp", "eflags", 0x10, RETURN_ADDRESS, _MASK),
            *("rdi", "rsi", "rdx", "rcx", "rax", "r8", "r9", "r10", "r11"),
            *("rbx", "rbp", "r12", "r13", "r14", "r15"),
        ),
    },
    flow=_flow,
    anywhere=_anywhere,
)
