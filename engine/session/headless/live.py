"""Requests to the running kernel of this machine carried out."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.session.guest.session import Session
from engine.session.headless.traces import TraceRun
from engine.session.live.buffers import LiveRows
from engine.session.live.held_program import CommandStart
from engine.session.live.histograms import LiveHistograms
from engine.session.live.kernel_probes import KernelProbes
from engine.session.live.machine_files import MachineProgram, machine_program
from engine.session.live.recording import LiveRecording, LiveTarget
from engine.session.live.running_image import check_running
from engine.session.live.tracefs import Tracefs
from engine.session.protocol.config import GuestConfig, Mode
from engine.session.protocol.report import Reports
from engine.session.protocol.requests import LiveRequest, TraceOptions, TraceRequest
from engine.session.tracing.output import TraceOutput, placing_remarks, remarks
from engine.session.tracing.tracing import Tracing, output_target
from engine.trace.formats import format_named
from engine.trace.formats.base import Names, with_idle
from engine.trace.ring import Ring
from engine.trace.rows import EventInfo, EventSource

_STACKS: Final = frozenset({"stacktrace", "userstacktrace"})
"""Trace options that mean --stack."""
_IMAGES: Final = ("/boot/vmlinuz-{}", "/lib/modules/{}/vmlinuz", "/usr/lib/debug/boot/vmlinux-{}")
"""Paths where distributions have the image of a kernel's release."""


class LiveOutput:
    """Rows of the running kernel in an output format; a `LiveConsumer`."""

    def __init__(
        self,
        output: TraceOutput,
        ring: Ring | None,
        histograms: LiveHistograms,
        create: Callable[[], None],
    ) -> None:
        """Set up.

        Args:
            output: of the trace.
            ring: keeps rows first; None to write them at once.
            histograms: count them.
            create: has the files of the run.
        """
        self._output = output
        self._ring = ring
        self._histograms = histograms
        self._create = create

    def begin(self) -> None:
        """The output is emptied, and its header written."""
        self._create()
        self._output.begin()
        if self._ring is None:
            self._output.header()

    def take(self, found: LiveRows) -> None:
        """Write rows, behind a note of those that are missing."""
        rows = self._histograms.count(found.rows)
        if self._ring is not None:
            self._ring.append(rows)
            return
        if found.lost:
            self._output.text(self._output.format.lost(found.lost))
        self._output.rows(rows)

    def end(self, tail: Iterable[bytes]) -> None:
        """Write what is left, and the lines that come behind the trace."""
        if self._ring is not None:
            self._output.ring(self._ring)
        self._output.end()
        lines = (*self._histograms.lines(), *tail)
        self._output.tail(line + b"\n" for line in lines)


class LiveRun:
    """The definitions of a request, understood and not placed yet."""

    def __init__(self, tracing: Tracing, request: LiveRequest, stream: BinaryIO) -> None:
        """Set up.

        Args:
            tracing: of the program that definitions are about; empty, and written nowhere.
            request: what is recorded and how.
            stream: for text where no file is named.

        Raises:
            CommandError: the running kernel cannot do what is asked.
            ProbeError: a definition, a filter or a trigger is not accepted.
        """
        self._session = session = tracing.session
        self._request = request
        options = request.options
        kernel = session.opened.kernel
        if kernel is not None:
            if request.config.args:
                raise CommandError("a kernel image is not started here: it takes no ARGS")
            check_running(kernel)
        elif request.starts and request.pids:
            raise CommandError("GUEST and --pid: one of them, as GUEST would be started")
        if kernel is None:
            session.probes().verdicts.markers.for_kernel = True
        TraceRun(tracing, _as_trace(request))
        opened = session.opened
        assert isinstance(opened, MachineProgram), "see `opened_tracing`"
        probes = KernelProbes(tracing, opened.host_path)
        stacks = None
        form = format_named(options.format)
        if options.stack or _STACKS & set(options.text) or form.wants_stacks:
            tracing.controls.stacks = True
            number = max(tracing.table) + 1
            stacks = EventInfo(number, "ftrace", "user_stack", (), source=EventSource.STACK)
        target = LiveTarget(
            command_start(request.config, randomized=request.randomized)
            if request.starts and kernel is None
            else None,
            request.pids,
            request.seconds,
        )
        self._recording = LiveRecording(probes, target, request.buffer, stacks)
        self._events = {**tracing.table, **({stacks.id: stacks} if stacks else {})}
        self._stacks = stacks
        self._tracing = tracing
        self._stream = stream

    def run(self) -> Reports:
        """Record, with the trace written.

        Raises:
            CommandError: the running kernel refuses something, or the output cannot be written.
        """
        request, recording, session = self._request, self._recording, self._session
        options, processes = request.options, recording.processes
        path = options.output
        discard = path == "/dev/null"
        names = Names(
            processes.symbol,
            with_idle(processes.comm),
            exact=False,
            process=processes.process,
            file=processes.file,
            line=processes.line,
            arch=session.arch.name,
        )
        form = format_named(options.format)(self._events, names, options.text)
        target = None if path is None or discard else output_target(session, path, form)
        output = TraceOutput(form, target, self._stream, discard=discard, text_of=processes.text)
        ring = None
        if options.buffer is not None:
            ring = Ring(options.buffer, options.overwrite)
        infos = list(self._tracing.infos.values())
        histograms = LiveHistograms(infos, self._tracing.controls, processes, self._stacks)
        writer = LiveOutput(output, ring, histograms, session.outputs.create)
        try:
            recording.run(writer)
            profile = [os.fsencode(line) for line in recording.profile if options.profile]
            head = [b"", b"# profile"] if options.profile else []
            writer.end([*head, *map(names.shown, profile)])
        finally:
            output.close()
        said = remarks(path or "the output", output.failure, output.lost, [])
        taken = placing_remarks(session.probes())
        remarked = (*taken, *recording.reports, *said, *session.remarks)
        reports = Reports(recording.exit_code, "", remarked, session.opened.damage())
        return reports if output.failure is None else reports.not_whole()


@contextmanager
def opened_live(request: LiveRequest, stream: BinaryIO) -> Iterator[LiveRun]:
    """The program of a request with its definitions, closed at the end.

    Raises:
        CommandError: this is not root, or there is no tracefs.
        KprobeTuiError: see `LiveRun`.
    """
    Tracefs.found()
    pid = request.pids[0] if request.pids and not request.starts else 0
    with opened_tracing(request.config, pid) as tracing:
        yield LiveRun(tracing, request, stream)


@contextmanager
def opened_tracing(config: GuestConfig, pid: int = 0) -> Iterator[Tracing]:
    """A trace for the definitions of a program that does not run here, closed at the end.

    Its files are the machine's; with the id of a process those that the process sees.

    Raises:
        CommandError: the program is for another machine.
        ImageError: it cannot be opened.
    """
    opened = machine_program(config, pid)
    session = Session(opened.config, opened=opened)
    try:
        check_machine(session)
        tracing = Tracing(session, TraceOptions(output="/dev/null"))
        try:
            with session.opened.explained():
                yield tracing
        finally:
            tracing.discard()
    finally:
        session.close()


def check_machine(session: Session) -> None:
    """Refuse programs of other machines, which an emulator would run: their code is none of ours.

    Raises:
        CommandError: this is one.
    """
    machine = os.uname().machine
    if session.arch.name != machine:
        raise CommandError(
            f"{session.config.guest} is for {session.arch.name}, and the running kernel is one of"
            f" {machine}: `trace` emulates it"
        )


def _as_trace(request: LiveRequest) -> TraceRequest:
    """The request as a guest's trace would have it."""
    return TraceRequest(
        request.config,
        request.probes,
        replace(request.options, output="/dev/null", mode=Mode.STRICT),
        request.filters,
        request.triggers,
    )


def command_start(config: GuestConfig, *, randomized: bool = False) -> CommandStart:
    """The start of a configuration's program by this machine.

    Raises:
        CommandError: it may not be executed.
    """
    path = os.path.abspath(config.guest)
    if not os.access(path, os.X_OK):
        raise CommandError(f"cannot run {config.guest}: it may not be executed")
    argv = (config.guest if config.argv0 is None else config.argv0, *config.args)
    return CommandStart(path, argv, config.env, config.cwd, randomized)


def owner_of(pid: int) -> str:
    """The file of a process that runs.

    Raises:
        CommandError: there is no such process, or it has none.
    """
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError as error:
        raise CommandError(f"--pid {pid}: {error.strerror}") from error


def running_image() -> str:
    """An image of the kernel that runs, where distributions have it.

    Raises:
        CommandError: there is none that may be read.
    """
    release = os.uname().release
    tried = [place.format(release) for place in _IMAGES]
    found = next((path for path in tried if os.access(path, os.R_OK)), None)
    if found is None:
        raise CommandError(
            "without GUEST and --pid a definition names the file that it is about, PATH:OFFSET; or"
            f" it is about the running kernel, whose image is not there ({tried[0]}): give it as"
            " GUEST"
        )
    return found
