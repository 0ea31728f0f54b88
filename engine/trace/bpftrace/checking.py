"""The meaning of a script is found: macros put in, types inferred, wrong uses told.

`check` goes over a script again and again until no type changes any more; what is asked of types
before the run (`if comptime`) is decided then, and may lead on. A last round says what is wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from engine.image.datatypes import DataType
from engine.trace.bpftrace.c_definitions import CDefinitions
from engine.trace.bpftrace.c_types import Space
from engine.trace.bpftrace.checked import (
    CheckedMap,
    CheckedProbe,
    CheckedScript,
    ScriptSurroundings,
)
from engine.trace.bpftrace.config import configured
from engine.trace.bpftrace.findings import Findings, MapFacts, ProbeFacts
from engine.trace.bpftrace.functions import function
from engine.trace.bpftrace.limits import maps_error, value_error
from engine.trace.bpftrace.lowering import Lowering
from engine.trace.bpftrace.macros import MacroExpansion, MacroTable, NestingError, forbid_jumps
from engine.trace.bpftrace.member_types import WITH_ARGUMENTS
from engine.trace.bpftrace.scope import VariableReader
from engine.trace.bpftrace.statement_types import StatementTypes
from engine.trace.bpftrace.text import ScriptRemarks, ScriptText, Span
from engine.trace.bpftrace.tree import AttachPoint, MapDeclaration, Probe, Script, ScriptNode
from engine.trace.bpftrace.type_lookup import ScriptTypes, TypeLookup
from engine.trace.bpftrace.type_rules import settled, type_name
from engine.trace.bpftrace.types import INT8, Aggregate, Type

_MAX_ROUNDS: Final = 100
"""Times that a script is gone over: a type grows a few times at most."""
_MIN_ROUNDS: Final = 6
_MAX_VISITS: Final = 1_500_000
"""Nodes that are looked at in all rounds: a large script gets fewer."""

_KERNEL: Final = ("kprobe", "kretprobe", "fentry", "fexit", "tracepoint", "iter", "rawtracepoint")
_USER: Final = ("uprobe", "uretprobe", "usdt")

MAP_KINDS: Final = (
    "hash",
    "lruhash",
    "percpuhash",
    "percpulruhash",
)
"""Kinds of maps that may be declared (bpftrace's src/bpfmap.h)."""


def check(
    script: Script,
    text: ScriptText,
    surroundings: ScriptSurroundings,
    parameters: Sequence[str],
    environment: Mapping[str, str],
) -> CheckedScript:
    """Find out what a script means.

    Args:
        script: its tree.
        text: its text, for errors.
        surroundings: the guest that it is for.
        parameters: the words behind it on the command line.
        environment: variables of the environment.

    Raises:
        WrongScriptError: it is wrong.
        SettingError: the environment says what cannot be.
    """
    remarks = ScriptRemarks(text)
    config = configured(script.settings, environment, remarks)
    findings = Findings(
        remarks,
        config,
        surroundings,
        _types(script, text, surroundings),
        parameters,
        _declared(script, remarks),
    )
    preparation = _ProbePreparation(script, findings)
    probes = preparation.probes()
    remarks.raise_errors()
    statements = StatementTypes(findings)
    _find_types(findings, statements, probes, preparation.nodes)
    findings.is_final = True
    _go_over(findings, statements, probes)
    _check_maps(findings)
    _check_words(findings)
    remarks.raise_errors()
    return _result(findings, probes)


def _types(script: Script, text: ScriptText, surroundings: ScriptSurroundings) -> TypeLookup:
    """Types by name: the script's own first."""

    def outside(name: str) -> DataType | None:
        if name.startswith(("struct ", "union ", "enum ")):
            return surroundings.struct(name)
        return surroundings.typedef(name)

    size = surroundings.pointer_size
    own = CDefinitions.of(
        script.definitions,
        text,
        pointer_size=size,
        unnamed_align=surroundings.aligns_unnamed,
        outside=outside,
    )
    return TypeLookup((ScriptTypes(own), surroundings), size)


def _declared(script: Script, remarks: ScriptRemarks) -> dict[str, MapDeclaration]:
    declared: dict[str, MapDeclaration] = {}
    for each in script.maps:
        if each.kind not in MAP_KINDS:
            remarks.error(
                f"Invalid bpf map type: {each.kind}",
                each.span,
                f"Valid map types: {', '.join(MAP_KINDS)}",
            )
        elif each.entries < 1:
            remarks.error("Map size must be greater than 0", each.span)
        if each.map.name in declared:
            remarks.error(f"Redeclaration of existing map: @{each.map.name}", each.span)
        declared[each.map.name] = each
    return declared


class _ProbePreparation:
    """Makes of the probes of a script those that are checked.

    Args:
        script: the script.
        findings: what is known of it.
    """

    def __init__(self, script: Script, findings: Findings) -> None:
        self._script, self._findings = script, findings
        self._table = MacroTable(
            script.macros, findings.remarks, lambda name: function(name) is not None
        )
        findings.uses = self._table.uses
        self._places = 0
        for macro in script.macros:
            forbid_jumps(macro, findings.remarks)

    @property
    def nodes(self) -> int:
        """Of the trees of all probes."""
        return self._table.nodes

    def probes(self) -> list[ProbeFacts]:
        """All probes, macros put in."""
        found: list[ProbeFacts] = []
        try:
            for probe in self._script.probes:
                found += self._of(probe)
        except NestingError:
            pass  # it is remarked
        return found

    def _of(self, probe: Probe) -> list[ProbeFacts]:
        surroundings, findings = self._findings.surroundings, self._findings
        groups: dict[object, list[AttachPoint]] = {}
        known: dict[object, tuple[dict[str, Type] | None, tuple[Type, ...] | None]] = {}
        for written in probe.points:
            refused = surroundings.provides(written.provider)
            if refused is not None:
                findings.error(refused, written)
                continue
            for point in surroundings.places(written):
                arguments = usdt = None
                if point.provider in WITH_ARGUMENTS:
                    members = surroundings.arguments(point)
                    arguments = None if members is None else dict(members)
                elif point.provider == "usdt":
                    kinds = surroundings.usdt_arguments(point)
                    usdt = None if kinds is None else tuple(kinds)
                returns = surroundings.returns(point)
                # By names: a layout of C may be anything, and two of one name are one.
                key = (
                    point.provider,
                    None if arguments is None else _names(arguments.values(), *arguments),
                    None if usdt is None else _names(usdt),
                    type_name(returns),
                )
                groups.setdefault(key, []).append(point)
                known[key] = arguments, usdt
        self._places += sum(map(len, groups.values()))
        if self._places > findings.config.max_probes:
            findings.error(
                f"Can't attach to {self._places} probes because it exceeds the current limit of "
                f"{findings.config.max_probes} probes",
                probe.points[0],
                "The setting max_probes and BPFTRACE_MAX_PROBES of the environment raise it.",
            )
            return []
        return [self._group(probe, tuple(points), *known[key]) for key, points in groups.items()]

    def _group(
        self,
        probe: Probe,
        points: tuple[AttachPoint, ...],
        arguments: dict[str, Type] | None,
        usdt: tuple[Type, ...] | None,
    ) -> ProbeFacts:
        expansion = MacroExpansion(self._table)
        predicate = None if probe.predicate is None else expansion.expression(probe.predicate)
        body = expansion.block(probe.body)
        reader = VariableReader(self._findings.remarks)
        if predicate is not None:
            reader.read(predicate)
        reader.read(body)
        reader.warn_unassigned()
        return ProbeFacts(
            points,
            predicate,
            body,
            probe.span,
            reader.scope,
            _space(points[0]),
            arguments,
            usdt,
            self._findings.surroundings.returns(points[0]),
        )


def _names(types: Iterable[Type], *more: str) -> tuple[str, ...]:
    return (*more, *map(type_name, types))


def _space(point: AttachPoint) -> Space:
    if point.provider in _USER or (
        point.provider == "tracepoint" and point.parts[:1] in (("syscalls",), ("raw_syscalls",))
    ):
        return "user"
    return "kernel" if point.provider in _KERNEL else "none"


def _find_types(
    findings: Findings, statements: StatementTypes, probes: list[ProbeFacts], nodes: int
) -> None:
    """Go over a script until all types are known."""
    rounds = max(_MIN_ROUNDS, min(_MAX_ROUNDS, _MAX_VISITS // max(nodes, 1)))
    for _ in range(rounds):
        findings.changed = False
        _go_over(findings, statements, probes)
        findings.remarks.raise_errors()
        if findings.changed:
            findings.may_decide = False
            continue
        if _start_counting(findings):
            continue
        if findings.may_decide:
            return
        # Whatever was asked about types is answered now, and stays so.
        findings.may_decide = True
        for each in findings.inspected:
            each.locked = True
    findings.remarks.error(
        f"Type resolution exceeded maximum iterations ({rounds}); possible infinite loop in "
        "comptime expressions",
        probes[0].span if probes else Span(0, 0),
    )
    findings.remarks.raise_errors()


def _start_counting(findings: Findings) -> bool:
    """Maps that are only counted up, or read, begin with a small 0."""
    waiting = [each for each in findings.maps.values() if each.value is None]
    for each in waiting:
        each.value = INT8
    return bool(waiting)


def _go_over(findings: Findings, statements: StatementTypes, probes: list[ProbeFacts]) -> None:
    findings.inspected.clear()
    for probe in probes:
        findings.probe = probe
        if probe.predicate is not None:
            statements.expressions.condition(probe.predicate, probe.predicate)
        statements.block(probe.body)
    findings.probe = None


def _check_maps(findings: Findings) -> None:
    for name, declaration in findings.declared.items():
        facts = findings.maps.get(name)
        if facts is None:
            findings.warning(f"Unused map: @{name}", declaration)
            continue
        gathers = isinstance(facts.value, Aggregate)
        wanted = "percpu" if gathers else ""
        if declaration.kind.startswith("percpu") != gathers:
            findings.error(
                "Incompatible map types. Type from declaration: "
                f"{declaration.kind}. Type from value/key type: {wanted}hash",
                facts.place,
            )


def _check_words(findings: Findings) -> None:
    """Options of the command line that no `getopt` asks for are mistakes; `--help` lists all."""
    given = [word[2:].partition("=")[0] for word in findings.parameters if word[:2] == "--"]
    unknown = [name for name in given if name not in findings.options]
    if not unknown:
        return
    wrong = ", ".join(f"--{name}" for name in unknown if name != "help")
    if "help" in unknown:
        told = findings.descriptions
        listed = [f"--{name}" + (told[name] and f": {told[name]}") for name in findings.options]
        hint = "\n".join(("expected program options:", *listed))
    else:
        hint = "expected program options: " + ", ".join(f"--{name}" for name in findings.options)
    findings.remarks.error(
        wrong and f"unexpected program command line options: {wrong}",
        Span(0, 0),
        hint if findings.options else "no custom program options defined.",
        placed=False,
    )


def _result(findings: Findings, probes: list[ProbeFacts]) -> CheckedScript:
    lowering = Lowering(findings)
    checked: list[CheckedProbe] = []
    variables: list[dict[str, Type]] = []
    for probe in probes:
        predicate, body = lowering.action(probe)
        checked.append(CheckedProbe(probe.points, predicate, body, probe.span))
        variables.append(
            {each.key: settled(each.type) for each in probe.scope.all if each.type is not None}
        )
    maps = {
        name: _checked_map(facts, findings)
        for name, facts in findings.maps.items()
        if facts.value is not None and facts.is_used
    }
    _check_sizes(findings, lowering.types, maps)
    return CheckedScript(
        tuple(checked),
        lowering.types,
        lowering.conversions,
        lowering.constants,
        lowering.variables,
        tuple(variables),
        maps,
        findings.config,
        tuple([each for each in findings.remarks.found if each.severity == "WARNING"]),
        lowering.uses,
    )


def _check_sizes(
    findings: Findings, types: Mapping[ScriptNode, Type], maps: Mapping[str, CheckedMap]
) -> None:
    """No script fills the host's memory."""
    for node, kind in types.items():
        problem = value_error(kind)
        if problem is not None:
            findings.remarks.error(problem, node.span)
            break  # what is made of it is too large as well
    too_many = maps_error(maps)
    if too_many is not None:
        problem, name = too_many
        findings.remarks.error(problem, findings.maps[name].place.span)
    findings.remarks.raise_errors()


def _checked_map(facts: MapFacts, findings: Findings) -> CheckedMap:
    declaration = findings.declared.get(facts.name)
    value = settled(facts.value or INT8)
    key = None if facts.key is None or facts.scalar else settled(facts.key)
    if declaration is None:
        kind = "percpuhash" if isinstance(value, Aggregate) else "hash"
        return CheckedMap(key, value, kind, findings.config.max_map_keys)
    return CheckedMap(key, value, declaration.kind, declaration.entries)
