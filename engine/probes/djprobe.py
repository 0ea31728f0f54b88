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

from itertools import cycle
from typing import Final

from engine.probes.detourmap import DetourMap, LiveDetour
from engine.probes.kprobe import Kprobe

CPUS: Final = 4
"""CPUs that are simulated."""


class SafetyCheck(Kprobe):
    """Keeps a breakpoint at a place whose probe is gone until its stub can be freed."""

    __slots__ = ()

    def __init__(self, address: int) -> None:
        super().__init__(addr=address, name="djprobe's safety check")


class SafetyChecks:
    """Which simulated CPUs have passed which breakpoints.

    Attributes:
        told: what the last hit has brought, in words.
    """

    def __init__(self, detours: DetourMap) -> None:
        """Nothing is checked.

        Args:
            detours: of the guest.
        """
        self._detours = detours
        self._turn = cycle(range(CPUS))
        self.told = ""

    def begin(self, live: LiveDetour) -> None:
        """All CPUs have to pass before the detour's jump is written, or the detour freed."""
        self._detours.wait(live, range(CPUS))

    def passes(self, address: int) -> list[LiveDetour]:
        """A CPU passes the breakpoint at an address; the detours that wait for no other."""
        cpu = next(self._turn)
        done: list[LiveDetour] = []
        self.told = ""
        for live in self._detours.waiting(address):
            self._detours.wait(live, live.unchecked - {cpu})
            seen = f"{CPUS - len(live.unchecked)} of {CPUS} have passed"
            what = "the stub is freed" if live.zombie else "the jump is written"
            follows = f": {what}" if not live.unchecked else f", {what} after the last"
            self.told = f"CPU {cpu} passes the breakpoint: {seen}{follows}"
            if not live.unchecked:
                done.append(live)
        return done
