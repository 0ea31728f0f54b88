"""Types of what operators give: `!x`, `*x`, `a + b`, `a == b`.

The rules are those of bpftrace 0.26 (src/ast/passes/types/type_resolver.cpp, `get_binop_type`;
type_checker.cpp, `visit(Binop)`).
"""

from collections.abc import Callable

from engine.trace.bpftrace.conversions import Conversions
from engine.trace.bpftrace.findings import Findings
from engine.trace.bpftrace.folding import (
    Constant,
    FoldingError,
    fold_binary,
    fold_unary,
    literal_type,
)
from engine.trace.bpftrace.tree import AddressOf, Binary, Name, ScratchName, ScriptNode, Unary
from engine.trace.bpftrace.type_rules import (
    COMPARISONS,
    arithmetic_type,
    compatible,
    integer_of,
    is_number,
    is_signed,
    promoted,
    same,
    type_name,
)
from engine.trace.bpftrace.types import (
    BOOL,
    INT64,
    UINT64,
    Aggregate,
    Array,
    Boolean,
    Enumeration,
    Integer,
    Pointer,
    Record,
    Tuple,
    Type,
    Void,
)


class OperatorTypes:
    """Finds the types of operators.

    Args:
        findings: what is known of the script.
        conversions: where those are noted.
        of: finds the type of an expression.
    """

    __slots__ = ("_conversions", "_findings", "_of")

    def __init__(
        self, findings: Findings, conversions: Conversions, of: Callable[[ScriptNode], Type | None]
    ) -> None:
        self._findings, self._conversions, self._of = findings, conversions, of

    def _constant(self, node: ScriptNode, value: Constant) -> Type | None:
        self._findings.constants[node] = value
        return literal_type(value)

    def unary(self, unary: Unary) -> Type | None:
        """The type of an operator with one operand."""
        variable = variable_behind(unary)
        if variable is not None:
            return self._of(variable)
        kind = self._of(unary.operand)
        value = self._findings.constants.get(unary.operand)
        if value is not None:
            try:
                folded = fold_unary(unary.operator, value)
            except FoldingError as error:
                self._findings.error(str(error), unary)
                return None
            if folded is not None:
                return self._constant(unary, folded)
        if kind is None:
            return None
        if unary.operator == "*":
            return self._behind(unary, kind)
        if isinstance(kind, Boolean) and unary.operator == "!":
            return BOOL
        number = integer_of(kind)
        if number is None and isinstance(kind, Aggregate):
            number = integer_of(self._conversions.number(unary.operand))
        if number is None:
            self._findings.error(
                f"The {unary.operator} operator can not be used on expressions of type "
                f"'{type_name(kind)}'",
                unary,
            )
            return None
        if unary.operator == "!":
            return BOOL
        return INT64 if number.signed else UINT64

    def _behind(self, unary: Unary, kind: Type) -> Type | None:
        if isinstance(kind, Pointer):
            if isinstance(kind.target, Void):
                if self._findings.is_final:
                    self._findings.error(
                        "The * operator cannot be used on a pointer to an unsized type (void *).",
                        unary,
                    )
                return None
            return kind.target
        if integer_of(kind) is not None:
            return UINT64
        if isinstance(unary.operand, Name) and unary.operand.name == "args":
            return kind  # `(*args).x` is old spelling
        self._findings.error(
            f"The * operator can not be used on expressions of type '{type_name(kind)}'", unary
        )
        return None

    def binary(self, binary: Binary) -> Type | None:
        """The type of an operator with two operands."""
        left, right = self._of(binary.left), self._of(binary.right)
        one = self._findings.constants.get(binary.left)
        other = self._findings.constants.get(binary.right)
        named = isinstance(left, Enumeration) or isinstance(right, Enumeration)
        if one is not None and other is not None and not named:
            try:
                folded = fold_binary(binary.operator, one, other)
            except FoldingError as error:
                self._findings.error(str(error), binary)
                return None
            if folded is not None:
                return self._constant(binary, folded)
        if left is None or right is None:
            return BOOL if binary.operator in COMPARISONS else None
        kind = self.operation(binary.operator, left, right, binary)
        if kind is not None and self._findings.is_final:
            self._check_binary(binary, left, right, kind)
        return kind

    def operation(self, operator: str, left: Type, right: Type, at: ScriptNode) -> Type | None:
        """The type of `left operator right`; None, with an error, if there is no such thing."""
        if isinstance(left, Boolean) and isinstance(right, Boolean):
            return BOOL
        if isinstance(left, Pointer) or isinstance(right, Pointer):
            return self._pointers(operator, left, right, at)
        if is_number(left) and is_number(right):
            kind, odd = arithmetic_type(operator, left, right)
            if odd:
                self._findings.warning(odd, at)
            return kind
        if operator in COMPARISONS:
            return BOOL
        return Integer(64, is_signed(left) or is_signed(right))

    def _pointers(self, operator: str, left: Type, right: Type, at: ScriptNode) -> Type | None:
        compares = operator in COMPARISONS
        pointer, other = (left, right) if isinstance(left, Pointer) else (right, left)
        if isinstance(pointer, Pointer) and isinstance(other, Pointer):
            if compares:
                if operator not in ("&&", "||") and not same(pointer.target, other.target):
                    names = f"{type_name(pointer.target)}, {type_name(other.target)}"
                    self._findings.warning(f"comparison of distinct pointer types: {names}", at)
                return BOOL
        elif integer_of(other) is not None or isinstance(other, Boolean):
            if compares:
                return BOOL
            if operator == "+" or (operator == "-" and isinstance(left, Pointer)):
                return pointer
        self._findings.error(
            f"The {operator} operator can not be used on expressions of types "
            f"{type_name(left)}, {type_name(right)}",
            at,
        )
        return None

    def _check_binary(self, binary: Binary, left: Type, right: Type, kind: Type) -> None:
        operator, error = binary.operator, self._findings.error
        if isinstance(left, Pointer) or isinstance(right, Pointer):
            return
        if is_number(left) and is_number(right):
            if operator in ("&&", "||"):
                self._conversions.number(binary.left)
                self._conversions.number(binary.right)
                return
            target = promoted(left, right) if operator in COMPARISONS else kind
            if isinstance(target, Aggregate):
                target = Integer(64, is_signed(target))
            if target is not None:
                self._conversions.convert(binary.left, target)
                self._conversions.convert(binary.right, target)
        elif isinstance(left, Array) and isinstance(right, Array):
            if operator not in ("==", "!="):
                error(f"The {operator} operator cannot be used on arrays.", binary)
            if left.count != right.count:
                error("Only arrays of same size support comparison operators.", binary)
            elif not isinstance(left.element, Integer) or not same(left, right):
                error("Only arrays of same sized integer support comparison operators.", binary)
        elif not compatible(left, right):
            error(
                f"Type mismatch for '{operator}': comparing {type_name(left)} with "
                f"{type_name(right)}",
                binary,
            )
        elif operator not in ("==", "!="):
            error(
                f"The {operator} operator can not be used on expressions of types "
                f"{type_name(left)}, {type_name(right)}",
                binary,
            )
        elif isinstance(left, Tuple | Record):
            target = promoted(left, right)
            if target is None or not (
                self._conversions.convert(binary.left, target)
                and self._conversions.convert(binary.right, target)
            ):
                error(
                    f"Type mismatch for '{operator}': comparing {type_name(left)} with "
                    f"{type_name(right)}",
                    binary,
                )


def variable_behind(node: Unary) -> ScratchName | None:
    """The variable of `*&$x`."""
    address = node.operand
    if (
        node.operator == "*"
        and isinstance(address, AddressOf)
        and isinstance(address.of, ScratchName)
    ):
        return address.of
    return None
