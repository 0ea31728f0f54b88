"""Runs of guests with scripts of bpftrace, and lists of what scripts can be attached to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from signal import SIGUSR1
from typing import TYPE_CHECKING

from engine.arch.plan import Mode
from engine.errors import CommandError, ProbeError
from engine.session.guest.session import Attach, Session
from engine.session.headless.endings import explain
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report, Reports
from engine.session.protocol.requests import TraceOptions
from engine.session.protocol.scripts import FORMATS as FORMATS
from engine.session.protocol.scripts import ScriptRequest
from engine.session.tracing.script.output import ScriptSink
from engine.session.tracing.script.running import ScriptRun
from engine.session.tracing.script.script_source import script_source
from engine.session.tracing.tracing import Tracing
from engine.trace.bpftrace.text import MAX_SCRIPT, ScriptText

if TYPE_CHECKING:
    from engine.session.tracing.script.attached import AttachedScript

_TIMERS = ("interval", "profile")
"""Providers whose probes are listed by the unit of time alone."""
_WITHOUT_PLACE = ("begin", "end")
Write = Callable[[bytes], object]


class ScriptedGuest:
    """A guest with a script that stands before its first instruction."""

    def __init__(self, session: Session, tracing: Tracing, script: "AttachedScript") -> None:
        """Take what belongs together; `opened_script` makes it."""
        self._session = session
        self._tracing = tracing
        self._script = script

    @property
    def remarks(self) -> tuple[Report, ...]:
        """Remarks about what was set up, for those who do not run it."""
        return (*self._session.opened.damage(), *self._session.remarks)

    @property
    def special(self) -> Mapping[int, Callable[[], None]]:
        """The deeds at signals to the tool that the guest does not get."""
        return {SIGUSR1: self._script.signalled} if self._script.hears_signals else {}

    def run(self, attach: Attach) -> Reports:
        """Run the guest to its end, then the script's.

        Raises:
            CommandError: a file that the run writes cannot be created.
        """
        session, script = self._session, self._script
        with attach(session):
            try:
                reports = session.run(script.begin)
            finally:
                remarks = self._tracing.finish()
                script.finish()
        reports = reports.behind(*remarks, *script.remarks()).after(*session.opened.damage())
        return reports.not_whole() if script.incomplete else reports


def script_text(name: str, data: bytes) -> ScriptText:
    """The text of a script.

    Raises:
        CommandError: it is no text, or too long.
    """
    if len(data) > MAX_SCRIPT:
        raise CommandError(f"{name}: a script has at most {MAX_SCRIPT >> 20} MiB")
    try:
        return ScriptText(name, data.decode())
    except UnicodeDecodeError as error:
        raise CommandError(f"{name}: not UTF-8 at byte {error.start}") from error


@contextmanager
def opened_script(
    request: ScriptRequest,
    write: Write,
    write_error: Write,
    make: Callable[[GuestConfig], Session] = Session,
) -> Iterator[ScriptedGuest]:
    """The guest of a request with its script attached, closed at the end.

    Args:
        request: what runs and how.
        write: takes what the script prints, where no file is named.
        write_error: takes its warnings.
        make: loads the guest.

    Raises:
        WrongScriptError: the script is wrong.
        ImageError: the guest cannot be run.
        CommandError: the output cannot be written.
    """
    text, tree = script_source(
        request.name, request.text, request.parameters, request.config.guest
    )
    from engine.session.tracing.script.attached import AttachedScript  # a list needs no compiler

    with _loaded(request.config, make) as session:
        run = ScriptRun(session)
        sink = ScriptSink(session.outputs, request.output, write, write_error)
        run.printed, run.complain = sink.flush, sink.complain
        if request.mode is Mode.KERNEL and not request.recorded:  # whose calls read nothing
            run.read_as_linux()
        tracing = Tracing(session, TraceOptions(), consumer=run.consume)
        try:
            with session.opened.explained():
                script = AttachedScript(session, tracing, run, sink, request)
                script.attach(tree, text)
                yield ScriptedGuest(session, tracing, script)
        finally:
            tracing.discard()


@contextmanager
def _loaded(
    config: GuestConfig, make: Callable[[GuestConfig], Session] = Session
) -> Iterator[Session]:
    session = make(config)
    explain(session)
    try:
        yield session
    finally:
        session.close()


def script_patterns(
    script: ScriptText, parameters: Sequence[str], program: str
) -> tuple[str, ...]:
    """The patterns that list the probes of a script, each once.

    Args:
        script: the text.
        parameters: what `$1` and so on stand for.
        program: the guest's own, for places without a target; "" for none.

    Raises:
        WrongScriptError: the script is wrong.
    """
    _, tree = script_source(script.name, script.text, parameters, program)
    points = [point for probe in tree.probes for point in probe.points]
    patterns = [
        f"{point.provider}:{point.target}:" if point.provider in _TIMERS else point.text
        for point in points
        if point.provider not in _WITHOUT_PLACE
    ]
    return tuple(dict.fromkeys(patterns))


def list_probes(config: GuestConfig, patterns: Sequence[str], *, verbose: bool) -> Iterator[str]:
    """List what scripts can be attached to in a guest, line by line.

    Args:
        config: the guest.
        patterns: as attach points are written, with globs; "" for all but functions; "struct NAME"
            for a structure, which is written out if arguments are.
        verbose: arguments follow.

    Raises:
        ImageError: the guest cannot be run.
        ProbeError: there is no provider of that name.
    """
    with _loaded(config) as session:
        from engine.session.tracing.script.listing import ProbeListing  # few runs are lists

        listing = ProbeListing(session)
        for pattern in patterns:
            try:
                yield from listing.lines(pattern, verbose=verbose)
            except ProbeError as error:
                raise CommandError(f"-l {pattern}: {error}") from error
