"""Scratch variables: which one a `$x` is.

A variable lives from where it is first assigned or declared to the end of that block; no block
inside may have another one of its name (bpftrace 0.26, src/ast/passes/types/pre_type_check.cpp).
Two blocks beside each other may: these are two variables.
"""

from collections.abc import Callable, Mapping
from typing import Final, cast

from msgspec import Struct, field

from engine.trace.bpftrace.macros import parts
from engine.trace.bpftrace.text import ScriptRemarks, Span
from engine.trace.bpftrace.tree import (
    AddressOf,
    Assignment,
    BlockExpression,
    CallExpression,
    Declaration,
    For,
    OffsetOf,
    ScratchName,
    ScriptNode,
    SizeOf,
    TypeInfoOf,
    TypeOf,
)
from engine.trace.bpftrace.types import Type


class ScratchVariable(Struct, eq=False):
    """A scratch variable of a probe.

    Attributes:
        name: as it is written, without the sign.
        key: a name that no other one of the probe has.
        span: where it is first assigned or declared.
        assigned: something was assigned to it so far.
        type: what it holds; None as long as that is not known.
        sized: it was declared with a type that has a size: values are made to fit.
        locked: `sizeof` or `typeinfo` of it decided something: its type cannot change any more.
    """

    name: str
    key: str
    span: Span
    assigned: bool
    type: Type | None = None
    sized: bool = False
    locked: bool = False


class ProbeScope(Struct):
    """The variables of a probe.

    Attributes:
        of: the variable that each place means.
        undefined: places that mean none, with what is to be said if they are ever reached.
        all: in the order of the text.
    """

    of: dict[ScratchName, ScratchVariable] = field(default_factory=dict)
    undefined: dict[ScratchName, str] = field(default_factory=dict)
    all: list[ScratchVariable] = field(default_factory=list)


class VariableReader:
    """Finds the variables of one probe.

    Args:
        remarks: where what is wrong or odd goes.
    """

    __slots__ = ("_depth", "_keys", "_remarks", "_scopes", "scope")

    def __init__(self, remarks: ScriptRemarks) -> None:
        self._remarks = remarks
        self.scope = ProbeScope()
        self._scopes: list[dict[str, ScratchVariable]] = [{}]
        self._keys: dict[str, int] = {}
        self._depth = 0  # of `sizeof` and the like, in which nothing runs

    def read(self, node: ScriptNode) -> None:
        """Find the variables of a tree, in the order in which it runs."""
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            handler(self, node)
            return
        for part in parts(node):
            self.read(part)

    def warn_unassigned(self) -> None:
        """Remark upon variables that are declared and never assigned to."""
        for variable in self.scope.all:
            if not variable.assigned:
                self._remarks.warning(
                    f"Variable ${variable.name} was never assigned to.", variable.span
                )

    def _find(self, name: str) -> ScratchVariable | None:
        for scope in self._scopes:
            if name in scope:
                return scope[name]
        return None

    def _new(self, name: str, span: Span, *, assigned: bool) -> ScratchVariable:
        count = self._keys.get(name, 0)
        self._keys[name] = count + 1
        variable = ScratchVariable(name, f"{name}.{count}" if count else name, span, assigned)
        self._scopes[-1][name] = variable
        self.scope.all.append(variable)
        return variable

    def _block(self, node: ScriptNode) -> None:
        self._scopes.append({})
        for part in parts(node):
            self.read(part)
        self._scopes.pop()

    def _for(self, node: ScriptNode) -> None:
        loop = cast("For", node)
        name = loop.variable.name
        if self._find(name) is not None:
            self._remarks.error(
                f"Loop declaration shadows existing variable: ${name}", loop.variable.span
            )
        self.read(loop.over)
        self._scopes.append({})
        self.scope.of[loop.variable] = self._new(name, loop.variable.span, assigned=True)
        self.read(loop.body)
        self._scopes.pop()

    def _assignment(self, node: ScriptNode) -> None:
        assigned = cast("Assignment", node)
        target = assigned.target
        if not isinstance(target, ScratchName):
            self.read(target)
            self.read(assigned.value)
            return
        if assigned.operator != "=":
            self.read(target)
        self.read(assigned.value)
        variable = self._find(target.name)
        if variable is None and assigned.operator != "=":
            return
        if variable is None:
            variable = self._new(target.name, assigned.span, assigned=True)
        variable.assigned = True
        self.scope.of[target] = variable

    def _declaration(self, node: ScriptNode) -> None:
        declared = cast("Declaration", node)
        if declared.value is not None:
            self.read(declared.value)
        if declared.type is not None:
            self.read(declared.type)
        name = declared.variable.name
        variable = self._find(name)
        if variable is not None:
            self._remarks.error(
                f"Variable ${name} was already declared. Variable shadowing is not allowed.",
                declared.span,
            )
        else:
            variable = self._new(name, declared.span, assigned=declared.value is not None)
        self.scope.of[declared.variable] = variable

    def _variable(self, node: ScriptNode) -> None:
        use = cast("ScratchName", node)
        variable = self._find(use.name)
        if variable is None:
            self.scope.undefined[use] = f"Undefined or undeclared variable: ${use.name}"
            return
        if not variable.assigned and not self._depth:
            self._remarks.warning(f"Variable used before it was assigned: ${use.name}", use.span)
        self.scope.of[use] = variable

    def _address(self, node: ScriptNode) -> None:
        of = cast("AddressOf", node).of
        variable = self._find(of.name) if isinstance(of, ScratchName) else None
        if variable is not None:
            variable.assigned = True  # what has its address may write it
        self.read(of)

    def _call(self, node: ScriptNode) -> None:
        call = cast("CallExpression", node)
        if call.name == "find" and len(call.arguments) == 3:
            found = call.arguments[2]
            variable = self._find(found.name) if isinstance(found, ScratchName) else None
            if variable is not None:
                variable.assigned = True
        for argument in call.arguments:
            self.read(argument)

    def _unevaluated(self, node: ScriptNode) -> None:
        self._depth += 1
        for part in parts(node):
            self.read(part)
        self._depth -= 1


_HANDLERS: Final[Mapping[type[ScriptNode], Callable[[VariableReader, ScriptNode], None]]] = {
    BlockExpression: VariableReader._block,
    For: VariableReader._for,
    Assignment: VariableReader._assignment,
    Declaration: VariableReader._declaration,
    ScratchName: VariableReader._variable,
    AddressOf: VariableReader._address,
    CallExpression: VariableReader._call,
    SizeOf: VariableReader._unevaluated,
    OffsetOf: VariableReader._unevaluated,
    TypeOf: VariableReader._unevaluated,
    TypeInfoOf: VariableReader._unevaluated,
}
