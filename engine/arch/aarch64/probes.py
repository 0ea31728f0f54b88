"""What aarch64 gives to breakpoint probes."""

from engine.arch.plan import ArchProbes, InsnPlan, Mode, Rules, Verdict


def _analyze(raw: bytes, address: int, rules: Rules, mode: Mode, before: bytes) -> InsnPlan:
    return InsnPlan(address, raw[:1], Verdict.REJECTED, "not analysed yet", errno="EINVAL")


PROBES = ArchProbes(
    kprobe=bytes.fromhex("800020d4"),
    uprobe=bytes.fromhex("a00020d4"),
    after=bytes.fromhex("c00020d4"),
    kprobe_slot=8,
    uprobe_slot=8,
    reach=(1 << 27) - 64,
    analyze=_analyze,
    length=lambda raw: 0,
    jump=lambda place, target: None,
    target=lambda raw, address: None,
    landing_pad=lambda raw: 0,
    fetch_registers={},
    arguments=tuple(f"x{number}" for number in range(8)),
    retval="x0",
    nop=bytes.fromhex("1f2003d5"),
)
