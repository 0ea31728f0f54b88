"""Breakpoint probes on x86-64."""

import struct
from typing import Final

from engine.arch.plan import RETURN_ADDRESS, TRAMPOLINE_ADDRESS, ArchProbes, Rules
from engine.arch.x86_64.analyze import analyze
from engine.arch.x86_64.decode import LEGACY, decode, length
from engine.arch.x86_64.liveness import flow
from engine.arch.x86_64.operations import relative_target

_REACH: Final = 1 << 31
_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_JUMP_SIZE: Final = 5
_ENDBR: Final = (b"\xf3\x0f\x1e\xfa", b"\xf3\x0f\x1e\xfb")
_RELATIVE: Final = frozenset(
    (*range(0x70, 0x80), *range(0xE0, 0xE4), 0xE8, 0xE9, 0xEB, *range(0x180, 0x190))
)
_XBEGIN: Final = (0xC7, 0xF8)
_PREFIXES: Final = (
    0x26,
    0x2E,
    0x36,
    0x3E,
    *range(0x40, 0x50),
    *range(0x64, 0x68),
    0xF0,
    0xF2,
    0xF3,
)
_MAY_BRANCH: Final = bytes(byte in {*_RELATIVE, 0x0F, 0xC7, *_PREFIXES} for byte in range(256))
"""By first byte: whether an instruction may be a relative branch."""


def _jump(place: int, target: int) -> bytes | None:
    """`jmp rel32`; None beyond 2 GiB."""
    distance = (target - place - _JUMP_SIZE + (1 << 63) & _MASK) - (1 << 63)
    if not -_REACH <= distance < _REACH:
        return None
    return b"\xe9" + struct.pack("<i", distance)


def _target(raw: bytes, address: int) -> int | None:
    """Target of a relative branch; of xbegin, the place where an abort goes on."""
    if not (raw and _MAY_BRANCH[raw[0]]):  # most instructions, at no cost
        return None
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
    analyze=analyze,
    length=length,
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
    flow=flow,
)
