"""Instances of return probes: who gets one for a call, and what is done when the call returns."""

from collections.abc import Callable, Iterable

from engine.arch.plan import Mode, Rules
from engine.probes.kretprobe import Kretprobe, KretprobeInstance, default_maxactive
from engine.probes.point import ProbePoint
from engine.probes.target import ProbeTarget


class InstancePool:
    """Gives instances to calls and takes them back.

    Attributes:
        kernel_maxactive: a return kprobe that does not say how many instances it wants gets as
            many as the kernel would give it.
        serves: how many want returns to be seen to outside of the emulator.
    """

    def __init__(self, target: ProbeTarget, sweep: Callable[[], None]) -> None:
        """No probe is registered.

        Args:
            target: the guest.
            sweep: finds instances of calls that were left without a return.
        """
        self.kernel_maxactive = target.mode is Mode.KERNEL
        self.serves = 0
        self._target = target
        self._sweep = sweep

    def admit(self, probe: Kretprobe) -> None:
        """A return probe is registered: how many instances it may have at a time."""
        probe.limit = probe.maxactive if probe.maxactive > 0 else None
        if probe.limit is None and self.kernel_maxactive and probe.rules is Rules.KPROBE:
            probe.limit = default_maxactive()
        probe.active = 0

    @staticmethod
    def handled(probes: Iterable[Kretprobe]) -> int:
        """Number of those among some probes that have a handler for the return."""
        return sum(probe.handler is not None for probe in probes)

    def make(self, probe: Kretprobe, ret_addr: int, slot: int) -> KretprobeInstance | None:
        """An instance for a call, if one is free and wanted."""
        if probe.limit is not None and probe.active >= probe.limit:
            self._sweep()
            if probe.active >= probe.limit:
                probe.nmissed += 1
                return None
        instance = KretprobeInstance(probe, ret_addr, slot)
        if probe.entry_handler is not None and probe.entry_handler(instance, self._target.regs):
            return None
        if probe.capture is not None:
            instance.entry = probe.capture()
        if probe.tracker is not None and not probe.tracker.entered(instance):
            return None
        probe.active += 1
        return instance

    def made(self, point: ProbePoint, ret_addr: int, slot: int) -> list[KretprobeInstance]:
        """Instances of all return probes of a point, in the order in which they are chained.

        A kretprobe has an instance for each probe, newest probe first; of a uprobe's consumers
        on one place the newest comes first on the return too.
        """
        found = []
        for probe in point.probes:
            if isinstance(probe, Kretprobe) and probe.enabled:
                probe.hits += 1
                instance = self.make(probe, ret_addr, slot)
                if instance is not None:
                    found.append(instance)
        if len(found) > 1 and found[0].rp.rules is Rules.UPROBE:
            found.reverse()
        return found

    def finish(self, instance: KretprobeInstance, ret_addr: int, thread: int) -> None:
        """A call has returned: what its probe does about it."""
        probe = instance.rp
        probe.active -= 1
        if probe.tracker is not None:
            probe.tracker.returned(instance)
        if probe.record_return is not None:
            if instance.entry is None:
                probe.record_return(thread, ret_addr)
            else:
                probe.record_return(thread, ret_addr, instance.entry)
        if probe.handler is not None:
            probe.handler(instance, self._target.regs)
