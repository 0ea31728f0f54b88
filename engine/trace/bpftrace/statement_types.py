"""Effects of statements on types: assignments, declarations, loops, jumps, blocks."""

from collections.abc import Callable, Mapping
from typing import Final, cast

from engine.trace.bpftrace.expression_types import ExpressionTypes
from engine.trace.bpftrace.findings import Findings, MapFacts
from engine.trace.bpftrace.tree import (
    Assignment,
    BlockExpression,
    CallExpression,
    Conditional,
    Declaration,
    Discard,
    Expression,
    ExpressionStatement,
    For,
    Increment,
    Jump,
    MapAccess,
    MapName,
    Range,
    ScratchName,
    ScriptNode,
    Statement,
    Unroll,
    While,
)
from engine.trace.bpftrace.type_rules import (
    assignable,
    integer_of,
    is_castable,
    is_signed,
    promoted,
    same,
    type_name,
    type_size,
)
from engine.trace.bpftrace.types import (
    AGGREGATES,
    INT64,
    Aggregate,
    Integer,
    Tuple,
    Type,
    Void,
)

_MAX_UNROLL: Final = 100
_HINTS: Final[Mapping[str, str]] = {
    "count": "count()",
    "sum": "sum(retval)",
    "min": "min(retval)",
    "max": "max(retval)",
    "avg": "avg(retval)",
    "hist": "hist(retval)",
    "lhist": "lhist(rand %10, 0, 10, 1)",
    "tseries": "tseries(rand %10, 10s, 1)",
    "stats": "stats(arg2)",
}
_SILENT: Final = frozenset(("delete",))
"""Functions whose value is dropped more often than not."""


class StatementTypes:
    """Finds what statements do to types.

    Args:
        findings: what is known of the script.
    """

    __slots__ = ("_findings", "_loops", "expressions")

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.expressions = ExpressionTypes(findings, self.block)
        self._loops = 0

    def block(self, block: BlockExpression) -> Type | None:
        """The type of the value of a block."""
        ended = False
        for statement in block.statements:
            if ended:
                if self._findings.is_final:
                    self._findings.warning("Unreachable statement.", statement)
                ended = False
            _HANDLERS[type(statement)](self, statement)
            ended = ends(statement)
        if block.value is None:
            return None
        if ended and self._findings.is_final:
            self._findings.warning(
                "Unreachable expression; block type is implicitly none.", block.value
            )
        return self.expressions.of(block.value)

    def _statement_of(self, node: Statement) -> None:
        statement = cast("ExpressionStatement", node)
        expression = statement.expression
        kind = self.expressions.of(expression)
        silent = (
            kind is None
            or isinstance(kind, Void)
            or isinstance(expression, Increment)
            or (isinstance(expression, CallExpression) and expression.name in _SILENT)
        )
        if self._findings.is_final and not silent:
            self._findings.warning("Return value discarded.", statement)

    def _discard(self, node: Statement) -> None:
        self.expressions.of(cast("Discard", node).expression)

    # -- variables -----------------------------------------------------------------------------

    def _declaration(self, node: Statement) -> None:
        declared = cast("Declaration", node)
        probe = self._findings.probe
        variable = None if probe is None else probe.scope.of.get(declared.variable)
        if declared.type is not None and variable is not None:
            kind = self.expressions.written(declared.type)
            if kind is not None:
                if isinstance(kind, Aggregate | Void):
                    self._findings.error(
                        f"Invalid variable declaration type: {type_name(kind)}", declared.type
                    )
                    return
                if variable.type is None:
                    variable.type = kind
                    self._findings.changed = True
                variable.sized = type_size(kind) != 0
                if variable.sized and not same(variable.type, kind):
                    variable.type = kind  # `typeof` of something that has grown
                    self._findings.changed = True
        if declared.value is not None:
            self._assign_variable(declared.variable, "=", declared.value, declared)

    def _assignment(self, node: Statement) -> None:
        assigned = cast("Assignment", node)
        if isinstance(assigned.target, ScratchName):
            self._assign_variable(assigned.target, assigned.operator, assigned.value, assigned)
        else:
            self._assign_map(assigned, assigned.target)

    def _assign_variable(
        self, target: ScratchName, operator: str, value: Expression, at: ScriptNode
    ) -> None:
        findings = self._findings
        kind = self.expressions.of(value)
        probe = findings.probe
        variable = None if probe is None else probe.scope.of.get(target)
        if variable is None:
            self.expressions.of(target)  # tells that there is none
            return
        if operator != "=" and kind is not None:
            kind = self._operation(operator, self.expressions.of(target), kind, value, at)
        if kind is None:
            if findings.is_final:
                findings.error("Invalid expression for assignment", at)
            return
        if not variable.sized:
            if not assignable(kind, variable.type):
                findings.error(
                    f"Value '{type_name(kind)}' cannot be assigned to a scratch variable.", at
                )
                return
            findings.variable(variable, kind, at)
        if variable.type is not None:
            findings.types[target] = variable.type
        if not findings.is_final or variable.type is None or operator != "=":
            return
        if not self.expressions.conversions.convert(value, variable.type):
            findings.error(
                f"Type mismatch for ${variable.name}: trying to assign value of type "
                f"'{type_name(kind)}' when variable already has a type "
                f"'{type_name(variable.type)}'",
                at,
            )

    def _operation(
        self, operator: str, now: Type | None, kind: Type, value: Expression, at: ScriptNode
    ) -> Type | None:
        """The type of `now operator value`, as `+=` and the like put it into a variable."""
        if now is None:
            return None
        whole = self.expressions.operators.operation(operator, now, kind, at)
        if self._findings.is_final and whole is not None and integer_of(whole) is not None:
            if integer_of(now) is None or (integer_of(kind) is None and not is_castable(kind)):
                self._findings.error(
                    f"The {operator} operator can not be used on expressions of types "
                    f"{type_name(now)}, {type_name(kind)}",
                    at,
                )
                return None
            self.expressions.conversions.convert(value, whole)
        return whole

    # -- maps ----------------------------------------------------------------------------------

    def _assign_map(self, assigned: Assignment, target: MapName | MapAccess) -> None:
        findings = self._findings
        name = target if isinstance(target, MapName) else target.map
        if name.name in findings.options:
            findings.error(f"@{name.name} is an option of the command line", assigned)
        facts = (
            self.expressions.scalar(target)
            if isinstance(target, MapName)
            else self.expressions.entry(target)
        )
        call = aggregate_call(assigned.value)
        if call is not None and assigned.operator == "=":
            self._gather(facts, call, assigned)
            return
        kind = self.expressions.of(assigned.value)
        if facts is None:
            return
        if assigned.operator != "=" and kind is not None:
            now = facts.value
            kind = self._operation(assigned.operator, now, kind, assigned.value, assigned)
            if isinstance(now, Aggregate):
                findings.map_value(facts, kind or INT64, assigned)
                return
        if kind is None:
            if findings.is_final:
                findings.error("Invalid expression for assignment", assigned)
            return
        if not assignable(kind, facts.value, to_map=True):
            self._not_assignable(facts, kind, assigned)
            return
        if facts.value is not None and is_castable(kind) and isinstance(facts.value, Integer):
            kind = Integer(64, is_signed(kind)) if assigned.operator == "=" else kind
        findings.map_value(facts, kind, assigned)
        if (
            findings.is_final
            and assigned.operator == "="
            and facts.value is not None
            and not self.expressions.conversions.convert(assigned.value, facts.value)
        ):
            findings.error(
                f"Type mismatch for @{facts.name}: trying to assign value of type "
                f"'{type_name(kind)}' when map already has a value type "
                f"'{type_name(facts.value)}'",
                assigned,
            )

    def _not_assignable(self, facts: MapFacts, kind: Type, assigned: Assignment) -> None:
        name = type_name(kind)
        if not isinstance(kind, Aggregate):
            self._findings.error(f"Value '{name}' cannot be assigned to a map.", assigned)
            return
        hint = ""
        if isinstance(assigned.value, MapName | MapAccess) and is_castable(kind):
            source = assigned.value
            other = source.name if isinstance(source, MapName) else source.map.name
            hint = (
                "Add a cast to integer if you want the value of the aggregate, "
                f"e.g. `@{facts.name} = (int64)@{other};`."
            )
        self._findings.error(
            f"Map value '{name}' cannot be assigned from one map to another. The function that "
            f"returns this type must be called directly e.g. `@{facts.name} = "
            f"{_HINTS[kind.kind]};`.",
            assigned,
            hint,
        )

    def _gather(self, facts: MapFacts | None, call: CallExpression, at: Assignment) -> None:
        findings = self._findings
        for node in _values(at.value):
            for statement in node.statements if isinstance(node, BlockExpression) else ():
                _HANDLERS[type(statement)](self, statement)
        kind = self.expressions.aggregate(call)
        if facts is None or not isinstance(kind, Aggregate):
            return
        given = findings.type_of(call.arguments[0]) if call.arguments else None
        if given is not None and call.name in ("sum", "min", "max", "avg", "stats"):
            whole = promoted(facts.argument, given)
            if whole is None:
                findings.error(
                    f"Type mismatch for {call.name}: trying to call function with type "
                    f"'{type_name(given)}' when it already has a type "
                    f"'{type_name(facts.argument)}'",
                    call,
                )
                return
            facts.argument = whole
        findings.map_aggregate(facts, kind, call)
        for node in _values(at.value):
            findings.types[node] = facts.value or kind
        if not findings.is_final or not kind.parameters:
            return
        if facts.parameters is None:
            facts.parameters = kind.parameters
        elif facts.parameters != kind.parameters:
            words = {
                "hist": "Different bits in a single hist unsupported",
                "lhist": "Different lhist bounds in a single map unsupported",
            }
            findings.error(
                words.get(kind.kind, "Different tseries bounds in a single map unsupported"), call
            )

    # -- loops and jumps -----------------------------------------------------------------------

    def _unroll(self, node: Statement) -> None:
        unroll = cast("Unroll", node)
        self.expressions.of(unroll.count)
        count = self._findings.constants.get(unroll.count)
        if isinstance(count, bool) or not isinstance(count, int):
            if self._findings.is_final:
                self._findings.error("invalid unroll value", unroll)
        elif count > _MAX_UNROLL:
            self._findings.error(f"unroll maximum value is {_MAX_UNROLL}", unroll)
        elif count < 1:
            self._findings.error("unroll minimum value is 1", unroll)
        self.block(unroll.body)

    def _while(self, node: Statement) -> None:
        loop = cast("While", node)
        self.expressions.condition(loop.condition, loop)
        self._body(loop.body)

    def _body(self, body: BlockExpression) -> None:
        self._loops += 1
        self.block(body)
        self._loops -= 1

    def _for(self, node: Statement) -> None:
        loop = cast("For", node)
        probe = self._findings.probe
        variable = None if probe is None else probe.scope.of.get(loop.variable)
        if isinstance(loop.over, MapName):
            kind = self._entries(loop.over)
        else:
            kind = self._range(loop.over)
        if variable is not None and kind is not None:
            self._findings.variable(variable, kind, loop.variable)
            self._findings.types[loop.variable] = variable.type or kind
        self._body(loop.body)

    def _entries(self, name: MapName) -> Type | None:
        findings = self._findings
        facts = findings.map(name)
        if facts.scalar is True:
            findings.error(
                f"@{name.name} has no explicit keys (scalar map), and cannot be used for "
                "iteration",
                name,
            )
            return None
        facts.scalar = False
        if findings.is_final and (facts.value is None or facts.key is None):
            findings.error(f"Undefined map: @{name.name}", name)
        if facts.key is None or facts.value is None:
            return None
        value = facts.value
        if isinstance(value, Aggregate):
            if not is_castable(value):
                findings.error(f"Loop expression does not support type: {type_name(value)}", name)
                return None
            value = Integer(64, is_signed(value))
        return Tuple((facts.key, value))

    def _range(self, over: Range) -> Type | None:
        start, end = self.expressions.of(over.start), self.expressions.of(over.end)
        for kind, words in ((start, "start"), (end, "end")):
            if kind is not None and integer_of(kind) is None:
                self._findings.error(f"Loop range requires an integer for the {words} value", over)
                return None
        if start is None or end is None:
            return None
        whole = promoted(start, end) if type_size(start) != type_size(end) else start
        if self._findings.is_final and not same(start, end):
            wider = start if type_size(start) > type_size(end) else end
            self.expressions.conversions.convert(over.start, wider)
            self.expressions.conversions.convert(over.end, wider)
        return whole

    def _jump(self, node: Statement) -> None:
        jump = cast("Jump", node)
        if jump.kind != "return" and not self._loops:
            self._findings.error(f"'{jump.kind}' statement is not allowed in a probe", jump)
        if jump.value is None:
            return
        kind = self.expressions.of(jump.value)
        if self._findings.is_final and integer_of(kind) is None:
            self._findings.error(
                f"Probe return values can only be integers. Found {type_name(kind)}", jump
            )
        elif self._findings.is_final:
            self.expressions.conversions.convert(jump.value, INT64)


def ends(statement: ScriptNode) -> bool:
    """True if nothing behind a statement in its block is ever reached."""
    if isinstance(statement, Jump):
        return True
    if isinstance(statement, ExpressionStatement):
        expression = statement.expression
        if isinstance(expression, CallExpression):
            return expression.name == "exit"
        if isinstance(expression, BlockExpression):
            return any(map(ends, expression.statements))
        if isinstance(expression, Conditional) and not expression.comptime:
            return (
                expression.otherwise is not None
                and _block_ends(expression.then)
                and _block_ends(expression.otherwise)
            )
    return False


def _block_ends(expression: Expression) -> bool:
    if isinstance(expression, BlockExpression):
        return any(map(ends, expression.statements))
    return isinstance(expression, CallExpression) and expression.name == "exit"


def aggregate_call(value: Expression) -> CallExpression | None:
    """The function that a map gathers by; it may stand in a macro's block."""
    while isinstance(value, BlockExpression) and value.value is not None:
        value = value.value
    return value if isinstance(value, CallExpression) and value.name in AGGREGATES else None


def _values(value: Expression) -> list[ScriptNode]:
    """A value and those in its blocks that are its value."""
    found: list[ScriptNode] = [value]
    while isinstance(value, BlockExpression) and value.value is not None:
        value = value.value
        found.append(value)
    return found


_HANDLERS: Final[Mapping[type[ScriptNode], Callable[[StatementTypes, Statement], None]]] = {
    ExpressionStatement: StatementTypes._statement_of,
    Discard: StatementTypes._discard,
    Declaration: StatementTypes._declaration,
    Assignment: StatementTypes._assignment,
    Unroll: StatementTypes._unroll,
    While: StatementTypes._while,
    For: StatementTypes._for,
    Jump: StatementTypes._jump,
}
