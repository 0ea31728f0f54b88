"""Breakpoint probes on AArch64.

Linux gives a uprobe a slot of 4 bytes and steps it with the CPU's software step exception; here
the copy is followed by the trap that ends its step, so a slot has 8, as a kprobe's has there.
"""

from engine.arch.aarch64.decode import branch_target, classify, is_landing_pad
from engine.arch.aarch64.encode import BRANCH_REACH, branch
from engine.arch.plan import ArchProbes, InsnPlan, Mode, Rules

# The tables of verdicts are read when they are needed: runs without probes do without.


def _analyze(raw: bytes, address: int, rules: Rules, mode: Mode, before: bytes) -> InsnPlan:
    from engine.arch.aarch64.analyze import analyze

    return analyze(raw, address, rules, mode, before)


def _anywhere(raw: bytes, rules: Rules, mode: Mode) -> InsnPlan | None:
    from engine.arch.aarch64.analyze import anywhere

    return anywhere(raw, rules, mode)


def _ties(code: bytes) -> bool:
    from engine.arch.aarch64.exclusive import may_pair

    return may_pair(code)


def _length(raw: bytes) -> int:
    return 4 if len(raw) >= 4 else 0


def _target(raw: bytes, address: int) -> int | None:
    if len(raw) < 4:
        return None
    word = int.from_bytes(raw[:4], "little")
    return branch_target(word, classify(word), address)


def _landing_pad(raw: bytes) -> int:
    """`bti c`, `bti j`, `bti jc`, and `paciasp`, `pacibsp`, which include a `bti c`."""
    return 4 if len(raw) >= 4 and is_landing_pad(int.from_bytes(raw[:4], "little")) else 0


def _returns(code: bytes) -> tuple[int, ...]:
    """`ret xN`, `retaa`, `retab`."""
    word = int.from_bytes(code[-4:], "little")
    is_return = word & ~0x3E0 == 0xD65F0000 or word | 0x400 == 0xD65F0FFF
    return (4,) if is_return else ()


PROBES = ArchProbes(
    kprobe=bytes.fromhex("800020d4"),  # brk #4 (asm/brk-imm.h)
    uprobe=bytes.fromhex("a00020d4"),  # brk #5
    after=bytes.fromhex("c00020d4"),  # brk #6
    kprobe_slot=8,
    uprobe_slot=8,
    reach=BRANCH_REACH - 64,  # the branch back stands inside the slot
    analyze=_analyze,
    looks_back=512,
    ties=_ties,
    anywhere=_anywhere,
    length=_length,
    jump=branch,
    target=_target,
    landing_pad=_landing_pad,
    fetch_registers={  # regoffset_table of arch/arm64/kernel/ptrace.c
        **{f"x{number}": f"x{number}" for number in range(31)},
        "lr": "x30",
        "sp": "sp",
        "pc": "pc",
        "pstate": "cpsr",
    },
    arguments=tuple(f"x{number}" for number in range(8)),
    retval="x0",
    nop=bytes.fromhex("1f2003d5"),
    returns=_returns,
)
