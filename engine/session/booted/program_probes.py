"""Probes in the programs of a booted system that record events, as uprobes of Linux do."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.program import RecordLayout
from engine.fetch.evaluate import FetchContext, FetchSite, Recorder, capturer, recorder
from engine.machine.addresses import KernelAddresses
from engine.machine.machine import BareMachine
from engine.machine.probing import MachineProbes
from engine.machine.programs import ProgramPlace, ProgramReturn
from engine.session.booted.memory import BootCpu, UprobeMemory
from engine.session.booted.programs import MachinePrograms
from engine.session.protocol.report import Report
from engine.session.tracing.output import some_lines
from engine.session.tracing.triggers import EventControls
from engine.trace.definition import Definition
from engine.trace.place_syntax import FileOffset
from engine.trace.rows import EventInfo

_RECORDERS_MOST: Final = 1 << 8
"""Recorders of one probe that are kept: it has another address in each program."""


class _ArmedProgram(Struct, eq=False):
    """A probe and what it counts."""

    definition: Definition
    info: EventInfo
    layout: RecordLayout
    place: ProgramPlace
    offset: int
    hits: int = 0
    recorders: dict[tuple[int, int], Recorder] = {}


class BootPrograms:
    """The events of programs in one trace."""

    def __init__(
        self,
        machine: BareMachine,
        programs: MachinePrograms,
        kernel: MachineProbes,
        context: FetchContext,
        controls: EventControls,
        running: Callable[[], int],
        addresses: KernelAddresses,
    ) -> None:
        """None yet.

        Args:
            machine: the machine.
            programs: probes in its programs.
            kernel: probes in its kernel.
            context: of the trace's recorders.
            controls: filters and triggers.
            running: gives the id of the task that runs.
            addresses: the memory as the kernel sees it.
        """
        self._machine, self._programs, self._kernel = machine, programs, kernel
        self._context = replace(context, memory=UprobeMemory(addresses, programs.pages))
        self._controls, self._running = controls, running
        self._armed: list[_ArmedProgram] = []

    def add(self, definition: Definition, info: EventInfo) -> None:
        """Place the probe of a definition.

        Args:
            definition: of `uprobe_events`.
            info: its event.

        Raises:
            ProbeError: the kernel has no uprobes.
        """
        target = definition.target
        assert isinstance(target, FileOffset), "such a definition names a file"
        layout = RecordLayout.of(definition.args, definition.is_return)
        place = ProgramPlace(target.path, target.offset)
        armed = _ArmedProgram(definition, info, layout, place, target.offset)
        if definition.is_return:
            capture = partial(self._captured, armed) if self._captures(armed) else None
            place.returning = ProgramReturn(capture, partial(self._returned, armed))
        else:
            place.hit = partial(self._hit, armed)
        self._programs.add(place, self._kernel, definition.command)
        self._armed.append(armed)

    @property
    def places(self) -> int:
        """The number of places that are probed."""
        return len({(each.place.path, each.place.offset) for each in self._armed})

    @property
    def hits(self) -> int:
        """The number of times that probes were hit, returns not counted."""
        counts = (
            each.hits if each.place.returning is None else each.place.returning.hits
            for each in self._armed
        )
        return sum(counts)

    def changed(self, info: EventInfo) -> None:
        """An event records in another way from now on."""
        for each in self._armed:
            if each.info is info:
                each.recorders.clear()

    def profile(self) -> Iterator[tuple[str, int, int]]:
        """The name, the hits and the missed ones of each probe."""
        for each in self._armed:
            followed = each.place.returning
            if followed is None:
                yield each.info.name, each.hits, 0
            else:
                yield each.info.name, followed.hits - followed.missed, followed.missed

    def remarks(self) -> Iterator[Report]:
        """Remarks about a run that is over."""
        told = [each.definition.command for each in self._armed if not each.place.mapped]
        if told:
            yield some_lines("never placed, as no program had their code in its memory:", told)

    def missed(self) -> Iterator[str]:
        """Lines about calls that were not followed."""
        for each in self._armed:
            followed = each.place.returning
            if followed is not None and followed.missed:
                yield f"{each.info}: {followed.missed} of {followed.hits} calls missed"

    # -- hits -----------------------------------------------------------------------------

    def _site(self, armed: _ArmedProgram, address: int) -> FetchSite:
        return FetchSite(address, address - armed.offset)

    def _captures(self, armed: _ArmedProgram) -> bool:
        return capturer(armed.layout, FetchSite(0), self._context) is not None

    def _captured(self, armed: _ArmedProgram, address: int) -> tuple[int, ...]:
        """Values that a return event records at its function's entry."""
        seen = replace(self._context, cpu=BootCpu(self._machine, address))
        read = capturer(armed.layout, self._site(armed, address), seen)
        return read() if read is not None else ()

    def _recorder(self, armed: _ArmedProgram, address: int, pc: int) -> Recorder:
        """The recorder of a probe at an address; a return event's place is where it returns to."""
        found = armed.recorders.get((address, pc))
        if found is not None:
            return found
        seen = BootCpu(self._machine, pc)

        def make(context: FetchContext) -> Recorder:
            own = replace(context, cpu=seen, memory=self._context.memory)
            return recorder(armed.info.id, armed.layout, self._site(armed, address), own)

        if len(armed.recorders) >= _RECORDERS_MOST:
            armed.recorders.clear()
        made = armed.recorders[address, pc] = self._controls.recorder(armed.info, make, pc)
        return made

    def _hit(self, armed: _ArmedProgram, address: int) -> None:
        armed.hits += 1
        self._recorder(armed, address, address)(self._running())

    def _returned(self, armed: _ArmedProgram, address: int, ret_addr: int, *entry: Any) -> None:
        self._recorder(armed, address, ret_addr)(self._running(), ret_addr, *entry)
