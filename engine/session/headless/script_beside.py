"""A script of bpftrace beside the events of a trace: one run, and the same moments for both."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from signal import SIGUSR1

from engine.arch.plan import Mode
from engine.session.protocol.report import Report
from engine.session.protocol.requests import TraceOptions
from engine.session.protocol.scripts import ScriptRequest
from engine.session.tracing.script.attached import AttachedScript
from engine.session.tracing.script.output import ScriptSink
from engine.session.tracing.script.running import ScriptRun
from engine.session.tracing.script.script_source import script_source
from engine.session.tracing.tracing import Tracing
from engine.trace.bpftrace.tree import Script

Write = Callable[[bytes], object]


class ScriptBeside:
    """A script on a guest whose events are traced, too.

    It has a trace of its own, as an instance of tracefs has one, so that what the other trace
    records and writes stays what it is without the script.
    """

    def __init__(
        self,
        request: ScriptRequest,
        write: Write,
        write_error: Write,
        main: Tracing,
        closing: ExitStack,
    ) -> None:
        """Attach a script to a guest that has not begun.

        Args:
            request: the script.
            write: takes what the script prints, where no file is named.
            write_error: takes its warnings.
            main: the trace of the run's events.
            closing: closes the script's own trace.

        Raises:
            WrongScriptError: the script is wrong.
            ProbeError: a place of it cannot be probed.
        """
        session = main.session
        self._request = request
        text, self._tree = script_source(
            request.name, request.text, request.parameters, request.config.guest
        )
        run = ScriptRun(session)
        sink = ScriptSink(session.outputs, request.output, write, write_error)
        run.printed, run.complain = sink.flush, sink.complain
        if request.mode is Mode.KERNEL and not request.recorded:  # whose calls read nothing
            run.read_as_linux()
        self._tracing = tracing = Tracing(
            session, TraceOptions(mode=request.mode), consumer=run.consume, main=main
        )
        closing.callback(tracing.discard)
        self._script = AttachedScript(session, tracing, run, sink, request)
        self._script.attach(self._tree, text)

    @property
    def special(self) -> Mapping[int, Callable[[], None]]:
        """The deeds at signals to the tool that the guest does not get."""
        return {SIGUSR1: self._script.signalled} if self._script.hears_signals else {}

    @property
    def lost(self) -> int:
        """Hits that its actions did not get."""
        return self._tracing.lost

    def listed(self) -> Iterator[str]:
        """The script's probes as comments: what they do is no event."""
        yield from _listed(self._request.name, self._tree)

    def begin(self) -> None:
        """The guest is about to run, and its events are recorded.

        Raises:
            CommandError: a file cannot be created.
            CutOff: the script ends the guest before its first instruction.
        """
        self._script.begin()

    def finish(self) -> list[Report]:
        """The guest has ended, and the other trace is written: the script's own end, its maps."""
        found = self._tracing.finish()
        self._script.finish()
        return [*found, *self._script.remarks()]

    @property
    def incomplete(self) -> bool:
        """True if its output could not be written whole; known once it is finished."""
        return self._script.incomplete


def _listed(name: str, tree: Script) -> Iterator[str]:
    for probe in tree.probes:
        for point in probe.points:
            yield f"# {name}: {point.text}: what it does is the script's"
