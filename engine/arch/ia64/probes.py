"""What IA-64 gives to breakpoint probes so far: its registers, and a refusal of every place."""

from typing import Final

from engine.arch.ia64.bundle import SIZE
from engine.arch.plan import ArchProbes, InsnPlan, Mode, Rules, Verdict

BREAK: Final = 0x81000 << 6
"""break 0x81000 (__IA64_BREAK_KPROBE, asm/break.h), the same word in M, I, F and B slots."""

_NOP: Final = bytes.fromhex("11000000010000000002000000000020")
"""A bundle of nop.m, nop.i, nop.b."""


def _analyze(raw: bytes, address: int, rules: Rules, mode: Mode, before: bytes) -> InsnPlan:
    return InsnPlan(
        address,
        raw[:SIZE],
        Verdict.REJECTED,
        "probes in the bundles of IA-64 are not supported yet",
        errno="EOPNOTSUPP",
        rule="ia64.unsupported",
    )


PROBES: Final = ArchProbes(
    kprobe=BREAK.to_bytes(6, "little"),
    uprobe=BREAK.to_bytes(6, "little"),
    after=BREAK.to_bytes(6, "little"),
    kprobe_slot=2 * SIZE,
    uprobe_slot=2 * SIZE,
    reach=1 << 63,  # brl reaches everything
    analyze=_analyze,
    length=lambda raw: SIZE if len(raw) >= SIZE else 0,
    jump=lambda place, target: None,
    target=lambda raw, address: None,
    landing_pad=lambda raw: 0,
    fetch_registers={
        **{f"r{number}": f"r{number}" for number in range(128)},
        **{f"b{number}": f"b{number}" for number in range(8)},
        "ar_pfs": "pfs",
        "pr": "pr",
        "sp": "r12",
        "gp": "r1",
        "ip": "ip",
    },
    arguments=tuple(f"r{number}" for number in range(32, 40)),
    retval="r8",
    nop=_NOP,
)
