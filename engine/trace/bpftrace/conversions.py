"""Values that become ones of another type where they stand, without a cast in the script.

bpftrace puts in casts (0.26, src/ast/passes/types/cast_creator.cpp); here a conversion is noted
beside the expression.
"""

from engine.trace.bpftrace.findings import Findings
from engine.trace.bpftrace.tree import BlockExpression, Expression, RecordLiteral, TupleLiteral
from engine.trace.bpftrace.type_rules import (
    FlexibleInteger,
    compatible,
    fits,
    holds,
    integer_of,
    is_castable,
    is_signed,
    same,
    settled,
    type_name,
)
from engine.trace.bpftrace.types import (
    Aggregate,
    Array,
    BufferType,
    Integer,
    Pointer,
    Record,
    TextType,
    Tuple,
    Type,
)


class Conversions:
    """Notes conversions.

    Args:
        findings: what is known of the script.
    """

    __slots__ = ("_findings",)

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def convert(self, node: Expression, target: Type) -> bool:
        """Make the value of an expression one of a type; False if that cannot be."""
        if isinstance(node, BlockExpression) and node.value is not None:
            if not self.convert(node.value, target):
                return False
            kind = self._findings.type_of(node)
            if kind is not None and not same(kind, target):
                self._findings.types[node] = settled(target)
            return True
        kind = self._findings.type_of(node)
        if kind is None or same(kind, target):
            return True
        if isinstance(node, TupleLiteral) and isinstance(target, Tuple):
            return self._elements(node, kind, target)
        if isinstance(node, RecordLiteral) and isinstance(target, Record):
            return self._fields(node, kind, target)
        if not self._may_become(node, kind, target):
            return False
        self._findings.conversions[node] = settled(target)
        return True

    def number(self, node: Expression) -> Type | None:
        """The type of a value as a number if it is an aggregate, which is read as one here."""
        kind = self._findings.type_of(node)
        if isinstance(kind, Aggregate) and is_castable(kind):
            whole = Integer(64, is_signed(kind))
            self._findings.conversions[node] = whole
            return whole
        return kind

    def _may_become(self, node: Expression, kind: Type, target: Type) -> bool:
        number = integer_of(target) or (
            Integer(64, is_signed(target)) if is_castable(target) else None
        )
        if number is not None and (integer_of(kind) is not None or is_castable(kind)):
            return self._number_fits(node, kind, number, target)
        match kind, target:
            case (TextType(), TextType()):
                return kind.size == target.size or fits(kind, target)
            case (Pointer(), Pointer()) | (BufferType(), BufferType()):
                return True
            case (Tuple(), Tuple()) | (Record(), Record()):
                return compatible(kind, target) and fits(kind, target)
            case (Array(), Array()):
                return same(kind.element, target.element) and kind.count == target.count
            case _:
                return False

    def _number_fits(self, node: Expression, kind: Type, number: Integer, target: Type) -> bool:
        value = self._findings.constants.get(node)
        if isinstance(value, int) and not isinstance(value, bool):
            bits = Integer(number.bits, number.signed)
            return holds(bits, value)
        if not is_castable(kind) and not fits(kind, number) and not _is_literal(kind):
            self._findings.warning(
                f"Expression of type: {type_name(kind)} being cast to type: {type_name(target)}. "
                "This may cause unexpected results. Use an explicit cast to suppress this "
                "warning.",
                node,
            )
        return True

    def _elements(self, node: TupleLiteral, kind: Type, target: Tuple) -> bool:
        if not compatible(kind, target):
            return False
        for element, wanted in zip(node.elements, target.elements, strict=True):
            if not self.convert(element, wanted):
                return False
        self._findings.types[node] = settled(target)
        return True

    def _fields(self, node: RecordLiteral, kind: Type, target: Record) -> bool:
        if not compatible(kind, target):
            return False
        wanted = dict(target.fields)
        for name, element in node.fields:
            if not self.convert(element, wanted[name]):
                return False
        # The literal keeps the order that it is worked out in; the whole may have another one.
        own = Record(tuple([(name, settled(wanted[name])) for name, _ in node.fields]))
        self._findings.types[node] = own
        if own != settled(target):
            self._findings.conversions[node] = settled(target)
        return True


def _is_literal(kind: Type) -> bool:
    return isinstance(kind, FlexibleInteger)
