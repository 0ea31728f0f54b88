"""Breakpoint probes on IA-64."""

from typing import Final

from engine.arch.drawing import DrawnHit, UnitDrawing
from engine.arch.ia64.breaks import BREAK
from engine.arch.ia64.bundle import SIZE, unpack
from engine.arch.plan import ArchProbes, InsnPlan, Mode, Rules

_NOP: Final = bytes.fromhex("11000000010000000002000000000020")
"""A bundle of nop.m, nop.i, nop.b."""


# The tables of instructions are read when they are needed: other guests do without.


def _analyze(raw: bytes, address: int, rules: Rules, mode: Mode, before: bytes) -> InsnPlan:
    from engine.arch.ia64.analyze import analyze

    return analyze(raw, address, rules, mode, before)


def _target(raw: bytes, address: int) -> int | None:
    """Of an IP-relative branch or check in a bundle's slot."""
    from engine.arch.ia64.decode import decode_at

    insn = decode_at(raw, address % SIZE) if len(raw) >= SIZE else None
    return insn.target(address) if insn is not None else None


def _jump(place: int, target: int) -> bytes:
    """A bundle with brl.cond: behind a boosted copy (set_brl_inst)."""
    from engine.arch.ia64.encode import long_jump

    return long_jump(place, target)


def _draw(plan: InsnPlan, hit: DrawnHit) -> tuple[UnitDrawing, ...]:
    from engine.arch.ia64.drawing import draw

    return draw(plan, hit)


def _steps(raw: bytes) -> tuple[int, ...]:
    """From slot to slot; none where the template is reserved."""
    bundle = unpack(raw)
    if len(raw) < SIZE or not bundle.units:
        return ()
    return (1, SIZE - 1) if bundle.long else (1, 1, SIZE - 2)


def _returns(code: bytes) -> tuple[int, ...]:
    """br.ret in a slot: the distance to what follows it; of the bundle that they may be in."""
    bundle = unpack(code)
    steps = _steps(code) if not bundle.long else ()
    return tuple(
        {
            step
            for unit, word, step in zip(bundle.units, bundle.slots, steps, strict=False)
            if unit == "B" and not word >> 37 and word >> 27 & 63 == 0x21 and word >> 6 & 7 == 4
        }
    )


PROBES: Final = ArchProbes(
    kprobe=BREAK.to_bytes(6, "little"),
    uprobe=BREAK.to_bytes(6, "little"),
    after=b"",  # psr.ss
    kprobe_slot=2 * SIZE,
    uprobe_slot=2 * SIZE,
    reach=1 << 63,  # brl reaches everything
    analyze=_analyze,
    length=lambda raw: SIZE if len(raw) >= SIZE else 0,
    jump=_jump,
    target=_target,
    landing_pad=lambda raw: 0,
    fetch_registers={
        **{f"r{number}": f"r{number}" for number in range(128)},
        **{f"in{number}": f"r{32 + number}" for number in range(8)},  # as assemblers call them
        **{f"b{number}": f"b{number}" for number in range(8)},
        **{f"p{number}": f"p{number}" for number in range(64)},
        **{
            f"ar_{name}": name for name in ("pfs", "lc", "ec", "unat", "rsc", "bsp", "ccv", "fpsr")
        },
        "cfm": "cfm",
        "pr": "pr",
        "sp": "r12",
        "gp": "r1",
        "ip": "ip",
    },
    arguments=tuple(f"r{number}" for number in range(32, 40)),
    retval="r8",
    nop=_NOP,
    returns=_returns,
    steps=_steps,
    draw=_draw,
)
