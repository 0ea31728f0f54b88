"""A program in the guest and under the running kernel, with the same probes: what differs?"""

import io
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError
from engine.linux.fs.stdio import host_stdio
from engine.session.guest.session import Attach, Session
from engine.session.headless.live import command_start, opened_tracing
from engine.session.headless.replay import RecordedIO
from engine.session.live.buffers import LiveRows
from engine.session.live.comparison import EventFacts, EventKey, LiveComparison, compare_logs
from engine.session.live.eventlog import EventLog
from engine.session.live.guestlog import GuestLogFormat
from engine.session.live.kernel_probes import KernelProbes
from engine.session.live.machine_files import MachineProgram
from engine.session.live.processes import LiveProcesses
from engine.session.live.recording import LiveRecording, LiveTarget
from engine.session.live.standins import standin_streams
from engine.session.live.tracefs import Tracefs
from engine.session.protocol.report import Report, Reports
from engine.session.protocol.requests import LiveDiffRequest, TraceOptions
from engine.session.tracing.output import placing_remarks
from engine.session.tracing.tracing import Tracing
from engine.trace.formats.base import Names
from engine.trace.rows import EventTable

_STREAMS: Final = {1: "standard output", 2: "standard error"}


class LiveEffect(Struct, frozen=True):
    """The outcome.

    Attributes:
        comparison: of the events.
        places: that the probes stand at.
        recorded: events of the guest, and of the running kernel.
        lines: differences of the programs' output and end, in words.
        remarks: about both runs.
        damage: about damaged files.
        cut: the run that the limit of time ended, so that nothing is compared: "the guest" or
            "the program on this machine"; "" if both came to their ends.
    """

    comparison: LiveComparison
    places: int
    recorded: tuple[int, int]
    lines: tuple[str, ...]
    remarks: tuple[Report, ...] = ()
    damage: tuple[Report, ...] = ()
    cut: str = ""

    @property
    def explained(self) -> bool:
        """True if there is a reason for every difference."""
        return self.comparison.explained and not self.lines


class _LogConsumer:
    """Rows of the running kernel that are put into a log; a `LiveConsumer`."""

    def __init__(self, log: EventLog, processes: LiveProcesses) -> None:
        self._log = log
        self._processes = processes

    def begin(self) -> None:
        """Nothing is to be made."""

    def take(self, found: LiveRows) -> None:
        """Put them there."""
        self._log.add(found.rows, self._processes.spots, self._processes.process)


def compare_live(request: LiveDiffRequest, attach: Attach) -> LiveEffect:
    """Run a program in the guest and under the running kernel, with the same probes.

    Args:
        request: the program and its probes.
        attach: connects the guest with the host.

    Raises:
        CommandError: this is not root, or the running kernel cannot do what is asked.
        ProbeError: a definition is not accepted.
    """
    Tracefs.found()
    recorded = RecordedIO()
    with _guest(request, recorded) as (session, tracing):
        probes = KernelProbes(tracing)
        mine = _SidePlaces(probes, session)
        log = EventLog(tracing.table, mine.events)
        form = GuestLogFormat(log, session)

        def make(events: EventTable, names: Names, options: Collection[str]) -> GuestLogFormat:
            return form

        tracing.print_as(make, ())
        tracing.start()
        tracing.drain_at_calls()
        with attach(session):
            try:
                reports = session.run()
            finally:
                remarks = tracing.finish()
        given, written = _input(recorded), _output(recorded)
        counts = len(probes.probes), log.count
        if reports.limit == "timeout":
            return _cut_off("the guest", (counts[0], counts[1], 0), reports.damage)
    with opened_tracing(request.config) as tracing, standin_streams(given) as streams:
        tracing.definitions.place(request.probes)
        opened = tracing.session.opened
        assert isinstance(opened, MachineProgram), "see `opened_tracing`"
        probes = KernelProbes(tracing, opened.host_path)
        start = replace(command_start(request.config), streams=streams.descriptors)
        recording = LiveRecording(
            probes, LiveTarget(start, seconds=request.seconds), request.buffer
        )
        facts = mine.facts(_SidePlaces(probes, tracing.session))
        theirs = EventLog(tracing.table)
        recording.run(_LogConsumer(theirs, recording.processes))
        taken = tuple(placing_remarks(tracing.session.probes()))
        if recording.lost:
            raise CommandError(
                f"{recording.lost} events of the running kernel were lost, and nothing can be"
                " compared: give the program less to do, or fewer probes"
            )
        if recording.timed_out:
            whose = "the program on this machine"
            return _cut_off(whose, (*counts, theirs.count), reports.damage)
        lines = [
            *_outputs(written, {number: streams.written(number) for number in _STREAMS}),
            *_ends(reports, recording.exit_code),
        ]
    comparison = compare_logs(log, theirs, facts)
    return LiveEffect(
        comparison,
        len(probes.probes),
        (log.count, theirs.count),
        tuple(lines),
        (
            *remarks,
            *reports.remarks,
            *(told for told in taken if told not in remarks),
            *recording.reports,
        ),
        reports.damage,
    )


def _cut_off(whose: str, counts: tuple[int, int, int], damage: tuple[Report, ...]) -> LiveEffect:
    """The outcome where a run was cut by the limit of time; counts of places and of events."""
    places, *events = counts
    return LiveEffect(
        LiveComparison(), places, (events[0], events[1]), (), damage=damage, cut=whose
    )


@contextmanager
def _guest(request: LiveDiffRequest, recorded: RecordedIO) -> Iterator[tuple[Session, Tracing]]:
    """The emulated one, with its probes."""
    # The machine's own order of names is part of what the program does there.
    config = replace(request.config, host_order=True)
    session = Session(config, host_stdio(recorded))
    try:
        tracing = Tracing(session, TraceOptions(), io.BytesIO())
        try:
            with session.opened.explained():
                tracing.definitions.place(request.probes)
            yield session, tracing
        finally:
            tracing.discard()
    finally:
        session.close()


class _SidePlaces:
    """The probes of one side, of which the other side may have others.

    Attributes:
        events: what is known of each event by itself, and the file and link address of its place.
        chosen: the code that indirect functions stand for on this side.
    """

    def __init__(self, probes: KernelProbes, session: Session) -> None:
        self.events = {
            (probe.info.group, probe.info.name): (
                EventFacts(probe.exported.definition.args, probes.repeats(probe)),
                (probe.place.path, probe.place.link),
            )
            for probe in probes.probes
        }
        known = session.probes().picked.known
        self.chosen = {key: (owner.path, link) for key, (owner, link) in known.items()}

    def facts(self, other: "_SidePlaces") -> dict[EventKey, EventFacts]:
        """Facts about the events of both sides."""
        elsewhere = {
            place
            for key, place in (*self.chosen.items(), *other.chosen.items())
            if self.chosen.get(key) != other.chosen.get(key)
        }
        return {
            key: replace(facts, indirect=place in elsewhere)
            for key, (facts, place) in (*other.events.items(), *self.events.items())
        }


def _input(recorded: RecordedIO) -> bytes:
    """All that the guest has read from its standard input."""
    return b"".join(
        result
        for key, result in recorded.calls
        if key[0] == "read" and key[1] == 0 and isinstance(result, bytes)
    )


def _output(recorded: RecordedIO) -> dict[int, bytes]:
    """All that it has written to the others."""
    found: dict[int, bytes] = dict.fromkeys(_STREAMS, b"")
    for key, result in recorded.calls:
        if key[0] == "write" and key[1] in found and isinstance(result, int):
            found[key[1]] += key[2][:result]
    return found


def _outputs(guest: dict[int, bytes], machine: dict[int, bytes | None]) -> Iterator[str]:
    for number, name in _STREAMS.items():
        mine, theirs = guest[number], machine[number]
        if theirs is None or mine == theirs:
            continue
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(mine, theirs, strict=False))
        at = sum(1 for _ in alike)
        yield (
            f"{name} differs at byte {at}: {_cut(mine, at)} from the guest, "
            f"{_cut(theirs, at)} from the machine"
        )


def _cut(data: bytes, at: int) -> str:
    return repr(data[at : at + 40])[1:]


def _ends(reports: Reports, code: int) -> Iterator[str]:
    if reports.exit_code != code:
        yield f"exit code {reports.exit_code} of the guest, {code} of the machine"
