"""Facts about a script that checking has found out so far.

Types are found by going over the script until nothing changes: a map that is read in the first
probe may get its type in the last one. Only then is it said what is wrong with uses of them.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from engine.trace.bpftrace.c_types import Space
from engine.trace.bpftrace.checked import ScriptSurroundings
from engine.trace.bpftrace.config import Config
from engine.trace.bpftrace.folding import Constant
from engine.trace.bpftrace.scope import ProbeScope, ScratchVariable
from engine.trace.bpftrace.text import ScriptRemarks, Span
from engine.trace.bpftrace.tree import (
    AttachPoint,
    BlockExpression,
    Conditional,
    Expression,
    MapDeclaration,
    MapName,
    ScriptNode,
)
from engine.trace.bpftrace.type_lookup import TypeLookup
from engine.trace.bpftrace.type_rules import bends, promoted, same, type_name
from engine.trace.bpftrace.types import Aggregate, Type

MAX_ERRORS: Final = 20
"""Errors that are told; more would be a script that is something else."""


_UNSTABLE: Final[Mapping[str, tuple[str, str]]] = {
    "tseries": ("unstable_tseries", "tseries"),
    "dw_ustack": ("unstable_dw_ustack", "dw_ustack (DWARF stack unwinding)"),
    "typeinfo": ("unstable_typeinfo", "typeinfo"),
}
"""Features that bpftrace may change: the setting that allows one, and its name in errors."""


class MapFacts(Struct, eq=False):
    """A map, as far as it is known.

    Attributes:
        name: without the sign.
        place: where it is named first.
        scalar: it is one value (`@x`); None as long as nothing tells.
        is_used: some place reads or writes an entry.
        key: the type of its keys; None if it is not known, and for a scalar.
        value: the type of its values.
        argument: the type of the numbers that its aggregate was given.
        locked: `sizeof` or `typeinfo` of it decided something: its types cannot change any more.
        parameters: of its histogram.
    """

    name: str
    place: MapName
    scalar: bool | None = None
    is_used: bool = False
    key: Type | None = None
    value: Type | None = None
    argument: Type | None = None
    locked: bool = False
    parameters: tuple[int, ...] | None = None


class ProbeFacts(Struct, eq=False):
    """A probe that is being checked.

    Attributes:
        points: where it runs; `args` and the like have one type at all of them.
        predicate: its condition, macros put in.
        body: its action, macros put in.
        span: of the probe.
        scope: its variables.
        space: whose memory an address means that nothing else is known of.
        arguments: the members of `args`; None if there are none.
        usdt: the types of `arg0` and so on of a marker.
        returns: the type of `retval`; None if nothing tells it.
    """

    points: tuple[AttachPoint, ...]
    predicate: Expression | None
    body: BlockExpression
    span: Span
    scope: ProbeScope
    space: Space
    arguments: dict[str, Type] | None
    usdt: tuple[Type, ...] | None
    returns: Type | None

    @property
    def provider(self) -> str:
        """The kind of its places: "uprobe"."""
        return self.points[0].provider if self.points else ""


class Findings(Struct, eq=False):
    """All that is known of a script so far.

    Attributes:
        remarks: what is wrong and odd.
        config: the settings.
        surroundings: the guest.
        lookup: types by name.
        parameters: the words behind the script on the command line.
        declared: declarations of maps by the map's name.
        types: of expressions.
        constants: of expressions that are known before the script runs.
        conversions: types that values are converted to where they stand.
        decided: which way each `if comptime` goes.
        maps: by name.
        options: defaults of `getopt`, by name.
        descriptions: what `getopt` says of options.
        uses: for each node that comes out of a macro the places where that is used, the
            innermost first.
        probe: the one that is looked at.
        is_final: all types are known now; what is wrong with them is told.
        may_decide: nothing changes any more: what is asked of types can be told.
        changed: something was found in this round.
        depth: how many `sizeof` and the like are around, in which nothing runs.
        inspected: maps and variables whose type is asked for by `sizeof` and the like.
    """

    remarks: ScriptRemarks
    config: Config
    surroundings: ScriptSurroundings
    lookup: TypeLookup
    parameters: Sequence[str]
    declared: dict[str, MapDeclaration]
    types: dict[ScriptNode, Type] = field(default_factory=dict)
    constants: dict[ScriptNode, Constant] = field(default_factory=dict)
    conversions: dict[ScriptNode, Type] = field(default_factory=dict)
    decided: dict[Conditional, bool] = field(default_factory=dict)
    maps: dict[str, MapFacts] = field(default_factory=dict)
    options: dict[str, Constant] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    uses: dict[ScriptNode, tuple[Span, ...]] = field(default_factory=dict)
    probe: ProbeFacts | None = None
    is_final: bool = False
    may_decide: bool = False
    changed: bool = False
    depth: int = 0
    inspected: list[MapFacts | ScratchVariable] = field(default_factory=list)
    said: set[tuple[str, Span]] = field(default_factory=set)
    errors: int = 0

    def error(self, text: str, at: ScriptNode, hint: str = "") -> None:
        """Note an error, once."""
        if (text, at.span) not in self.said and self.errors < MAX_ERRORS:
            self.said.add((text, at.span))
            self.errors += 1
            self.remarks.error(text, at.span, hint or self._use(at))

    def _use(self, at: ScriptNode) -> str:
        """The place where the macro is used that a node comes from, as a hint."""
        spans = self.uses.get(at)
        if spans is None:
            return ""
        script, span = self.remarks.script.file(spans[-1])
        line, column = script.line_and_column(span.start)
        return f"The macro is used at {script.name}:{line}:{column}."

    def warning(self, text: str, at: ScriptNode, hint: str = "") -> None:
        """Note something odd, once."""
        self._warn(text, at.span, hint)

    def _warn(self, text: str, span: Span, hint: str = "", *, placed: bool = True) -> None:
        if (text, span) not in self.said and len(self.said) < 10 * MAX_ERRORS:
            self.said.add((text, span))
            self.remarks.warning(text, span, hint, placed=placed)

    def unstable(self, name: str, at: ScriptNode) -> None:
        """Remark upon a use of what bpftrace may change."""
        feature = _UNSTABLE.get(name)
        if feature is None:
            return
        setting, words = feature
        meaning = dict(self.config.unstable)[setting]
        if meaning == "warn":
            self._warn(
                f"Script is using an unstable feature: {words}. To prevent this warning you must "
                f"explicitly enable it in the config e.g. {setting}=enable",
                Span(0, 0),
                placed=False,
            )
        elif meaning == "error":
            self.error(
                f"{words} feature is not enabled by default. To enable this unstable feature, set "
                f"the config flag to enable. {setting}=enable",
                at,
            )

    def type_of(self, node: ScriptNode) -> Type | None:
        """The type of an expression that was looked at."""
        return self.types.get(node)

    def map(self, name: MapName) -> MapFacts:
        """The facts about a map."""
        facts = self.maps.get(name.name)
        if facts is None:
            facts = self.maps[name.name] = MapFacts(name.name, name)
        return facts

    def variable(self, variable: ScratchVariable, kind: Type, at: ScriptNode) -> None:
        """Note that a value of a type is put into a variable."""
        if variable.sized or kind is variable.type:
            return
        whole = promoted(variable.type, kind)
        if whole is None:
            self.error(
                f"Type mismatch for ${variable.name}: trying to assign value of type "
                f"'{type_name(kind)}' when variable already has a type "
                f"'{type_name(variable.type)}'",
                at,
            )
        elif self._is_new(variable.type, whole):
            if variable.locked and variable.type is not None and not same(variable.type, whole):
                self._locked(f"${variable.name}", kind, variable.type, at)
                return
            variable.type = whole
            self.changed = True

    def map_value(self, facts: MapFacts, kind: Type, at: ScriptNode) -> None:
        """Note that a value of a type is put into a map."""
        if kind is facts.value and not isinstance(kind, Aggregate):
            return
        whole = None if isinstance(facts.value, Aggregate) else promoted(facts.value, kind)
        if whole is None:
            self.error(
                f"Type mismatch for @{facts.name}: trying to assign value of type "
                f"'{type_name(kind)}' when map already has a type '{type_name(facts.value)}'",
                at,
            )
        else:
            self._set_value(facts, whole, kind, at)

    def map_aggregate(self, facts: MapFacts, kind: Aggregate, at: ScriptNode) -> None:
        """Note that a map gathers by a function."""
        whole: Type | None = kind
        if facts.value is not None:
            is_like = isinstance(facts.value, Aggregate) and facts.value.kind == kind.kind
            whole = promoted(facts.value, kind) if is_like else None
        if whole is None:
            self.error(
                f"Type mismatch for @{facts.name}: trying to assign value of type "
                f"'{type_name(kind)}' when map already has a type '{type_name(facts.value)}'",
                at,
            )
        else:
            self._set_value(facts, whole, kind, at)

    def _set_value(self, facts: MapFacts, whole: Type, kind: Type, at: ScriptNode) -> None:
        if not self._is_new(facts.value, whole):
            return
        if facts.locked and facts.value is not None and not same(facts.value, whole):
            self._locked(f"@{facts.name}", kind, facts.value, at)
            return
        facts.value = whole
        self.changed = True

    def map_key(self, facts: MapFacts, kind: Type, at: ScriptNode) -> None:
        """Note that a map is asked for a key of a type."""
        if kind is facts.key:
            return
        whole = promoted(facts.key, kind)
        if whole is None:
            self.error(
                f"Argument mismatch for @{facts.name}: trying to access with arguments: "
                f"'{type_name(kind)}' when map expects arguments: '{type_name(facts.key)}'",
                at,
            )
        elif self._is_new(facts.key, whole):
            if facts.locked and facts.key is not None and not same(facts.key, whole):
                self._locked(f"@{facts.name}", kind, facts.key, at)
                return
            facts.key = whole
            self.changed = True

    def _locked(self, name: str, kind: Type, now: Type, at: ScriptNode) -> None:
        self.error(
            f"Type mismatch for {name}: this type has been locked because it was used in "
            "another part of the type graph that was already resolved (e.g. `sizeof`, "
            f"`typeinfo`, etc.). The new type '{type_name(kind)}' doesn't fit into the locked "
            f"type '{type_name(now)}'",
            at,
        )

    @staticmethod
    def _is_new(now: Type | None, whole: Type) -> bool:
        """A type is another one than before, or a number in it has got a sign."""
        return now is None or not same(now, whole) or bends(now) != bends(whole)
