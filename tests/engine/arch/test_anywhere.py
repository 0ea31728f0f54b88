"""Plans that are the same wherever an instruction stands: as those made at its address."""

import random

import pytest

from engine import arch as architectures
from engine.arch.base import Arch
from engine.arch.plan import InsnPlan, Mode, Rules

_PLACES = (0x401000, 0x7FFF_1234_5670)


def _bytes(arch: Arch, rng: random.Random) -> bytes:
    """An instruction, mostly, with a likely front."""
    if arch.name != "x86_64":
        return rng.randbytes(4)
    lead = rng.choice((b"", b"\x48", b"\x0f", b"\x66", b"\xf3", b"\xff", b"\x0f\x0b", b"\xd5"))
    return lead + rng.randbytes(15 - len(lead))


def _told(plan: InsnPlan) -> tuple[object, ...]:
    return plan.verdict, plan.reason, plan.errno, plan.rule, plan.boostable


@pytest.mark.parametrize("name", ["x86_64", "aarch64", "riscv64"])
def test_plans_that_hold_anywhere(name: str) -> None:
    arch = architectures.by_name(name)
    rng = random.Random(name)
    probes = arch.probes
    held = 0
    for number in range(3000):
        raw = _bytes(arch, rng)
        size = probes.length(raw)
        if not size:
            continue
        rules, mode = list(Rules)[number & 1], list(Mode)[number >> 1 & 1]
        plan = probes.anywhere(raw[:size], rules, mode)
        if plan is None:
            continue
        held += 1
        for address in _PLACES:
            for behind in (b"xen", b"\x6b\x76\x6d", rng.randbytes(11)):
                there = raw[:size] + behind
                found = probes.analyze(there[: arch.insn_max], address, rules, mode, b"")
                assert _told(found) == _told(plan), there.hex()
    assert held > 1000


@pytest.mark.parametrize(
    ("name", "pair", "other"),
    [
        ("aarch64", "207c5f88", "20000091"),  # ldxr w0, [x1]; add x0, x1, #0
        ("riscv64", "afa20510", "13050500"),  # lr.w t0, (a1); mv a0, a0
    ],
)
def test_what_stands_before_may_matter(name: str, pair: str, other: str) -> None:
    ties = architectures.by_name(name).probes.ties
    assert ties(bytes.fromhex(other + pair + other))
    assert not ties(bytes.fromhex(3 * other))
