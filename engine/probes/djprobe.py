"""djprobe's protocol of 2005: a jump is written, and freed, once every CPU has been seen to pass.

The direct-jump probe before optprobe (Hiramatsu's djprobe for i386) had three phases:

1. Insertion: an ordinary kprobe stands at the place. Each hit marks the CPU that it is on as
   checked and goes through the stub. Once all are, none can be in the bytes that the jump is going
   to overwrite, as it has entered them through the breakpoint: the jump is written.
2. Working: the jump leads to the stub without a trap.
3. Removal: the breakpoint stands at the place again, and hits mark CPUs as before. Once all have
   passed it, none can be in the stub: the stub is freed, and the breakpoint goes.

Nothing is proven for a task that was preempted in those bytes, and a CPU that never comes by keeps
the stub for ever: optprobe waits for all tasks to have scheduled instead (synchronize_rcu_tasks).
A guest has one processor here, so hits come on simulated CPUs, in turn.
"""

from collections.abc import Iterable
from itertools import cycle
from typing import Final

from engine.probes.detourmap import DetourMap, LiveDetour
from engine.probes.detours import KIND
from engine.probes.jump import CONDITIONS, JumpsDone, jump_technique, scratch
from engine.probes.jump_machine import JumpMachine
from engine.probes.kprobe import Kprobe
from engine.probes.placement_rules import Check
from engine.probes.point import ProbePoint
from engine.probes.technique import TechniqueHost
from engine.probes.technique_kind import TechniqueKind

CPUS: Final = 4
"""CPUs that are simulated."""
_CHECKED: Final = Check("safety-check", False, "not all CPUs have passed its breakpoint yet")


class SafetyCheck(Kprobe):
    """Keeps a breakpoint at a place whose probe is gone until its stub can be freed."""

    machinery = True

    __slots__ = ()

    def __init__(self, address: int) -> None:
        super().__init__(addr=address, name="djprobe's safety check")


class SafetyChecks:
    """Which simulated CPUs have passed which breakpoints; satisfies `jump.Handover`.

    Attributes:
        told: what the last hit has brought, in words.
    """

    def __init__(self, host: TechniqueHost, detours: DetourMap, done: JumpsDone) -> None:
        """Nothing is checked.

        Args:
            host: of the technique.
            detours: of the guest.
            done: called when all CPUs have passed.
        """
        self._done = done
        self._host = host
        self._detours = detours
        self._turn = cycle(range(CPUS))
        self.told = ""

    @property
    def awaits(self) -> Check | None:
        """A jump waits for the CPUs to pass."""
        return _CHECKED

    def objection(self, probes: Iterable[Kprobe]) -> str:
        """The breakpoint of a stub that cannot be freed yet has to stay."""
        waits = any(isinstance(probe, SafetyCheck) for probe in probes)
        return "CPUs have yet to pass its breakpoint" if waits else ""

    def begin(self, live: LiveDetour) -> None:
        """All CPUs have to pass before the detour's jump is written, or the detour freed."""
        self._detours.wait(live, range(CPUS))

    def wants_hits(self, address: int) -> bool:
        """True while a detour of an address waits for CPUs."""
        return bool(self._detours.waiting(address))

    def hit(self, point: ProbePoint) -> None:
        """A CPU passes a breakpoint: jumps may be written now, and detours be freed."""
        self.told = ""
        if not self._detours.waiting(point.address):
            return
        for live in self._passes(point.address):
            if not live.zombie:
                self._done.release(live)
        if not self._detours.waiting(point.address):
            for probe in [probe for probe in point.probes if isinstance(probe, SafetyCheck)]:
                self._host.unregister(probe)
        self._done.reap()

    def _passes(self, address: int) -> list[LiveDetour]:
        """The detours that wait for no other CPU."""
        cpu = next(self._turn)
        done: list[LiveDetour] = []
        for live in self._detours.waiting(address):
            self._detours.wait(live, live.unchecked - {cpu})
            seen = f"{CPUS - len(live.unchecked)} of {CPUS} have passed"
            what = "the stub is freed" if live.zombie else "the jump is written"
            follows = f": {what}" if not live.unchecked else f", {what} after the last"
            self.told = f"CPU {cpu} passes the breakpoint: {seen}{follows}"
            if not live.unchecked:
                done.append(live)
        return done

    def vacated(self, address: int) -> None:
        """A place is left whose stub still waits: a breakpoint has to stay there."""
        point = self._host.points.get(address)
        if self._detours.waiting(address) and (point is None or not point.armed):
            self._host.register(SafetyCheck(address))

    def keeps(self, live: LiveDetour) -> str:
        """In words, the wait of a detour that nobody needs any more, "" for none."""
        if not live.unchecked:
            return ""
        return f"{CPUS - len(live.unchecked)} of {CPUS} CPUs have passed its breakpoint"


DJPROBE: Final = TechniqueKind(
    name="djprobe",
    help="the same by the protocol of 2005, with its safety check on simulated CPUs",
    stands=KIND,
    usual=False,
    machine=JumpMachine,
    build=lambda host: jump_technique(host, SafetyChecks),
    conditions=CONDITIONS,
    scratch=scratch,
)
