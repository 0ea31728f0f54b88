"""A script attached to a guest: checked, compiled, placed, and its beginning and end."""

from collections.abc import Sequence
from typing import Any, Final

from engine.arch.plan import Mode
from engine.errors import ProbeError, ProbeSyntaxError
from engine.session.guest.session import Session
from engine.session.protocol.report import Report
from engine.session.protocol.scripts import ScriptRequest
from engine.session.tracing.script.events import ScriptEvent, ScriptEvents, Wish
from engine.session.tracing.script.output import ScriptSink
from engine.session.tracing.script.places import CODE, TIMERS, ScriptPlaces, period
from engine.session.tracing.script.running import OUTSIDE, ScriptExit, ScriptRun, ScriptTimer
from engine.session.tracing.script.script_symbols import ScriptSymbols
from engine.session.tracing.script.surroundings import GuestSurroundings
from engine.session.tracing.tracing import Tracing
from engine.trace.bpftrace.captures import Action
from engine.trace.bpftrace.capturing import descendants
from engine.trace.bpftrace.checked import CheckedScript
from engine.trace.bpftrace.checking import check
from engine.trace.bpftrace.compiling import CompiledProbe, compile_script
from engine.trace.bpftrace.config import configured
from engine.trace.bpftrace.output import ScriptOutput
from engine.trace.bpftrace.printing import TextOutput
from engine.trace.bpftrace.state import ScriptState
from engine.trace.bpftrace.text import ScriptRemark, ScriptRemarks, ScriptText, WrongScriptError
from engine.trace.bpftrace.tree import AttachPoint, Name, Probe, Script
from engine.trace.bpftrace.value_names import ValueNames

_SHOWN: Final = 8
_EXPECTED: Final = "If this is expected, set the 'missing_probes' config variable to 'warn'."


def _names_types(tree: Script) -> bool:
    """True if a script asks for something that only the types of functions tell."""
    return any(
        isinstance(node, Name) and node.name in ("args", "retval")
        for part in (*tree.probes, *tree.macros)
        for node in descendants(part)
    )


def _is_code(point: AttachPoint) -> bool:
    return point.provider in CODE or point.provider == "usdt"


def _is_nowhere(probe: Probe, around: GuestSurroundings) -> bool:
    """True if a probe has places, and all are missing."""
    return bool(probe.points) and all(point in around.missing for point in probe.points)


class AttachedScript:
    """A script on a guest.

    Attributes:
        incomplete: its output could not be written whole.
    """

    def __init__(
        self,
        session: Session,
        tracing: Tracing,
        run: ScriptRun,
        sink: ScriptSink,
        request: ScriptRequest,
    ) -> None:
        """Set up; `attach` does the work.

        Args:
            session: the guest.
            tracing: records hits; the run is its consumer.
            run: runs actions.
            sink: takes what they print.
            request: what is wanted.
        """
        self._session = session
        self._tracing = tracing
        self._run = run
        self._sink = sink
        self._request = request
        self._begins: list[Action] = []
        self._ends: list[Action] = []
        self._signals: list[Action] = []
        self._timers: list[tuple[int, Action]] = []
        self._probes = 0
        self._skipped: list[str] = []
        self._heard: list[bool] = []
        self.incomplete = False
        self._began = False

    def attach(self, tree: Script, text: ScriptText) -> None:
        """Check a script, and place its probes.

        Raises:
            WrongScriptError: it is wrong, or something that it names is not there.
        """
        session, run, request = self._session, self._run, self._request
        verdicts = session.probes().verdicts
        places = ScriptPlaces(session.arch, verdicts.places, verdicts.program)
        run.symbols = symbols = ScriptSymbols(session, places, verdicts.program)
        around = GuestSurroundings(
            session, verdicts, places, symbols, typed=_names_types(tree), recorded=request.recorded
        )
        checked = self._checked_script(tree, text, around)
        names = run.names(checked.config)
        output: ScriptOutput
        if request.format == "json":
            from engine.trace.bpftrace.json_lines import JsonOutput  # few scripts print it

            output = JsonOutput(self._sink.write, names)
        else:
            output = TextOutput(self._sink.write, self._sink.write_error, names)
        self._output = output
        self._state = ScriptState(checked, text, output, names)
        self._checked = checked
        self._warn(checked.warnings)
        compiled = compile_script(checked, text, self._state)
        self._reads_memory = any(probe.needs_memory for probe in compiled)
        missing = checked.config.missing_probes
        events = ScriptEvents(
            self._tracing,
            run.readers,
            run.clock,
            skips=missing != "error",
            as_linux=request.mode is Mode.KERNEL,
            nofault=run.as_linux,
        )
        attached: list[tuple[ScriptEvent, Action]] = []
        stacks: set[int] = set()
        pairs = [(probe, point) for probe in compiled for point in probe.probe.points]
        # Probes at one place of code are hit in the reverse order of their placing, as in Linux.
        pairs.sort(key=lambda pair: _is_code(pair[1]))
        first = next((at for at, (_, one) in enumerate(pairs) if _is_code(one)), len(pairs))
        with verdicts.lookup.settled():
            for probe, point in (*pairs[:first], *reversed(pairs[first:])):
                if self._special(probe, point):
                    continue
                found = self._placed(events, places, probe, point, text)
                self._probes += bool(found)
                for event in found:
                    attached.append((event, probe.make(event.reads, run)))
                    if probe.stacks:
                        stacks.add(event.info.id)
        run.attach(self._tracing, attached, frozenset(stacks))
        self._skipped += events.skipped
        if not self._probes:
            where = tree.probes[0].span if tree.probes else tree.span
            raise WrongScriptError(ScriptRemark("ERROR", "No probes to attach", where, text))

    def _warn(self, remarks: Sequence[ScriptRemark]) -> None:
        for remark in remarks:
            lines = "".join(f"{line}\n" for line in remark.lines())
            self._sink.write_error(lines.encode(errors="surrogateescape"))

    def _checked_script(
        self, tree: Script, text: ScriptText, around: GuestSurroundings
    ) -> CheckedScript:
        """Check a script; places that are nowhere are told of before what comes of that.

        Raises:
            WrongScriptError: it is wrong, or a place is nowhere.
        """
        request = self._request
        remarks = ScriptRemarks(text)
        how = configured(tree.settings, request.environment, remarks).missing_probes
        try:
            checked = check(tree, text, around, request.parameters, request.environment)
        except WrongScriptError:
            if how == "error":
                self._raise_missing(tree, text, around)
            raise
        if how == "error":
            self._raise_missing(tree, text, around)
        if how == "warn":
            found = around.missing.items()
            self._warn(
                [ScriptRemark("WARNING", f"{why}. Skipping.", at.span, text) for at, why in found]
            )
            gone = [each for each in tree.probes if _is_nowhere(each, around)]
            why = "Probe has no valid attach points. It is being removed which may cause issues"
            why += " with program behavior."
            self._warn([ScriptRemark("WARNING", why, each.span, text) for each in gone])
        return checked

    @staticmethod
    def _raise_missing(tree: Script, text: ScriptText, around: GuestSurroundings) -> None:
        found = [
            ScriptRemark("ERROR", f"{why}.", at.span, text) for at, why in around.missing.items()
        ]
        for probe in tree.probes:
            if _is_nowhere(probe, around):
                why = f"Probe has no valid attach points. {_EXPECTED}"
                found.append(ScriptRemark("ERROR", why, probe.points[0].span, text))
        if found:
            raise WrongScriptError(*found)

    def _placed(
        self,
        events: ScriptEvents,
        places: ScriptPlaces,
        probe: CompiledProbe,
        point: AttachPoint,
        text: ScriptText,
    ) -> list[ScriptEvent]:
        """The events of one place of a probe."""
        at_hit = probe.needs_memory or (self._request.beside and probe.exits)
        wish = Wish(probe.captures, at_hit, bool(probe.stacks))
        try:
            return [each for one in places.resolved(point) for each in events.of(one, wish)]
        except ProbeSyntaxError as error:  # of a definition that nobody has written
            why = f"{error.text}: {error.why}" if error.why else error.text
            raise WrongScriptError(ScriptRemark("ERROR", why, point.span, text)) from error
        except ProbeError as error:
            raise WrongScriptError(ScriptRemark("ERROR", str(error), point.span, text)) from error

    def _special(self, probe: CompiledProbe, point: AttachPoint) -> bool:
        """Keep the action of a probe that stands nowhere; False for all others."""
        provider = point.provider
        if provider not in ("begin", "end", "self", *TIMERS):
            return False
        action = probe.make(self._run.plain_reads(point.text), self._run)
        self._probes += 1
        if provider == "begin":
            self._begins.append(action)
        elif provider == "end":
            self._ends.append(action)
        elif provider == "self":
            self._signals.append(action)
        else:
            self._timers.append((period(point), action))
        return True

    # -- the run --------------------------------------------------------------------------

    def begin(self) -> None:
        """The guest is about to run: what the script does before it.

        Raises:
            CommandError: a file cannot be created.
        """
        session, run = self._session, self._run
        session.outputs.create()
        self._sink.begin()
        self._began = True
        self._tracing.start()
        run.begin()
        if not self._request.quiet:
            self._output.attached(self._probes)
        self._act(self._begins)
        if run.over and run.ends_guest:
            run.leave()
        run.follow_calls(self._tracing)
        for nanoseconds, action in self._timers:
            timer = ScriptTimer(run, nanoseconds, self._bound(action))
            session.machine.arm(timer, on=True)
        if self._signals:
            before = session.hooks.attention

            def attend() -> None:
                before()
                self._attend()

            session.hooks.attention = attend

    @property
    def hears_signals(self) -> bool:
        """True if it has probes of `self:signal`."""
        return bool(self._signals)

    def signalled(self) -> None:
        """The tool has got the signal of `self:signal`; from any thread."""
        self._heard.append(True)
        self._session.attend()

    def _attend(self) -> None:
        while self._heard and not self._run.over:
            self._heard.pop()
            self._run.timer(lambda: self._each(self._signals))

    def _each(self, actions: Sequence[Action]) -> None:
        for action in actions:
            action(b"", 0, OUTSIDE)

    def _bound(self, action: Action) -> Any:
        machine = self._session.machine
        return lambda: action(b"", 0, machine.tid)

    def _act(self, actions: Sequence[Action]) -> None:
        """Run actions that stand nowhere."""
        try:
            self._each(actions)
        except ScriptExit:
            self._run.over = True
        self._sink.flush()

    def finish(self) -> None:
        """The guest has ended: the script's own end, and its maps."""
        if not self._began:
            return
        self._act(self._ends)
        if self._tracing.lost:
            self._output.lost(self._tracing.lost)
        if self._checked.config.print_maps_on_exit:
            self._state.print_maps()
        self._sink.flush()
        self.incomplete = self._sink.failure is not None

    def detach(self) -> None:
        """Take the probes out of a guest that goes on."""
        self._run.over = True
        tracing = self._tracing
        tracing.drain()
        for event in list(tracing.events.values()):
            self._session.probes().remove(list(event.probes))
        for source in tracing.unplaced.by_group.values():
            source.record_only(())

    @property
    def state(self) -> ScriptState:
        """The state that its actions change: maps."""
        return self._state

    @property
    def names(self) -> ValueNames:
        """The names of what it shows."""
        return self._state.names

    @property
    def reads_memory(self) -> bool:
        """True if an action reads memory while the guest stands at the hit."""
        return self._reads_memory

    def remarks(self) -> list[Report]:
        """Remarks about the run."""
        found = []
        if self._sink.failure is not None:
            found.append(Report((f"-o {self._request.output}: {self._sink.failure.strerror}",)))
        if self._skipped:
            shown = self._skipped[:_SHOWN]
            more = (
                [f"and {len(self._skipped) - _SHOWN} more"] if len(self._skipped) > _SHOWN else []
            )
            found.append(Report(("no probe stands at:", *shown, *more)))
        return found
