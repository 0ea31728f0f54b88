"""Events of a booted trace that other events make: synthetic ones, and event probes.

Triggers make synthetic events (`hist:...:onmatch(...)`), and rows of other events make those of
event probes. Those stand on the kernel's own events, on synthetic ones and on the events of
probes, on which Linux has none: in kernel mode they are refused there.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.arch.base import Arch
from engine.errors import ProbeError
from engine.fetch.evaluate import FetchContext
from engine.session.tracing.event_set import EventSet
from engine.session.tracing.synthetic_events import SyntheticEvents
from engine.session.tracing.triggers import EventControls
from engine.trace import synthetic
from engine.trace.eventprobe import event_name
from engine.trace.fieldvalues import GuestBytes
from engine.trace.rows import EventInfo
from engine.trace.tracepoints import Selection

if TYPE_CHECKING:
    from engine.session.tracing.event_probes import EventProbes


class MadeLine(Struct, frozen=True):
    """A line that defines an event which others make.

    Attributes:
        selected: the line.
        name: group and name of the event.
        known: group and name of the probes' events that were defined before.
    """

    selected: Selection
    name: tuple[str, str]
    known: frozenset[tuple[str, str]]


def made_line(selected: Selection, known: frozenset[tuple[str, str]]) -> MadeLine:
    """The line of a selection.

    Raises:
        ProbeError: the kernel would refuse it.
    """
    if selected.group == synthetic.GROUP:
        name = synthetic.GROUP, synthetic.parse_definition(selected.glob).name
    else:
        name = event_name(selected.glob)
    return MadeLine(selected, name, known)


class EventsOfKernel(Struct, frozen=True):
    """The kernel's own events, as event probes need them.

    Attributes:
        recorded: gives those that the trace has.
        has: says if the kernel has one of a group and a name.
        attach: adds one of a group and a name to the trace.
    """

    recorded: Callable[[], Iterable[EventInfo]]
    has: Callable[[str, str], bool]
    attach: Callable[[str, str], None]


class BootMadeEvents:
    """The events of one boot that other events make.

    Attributes:
        synthetics: those that triggers make.
    """

    def __init__(
        self, arch: Arch, memory: GuestBytes, symbol: Callable[[int], str], own: EventsOfKernel
    ) -> None:
        """None is defined.

        Args:
            arch: of the kernel.
            memory: that arguments of event probes point to.
            symbol: names an address of the kernel.
            own: events that the kernel has itself.
        """
        self.synthetics = SyntheticEvents(symbol)
        self._arch, self._memory, self._own = arch, memory, own
        self._probes: EventProbes | None = None
        self._seen: dict[tuple[str, str], EventInfo] = {}

    def define(
        self,
        line: MadeLine,
        events: EventSet,
        controls: EventControls,
        context: FetchContext,
        *,
        strict: bool,
    ) -> None:
        """Define an event.

        Args:
            line: the line that does.
            events: all of the trace.
            controls: their filters and triggers.
            context: of the trace's recorders.
            strict: event probes may stand on probes' events.

        Raises:
            ProbeError: it is not accepted.
            CommandError: there are too many events.
        """
        for key in line.known & events.infos.keys():  # some may be taken away again
            self._seen[key] = events.infos[key]
        self._see_own()
        selected = line.selected
        if selected.group == synthetic.GROUP:
            choose = self.synthetics.choose
        else:
            choose = self._event_probes(controls, context, strict=strict).choose

        def known(name: str) -> bool:
            return (selected.group, name) in self._seen

        def chosen(number: Callable[[], int]) -> list[EventInfo]:
            found = choose(selected.glob, number, known)
            for info in found:
                if (info.group, info.name) in events.infos:
                    raise ProbeError(f"{selected.glob}: there is an event {info} already")
            return found

        for info in events.add_each(chosen):
            self._seen[info.group, info.name] = info

    def _see_own(self) -> None:
        for info in self._own.recorded():
            self._seen[info.group, info.name] = info

    def _attach(self, selected: Selection) -> None:
        """Add one of the kernel's own events, on which a probe stands."""
        self._own.attach(selected.group, selected.glob)
        self._see_own()

    def _event_probes(
        self, controls: EventControls, context: FetchContext, *, strict: bool
    ) -> "EventProbes":
        if self._probes is None:
            from engine.session.tracing.event_probes import EventProbes, ProbedSystem  # few ask

            system = ProbedSystem(
                *(self._arch, lambda: self._memory, self._attach, self._own.has),
                others="one of the kernel's own, as sched.sched_switch",
            )
            self._probes = EventProbes(system, self._seen, controls, context, strict=strict)
        return self._probes

    def install(self, controls: EventControls, info: EventInfo | None = None) -> None:
        """Have one of the events recorded, or all: with the filters and triggers that it has."""
        for source in (self.synthetics, self._probes):
            if source is not None:
                for one in source.infos if info is None else filter(source.is_mine, [info]):
                    make = partial(source.make, one)
                    source.install(one, controls.recorder(one, make, None))

    def listing(self) -> list[str]:
        """The definitions as the kernel lists them."""
        listed = self.synthetics.listed()
        if self._probes is not None:
            listed += self._probes.listed()
        return [line for line, _ in listed]
