"""Actions of a checked script as functions of Python, which run over recorded rows.

The function of a place is made in two steps: the lines of its action are made once for a probe,
and compiled once for each way in which rows are read; each place of a glob gets a function of
the same code with names of its own. The lines read values of the row as `r0`, `r1`, ...; those
that the predicate asks for are read before it, the others only where it is true.
"""

from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any, Literal

from engine.trace.bpftrace.call_code import ActionCalls
from engine.trace.bpftrace.captures import Action, Capture, RowReads, RunSurroundings
from engine.trace.bpftrace.capturing import Capturing
from engine.trace.bpftrace.checked import CheckedProbe, CheckedScript
from engine.trace.bpftrace.expression_code import ExpressionCode
from engine.trace.bpftrace.function_code import FUNCTIONS
from engine.trace.bpftrace.source_lines import SourceLines, TooDeepError
from engine.trace.bpftrace.state import ScriptState
from engine.trace.bpftrace.statement_code import StatementCode
from engine.trace.bpftrace.text import ScriptRemark, ScriptText, WrongScriptError


class CompiledProbe:
    """A probe whose action can run.

    Attributes:
        probe: as it was checked.
        captures: what its rows must hold.
        needs_memory: its action is to run at the hit, while the guest stands there.
        exits: its action may end the run.
        stacks: the call stacks that it asks for.
    """

    def __init__(
        self, script: CheckedScript, text: ScriptText, number: int, state: ScriptState
    ) -> None:
        """Make the lines of an action.

        Args:
            script: that the probe is of.
            text: of the script.
            number: of the probe in the script.
            state: of the run that it is for.

        Raises:
            WrongScriptError: blocks stand in too many blocks.
        """
        self.probe: CheckedProbe = script.probes[number]
        self._state = state
        capturing = Capturing(script, self.probe)
        lines = SourceLines()
        expressions = ExpressionCode(script, state, lines, capturing)
        statements = StatementCode(expressions)
        calls = ActionCalls(expressions, self.probe, number, FUNCTIONS)
        expressions.call, expressions.block = calls.value, statements.block
        statements.aggregate = calls.aggregate
        try:
            if self.probe.predicate is not None:
                condition = expressions.condition(self.probe.predicate)
                lines.add(f"if not {condition}:")
                lines.put([(lines.depth, "return")])
            self._first = len(capturing.captures)
            self._before = lines.text()
            lines.clear()
            statements.begin(self.probe.body, script.variable_types[number])
            code = statements.block(self.probe.body)
            if code is not None:
                lines.add(code)
        except (TooDeepError, RecursionError):
            problem = "too many blocks stand in blocks"
            raise WrongScriptError(ScriptRemark("ERROR", problem, self.probe.span, text)) from None
        self._after = lines.text()
        self._names = lines.names
        self._late = calls.late
        self.captures: Sequence[Capture] = tuple(capturing.captures)
        self.needs_memory = expressions.needs_memory
        self.exits = "run.exit(" in self._before + self._after
        self.stacks: frozenset[Literal["user", "kernel"]] = frozenset(calls.stacks)
        self._codes: dict[tuple[str, tuple[str, ...]], CodeType] = {}

    def make(self, reads: RowReads, run: RunSurroundings) -> Action:
        """The function that runs for each hit.

        Args:
            reads: how the rows of a place are read.
            run: what the action asks of the run.
        """
        key = reads.time, reads.values
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = self._compiled(reads)
        names: dict[str, Any] = {
            **reads.names,
            **self._names,
            **self._late(run),
            "unpack": reads.unpack,
            "probe_name": reads.probe,
        }
        return FunctionType(code, names)

    def _compiled(self, reads: RowReads) -> CodeType:
        source = "\n".join(
            [
                "def action(data, pos, thread):",
                " w = unpack(data, pos)",
                *self._prelude(reads, self._before, range(self._first)),
                self._before,
                *self._prelude(reads, self._after, range(self._first, len(self.captures))),
                self._after,
            ]
        )
        module = compile(source, "<script>", "exec")
        return next(each for each in module.co_consts if isinstance(each, CodeType))

    def _prelude(self, reads: RowReads, lines: str, numbers: range) -> list[str]:
        """The lines that read what other lines use."""
        found = [f" now = {reads.time}"] if "now" in lines and lines is self._before else []
        if "now" in lines and lines is self._after and "now" not in self._before:
            found = [f" now = {reads.time}"]
        return [*found, *[f" r{number} = {reads.values[number]}" for number in numbers]]


def compile_script(
    script: CheckedScript, text: ScriptText, state: ScriptState
) -> list[CompiledProbe]:
    """Compile all probes of a script, in its order.

    Args:
        script: the script.
        text: as it was written.
        state: of the run that it is for.

    Raises:
        WrongScriptError: an action cannot be compiled.
    """
    return [CompiledProbe(script, text, number, state) for number in range(len(script.probes))]
