"""What x86_64 gives to breakpoint probes."""

from engine.arch.plan import ArchProbes, InsnPlan, Mode, Rules, Verdict


def _analyze(raw: bytes, address: int, rules: Rules, mode: Mode, before: bytes) -> InsnPlan:
    return InsnPlan(address, raw[:1], Verdict.REJECTED, "not analysed yet", errno="EINVAL")


PROBES = ArchProbes(
    kprobe=b"\xcc",
    uprobe=b"\xcc",
    after=b"\xcc",
    kprobe_slot=16,
    uprobe_slot=128,
    reach=(1 << 31) - 64,
    analyze=_analyze,
    length=lambda raw: 0,
    jump=lambda place, target: None,
    target=lambda raw, address: None,
    landing_pad=lambda raw: 0,
    fetch_registers={},
    arguments=("rdi", "rsi", "rdx", "rcx", "r8", "r9"),
    retval="rax",
    nop=b"\x90",
)
