"""Events of a trace without probes of their own: the kernel's, synthetic ones, event probes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from engine.arch.plan import Mode
from engine.errors import UnloggedError
from engine.fetch.evaluate import FetchContext, Recorder
from engine.session.guest.session import Session
from engine.session.tracing import store_events
from engine.session.tracing.event_set import EventSet
from engine.session.tracing.store_events import WatchEvents
from engine.session.tracing.synthetic_events import SyntheticEvents
from engine.session.tracing.syscalls import SyscallEvents
from engine.session.tracing.triggers import EventControls
from engine.trace import sched, synthetic, syscalls
from engine.trace.definition import Deletion, named
from engine.trace.rows import EventInfo, EventSource
from engine.trace.tracepoints import EPROBES, Selection

if TYPE_CHECKING:
    from engine.session.tracing.event_probes import EventProbes
    from engine.session.tracing.sampling import SampleEvents


class KernelEvents(Protocol):
    """Events of one group that the guest's kernel has without a definition."""

    @property
    def infos(self) -> list[EventInfo]:
        """The chosen events, in the order of the choice."""

    def choose(
        self, glob: str, number: Callable[[], int], known: Callable[[str], bool]
    ) -> list[EventInfo]:
        """Take all events whose name matches; the new ones.

        Args:
            glob: of names.
            number: the next free event id.
            known: whether an event of that name is there already.

        Raises:
            ProbeError: no event matches.
        """

    def is_mine(self, info: EventInfo) -> bool:
        """True if an event is one of these."""

    def make(self, info: EventInfo, context: FetchContext) -> Recorder:
        """Compile the recorder of one of the events."""

    def install(self, info: EventInfo, record: Recorder) -> None:
        """Have an event recorded by a function."""

    def record_only(self, globs: Sequence[str]) -> None:
        """Of the chosen events only those that match are recorded from now on."""


class UnplacedEvents:
    """The chosen events of one trace that no probe of theirs makes.

    Attributes:
        by_group: the sources that there are so far.
        event_probes: events that other events make; None if there are none.
        samples: those of the guest's clock; None if there are none.
    """

    def __init__(
        self,
        session: Session,
        mode: Mode,
        events: EventSet,
        controls: EventControls,
        context: FetchContext,
        chosen: Callable[[int], bool] | None,
        sources: tuple[SyscallEvents, WatchEvents, SyntheticEvents],
    ) -> None:
        """No event is chosen.

        Args:
            session: the guest.
            mode: strictness.
            events: all of the trace; the chosen ones are added.
            controls: filters and triggers.
            context: what recorders share.
            chosen: of a thread's id: whether its events are recorded; None for all.
            sources: of system calls, of watched expressions, and of what triggers make.
        """
        calls, watches, self._synthetics = sources
        self._session = session
        self._strict = mode is not Mode.KERNEL
        self._events = events
        self._controls = controls
        self._context = context
        self._chosen = chosen
        self._started = False
        self.by_group: dict[str, KernelEvents] = {
            syscalls.GROUP: calls,
            store_events.GROUP: watches,
            synthetic.GROUP: self._synthetics,
        }
        self.event_probes: EventProbes | None = None
        self.samples: SampleEvents | None = None

    def start(self) -> None:
        """The guest is about to run: what is chosen from now on is installed at once."""
        self._started = True

    @property
    def infos(self) -> list[EventInfo]:
        """The chosen events that the guest's kernel has without a definition."""
        infos = [info for source in self.by_group.values() for info in source.infos]
        probes = self.event_probes
        return infos if probes is None else [one for one in infos if one.id not in probes.silent]

    def choose(self, selected: Selection) -> None:
        """Add events that the kernel has without a definition.

        Raises:
            ProbeError: none matches.
        """
        group, source = selected.group, self.source(selected.group)

        def known(name: str) -> bool:
            info = self._events.infos.get((group, name))
            if info is not None and self.event_probes is not None:
                self.event_probes.wanted(info)
            return info is not None

        found = self._events.add_each(lambda number: source.choose(selected.glob, number, known))
        if self._started:
            for info in found:
                self.install(info)

    def remove(self, deletion: Deletion, own: list[tuple[str, str]]) -> bool:
        """Take away the synthetic events and event probes that a line means.

        Args:
            deletion: the line.
            own: names of the events with probes that it means, too; they stay here.

        Returns:
            False if there are none.

        Raises:
            UnloggedError: something else needs one of the events.
        """
        probes, controls, synthetics = self.event_probes, self._controls, self._synthetics
        found = [
            info
            for info in synthetics.infos
            if deletion.event and named(deletion, info.group, info.name)
        ]
        for info in (*found, *(self._events.infos[key] for key in own)):
            if on := [] if probes is None else probes.on(info):
                raise UnloggedError(f"{info}: {on[0]} stands on it", "EBUSY")
        for info in found:
            if controls.makes(info.name) or controls.of(info).triggers:
                raise UnloggedError(f"{info}: a trigger needs it", "EBUSY")
        made = [] if probes is None else probes.matching(deletion)
        for info in found:
            synthetics.remove(info)
            self._events.drop(info)
        for info in made:
            assert probes is not None, "they are from there"
            probes.remove(info)
            self._events.drop(info)
        return bool(found or made)

    def source(self, group: str) -> KernelEvents:
        """The events of a group; some are made when the first of them is chosen."""
        found = self.by_group.get(group)
        if found is None:
            found = self._late_source(group)
            self.by_group[group] = found
        return found

    def _late_source(self, group: str) -> KernelEvents:
        if group == sched.GROUP:
            from engine.session.tracing.scheduling import SchedulerEvents  # few traces ask

            return SchedulerEvents(self._session, self._chosen)
        if group == EPROBES:
            from engine.session.tracing import event_probes  # as above

            session = self._session
            has = event_probes.has_program_event(session.arch)
            self.event_probes = event_probes.EventProbes(
                event_probes.ProbedSystem(
                    session.arch, lambda: session.seen.memory, self.choose, has
                ),
                self._events.infos,
                self._controls,
                self._context,
                strict=self._strict,
            )
            return self.event_probes
        from engine.session.tracing.sampling import SampleEvents  # as above

        self.samples = SampleEvents(self._session)
        return self.samples

    def install(self, info: EventInfo) -> None:
        """Have an event of the kernel's recorded."""
        source = self._source_of(info)
        assert source is not None
        record = self._controls.recorder(info, lambda context: source.make(info, context), None)
        source.install(info, record)

    def attached_only(self, group: str) -> tuple[str, ...]:
        """Names of the events of a group that event probes alone want."""
        return () if self.event_probes is None else self.event_probes.of_group(group)

    def _source_of(self, info: EventInfo) -> KernelEvents | None:
        """The events that one is of, by its group; event probes have any group."""
        of_probe = info.source is EventSource.EPROBE
        return self.event_probes if of_probe else self.by_group.get(info.group)

    def has(self, info: EventInfo) -> bool:
        """True for an event that no probe of its own makes."""
        source = self._source_of(info)
        return source is not None and source.is_mine(info)
