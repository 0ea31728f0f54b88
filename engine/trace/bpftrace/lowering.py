"""The tree of a checked script: only what runs is left, in one spelling, with its types.

What `checked` promises of the tree is made true here. Nodes are new ones; what was found of the
old ones goes with them.
"""

from collections.abc import Callable, Mapping
from typing import Final, cast

from engine.trace.bpftrace.findings import Findings, ProbeFacts
from engine.trace.bpftrace.folding import KnownRecord, literal_type
from engine.trace.bpftrace.functions import function
from engine.trace.bpftrace.member_types import is_arguments
from engine.trace.bpftrace.operator_types import variable_behind
from engine.trace.bpftrace.statement_types import aggregate_call, ends
from engine.trace.bpftrace.text import Span
from engine.trace.bpftrace.tree import (
    Assignment,
    BlockExpression,
    BooleanLiteral,
    CallExpression,
    Comptime,
    Conditional,
    Declaration,
    Expression,
    ExpressionStatement,
    FieldAccess,
    IntegerLiteral,
    MapAccess,
    Name,
    RecordLiteral,
    ScratchName,
    ScriptNode,
    StringLiteral,
    TypeInfoOf,
    Unary,
    with_parts,
)
from engine.trace.bpftrace.type_rules import settled
from engine.trace.bpftrace.types import Enumeration, Pointer, Record, Type

_CLAIMS: Final = frozenset(("static_assert", "assert_str"))
"""Functions that have said all that they say when a script was checked."""


class Lowering:
    """Makes the trees of a checked script.

    Args:
        findings: all that is known of it.
    """

    __slots__ = ("_findings", "_probe", "constants", "conversions", "types", "uses", "variables")

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._probe: ProbeFacts | None = None
        self.types: dict[ScriptNode, Type] = {}
        self.conversions: dict[ScriptNode, Type] = {}
        self.constants: dict[ScriptNode, int | bytes | bool] = {}
        self.variables: dict[ScratchName, str] = {}
        self.uses: dict[ScriptNode, tuple[Span, ...]] = {}

    def action(self, probe: ProbeFacts) -> tuple[Expression | None, BlockExpression]:
        """The predicate and the body of a probe."""
        self._probe = probe
        predicate = None if probe.predicate is None else self._made(probe.predicate)
        return cast("Expression | None", predicate), cast(
            "BlockExpression", self._made(probe.body)
        )

    def _made(self, node: ScriptNode) -> ScriptNode:
        value = self._findings.constants.get(node)
        if isinstance(value, int | bytes) and not isinstance(node, Name):
            return self._noted(node, self._literal(node, value))
        if isinstance(value, KnownRecord) and isinstance(node, Name | TypeInfoOf):
            return self._noted(node, self._record(node, value))
        special = _SPECIAL.get(type(node))
        return self._noted(node, self._copy(node) if special is None else special(self, node))

    def _noted(self, old: ScriptNode, new: ScriptNode) -> ScriptNode:
        findings = self._findings
        kind = findings.types.get(old)
        if kind is not None and new not in self.types:
            self.types[new] = settled(kind)
        converted = findings.conversions.get(old)
        if converted is not None:
            self.conversions[new] = settled(converted)
        value = findings.constants.get(old)
        if isinstance(value, int | bytes):
            self.constants[new] = value
        uses = findings.uses.get(old)
        if uses is not None and isinstance(new, CallExpression):
            self.uses[new] = uses
        return new

    def _literal(self, node: ScriptNode, value: int | bytes) -> ScriptNode:
        if isinstance(value, bool):
            return BooleanLiteral(node.span, value)
        if isinstance(value, bytes):
            return StringLiteral(node.span, value)
        if value >= 0:
            return IntegerLiteral(node.span, value)
        positive = IntegerLiteral(node.span, -value)
        kind = self._findings.types.get(node)
        if kind is not None:
            self.types[positive] = settled(kind)
        self.constants[positive] = -value
        return Unary(node.span, "-", positive)

    def _record(self, node: ScriptNode, value: KnownRecord) -> ScriptNode:
        """A record of literals: `config`, `typeinfo(...)`."""
        fields: list[tuple[str, Expression]] = []
        for name, each in value.fields.items():
            assert isinstance(each, int | bytes), "all of the records that are known hold these"
            literal = self._literal(node, each)
            self.types[literal] = settled(literal_type(each))
            self.constants[literal] = each
            fields.append((name, cast("Expression", literal)))
        return RecordLiteral(node.span, tuple(fields))

    def _copy(self, node: ScriptNode) -> ScriptNode:
        return with_parts(node, self._made)

    def _scratch(self, node: ScriptNode) -> ScriptNode:
        use = cast("ScratchName", node)
        new = ScratchName(use.span, use.name)
        variable = None if self._probe is None else self._probe.scope.of.get(use)
        if variable is not None:
            self.variables[new] = variable.key
            if variable.type is not None:
                self.types[new] = settled(variable.type)
        return new

    def _declaration(self, node: ScriptNode) -> ScriptNode:
        declared = cast("Declaration", node)
        value = None if declared.value is None else self._made(declared.value)
        variable = cast("ScratchName", self._scratch(declared.variable))
        return Declaration(declared.span, variable, None, cast("Expression | None", value))

    def _name(self, node: ScriptNode) -> ScriptNode:
        name = cast("Name", node)
        kind = self._findings.types.get(node)
        value = self._findings.constants.get(node)
        if isinstance(kind, Enumeration) and isinstance(value, int):
            return self._literal(node, value)
        if name.name == "args" and isinstance(kind, Record):
            return self._arguments(name, kind)
        return Name(name.span, name.name)

    def _unary(self, node: ScriptNode) -> ScriptNode:
        variable = variable_behind(cast("Unary", node))
        return self._copy(node) if variable is None else self._scratch(variable)

    def _arguments(self, name: Name, kind: Record) -> ScriptNode:
        """`args` as a whole: a record of its members."""
        fields: list[tuple[str, Expression]] = []
        for member, each in kind.fields:
            field = FieldAccess(name.span, Name(name.span, "args"), member)
            self.types[field] = settled(each)
            fields.append((member, field))
        return RecordLiteral(name.span, tuple(fields))

    def _field(self, node: ScriptNode) -> ScriptNode:
        field = cast("FieldAccess", node)
        if is_arguments(field.of):
            return FieldAccess(field.span, Name(field.of.span, "args"), field.name)
        of = cast("Expression", self._made(field.of))
        kind = self._findings.types.get(field.of)
        while isinstance(kind, Pointer) and isinstance(kind.target, Pointer):
            # A member is looked for behind any number of pointers.
            kind = kind.target
            of = Unary(field.of.span, "*", of)
            self.types[of] = settled(kind)
        return FieldAccess(field.span, of, field.name)

    def _call(self, node: ScriptNode) -> ScriptNode:
        call = cast("CallExpression", node)
        first = call.arguments[0] if call.arguments else None
        if call.name == "delete" and len(call.arguments) == 1 and isinstance(first, MapAccess):
            return CallExpression(
                call.span, call.name, (first.map, cast("Expression", self._made(first.key)))
            )
        row = function(call.name)
        if row is not None and row.bare and not call.arguments:
            return Name(call.span, call.name)
        words = row is not None and row.wanted(0) == "word" and isinstance(first, Name)
        arguments: list[ScriptNode] = []
        for index, argument in enumerate(call.arguments):
            if index == 0 and words:
                arguments.append(argument)
            else:
                arguments.append(self._made(argument))
        return CallExpression(
            call.span, call.name, cast("tuple[Expression, ...]", tuple(arguments))
        )

    def _assignment(self, node: ScriptNode) -> ScriptNode:
        """An aggregate that a block gives, a macro's for example, is assigned in the block."""
        assigned = cast("Assignment", node)
        statements: list[ScriptNode] = []
        value = assigned.value
        if aggregate_call(value) is None or not isinstance(value, BlockExpression):
            return self._copy(node)
        while isinstance(value, BlockExpression) and value.value is not None:
            statements += [self._made(each) for each in value.statements]
            value = value.value
        target = self._made(assigned.target)
        last = Assignment(node.span, target, "=", self._made(value))  # type: ignore[arg-type]
        block = BlockExpression(node.span, (*statements, last))  # type: ignore[arg-type]
        return ExpressionStatement(node.span, block)

    def _conditional(self, node: ScriptNode) -> ScriptNode:
        choice = cast("Conditional", node)
        way = self._findings.decided.get(choice)
        if way is None:
            return self._copy(node)
        chosen = choice.then if way else choice.otherwise
        return BlockExpression(choice.span, ()) if chosen is None else self._made(chosen)

    def _comptime(self, node: ScriptNode) -> ScriptNode:
        return self._made(cast("Comptime", node).operand)

    def _block(self, node: ScriptNode) -> ScriptNode:
        block = cast("BlockExpression", node)
        statements: list[ScriptNode] = []
        for statement in block.statements:
            made = self._made(statement)
            if not _is_nothing(made):
                statements.append(made)
            if ends(statement):
                return BlockExpression(block.span, tuple(statements))  # type: ignore[arg-type]
        value = None if block.value is None else cast("Expression", self._made(block.value))
        return BlockExpression(block.span, tuple(statements), value)  # type: ignore[arg-type]


def _is_nothing(statement: ScriptNode) -> bool:
    """A statement that does nothing: what is left of an `if comptime` that is not taken."""
    if not isinstance(statement, ExpressionStatement):
        return False
    expression = statement.expression
    if isinstance(expression, CallExpression) and expression.name in _CLAIMS:
        return True
    return (
        isinstance(expression, BlockExpression)
        and not expression.statements
        and expression.value is None
    )


_SPECIAL: Final[Mapping[type[ScriptNode], Callable[[Lowering, ScriptNode], ScriptNode]]] = {
    ScratchName: Lowering._scratch,
    Declaration: Lowering._declaration,
    Name: Lowering._name,
    FieldAccess: Lowering._field,
    Unary: Lowering._unary,
    Assignment: Lowering._assignment,
    CallExpression: Lowering._call,
    Conditional: Lowering._conditional,
    Comptime: Lowering._comptime,
    BlockExpression: Lowering._block,
}
