"""The events of probes in a booted kernel: what is hit is recorded, and counted."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.fetch.evaluate import FetchContext, FetchSite, Recorder, capturer, recorder
from engine.machine.kernelmodules import LoadedModule
from engine.machine.machine import BareMachine
from engine.machine.probing import MachineProbes, ReturnProbe
from engine.probes.machine_breakpoints import MachineBreakpoints
from engine.session.booted.memory import BootCpu
from engine.session.booted.probes import BootProbe
from engine.session.tracing.triggers import EventControls
from engine.trace.rows import EventInfo


class ArmedBootProbe(Struct, eq=False):
    """A probe of a booted kernel and what it counts.

    Attributes:
        probe: the probe.
        info: its event.
        record: records a hit.
        entry: called where the code comes to its place; None while it is taken out.
        returning: follows calls, for a return probe.
        hits: of a probe that records no returns.
        passed: the last hit was recorded; None where nobody has been told of one since this was
            asked.
    """

    probe: BootProbe
    info: EventInfo
    record: Recorder
    entry: Callable[[], None] | None = None
    returning: ReturnProbe | None = None
    hits: int = 0
    passed: bool | None = None


class BootCounts(Struct, frozen=True):
    """The hits of an event's probes, and of these the calls that were not followed."""

    hits: int = 0
    missed: int = 0


class BootKernelProbes:
    """The probes in the kernel of one trace.

    Attributes:
        armed: all of them, in the order of their definition.
    """

    def __init__(
        self,
        machine: BareMachine,
        probes: MachineProbes,
        breakpoints: MachineBreakpoints | None,
        context: FetchContext,
        controls: EventControls,
        running: Callable[[], int],
        instances: Callable[[], int],
        behind: int,
    ) -> None:
        """None yet.

        Args:
            machine: the machine.
            probes: tells where its kernel's code comes to a place.
            breakpoints: plants breakpoints in place of that; None where nothing is planted.
            context: of the trace's recorders.
            controls: filters and triggers.
            running: gives the id of the task that runs.
            instances: gives the calls that a return probe follows at a time where its definition
                does not say; 0 for any number.
            behind: bytes behind the place that a hit's pc is at.
        """
        self.armed: list[ArmedBootProbe] = []
        self._machine, self._probes, self._breakpoints = machine, probes, breakpoints
        self._context, self._controls, self._running = context, controls, running
        self._instances, self._behind = instances, behind
        self._of_modules: dict[tuple[int, str], ArmedBootProbe] = {}
        self._started = False

    # -- placing ----------------------------------------------------------------------------

    def add(self, probe: BootProbe, info: EventInfo) -> None:
        """Place a probe that makes an event.

        Args:
            probe: the probe.
            info: its event.
        """
        armed = ArmedBootProbe(probe, info, _unrecorded)
        self.armed.append(armed)
        self._place(armed)
        if self._started:
            self._compile(armed)

    def add_of_module(self, key: tuple[int, str], probe: BootProbe, info: EventInfo) -> None:
        """Place a probe of a module that the kernel has loaded, for the first time or again.

        Args:
            key: tells such probes apart.
            probe: the probe, at its place now.
            info: its event.
        """
        armed = self._of_modules.get(key)
        if armed is None:
            armed = self._of_modules[key] = ArmedBootProbe(probe, info, _unrecorded)
            self.armed.append(armed)
        armed.probe = probe
        self._place(armed)
        self._compile(armed)

    def take_out(self, module: LoadedModule) -> None:
        """Take the probes of a module out whose memory goes."""
        for armed in self._of_modules.values():
            if module.at(armed.probe.address) is not None:
                self._unplace(armed)

    def enable(self, group: str, name: str, *, on: bool) -> None:
        """Have an event's probes hit, or no longer; their places stay known."""
        for armed in self.of(group, name):
            if not on:
                self._unplace(armed)
            elif armed.entry is None:
                self._place(armed)

    def remove(self, group: str, name: str) -> None:
        """Take an event's probes out for good."""
        for armed in self.of(group, name):
            self._unplace(armed)
            self.armed.remove(armed)
        self._of_modules = {
            key: armed for key, armed in self._of_modules.items() if armed in self.armed
        }

    def _place(self, armed: ArmedBootProbe) -> None:
        probe = armed.probe
        if not probe.is_return:
            armed.entry = lambda: self._hit(armed)
        else:
            capture = capturer(probe.layout, FetchSite(probe.address), self._context)
            if armed.returning is None:
                limit = probe.maxactive or self._instances() or None
                armed.returning = ReturnProbe(capture, partial(self._returned, armed), limit)
            armed.returning.capture = capture
            armed.entry = self._probes.entry_of(armed.returning)
        if self._breakpoints is not None:
            self._breakpoints.add(probe.address, armed.entry)
        else:
            self._probes.add(probe.place, armed.entry, begins=probe.begins is not None)

    def _unplace(self, armed: ArmedBootProbe) -> None:
        probe, entry = armed.probe, armed.entry
        armed.entry = None
        if entry is None:
            return
        if self._breakpoints is not None:
            self._breakpoints.remove(probe.address, entry)
        else:
            self._probes.remove(probe.place, entry, begins=probe.begins is not None)

    # -- recording --------------------------------------------------------------------------

    def start(self) -> None:
        """Make the recorders, before the machine runs."""
        self._started = True
        for armed in self.armed:
            self._compile(armed)

    def changed(self, info: EventInfo) -> None:
        """An event records in another way from now on."""
        for armed in self.armed if self._started else ():
            if armed.info is info:
                self._compile(armed)

    def _compile(self, armed: ArmedBootProbe) -> None:
        """Make the recorder of a probe, with the filter and the triggers that its event has."""
        probe = armed.probe
        pc = probe.address + (0 if probe.is_return else self._behind)
        seen = BootCpu(self._machine, pc)

        def make(context: FetchContext) -> Recorder:
            own = replace(context, cpu=seen)
            return recorder(armed.info.id, probe.layout, FetchSite(probe.address), own)

        armed.record = self._controls.recorder(armed.info, make, probe.address)

    def _hit(self, armed: ArmedBootProbe) -> None:
        armed.hits += 1
        before = self._context.sink.position
        armed.record(self._running())
        armed.passed = self._context.sink.position != before

    def _returned(self, armed: ArmedBootProbe, ret_addr: int, *entry: Any) -> None:
        before = self._context.sink.position
        armed.record(self._running(), ret_addr, *entry)
        armed.passed = self._context.sink.position != before

    # -- asking -----------------------------------------------------------------------------

    def of(self, group: str, name: str) -> tuple[ArmedBootProbe, ...]:
        """The probes that make an event, as far as they are placed."""
        return tuple(one for one in self.armed if (one.info.group, one.info.name) == (group, name))

    def counts(self, group: str, name: str) -> BootCounts:
        """The hits of an event's probes so far."""
        found = self.of(group, name)
        returning = [one.returning for one in found if one.returning is not None]
        missed = sum(one.missed for one in returning)
        hits = sum(one.hits for one in found) + sum(one.hits for one in returning) - missed
        return BootCounts(hits, missed)

    @property
    def places(self) -> int:
        """The number of places that are probed."""
        return len({armed.probe.address for armed in self.armed})

    @property
    def hits(self) -> int:
        """The number of times that probes were hit, returns not counted."""
        return sum(one.hits if one.returning is None else one.returning.hits for one in self.armed)

    def is_followed(self, address: int) -> bool:
        """True if returns of the function at an address are recorded."""
        return any(one.probe.is_return and one.probe.address == address for one in self.armed)

    def missed(self) -> Iterator[str]:
        """Lines about calls that were not followed."""
        for one in self.armed:
            if one.returning is not None and one.returning.missed:
                yield f"{one.info}: {one.returning.missed} of {one.returning.hits} calls missed"

    def profile(self) -> Iterator[tuple[str, int, int]]:
        """The name, the hits and the missed ones of each probe."""
        for one in self.armed:
            hits, missed = one.hits, 0
            if one.returning is not None:
                missed = one.returning.missed
                hits = one.returning.hits - missed
            yield one.info.name, hits, missed


def _unrecorded(*hit: object) -> None:
    """A probe that is hit before the trace begins is not recorded."""
