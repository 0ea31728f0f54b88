"""A script of bpftrace that is attached to a run, with its maps and its output to look at.

It has a trace of its own beside that of the events shown, so that its probes come and go alone.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from engine.session.guest.session import Session
from engine.session.protocol.requests import TraceOptions
from engine.session.protocol.scripts import ScriptRequest
from engine.session.tracing.script.attached import AttachedScript
from engine.session.tracing.script.moments import ScriptMoments
from engine.session.tracing.script.output import ScriptSink
from engine.session.tracing.script.running import ScriptRun
from engine.session.tracing.script.script_source import script_source
from engine.session.tracing.tracing import Tracing
from engine.trace.bpftrace.printing import TextOutput

_SHOWN: Final = 200
"""Lines of a script's output that are shown, the last ones."""
_MOST_LINE: Final = 4096


class ShownScript:
    """A script that is attached to a run, as a front end shows it.

    Attributes:
        is_over: it has come to its end.
    """

    def __init__(self, session: Session, main: Tracing, request: ScriptRequest) -> None:
        """Attach it.

        Args:
            session: the run.
            main: the trace of the run's events.
            request: the script.

        Raises:
            KprobeTuiError: it is wrong, or a place of it cannot be probed.
        """
        text, tree = script_source(
            request.name, request.text, request.parameters, session.config.guest
        )
        self._session = session
        self._name = request.name
        self._lines: deque[str] = deque(maxlen=_SHOWN)
        self._rest = b""
        self.is_over = False
        self._run = run = ScriptRun(session)
        run.ends_guest = False
        sink = ScriptSink(session.outputs, None, self._take, self._take)
        run.printed = sink.flush
        self._moments: ScriptMoments | None = None
        tracing = Tracing(
            session, TraceOptions(mode=request.mode), consumer=self._consume, main=main
        )
        self._script = AttachedScript(session, tracing, run, sink, request)
        self._tracing = tracing
        try:
            self._script.attach(tree, text)
            self._moments = ScriptMoments(run, self._script.state)
            self._script.begin()
        except BaseException:
            self._script.detach()
            raise

    def _consume(self, data: bytes) -> None:
        assert self._moments is not None, "it was attached"
        self._moments.consume(data)

    def _take(self, data: bytes) -> None:
        """Keep the last lines of what it prints."""
        if self._run.repeats:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines.extend(line[:_MOST_LINE].decode(errors="backslashreplace") for line in lines)
        self._rest = self._rest[-_MOST_LINE:]

    def end(self) -> None:
        """The guest has ended, or the script is to go: its own end runs, once."""
        if not self.is_over:
            self.is_over = True
            self._tracing.drain()
            self._script.detach()
            self._script.finish()

    def texts(self, tick: int | None) -> Iterator[str]:
        """The texts that show its maps, and what it has printed.

        Args:
            tick: the moment of the past that is looked at; None for now.
        """
        self._tracing.drain()
        if self._run.over and not self.is_over:
            self.end()
        state = "has ended" if self.is_over else "runs"
        moment = "" if tick is None else f", at tick {tick}"
        yield f"# bpftrace: {self._name} {state}{moment}\n{self._maps(tick)}"
        if self._lines:
            yield "\n".join(["# output:", *self._lines])

    def _maps(self, tick: int | None) -> str:
        parts: list[bytes] = []
        output = TextOutput(parts.append, parts.append, self._script.names)
        assert self._moments is not None, "it was attached"
        if tick is not None and self._script.reads_memory:
            return "(it reads memory at its hits: its maps are known at the present only)"
        found = self._script.state.maps.values() if tick is None else self._moments.at(tick)
        for each in sorted(found, key=lambda one: one.name):
            if each.entries:
                output.map(each)
        return b"".join(parts).decode(errors="backslashreplace").rstrip("\n")
