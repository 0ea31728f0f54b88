"""RISC-V's part of breakpoint probes.

Linux plants a breakpoint of the instruction's own length for a kprobe and always the short one
for a uprobe. A plan says which one a compressed instruction gets (`InsnPlan.bits`).
"""

import struct
from typing import Final

from engine.arch.plan import ArchProbes
from engine.arch.riscv64.analyze import analyze, anywhere
from engine.arch.riscv64.decode import (
    C_EBREAK,
    EBREAK,
    JALR,
    MASK,
    NAMES,
    RA,
    T0,
    ZERO,
    branch_target,
    classify,
    jal,
    length,
    rd,
    rs1,
    word_of,
)
from engine.arch.riscv64.exclusive import may_pair

_REACH: Final = 1 << 20
_EBREAK: Final = struct.pack("<I", EBREAK)
_LONG_TARGETS: Final = frozenset({0x63, 0x6F})
_SHORT_TARGETS: Final = frozenset({0xA001, 0xC001, 0xE001})  # c.j, c.beqz, c.bnez


def _jump(place: int, target: int) -> bytes | None:
    """`j`; None beyond 1 MiB or where an address is odd."""
    distance = (target - place + (1 << 63) & MASK) - (1 << 63)
    if (place | target) & 1 or not -_REACH <= distance < _REACH:
        return None
    return struct.pack("<I", jal(ZERO, distance))


def _target(raw: bytes, address: int) -> int | None:
    """The address that a jump or a branch goes to."""
    if not length(raw):
        return None
    if raw[0] & 3 == 3:
        if raw[0] & 0x7F not in _LONG_TARGETS:
            return None
    elif (raw[0] | raw[1] << 8) & 0xE003 not in _SHORT_TARGETS:
        return None
    word = word_of(raw)
    return branch_target(word, classify(word), address)


def _returns(code: bytes) -> tuple[int, ...]:
    """`ret` by ra or t0, in both lengths."""
    found = []
    for size in (2, 4):
        raw = code[-size:]
        if len(code) >= size and length(raw) == size:
            word = word_of(raw)
            if word & 0x707F == JALR and rd(word) == ZERO and rs1(word) in (RA, T0):
                found.append(size)
    return tuple(found)


PROBES = ArchProbes(
    kprobe=_EBREAK,
    uprobe=struct.pack("<H", C_EBREAK),
    after=_EBREAK,
    kprobe_slot=8,
    uprobe_slot=8,
    reach=_REACH - 64,  # the jump back stands inside the slot
    analyze=analyze,
    looks_back=512,
    ties=may_pair,
    anywhere=anywhere,
    length=length,
    jump=_jump,
    target=_target,
    landing_pad=lambda raw: 0,
    fetch_registers={  # regoffset_table of arch/riscv/kernel/ptrace.c
        "epc": "pc",
        **{name: name for name in NAMES[1:]},
    },
    arguments=tuple(f"a{number}" for number in range(8)),
    retval="a0",
    nop=bytes.fromhex("0100"),
    returns=_returns,
)
