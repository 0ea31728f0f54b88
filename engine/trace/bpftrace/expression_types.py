"""The type of each expression, and its value if that is known before the script runs.

The rules are those of bpftrace 0.26 (src/ast/passes/types/type_resolver.cpp and
type_checker.cpp). A round over the script finds types; the last one, when all are known, says
what is wrong with them and notes conversions.
"""

from collections.abc import Callable, Mapping
from typing import Final, cast

from engine.trace.bpftrace.call_types import CallTypes
from engine.trace.bpftrace.cast_types import CastTypes
from engine.trace.bpftrace.conversions import Conversions
from engine.trace.bpftrace.findings import Findings, MapFacts
from engine.trace.bpftrace.folding import (
    Constant,
    KnownRecord,
    literal_type,
    truth,
)
from engine.trace.bpftrace.member_types import MemberTypes
from engine.trace.bpftrace.operator_types import OperatorTypes
from engine.trace.bpftrace.script_memory import has_address
from engine.trace.bpftrace.tokens import whole_number
from engine.trace.bpftrace.tree import (
    AddressOf,
    Binary,
    BlockExpression,
    BooleanLiteral,
    CallExpression,
    Cast,
    Comptime,
    Conditional,
    Expression,
    FieldAccess,
    Increment,
    Index,
    IntegerLiteral,
    MapAccess,
    MapName,
    Name,
    OffsetOf,
    PositionalParameter,
    RecordLiteral,
    ScratchName,
    ScriptNode,
    SizeOf,
    StringLiteral,
    TupleLiteral,
    TypeInfoOf,
    TypeOf,
    Unary,
    WrittenType,
)
from engine.trace.bpftrace.type_rules import (
    assignable,
    integer_of,
    is_histogram,
    is_signed,
    kind_name,
    part_count,
    promoted,
    type_name,
)
from engine.trace.bpftrace.types import (
    INT64,
    UINT64,
    Aggregate,
    Boolean,
    Pointer,
    Record,
    Tuple,
    Type,
    Void,
)

_MAX_PARTS: Final = 1000
"""Values in one value."""


class ExpressionTypes:
    """Finds the types of expressions.

    Args:
        findings: what is known of the script.
        block: finds that of a block.
    """

    __slots__ = ("_block", "_calls", "_casts", "_members", "conversions", "findings", "operators")

    def __init__(
        self, findings: Findings, block: Callable[[BlockExpression], Type | None]
    ) -> None:
        self.findings = findings
        self.conversions = Conversions(findings)
        self.operators = OperatorTypes(findings, self.conversions, self.of)
        self._block = block
        self._casts = CastTypes(findings, self.of)
        self._members = MemberTypes(findings, self.of)
        self._calls = CallTypes(findings, self.conversions, self.of, self.key)

    def of(self, node: ScriptNode) -> Type | None:
        """The type of an expression; None if it is not known yet."""
        self.findings.constants.pop(node, None)
        kind = _HANDLERS[type(node)](self, node)
        if kind is None:
            self.findings.types.pop(node, None)
        else:
            self.findings.types[node] = kind
        return kind

    def written(self, written: WrittenType | TypeOf) -> Type | None:
        """The type that a declaration names."""
        return self._casts.written(written)

    def aggregate(self, call: CallExpression) -> Type | None:
        """The type of a function that a map gathers by."""
        kind = self._calls.aggregate(call)
        if kind is not None:
            self.findings.types[call] = kind
        return kind

    def condition(self, node: Expression, at: ScriptNode) -> None:
        """Look at what decides something."""
        kind = self.of(node)
        known = isinstance(self.findings.constants.get(node), int | bytes)
        if self.findings.is_final and not (
            known or integer_of(kind) is not None or isinstance(kind, Boolean | Pointer)
        ):
            self.findings.error(f"Invalid condition: {kind_name(kind)}", at)

    # -- literals ------------------------------------------------------------------------------

    def _constant(self, node: ScriptNode, value: Constant) -> Type | None:
        """Note a constant; its type is that of the literal."""
        self.findings.constants[node] = value
        return literal_type(value)

    def _integer(self, node: ScriptNode) -> Type | None:
        return self._constant(node, cast("IntegerLiteral", node).value)

    def _boolean(self, node: ScriptNode) -> Type | None:
        return self._constant(node, cast("BooleanLiteral", node).value)

    def _string(self, node: ScriptNode) -> Type | None:
        value = cast("StringLiteral", node).value
        most = self.findings.config.max_strlen
        if self.findings.is_final and len(value) > most - 1 and not self._calls.takes_any(node):
            shown = value[:64].decode("utf-8", "replace")
            self.findings.error(f"String is too long (over {most} bytes): {shown}", node)
        return self._constant(node, value)

    def _parameter(self, node: ScriptNode) -> Type | None:
        number = cast("PositionalParameter", node).number
        words = [word for word in self.findings.parameters if not word.startswith("--")]
        if number == 0:
            return self._constant(node, len(words))
        word = words[number - 1] if number <= len(words) else ""
        if self._calls.takes_any(node):
            return self._constant(node, word.encode("utf-8", "surrogateescape"))
        if not word:
            self.findings.warning(
                f"Positional parameter ${number} is empty or not provided.", node
            )
            return self._constant(node, 0)
        number_written = whole_number(word.removeprefix("-"))
        if isinstance(number_written, str):
            return self._constant(node, word.encode("utf-8", "surrogateescape"))
        value = -number_written if word.startswith("-") else number_written
        if value < -(1 << 63):
            return self._constant(node, word.encode())
        return self._constant(node, value)

    def _tuple(self, node: ScriptNode) -> Type | None:
        elements = cast("TupleLiteral", node).elements
        kinds = [self._element(element, "tuple") for element in elements]
        values = [self.findings.constants.get(element) for element in elements]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            self.findings.constants[node] = tuple(known)
        sure = [kind for kind in kinds if kind is not None]
        if len(sure) != len(kinds):
            return None
        return self._bounded(Tuple(tuple(sure)), node)

    def _bounded(self, kind: Type, node: ScriptNode) -> Type | None:
        """A type, unless it is one of too many values: tuples of tuples grow fast."""
        if part_count(kind) <= _MAX_PARTS:
            return kind
        self.findings.error(f"The value has too many parts (over {_MAX_PARTS})", node)
        return None

    def _record(self, node: ScriptNode) -> Type | None:
        fields = cast("RecordLiteral", node).fields
        kinds = [(name, self._element(element, "record")) for name, element in fields]
        values = {name: self.findings.constants.get(element) for name, element in fields}
        known = {name: value for name, value in values.items() if value is not None}
        if len(known) == len(fields):
            self.findings.constants[node] = KnownRecord(known)
        sure = [(name, kind) for name, kind in kinds if kind is not None]
        if len(sure) != len(kinds):
            return None
        return self._bounded(Record(tuple(sure)), node)

    def _element(self, element: Expression, what: str) -> Type | None:
        kind = self.of(element)
        if self.findings.is_final and is_histogram(kind):
            self.findings.error(
                f"Map type {type_name(kind)} cannot exist inside a {what}.", element
            )
        if self.findings.is_final and isinstance(kind, Void):
            self.findings.error(f"A value of type void cannot exist inside a {what}.", element)
        return self.conversions.number(element)

    # -- names ---------------------------------------------------------------------------------

    def _name(self, node: ScriptNode) -> Type | None:
        return self._calls.name(cast("Name", node))

    def _variable(self, node: ScriptNode) -> Type | None:
        probe = self.findings.probe
        variable = None if probe is None else probe.scope.of.get(cast("ScratchName", node))
        if variable is None or probe is None:
            undefined = (
                "" if probe is None else probe.scope.undefined.get(cast("ScratchName", node))
            )
            self.findings.error(undefined or "Undefined or undeclared variable", node)
            return None
        if self.findings.depth:
            self.findings.inspected.append(variable)
        if self.findings.is_final and variable.type is None:
            self.findings.error("Could not resolve the type of this variable", node)
        return variable.type

    def _address(self, node: ScriptNode) -> Type | None:
        of = cast("AddressOf", node).of
        kind = self.of(of) if isinstance(of, ScratchName) else self.findings.map(of).value
        of_variable = isinstance(of, ScratchName)
        if self.findings.is_final and not (of_variable and kind and has_address(kind)):
            name = f"${of.name}" if of_variable else f"@{of.name}"
            self.findings.error(
                f"The address of {name} is refused: what a script has is not in the guest's "
                "memory; use the value itself",
                node,
            )
        return None if kind is None else Pointer(kind, "script")

    def _scalar(self, node: ScriptNode) -> Type | None:
        facts = self.scalar(cast("MapName", node))
        return None if facts is None else facts.value

    def scalar(self, name: MapName) -> MapFacts | None:
        """A map that is used as one value; None, with an error, if it has keys."""
        facts = self.findings.map(name)
        if facts.scalar is False:
            self.findings.error(
                f"@{name.name} used as a map without an explicit key (scalar map), previously "
                "used with an explicit key (non-scalar map)",
                name,
            )
            return None
        facts.scalar, facts.is_used = True, True
        self._seen(facts, name)
        return facts

    def entry(self, node: MapAccess) -> MapFacts | None:
        """A map one of whose entries is used; None, with an error, if it has none."""
        facts = self.key(node.map, node.key, node)
        if facts is None:
            self.findings.error(
                f"@{node.map.name} used as a map with an explicit key (non-scalar map), "
                "previously used without an explicit key (scalar map)",
                node,
            )
        return facts

    def key(self, name: MapName, key: Expression, at: ScriptNode) -> MapFacts | None:
        """A map that is asked for a key at a place; None if it has no keys."""
        kind = self.of(key)
        facts = self.findings.map(name)
        if facts.scalar is True:
            return None
        facts.scalar = False
        self._seen(facts, name)
        if kind is None:
            if self.findings.is_final:
                self.findings.error("Invalid map key type: none", key)
            return facts
        whole = kind
        if isinstance(kind, Void):
            self.findings.error("Value 'void' cannot be used as a map key.", at)
        elif isinstance(kind, Aggregate) and not assignable(kind, facts.key):
            self.findings.error(f"Value '{type_name(kind)}' cannot be used as a map key.", at)
        else:
            facts.is_used = True
            whole = self.conversions.number(key) or kind
            self.findings.map_key(facts, whole, at)
        if (
            self.findings.is_final
            and facts.key is not None
            and not self.conversions.convert(key, facts.key)
        ):
            self.findings.error(
                f"Type mismatch for @{name.name}: trying to assign key of type "
                f"'{type_name(kind)}' when map already has a key type '{type_name(facts.key)}'",
                at,
            )
        return facts

    def _seen(self, facts: MapFacts, name: MapName) -> None:
        if self.findings.depth:
            self.findings.inspected.append(facts)
        if self.findings.is_final and (facts.value is None or not facts.is_used):
            self.findings.error(f"Undefined map: @{name.name}", name)

    def _entry(self, node: ScriptNode) -> Type | None:
        facts = self.entry(cast("MapAccess", node))
        return None if facts is None else facts.value

    # -- operators -----------------------------------------------------------------------------

    def _unary(self, node: ScriptNode) -> Type | None:
        return self.operators.unary(cast("Unary", node))

    def _binary(self, node: ScriptNode) -> Type | None:
        return self.operators.binary(cast("Binary", node))

    def _increment(self, node: ScriptNode) -> Type | None:
        increment = cast("Increment", node)
        target = increment.target
        kind = self.of(target)
        if kind is None:
            return None
        if isinstance(kind, Pointer):
            return kind
        down = increment.operator == "--"
        whole = INT64 if down or is_signed(kind) else UINT64
        if isinstance(target, ScratchName):
            probe = self.findings.probe
            variable = None if probe is None else probe.scope.of.get(target)
            if variable is not None:
                if variable.sized:
                    return variable.type
                self.findings.variable(variable, whole, node)
        else:
            name = target if isinstance(target, MapName) else target.map
            self.findings.map_value(self.findings.map(name), whole, node)
        return whole

    # -- branches ------------------------------------------------------------------------------

    def _conditional(self, node: ScriptNode) -> Type | None:
        choice = cast("Conditional", node)
        if choice.comptime or isinstance(choice.condition, Comptime):
            return self._decided(choice)
        self.condition(choice.condition, choice)
        left = self.of(choice.then)
        right = None if choice.otherwise is None else self.of(choice.otherwise)
        value = self.findings.constants.get(choice.condition)
        if value is not None and choice.otherwise is not None:
            chosen = choice.then if truth(value) else choice.otherwise
            rest = choice.otherwise if truth(value) else choice.then
            constants = self.findings.constants
            if chosen in constants and rest in constants:
                constants[node] = constants[chosen]
                return self.findings.type_of(chosen)
        if left is None or right is None:
            return left or right
        whole = promoted(left, right)
        if whole is None:
            self.findings.error(
                "Branches must return the same type or compatible types: have "
                f"'{type_name(left)}' and '{type_name(right)}'",
                node,
            )
            return None
        if self.findings.is_final and choice.otherwise is not None:
            self.conversions.convert(choice.then, whole)
            self.conversions.convert(choice.otherwise, whole)
        return whole

    def _decided(self, choice: Conditional) -> Type | None:
        condition = choice.condition
        if isinstance(condition, Comptime):
            condition = condition.operand
        self.of(condition)
        way = self.findings.decided.get(choice)
        value = self.findings.constants.get(condition)
        if way is None:
            if self.findings.is_final:
                self.findings.error("Unable to resolve comptime expression", condition)
            elif value is not None and self.findings.may_decide:
                self.findings.decided[choice] = way = truth(value)
                self.findings.changed = True
        if way is None:
            return None
        chosen = choice.then if way else choice.otherwise
        if chosen is None:
            return None
        kind = self.of(chosen)
        if chosen in self.findings.constants:
            self.findings.constants[choice] = self.findings.constants[chosen]
        return kind

    def _comptime(self, node: ScriptNode) -> Type | None:
        operand = cast("Comptime", node).operand
        kind = self.of(operand)
        value = self.findings.constants.get(operand)
        if value is not None:
            self.findings.constants[node] = value
        elif self.findings.is_final:
            self.findings.error("Unable to resolve comptime expression", node)
        return kind

    def _block_value(self, node: ScriptNode) -> Type | None:
        block = cast("BlockExpression", node)
        kind = self._block(block)
        if block.value is not None and not block.statements:
            value = self.findings.constants.get(block.value)
            if value is not None:
                self.findings.constants[node] = value
        return kind

    # -- what other files know -----------------------------------------------------------------

    def _member(self, node: ScriptNode) -> Type | None:
        return self._members.field(cast("FieldAccess", node))

    def _index(self, node: ScriptNode) -> Type | None:
        return self._members.index(cast("Index", node))

    def _cast(self, node: ScriptNode) -> Type | None:
        return self._casts.cast(cast("Cast", node))

    def _size(self, node: ScriptNode) -> Type | None:
        return self._casts.size(cast("SizeOf", node))

    def _offset(self, node: ScriptNode) -> Type | None:
        return self._casts.offset(cast("OffsetOf", node))

    def _info(self, node: ScriptNode) -> Type | None:
        return self._casts.info(cast("TypeInfoOf", node))

    def _call(self, node: ScriptNode) -> Type | None:
        return self._calls.call(cast("CallExpression", node))

    def _type_argument(self, node: ScriptNode) -> Type | None:
        self.findings.error(
            "When used as a call argument, `typeof` builtin only valid for macro calls that are "
            "expecting a type parameter",
            node,
        )
        return None


_HANDLERS: Final[
    Mapping[type[ScriptNode], Callable[[ExpressionTypes, ScriptNode], Type | None]]
] = {
    IntegerLiteral: ExpressionTypes._integer,
    BooleanLiteral: ExpressionTypes._boolean,
    StringLiteral: ExpressionTypes._string,
    PositionalParameter: ExpressionTypes._parameter,
    Name: ExpressionTypes._name,
    ScratchName: ExpressionTypes._variable,
    MapName: ExpressionTypes._scalar,
    MapAccess: ExpressionTypes._entry,
    AddressOf: ExpressionTypes._address,
    Unary: ExpressionTypes._unary,
    Increment: ExpressionTypes._increment,
    Binary: ExpressionTypes._binary,
    Conditional: ExpressionTypes._conditional,
    FieldAccess: ExpressionTypes._member,
    Index: ExpressionTypes._index,
    Cast: ExpressionTypes._cast,
    TupleLiteral: ExpressionTypes._tuple,
    RecordLiteral: ExpressionTypes._record,
    CallExpression: ExpressionTypes._call,
    TypeOf: ExpressionTypes._type_argument,
    WrittenType: ExpressionTypes._type_argument,
    SizeOf: ExpressionTypes._size,
    OffsetOf: ExpressionTypes._offset,
    TypeInfoOf: ExpressionTypes._info,
    Comptime: ExpressionTypes._comptime,
    BlockExpression: ExpressionTypes._block_value,
}
