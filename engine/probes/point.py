"""The physical side: one probed address, whatever number of probes want it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from engine.arch.plan import InsnPlan, Verdict
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe

if TYPE_CHECKING:
    from engine.probes.detours import Detour
    from engine.probes.lint import Check


class ProbePoint:
    """A code address with its instruction's plan, its slot and its probes (an aggregate kprobe).

    Attributes:
        address: guest address.
        plan: what is done with the instruction.
        probes: newest first: the order in which pre-handlers run.
        armed: whether the breakpoint is planted.
        slot: address of its kprobe slot, None without one.
        code: what stands in the slot, the trap or jump behind the copy included.
        boosted: the slot ends with a jump back in place of a trap.
        scratch: the copy in the slot uses the scratch register.
        saved: the scratch register's own value during a step.
        detour: its detour buffer while it is a jump, None while it is a breakpoint.
        held: why a breakpoint stands in front of the jump ("stop": a debugger's; "check": until
            CPUs have passed it); what it lets pass goes to the detour. "" = the jump stands.
        hot: it has been a jump: it is one again as soon as nothing speaks against it.
        guard: predicate that the instruction depends on, where its breakpoint does not: only the
            machinery's own probes are served while it is 0; "" = there is none.
        why: the condition of a jump that it does not meet; None if not known, or a jump.
        considered: whether it has been looked at for a jump as its probes are now.
        due: it has been hit so often that it is to be looked at.
        patience: further hits that are waited for in a large function, 0 before the first ones.
    """

    __slots__ = (
        "address",
        "armed",
        "boosted",
        "code",
        "considered",
        "detour",
        "due",
        "guard",
        "held",
        "hot",
        "patience",
        "plan",
        "probes",
        "saved",
        "scratch",
        "slot",
        "why",
    )

    def __init__(self, address: int, plan: InsnPlan) -> None:
        self.address = address
        self.plan = plan
        self.probes: list[Kprobe] = []
        self.armed = False
        self.slot: int | None = None
        self.code = b""
        self.boosted = False
        self.scratch = False
        self.saved = 0
        self.detour: Detour | None = None
        self.held: Literal["", "stop", "check"] = ""
        self.hot = False
        self.guard = ""
        self.why: Check | None = None
        self.considered = False
        self.due = False
        self.patience = 0

    @property
    def technique(self) -> str:
        """What stands at the address: "breakpoint" or "jump" (a debugger's stop left out)."""
        return "breakpoint" if self.detour is None or self.held == "check" else "jump"

    @property
    def how(self) -> str:
        """How the displaced instruction is carried out: "emulated", "boosted" or "xol"."""
        if self.plan.verdict is Verdict.EMULATED:
            return "emulated"
        return "boosted" if self.boosted else "xol"

    @property
    def follow(self) -> int:
        """Where the guest goes on in its own code if the instruction does not lead elsewhere."""
        plan = self.plan
        return plan.boosted_next if self.boosted and plan.boosted_next else plan.next

    @property
    def copy_size(self) -> int:
        """Bytes of the instruction's copy."""
        return len(self.plan.scratch_copy if self.scratch else self.plan.copy)

    def enabled(self) -> list[Kprobe]:
        """Its probes whose handlers run."""
        return [probe for probe in self.probes if probe.enabled]

    def wants_post(self) -> bool:
        """Whether anything is to run after the step: then the slot cannot be boosted."""
        return any(probe.post_handler is not None for probe in self.probes if probe.enabled)

    def wants_return(self) -> bool:
        """Whether the return of the call that is made here is to be caught."""
        return any(isinstance(probe, Kretprobe) for probe in self.probes if probe.enabled)

    def wants_engine(self) -> bool:
        """Whether a handler may do what the emulator's callback does not allow."""
        return any(needs_engine(probe) for probe in self.probes if probe.enabled)


def needs_engine(probe: Kprobe) -> bool:
    """Whether a probe has handlers that run outside the emulator when it is hit."""
    if isinstance(probe, Kretprobe):
        return probe.entry_handler is not None
    return (
        probe.pre_handler is not None
        or probe.post_handler is not None
        or getattr(probe, "handler", None) is not None
    )


def missed(probes: Iterable[Kprobe]) -> None:
    """Count a hit that could not be served."""
    for probe in probes:
        probe.hits += 1
        probe.nmissed += 1
