"""Types of calls and of names that are built in; what functions of maps want of them."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from engine.trace.bpftrace.conversions import Conversions
from engine.trace.bpftrace.findings import Findings, MapFacts
from engine.trace.bpftrace.function_use import FunctionUse
from engine.trace.bpftrace.functions import OBSOLETE, Function, function
from engine.trace.bpftrace.member_types import WITH_ARGUMENTS
from engine.trace.bpftrace.tree import (
    Binary,
    CallExpression,
    Expression,
    MapAccess,
    MapName,
    Name,
    PositionalParameter,
    ScratchName,
    ScriptNode,
)
from engine.trace.bpftrace.type_rules import is_castable, is_signed
from engine.trace.bpftrace.types import (
    AGGREGATES,
    Aggregate,
    Integer,
    Record,
    TextType,
    Type,
)

_FORMATTED: Final = frozenset(("printf", "errorf", "warnf", "cat"))


class CallTypes:
    """Finds the types of calls.

    Args:
        findings: what is known of the script.
        conversions: where those are noted.
        of: finds the type of an expression.
        key: asks a map for a key; None if it has none.
    """

    __slots__ = ("_any", "_conversions", "_findings", "_key", "_of")

    def __init__(
        self,
        findings: Findings,
        conversions: Conversions,
        of: Callable[[ScriptNode], Type | None],
        key: Callable[[MapName, Expression, ScriptNode], MapFacts | None],
    ) -> None:
        self._findings, self._conversions = findings, conversions
        self._of, self._key = of, key
        self._any: set[ScriptNode] = set()

    def takes_any(self, node: ScriptNode) -> bool:
        """A literal stands where it may be of any length, a parameter where it is a string."""
        return node in self._any

    # -- names ---------------------------------------------------------------------------------

    def name(self, node: Name) -> Type | None:
        """The type of a name."""
        row = function(node.name)
        if row is not None and row.bare:
            return self._built_in(row, node, ())
        if node.name == "args":
            return self._arguments(node)
        found = self._findings.lookup.enumerator(node.name)
        if found is not None:
            self._findings.constants[node] = found[0]
            # However large the enumeration is, a constant of it has 64 bits in bpftrace.
            return replace(found[1], integer=replace(found[1].integer, bits=64))
        if node.name in OBSOLETE:
            self._findings.error(
                "sarg* is deleted. This was deprecated in v0.21 and was last available in v0.24.",
                node,
                'Use *(reg("sp") + <stack_offset>) instead.',
            )
        elif self._findings.is_final:
            self._findings.error(f"Unknown identifier: '{node.name}'", node)
        return None

    def _arguments(self, node: Name) -> Type | None:
        probe = self._findings.probe
        if probe is None:
            return None
        if probe.provider not in WITH_ARGUMENTS:
            self._findings.error(
                "The args builtin can only be used with tracepoint, rawtracepoint, fentry/fexit, "
                f"and uprobe probes ({probe.provider} used here)",
                node,
            )
        elif probe.arguments is None:
            self._findings.error("Cannot read function parameters", node)
        else:
            return Record(tuple(probe.arguments.items()))
        return None

    # -- calls ---------------------------------------------------------------------------------

    def call(self, node: CallExpression) -> Type | None:
        """The type of a call."""
        if node.name in AGGREGATES:
            self._findings.error(f"{node.name}() must be assigned directly to a map", node)
            return None
        row = function(node.name)
        if row is None:
            for argument in node.arguments:
                self._of(argument)
            self._findings.error(f"Unknown function: '{node.name}'", node)
            return None
        return self._built_in(row, node, node.arguments)

    def aggregate(self, node: CallExpression) -> Type | None:
        """The type of a function that a map gathers by."""
        row = function(node.name)
        return None if row is None else self._built_in(row, node, node.arguments)

    def _built_in(
        self, row: Function, node: ScriptNode, arguments: tuple[ScriptNode, ...]
    ) -> Type | None:
        probe = self._findings.probe
        if probe is None:
            return None
        site = FunctionUse(row.name, node, arguments, self._findings, probe)
        refused = row.refused or self._findings.surroundings.provides(f"{row.name}()")
        if refused:
            site.error(refused)
            return None
        if row.providers and probe.provider not in row.providers:
            site.error(f'{row.name} can not be used with "{probe.provider}" probes')
        if not row.accepts_count(site):
            return None
        self._findings.unstable(row.name, node)
        on_map = _ON_MAPS.get(row.name)
        if on_map is not None and on_map(self, site):
            return row.gives if isinstance(row.gives, Type) else row.gives(site)
        self._look_at(row, site)
        kind = row.gives(site) if callable(row.gives) else row.gives
        if self._findings.is_final and row.accepts_kinds(site) and row.check is not None:
            row.check(site)
        if row.name in ("str", "kstr", "ustr"):
            kind = self._literal_string(site, kind)
        return kind

    def _look_at(self, row: Function, site: FunctionUse) -> None:
        """Find the types of the arguments, but of words."""
        for index, argument in enumerate(site.arguments):
            if row.wanted(index) == "word" and isinstance(argument, Name):
                continue
            if row.name in _FORMATTED and index == 0:
                self._any.add(argument)
            elif row.name == "str" and index == 0:
                if (
                    isinstance(argument, Binary)
                    and argument.operator == "+"
                    and isinstance(argument.left, PositionalParameter)
                ):
                    self._any.add(argument.left)
                self._any.add(argument)
            kind = self._of(argument)
            if row.name in _FORMATTED and is_castable(kind):
                self._findings.types[argument] = kind or Integer(64, signed=True)
                self._conversions.number(argument)  # type: ignore[arg-type]

    def _literal_string(self, site: FunctionUse, kind: Type | None) -> Type | None:
        """`str()` of a literal is a literal."""
        value = site.known(0)
        if isinstance(value, bool) or not isinstance(value, int | bytes):
            return kind
        text = value if isinstance(value, bytes) else str(value).encode()
        length = site.number(1)
        if len(site.arguments) == 2:
            if length is None or length < 0:
                return kind
            text = text[:length]
        self._findings.constants[site.node] = text
        return TextType(len(text) + 1)

    # -- functions of maps ---------------------------------------------------------------------

    def _undefined(self, name: MapName) -> None:
        facts = self._findings.map(name)
        if self._findings.is_final and (facts.value is None or not facts.is_used):
            self._findings.error(f"Undefined map: @{name.name}", name)

    def _whole(self, site: FunctionUse) -> bool:
        """`clear(@x)`, `zero(@x)`."""
        name = site.arguments[0]
        if isinstance(name, MapName):
            self._undefined(name)
        else:
            self._findings.error(f"{site.name}() expects a map argument", name)
        return True

    def _print(self, site: FunctionUse) -> bool:
        """`print(@x)`, `print(@x, top, div)`; False if it is no map that is printed."""
        name = site.arguments[0]
        if not isinstance(name, MapName):
            return False
        self._undefined(name)
        for index in range(1, len(site.arguments)):
            self._of(site.arguments[index])
            number = site.number(index)
            if self._findings.is_final and (number is None or number < 0):
                site.error(f"print() expects a int literal ({site.given(index)} provided)")
        if self._findings.is_final:
            value = self._findings.map(name).value
            is_stats = isinstance(value, Aggregate) and value.kind == "stats"
            if is_stats and len(site.arguments) > 1:
                self._findings.warning(
                    "print()'s top and div arguments are ignored when used on stats() maps.",
                    site.node,
                )
        return True

    def _length(self, site: FunctionUse) -> bool:
        """`len(@x)`; False if it is a stack's."""
        name = site.arguments[0]
        if not isinstance(name, MapName):
            return False
        self._undefined(name)
        if self._findings.is_final and self._findings.map(name).scalar:
            site.error("call to len() expects a map with explicit keys (non-scalar map)")
        return True

    def _delete(self, site: FunctionUse) -> bool:
        """`delete(@x, key)`, `delete(@x[key])`, `delete(@x)`."""
        first = site.arguments[0]
        if len(site.arguments) == 2:
            self._keyed(site, "delete() with two arguments")
            return True
        if isinstance(first, MapAccess):
            if self._key(first.map, first.key, first) is None:
                self._findings.error(
                    f"@{first.map.name} used as a map with an explicit key (non-scalar map), "
                    "previously used without an explicit key (scalar map)",
                    first,
                )
        elif isinstance(first, MapName):
            self._undefined(first)
            if self._findings.is_final and self._findings.map(first).scalar is False:
                site.error(
                    "call to delete() with a single argument expects a map without explicit keys "
                    "(scalar map)"
                )
        else:
            self._findings.error("delete() expects a map argument", first)
        return True

    def _has_key(self, site: FunctionUse) -> bool:
        """`has_key(@x, key)`."""
        self._keyed(site, "has_key()")
        return True

    def _keyed(self, site: FunctionUse, words: str) -> bool:
        name, key = site.arguments[0], site.arguments[1]
        if not isinstance(name, MapName):
            self._findings.error(f"{site.name}() expects a map argument", name)
        elif self._key(name, key, site.node) is None:  # type: ignore[arg-type]  # an expression
            site.error(f"call to {words} expects a map with explicit keys (non-scalar map)")
        else:
            return True
        return False

    def _find(self, site: FunctionUse) -> bool:
        """`find(@x, key, $value)`."""
        if not self._keyed(site, "find"):
            return True
        name, target = site.arguments[0], site.arguments[2]
        if not isinstance(target, ScratchName):
            self._findings.error("find() expects a variable as its third argument", target)
            return True
        probe = site.probe
        variable = probe.scope.of.get(target)
        if variable is None:
            self._of(target)
        elif isinstance(name, MapName):
            value = self._findings.map(name).value
            if is_castable(value):
                value = Integer(64, is_signed(value))
            if value is not None:
                self._findings.variable(variable, value, site.node)
            if variable.type is not None:
                self._findings.types[target] = variable.type
        return True

    def _is_scalar(self, site: FunctionUse) -> bool:
        """`is_scalar(@x)`, which is known as soon as it is known how the map is used."""
        name = site.arguments[0]
        if not isinstance(name, MapName):
            self._findings.error("is_scalar() expects a map for the first argument", site.node)
            return True
        scalar = self._findings.map(name).scalar
        if scalar is not None:
            self._findings.constants[site.node] = scalar
        elif self._findings.is_final:
            self._findings.error(f"Unknown map: @{name.name}", site.node)
        return True


_ON_MAPS: Final[Mapping[str, Callable[[CallTypes, FunctionUse], bool]]] = {
    "clear": CallTypes._whole,
    "zero": CallTypes._whole,
    "print": CallTypes._print,
    "len": CallTypes._length,
    "delete": CallTypes._delete,
    "has_key": CallTypes._has_key,
    "find": CallTypes._find,
    "is_scalar": CallTypes._is_scalar,
}
