"""Types of members and elements: `args.x`, `$task->comm`, `$t.0`, `$a[1]`."""

from collections.abc import Callable
from typing import Final

from engine.trace.bpftrace.c_types import Space, value_type
from engine.trace.bpftrace.findings import Findings, ProbeFacts
from engine.trace.bpftrace.folding import KnownRecord
from engine.trace.bpftrace.tree import FieldAccess, Index, Name, ScriptNode, Unary
from engine.trace.bpftrace.type_rules import FlexibleInteger, integer_of, type_name, type_size
from engine.trace.bpftrace.types import (
    INT8,
    Array,
    Pointer,
    Record,
    Structure,
    TextType,
    Tuple,
    Type,
)

WITH_ARGUMENTS: Final = ("tracepoint", "rawtracepoint", "fentry", "fexit", "uprobe")
"""Providers whose probes have `args`."""


class MemberTypes:
    """Finds the types of members and elements.

    Args:
        findings: what is known of the script.
        of: finds the type of an expression.
    """

    __slots__ = ("_findings", "_of")

    def __init__(self, findings: Findings, of: Callable[[ScriptNode], Type | None]) -> None:
        self._findings, self._of = findings, of

    def field(self, node: FieldAccess) -> Type | None:
        """The type of a member."""
        if is_arguments(node.of):
            return self._argument(node)
        kind = self._of(node.of)
        known = self._findings.constants.get(node.of)
        if isinstance(known, KnownRecord) and node.name in known.fields:
            self._findings.constants[node] = known.fields[node.name]
        if kind is None:
            return None
        space = self._space(node.of)
        while isinstance(kind, Pointer):
            kind = kind.target
        if node.name.isdecimal():
            return self._tuple_element(node, kind, int(node.name), node.name)
        if isinstance(kind, Record):
            for name, each in kind.fields:
                if name == node.name:
                    return each
            self._error(f"Record does not contain a field named '{node.name}'", node)
            return None
        if not isinstance(kind, Structure):
            self._error(
                f"Can not access field '{node.name}' on expression of type '{type_name(kind)}'",
                node,
            )
            return None
        return self._member(node, kind, space)

    def _member(self, node: FieldAccess, kind: Structure, space: Space) -> Type | None:
        if kind.layout.is_declared_only:
            self._error(f"Unknown struct/union: '{kind.name}'", node)
            return None
        member = kind.layout.member(node.name)
        if member is None:
            self._error(
                f"Struct/union of type '{kind.name}' does not contain a field named '{node.name}'",
                node,
            )
            return None
        found = value_type(member.type, space)
        if found is None:
            self._error(f"{node.name} has unsupported type", node)
        return found

    def _argument(self, node: FieldAccess) -> Type | None:
        members = self.arguments(node.of)
        probe = self._findings.probe
        if members is None or probe is None:
            return None
        found = members.get(node.name)
        if found is None:
            if probe.provider == "tracepoint":
                name = "_".join(probe.points[0].parts)
                self._error(
                    f"Struct/union of type 'struct _tracepoint_{name}' does not contain a field "
                    f"named '{node.name}'",
                    node,
                    f"It has {', '.join(members)}." if members else "",
                )
            else:
                self._error(
                    f"Can't find function parameter {node.name}",
                    node,
                    f"It has {', '.join(members)}." if members else "",
                )
        return found

    def arguments(self, node: ScriptNode) -> dict[str, Type] | None:
        """The members of `args`; None, with an error, if there are none here."""
        probe = self._findings.probe
        if probe is None:
            return None
        if probe.provider not in WITH_ARGUMENTS:
            self._error(
                "The args builtin can only be used with tracepoint, rawtracepoint, fentry/fexit, "
                f"and uprobe probes ({probe.provider} used here)",
                node,
            )
            return None
        if probe.arguments is None:
            self._error(_no_arguments(probe), node)
        return probe.arguments

    def _tuple_element(
        self, node: ScriptNode, kind: Type, index: int, written: str
    ) -> Type | None:
        if not isinstance(kind, Tuple):
            self._error(
                f"Can not access index '{written}' on expression of type '{type_name(kind)}'",
                node,
            )
            return None
        if index >= len(kind.elements):
            self._error(
                f"Invalid tuple index: {index}. Found {len(kind.elements)} elements in tuple.",
                node,
            )
            return None
        known = (
            self._findings.constants.get(node.of)
            if isinstance(node, FieldAccess | Index)
            else None
        )
        if isinstance(known, tuple):
            self._findings.constants[node] = known[index]
        return kind.elements[index]

    def index(self, node: Index) -> Type | None:
        """The type of an element."""
        kind, at = self._of(node.of), self._of(node.index)
        known = self._findings.constants.get(node.of)
        number = self._findings.constants.get(node.index)
        place = number if isinstance(number, int) and not isinstance(number, bool) else None
        if isinstance(known, bytes) and place is not None and 0 <= place <= len(known):
            byte = (known + b"\0")[place]
            self._findings.constants[node] = byte - 256 if byte > 127 else byte
        if kind is None:
            return None
        if isinstance(kind, Tuple):
            if place is None or place < 0:
                if self._findings.is_final:
                    self._error(
                        "Array-style access for tuples only valid for integer literals", node
                    )
                return None
            return self._tuple_element(node, kind, place, str(place))
        if isinstance(kind, Array):
            element: Type = kind.element
        elif isinstance(kind, Pointer):
            element = kind.target
        elif isinstance(kind, TextType):
            element = INT8
        else:
            self._error(
                "The array index operator [] can only be used on arrays, pointers, and tuples, "
                f"found {type_name(kind)}.",
                node,
            )
            return None
        if self._findings.is_final:
            self._check_index(node, kind, at, place)
        return element

    def _check_index(self, node: Index, kind: Type, at: Type | None, place: int | None) -> None:
        if isinstance(kind, Pointer) and type_size(kind.target) == 0:
            self._error(
                "The array index operator [] cannot be used on a pointer to an unsized type "
                "(void *).",
                node,
            )
        count = 0
        if isinstance(kind, Array):
            count = kind.count
        elif isinstance(kind, TextType):
            count = kind.size
        if place is not None and place >= 0:
            if count and place >= count:
                self._error(f"the index {place} is out of bounds for array of size {count}", node)
            return
        number = integer_of(at)
        if number is None or (number.signed and not isinstance(number, FlexibleInteger)):
            self._error(
                "The array index operator [] only accepts non-negative integer indices. Got: "
                f"{type_name(at)}",
                node,
            )

    def _space(self, node: ScriptNode) -> Space:
        """Whose memory an expression was read from."""
        probe = self._findings.probe
        while True:
            kind = self._findings.type_of(node)
            if isinstance(kind, Pointer):
                return kind.space
            if isinstance(node, FieldAccess | Index):
                node = node.of
            elif isinstance(node, Unary):
                node = node.operand
            else:
                return "none" if probe is None else probe.space

    def _error(self, text: str, at: ScriptNode, hint: str = "") -> None:
        self._findings.error(text, at, hint)


def is_arguments(node: ScriptNode) -> bool:
    """An expression is `args`."""
    if isinstance(node, Unary) and node.operator == "*":
        node = node.operand  # `(*args).x` is old spelling
    return isinstance(node, Name) and node.name == "args"


def _no_arguments(probe: ProbeFacts) -> str:
    if probe.provider == "tracepoint":
        return f"Cannot read the arguments of {probe.points[0].text}"
    return "Cannot read function parameters"
