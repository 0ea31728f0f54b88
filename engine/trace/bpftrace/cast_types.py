"""Casts, and what is asked of types: `sizeof`, `offsetof`, `typeof`, `typeinfo`."""

from collections.abc import Callable

from engine.trace.bpftrace.c_types import value_type
from engine.trace.bpftrace.findings import Findings
from engine.trace.bpftrace.folding import Constant, KnownRecord, literal_type, truth
from engine.trace.bpftrace.tree import (
    Assignment,
    BlockExpression,
    Cast,
    Expression,
    MapAccess,
    MapName,
    Name,
    OffsetOf,
    ScriptNode,
    SizeOf,
    TypeInfoOf,
    TypeOf,
    WrittenType,
)
from engine.trace.bpftrace.type_lookup import MAX_ARRAY
from engine.trace.bpftrace.type_rules import (
    integer_of,
    is_castable,
    kind_name,
    same,
    settled,
    smallest,
    type_name,
    type_size,
)
from engine.trace.bpftrace.types import (
    Array,
    Boolean,
    Enumeration,
    Pointer,
    ShownType,
    Structure,
    TextType,
    Type,
)


class CastTypes:
    """Finds the types of casts, and the values of what is asked of types.

    Args:
        findings: what is known of the script.
        of: finds the type of an expression.
    """

    __slots__ = ("_findings", "_of")

    def __init__(self, findings: Findings, of: Callable[[ScriptNode], Type | None]) -> None:
        self._findings, self._of = findings, of

    # -- what is written -----------------------------------------------------------------------

    def written(self, written: WrittenType | TypeOf) -> Type | None:
        """The type that a declaration, a cast or `typeof` names; None if it is not known yet."""
        if isinstance(written, TypeOf):
            return self._asked(written.of, "typeof or typeinfo")
        space = "none" if self._findings.probe is None else self._findings.probe.space
        found = self._findings.lookup.written(written, space)
        if found is None:
            self._findings.error(f'Cannot resolve unknown type "{written.name}"', written)
        elif isinstance(found, Array) and type_size(found) > MAX_ARRAY:
            self._findings.error(f"The array is too large (over {MAX_ARRAY} bytes)", written)
            return None
        return found

    def _asked(self, of: Expression | WrittenType, what: str) -> Type | None:
        """The type of something of which only that is wanted."""
        if isinstance(of, WrittenType):
            return self.written(of)
        if isinstance(of, TypeOf):
            return self._asked(of.of, what)
        if isinstance(of, Name):
            space = "none" if self._findings.probe is None else self._findings.probe.space
            found = self._findings.lookup.named(of.name, space)
            if found is not None:
                return found
        if isinstance(of, BlockExpression) and any(
            isinstance(each, Assignment) and isinstance(each.target, MapName | MapAccess)
            for each in of.statements
        ):
            self._findings.error(f"Map assignments not allowed inside of {what}", of)
        self._findings.depth += 1
        kind = self._kind_of(of)
        self._findings.depth -= 1
        return None if kind is None else settled(kind)

    def _kind_of(self, of: Expression) -> Type | None:
        if isinstance(of, MapName):
            facts = self._findings.map(of)
            self._findings.inspected.append(facts)
            if facts.scalar is not True:
                return facts.key  # the type of a whole map is that of its keys
        return self._of(of)

    # -- casts ---------------------------------------------------------------------------------

    def cast(self, node: Cast) -> Type | None:
        """The type of a cast."""
        kind = self._of(node.operand)
        target = self._target(node)
        if target is None:
            return None
        if isinstance(target, Array) and not target.count and kind is not None:
            size = type_size(target.element)
            if size and type_size(kind) % size == 0:
                target = Array(target.element, type_size(kind) // size)
        if isinstance(target, TextType) and not target.size and isinstance(kind, TextType):
            target = kind
        if isinstance(target, Pointer) and isinstance(kind, Pointer) and kind.space != "none":
            target = Pointer(target.target, kind.space)
        value = self._findings.constants.get(node.operand)
        if isinstance(target, Boolean) and isinstance(value, int | bytes):
            self._findings.constants[node] = truth(value)
            return target
        if self._findings.is_final:
            self._check(node, kind, target)
        return target

    def _target(self, node: Cast) -> Type | None:
        written = node.type
        if (
            isinstance(written, WrittenType)
            and written.name.startswith("enum ")
            and self._findings.lookup.named(written.name) is None
        ):
            name = written.name.removeprefix("enum ")
            self._findings.error(f"Unknown enum: {name}", node)
            return None
        return self.written(written)

    def _check(self, node: Cast, kind: Type | None, target: Type) -> None:
        if isinstance(kind, Structure):
            self._findings.error(f'Cannot cast from C type "{type_name(kind)}"', node)
            return
        if kind is None:
            self._findings.error('Cannot cast from "none" type', node)
            return
        if same(target, kind):
            self._findings.warning(
                f"Unnecessary cast: expression is already of type {type_name(kind)}", node
            )
            return
        if not self._is_possible(node, kind, target):
            self._findings.error(
                f'Cannot cast from "{type_name(kind)}" to "{type_name(target)}"', node
            )

    def _is_possible(self, node: Cast, kind: Type, target: Type) -> bool:
        number = integer_of(kind)
        if isinstance(target, TextType) and isinstance(kind, TextType):
            return target.size >= kind.size
        if isinstance(target, ShownType) and target.kind == "username":
            return number is not None
        if isinstance(target, Enumeration):
            return self._is_enumerator(node, target, number is not None)
        if isinstance(target, Array):
            return self._is_array_of(kind, target)
        if isinstance(kind, Array):
            return integer_of(target) is not None and type_size(target) == type_size(kind)
        if isinstance(target, Boolean):
            return isinstance(kind, Pointer | TextType) or number is not None or is_castable(kind)
        if isinstance(target, Pointer):
            return number is not None or isinstance(kind, Pointer | Boolean)
        if integer_of(target) is not None:
            return number is not None or isinstance(kind, Pointer | Boolean) or is_castable(kind)
        return False

    def _is_array_of(self, kind: Type, target: Array) -> bool:
        if integer_of(target.element) is None and not isinstance(target.element, Boolean):
            return False
        size = type_size(target)
        if integer_of(kind) is not None:
            return size == type_size(kind) or (size <= 8 and size > type_size(kind))
        return isinstance(kind, Boolean | TextType) and size == type_size(kind)

    def _is_enumerator(self, node: Cast, target: Enumeration, is_number: bool) -> bool:
        value = self._findings.constants.get(node.operand)
        if isinstance(value, int) and value not in dict(target.names):
            self._findings.error(
                f"Enum: {target.name} doesn't contain a variant value of {value}", node
            )
        return is_number

    # -- questions -----------------------------------------------------------------------------

    def size(self, node: SizeOf) -> Type | None:
        """`sizeof`."""
        kind = self._asked(node.of, "sizeof")
        if kind is None:
            self._unanswered(node)
            return None
        return self._answer(node, type_size(kind))

    def _unanswered(self, node: ScriptNode) -> None:
        if self._findings.is_final:
            self._findings.error("Unable to find out the type that is asked for", node)

    def _answer(self, node: ScriptNode, value: int) -> Type:
        self._findings.constants[node] = value
        return smallest(value)

    def offset(self, node: OffsetOf) -> Type | None:
        """`offsetof`."""
        kind = self._asked(node.of, "offsetof")
        if kind is None:
            self._unanswered(node)
            return None
        offset = 0
        for name in node.path:
            if not isinstance(kind, Structure):
                self._findings.error(f"'{type_name(kind)}' is not a C type.", node)
                return None
            if kind.layout.is_declared_only:
                self._findings.error(f"'{kind.name}' does not exist.", node)
                return None
            member = kind.layout.member(name)
            if member is None:
                self._findings.error(f"'{kind.name}' has no field named '{name}'", node)
                return None
            offset += member.offset
            kind = value_type(member.type)
        return self._answer(node, offset)

    def info(self, node: TypeInfoOf) -> Type | None:
        """`typeinfo`: a record of names."""
        self._findings.unstable("typeinfo", node)
        kind = self._asked(node.of, "typeof or typeinfo")
        if kind is None:
            self._unanswered(node)
            return None
        fields: dict[str, Constant] = {
            "btf_id": 0,
            "base_type": kind_name(kind).encode(),
            "full_type": type_name(kind).encode(),
        }
        record = KnownRecord(fields)
        self._findings.constants[node] = record
        return literal_type(record)
