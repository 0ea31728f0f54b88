"""Python for the statements of an action.

Loops are bounded, as the verifier of the kernel bounds those of BPF: a script that would never
end is stopped where a loop has run MOST_ROUNDS times in one action.
"""

from collections.abc import Callable
from typing import Final

from engine.trace.bpftrace import tree
from engine.trace.bpftrace.capturing import descendants, stride
from engine.trace.bpftrace.conversion_code import converted, integer_of, wrapped
from engine.trace.bpftrace.expression_code import ExpressionCode, FaultTeller, variable_code
from engine.trace.bpftrace.output import Fault
from engine.trace.bpftrace.types import VOID, Aggregate, Pointer, Type
from engine.trace.bpftrace.values import default_value

MOST_ROUNDS: Final = 1 << 23
"""Rounds of one loop in one action (BPF_MAX_LOOPS of the kernel)."""

_TOO_LONG: Final = Fault(f"A loop was ended after {MOST_ROUNDS} rounds.")


class StatementCode:
    """Makes Python of statements.

    Attributes:
        aggregate: adds the lines of `@x = count()` and the like.
    """

    def __init__(self, expressions: ExpressionCode) -> None:
        """Set up.

        Args:
            expressions: of the same action.
        """
        self._expressions = expressions
        self._lines = expressions.lines
        self._script = expressions.script
        self.aggregate: Callable[[tree.MapName | tree.MapAccess, tree.CallExpression], None] = (
            _not_set
        )

    def begin(self, body: tree.BlockExpression, types: dict[str, Type]) -> None:
        """Give variables a value that are not assigned where everything passes.

        Args:
            body: the action.
            types: of the variables, by their names in the code.
        """
        sure: set[str] = set()
        for statement in body.statements:
            target = _assigned(statement)
            if target is None:
                break
            if not any(
                isinstance(each, tree.BlockExpression | tree.Conditional)
                for each in descendants(statement)
            ):
                sure.add(self._script.variables.get(target, target.name))
        for name, kind in types.items():
            if name not in sure:
                self._lines.add(f"{variable_code(name)} = {self._zero(kind)}")

    def _zero(self, kind: Type) -> str:
        default = default_value(kind)
        if isinstance(default, int | bytes):
            return repr(default)
        return self._lines.constant(default, ("default", kind))

    def block(self, body: tree.BlockExpression) -> str | None:
        """Add the statements of a block; the code of its value, None if it has none."""
        for statement in body.statements:
            self.statement(statement)
        if body.value is None:
            return None
        if self._script.types.get(body.value, VOID) == VOID:
            self._expressions.effect(body.value)
            return None
        return self._expressions.value(body.value)

    def statement(self, node: tree.Statement) -> None:
        """Add the lines of a statement."""
        match node:
            case tree.ExpressionStatement() | tree.Discard():
                self._expressions.effect(node.expression)
            case tree.Declaration():
                self._declaration(node)
            case tree.Assignment():
                self._assignment(node)
            case tree.Unroll():
                self._unroll(node)
            case tree.While():
                self._while(node)
            case tree.For():
                self._for(node)
            case tree.Jump():
                if node.value is not None:
                    self._expressions.effect(node.value)
                self._lines.add(node.kind)

    def _declaration(self, node: tree.Declaration) -> None:
        name = self._expressions.variable(node.variable)
        if node.value is not None:
            self._lines.add(f"{name} = {self._expressions.value(node.value)}")
        else:
            kind = self._script.types.get(node.variable, VOID)
            self._lines.add(f"{name} = {self._zero(kind)}")

    def _assignment(self, node: tree.Assignment) -> None:
        target, value = node.target, node.value
        kind = self._script.types.get(value, VOID)
        if isinstance(value, tree.CallExpression) and isinstance(kind, Aggregate):
            assert not isinstance(target, tree.ScratchName)
            self.aggregate(target, value)
            return
        if node.operator != "=":
            self._compound(node)
        elif isinstance(target, tree.ScratchName):
            code = self._expressions.value(value)
            self._lines.add(f"{self._expressions.variable(target)} = {code}")
        else:
            # The value comes first, as in bpftrace's code.
            parts = [lambda: self._expressions.value(value), lambda: self._expressions.key(target)]
            code, key = map(self._lines.kept, self._lines.evaluated(parts))
            self._expressions.set_entry(target, key, code)

    def _compound(self, node: tree.Assignment) -> None:
        """Add the lines of `+=` and the like."""
        target = node.target
        kind = self._expressions.target_type(target)
        if isinstance(target, tree.ScratchName):
            old = self._expressions.variable(target)
            new = self._changed(node, old, kind, self._expressions.value(node.value))
            self._lines.add(f"{old} = {new}")
            return
        parts = [
            lambda: self._expressions.value(node.value),
            lambda: self._expressions.key(target),
        ]
        value, key = map(self._lines.kept, self._lines.evaluated(parts))
        old = self._expressions.entry(target, key)
        new = self._lines.kept(self._changed(node, old, kind, value))
        self._expressions.set_entry(target, key, new)

    def _changed(self, node: tree.Assignment, old: str, kind: Type, value: str) -> str:
        if isinstance(kind, Pointer):
            step = stride(kind)
            return wrapped(f"({old} {node.operator} {value} * {step})", integer_of(kind))
        operation = tree.Binary(node.span, node.operator, node.value, node.value)
        self._script.types[operation] = kind
        number = integer_of(kind)
        of_value = integer_of(self._expressions.type_of(node.value))
        code = self._expressions.number(operation, (old, number), (value, of_value))
        return converted(self._lines, code, kind, kind)

    # -- loops ------------------------------------------------------------------------------

    def _unroll(self, node: tree.Unroll) -> None:
        count = self._script.constants.get(node.count)
        rounds = count if isinstance(count, int) else 0
        with self._lines.block(f"for _ in range({rounds}):"):
            self._body(node.body)

    def _body(self, body: tree.BlockExpression) -> None:
        code = self.block(body)
        if code is not None:
            self._lines.add(code)

    def _while(self, node: tree.While) -> None:
        stop = self._lines.constant(
            FaultTeller(self._expressions.state, _TOO_LONG, node), ("loop", node)
        )
        with self._lines.block(f"for {self._lines.fresh()} in range({MOST_ROUNDS}):"):
            condition = self._expressions.condition(node.condition)
            with self._lines.block(f"if not {condition}:"):
                self._lines.add("break")
            self._body(node.body)
        with self._lines.block("else:"):
            self._lines.add(f"{stop}()")

    def _for(self, node: tree.For) -> None:
        name = self._expressions.variable(node.variable)
        if isinstance(node.over, tree.MapName):
            found = self._expressions.map_code(node.over.name)
            self._pairs(node, name, f"{found}.items()")
            return
        start, end = self._expressions.values([node.over.start, node.over.end])
        start, end = self._lines.kept(start), self._lines.kept(end)
        stop = self._lines.constant(
            FaultTeller(self._expressions.state, _TOO_LONG, node), ("loop", node)
        )
        with self._lines.block(f"if {end} - {start} > {MOST_ROUNDS}:"):
            self._lines.add(f"{stop}()")
        with self._lines.block(
            f"for {name} in range({start}, min({end}, {start} + {MOST_ROUNDS})):"
        ):
            self._body(node.body)

    def _pairs(self, node: tree.For, name: str, pairs: str) -> None:
        with self._lines.block(f"for {name} in {pairs}:"):
            self._body(node.body)


def _assigned(node: tree.Statement) -> tree.ScratchName | None:
    """The variable that a statement gives a value, if that is all it does."""
    if isinstance(node, tree.Declaration):
        return node.variable
    if isinstance(node, tree.Assignment) and isinstance(node.target, tree.ScratchName):
        return node.target
    return None


def _not_set(target: tree.MapName | tree.MapAccess, call: tree.CallExpression) -> None:
    raise AssertionError(target, call)
