"""Macros of a script are put in where they are used, hygienically.

A macro's own variables get names that no script can write; maps it may only touch if they were
given to it; `$x` takes a variable, `@x` a map, a plain name any expression or a type, which is
put in as it stands. Macros of one name differ by the kinds of their parameters (bpftrace 0.26,
src/ast/passes/macro_expansion.cpp). The tree that results shares no node with the one that was
read, nor with another use of the macro. It is bounded in depth and size.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from engine.trace.bpftrace.text import ScriptRemarks, Span
from engine.trace.bpftrace.tree import (
    Assignment,
    Binary,
    BlockExpression,
    CallExpression,
    Cast,
    Declaration,
    Expression,
    FieldAccess,
    For,
    Jump,
    Macro,
    MapName,
    Name,
    OffsetOf,
    ScratchName,
    ScriptNode,
    SizeOf,
    TypeInfoOf,
    TypeOf,
    While,
    WrittenType,
    with_parts,
)

MAX_NESTING: Final = 180
"""Levels of a tree: what follows one takes a few levels of Python's stack for each."""
MAX_NODES: Final = 200_000
"""Nodes of all actions of a script."""

_Argument = Expression | WrittenType


class NestingError(Exception):
    """A script is too deep or too large, which has been remarked."""


class MacroTable:
    """The macros of a script by their names.

    Args:
        macros: in the order of the script.
        remarks: where what is wrong with them goes.
        is_native: tells whether a name is that of a function that is built in.

    Attributes:
        nodes: of all trees that were made so far.
        uses: for each node that comes out of a macro the places where that is used, the
            innermost first.
    """

    __slots__ = ("_macros", "is_native", "nodes", "remarks", "uses")

    def __init__(
        self, macros: Sequence[Macro], remarks: ScriptRemarks, is_native: Callable[[str], bool]
    ) -> None:
        self.remarks, self.is_native = remarks, is_native
        self._macros: dict[str, list[Macro]] = {}
        self.nodes = 0
        self.uses: dict[ScriptNode, tuple[Span, ...]] = {}
        for macro in macros:
            self._add(macro)

    def _add(self, macro: Macro) -> None:
        for other in self._macros.get(macro.name, ()):
            if not _distance(other, macro.parameters):
                self.remarks.error(f"Redefinition of macro: {macro.name}", macro.span)
                return
        seen: set[str] = set()
        for parameter in macro.parameters:
            name = _written(parameter)
            if name in seen:
                kind = {"$": "Variable", "@": "Map"}.get(name[0], "Ident")
                self.remarks.error(
                    f"{kind} for macro argument has already been used: {name}", parameter.span
                )
                return
            seen.add(name)
        self._macros.setdefault(macro.name, []).append(macro)

    def find(self, name: str, arguments: Sequence[_Argument], span: Span) -> Macro | None:
        """The macro that a use of a name means; None if it means none, perhaps with an error."""
        candidates = self._macros.get(name)
        if candidates is None:
            return None
        nearest = min(candidates, key=lambda macro: _distance(macro, arguments))
        if not _distance(nearest, arguments):
            return nearest
        if not self.is_native(name):
            self._mismatch(nearest, arguments, span)
        return None

    def _mismatch(self, macro: Macro, arguments: Sequence[_Argument], span: Span) -> None:
        expected, given = len(macro.parameters), len(arguments)
        hint = ""
        if expected != given:
            hint = (
                f"The closest definition of {macro.name}() has a different number of arguments. "
                f"Expected: {expected} but got {given}"
            )
        else:
            hint = _wrong_argument(macro, arguments)
        text = f"Call to {macro.name}() has arguments that do not match any definition."
        self.remarks.error(text, span, hint)

    def common_name(self, name: str) -> str:
        """The name of a function without the prefix by which bpftrace's own macros call it."""
        plain = name.removeprefix("__builtin_")
        return plain if self.is_native(plain) else name

    def count(self, span: Span) -> None:
        """Note that there is one more node.

        Raises:
            NestingError: these are too many.
        """
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.remarks.error(
                f"The script is too large (over {MAX_NODES} parts, its macros put in)", span
            )
            raise NestingError


def _written(parameter: ScriptNode) -> str:
    match parameter:
        case ScratchName():
            return f"${parameter.name}"
        case MapName():
            return f"@{parameter.name}"
        case _:
            return cast("Name", parameter).name


def _wrong_argument(macro: Macro, arguments: Sequence[_Argument]) -> str:
    """The fault of the first argument that a macro does not take."""
    for parameter, argument in zip(macro.parameters, arguments, strict=True):
        if not _takes(parameter, argument):
            wanted = "map" if isinstance(parameter, MapName) else "variable"
            got = {ScratchName: "a variable", MapName: "a map"}.get(
                type(argument), "an expression"
            )
            return (
                f"Mismatched arg. {macro.name}() expects a {wanted} for arg "
                f"{_written(parameter)} but got {got}."
            )
    return ""


def _takes(parameter: ScriptNode, argument: ScriptNode) -> bool:
    if isinstance(parameter, MapName | ScratchName):
        return type(argument) is type(parameter)
    return True


def _distance(macro: Macro, arguments: Sequence[ScriptNode]) -> int:
    """The distance of arguments from those that a macro takes; 0 if they fit."""
    missing = abs(len(macro.parameters) - len(arguments))
    pairs = zip(macro.parameters, arguments, strict=False)
    return 1024 * missing + sum([not _takes(each, given) for each, given in pairs])


class MacroExpansion:
    """A copy of a tree, with macros put in.

    Args:
        table: the macros.
        chain: the macros that this is in, the outermost first.
        bound: what the innermost one's parameters stand for, by what is written.
        depth: levels of the tree above.
        uses: the places where the macros are used, the innermost first.
    """

    __slots__ = ("_bound", "_chain", "_depth", "_own", "_table", "_uses")

    def __init__(
        self,
        table: MacroTable,
        chain: tuple[Macro, ...] = (),
        bound: Mapping[str, _Argument] | None = None,
        depth: int = 0,
        uses: tuple[Span, ...] = (),
    ) -> None:
        self._table, self._chain, self._depth = table, chain, depth
        self._bound: Mapping[str, _Argument] = bound or {}
        self._own: set[str] = set()
        self._uses = uses

    def block(self, block: BlockExpression) -> BlockExpression:
        """A copy of a block.

        Raises:
            NestingError: it is too deep or too large.
        """
        return cast("BlockExpression", self._copy(block))

    def expression(self, expression: Expression) -> Expression:
        """A copy of an expression.

        Raises:
            NestingError: it is too deep or too large.
        """
        return cast("Expression", self._copy(expression))

    def _copy(self, node: ScriptNode) -> ScriptNode:
        self._table.count(node.span)
        self._depth += 1
        if self._depth > MAX_NESTING:
            self._table.remarks.error(
                f"The script nests too deeply (over {MAX_NESTING} levels)", node.span
            )
            raise NestingError
        special = _SPECIAL.get(type(node))
        copy = with_parts(node, self._copy) if special is None else special(self, node)
        self._depth -= 1
        if self._uses:
            self._table.uses[copy] = self._uses
        return copy

    # -- names ---------------------------------------------------------------------------------

    def _variable(self, node: ScriptNode) -> ScriptNode:
        name = cast("ScratchName", node).name
        bound = self._bound.get(f"${name}")
        if isinstance(bound, ScratchName):
            return ScratchName(node.span, bound.name)
        if self._chain and name in self._own:
            name = f"${self._chain[-1].name}_{len(self._chain)}_{name}"
        return ScratchName(node.span, name)

    def _map(self, node: ScriptNode) -> ScriptNode:
        name = cast("MapName", node).name
        if not self._chain:
            return MapName(node.span, name)
        bound = self._bound.get(f"@{name}")
        if isinstance(bound, MapName):
            return MapName(node.span, bound.name)
        self._table.remarks.error(
            f"Unhygienic access to map: @{name}. Maps must be passed into the macro as arguments.",
            node.span,
        )
        return MapName(node.span, name)

    def _declaration(self, node: ScriptNode) -> ScriptNode:
        declared = cast("Declaration", node)
        name = declared.variable.name
        if self._chain:
            if f"${name}" in self._bound:
                self._table.remarks.error(
                    f"Variable declaration shadows macro arg ${name}", node.span
                )
            self._own.add(name)
        return with_parts(node, self._copy)

    def _assignment(self, node: ScriptNode) -> ScriptNode:
        target = cast("Assignment", node).target
        if (
            self._chain
            and isinstance(target, ScratchName)
            and f"${target.name}" not in self._bound
        ):
            self._own.add(target.name)
        return with_parts(node, self._copy)

    # -- uses ----------------------------------------------------------------------------------

    def _name(self, node: ScriptNode) -> ScriptNode:
        name = cast("Name", node).name
        bound = self._bound.get(name)
        if bound is not None:
            # Arguments were copied where the macro is used; each use of one is a copy more.
            plain = MacroExpansion(_Finished(self._table), depth=self._depth)
            return plain._copy(bound)
        macro = self._table.find(name, (), node.span)
        if macro is not None:
            return self._use(macro, (), node.span)
        return Name(node.span, self._table.common_name(name))

    def _call(self, node: ScriptNode) -> ScriptNode:
        call = cast("CallExpression", with_parts(node, self._copy))
        macro = self._table.find(call.name, call.arguments, node.span)
        if macro is not None:
            return self._use(macro, call.arguments, node.span)
        call = CallExpression(call.span, self._table.common_name(call.name), call.arguments)
        return _in_other_words(call) or call

    def _use(self, macro: Macro, arguments: Sequence[_Argument], span: Span) -> ScriptNode:
        if macro in self._chain:
            names = [each.name for each in self._chain[self._chain.index(macro) :]]
            self._table.remarks.error(
                f"Recursive macro call detected. Call chain: {' > '.join([*names, macro.name])}",
                span,
            )
            return Name(span, macro.name)
        bound: dict[str, _Argument] = {}
        for parameter, argument in zip(macro.parameters, arguments, strict=True):
            if isinstance(parameter, Name) and isinstance(argument, ScratchName | MapName):
                # The macro shall read it, not write it.
                argument = BlockExpression(argument.span, (), argument)
            bound[_written(parameter)] = argument
        uses = (span, *self._uses)
        inner = MacroExpansion(self._table, (*self._chain, macro), bound, self._depth, uses)
        return inner._copy(macro.body)

    # -- types ---------------------------------------------------------------------------------

    def _type_name(self, node: ScriptNode) -> ScriptNode:
        written = cast("WrittenType", node)
        tag, _, name = written.name.rpartition(" ")
        bound = self._bound.get(name)
        if isinstance(bound, TypeOf):
            bound = bound.of if isinstance(bound.of, WrittenType | Name) else None
        if isinstance(bound, Name):
            return WrittenType(node.span, f"{tag} {bound.name}".strip(), written.suffixes)
        if isinstance(bound, WrittenType) and not (tag and (" " in bound.name or bound.suffixes)):
            whole = f"{tag} {bound.name}".strip()
            return WrittenType(node.span, whole, bound.suffixes + written.suffixes)
        if self._bound.get(name) is not None:
            self._table.remarks.error(
                f"Invalid replacement for macro '{self._chain[-1].name}' type parameter "
                f"'{name}' which makes up the type '{written.name}'",
                node.span,
            )
        return WrittenType(node.span, written.name, written.suffixes)

    def _of_type(self, node: ScriptNode) -> ScriptNode:
        """`sizeof(x)` and the like: a name in there is a type, not a macro, if it is no argument.

        An argument that is `typeof(...)` is what that is of.
        """
        of = cast("SizeOf | TypeOf | OffsetOf | TypeInfoOf | Cast", node)
        if isinstance(of, OffsetOf):
            return OffsetOf(of.span, self._type_or_value(of.of), self._path(of.path))
        if isinstance(of, Cast):
            kind = of.type
            if isinstance(kind, WrittenType):
                bound = self._bound.get(kind.name)
                if isinstance(bound, TypeOf) and not kind.suffixes:
                    return Cast(of.span, bound, self.expression(of.operand))
            return with_parts(of, self._copy)
        return type(of)(of.span, self._type_or_value(of.of))

    def _type_or_value(self, of: _Argument) -> _Argument:
        if isinstance(of, Name):
            bound = self._bound.get(of.name)
            if isinstance(bound, TypeOf):
                return bound.of
            if bound is None:
                return Name(of.span, of.name)
        return cast("_Argument", self._copy(of))

    def _path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        bound = self._bound.get(path[0]) if len(path) == 1 else None
        names: list[str] = []
        inner: _Argument | None = bound
        while isinstance(inner, FieldAccess):
            names.append(inner.name)
            inner = inner.of
        if isinstance(inner, Name):
            return (inner.name, *reversed(names))
        if bound is not None:
            self._table.remarks.error(
                "FieldAccess expressions must be made up entirely of idents (e.g. a.b.c) to "
                "replace the second argument in `offsetof`",
                bound.span,
            )
        return path


_OF_TASKS: Final = {
    "ppid": ("real_parent", "pid"),
    "pcomm": ("real_parent", "comm"),
    "leader_tid": ("group_leader", "pid"),
    "leader_comm": ("group_leader", "comm"),
}
"""Functions that read members of a task that they are given."""


def _in_other_words(call: CallExpression) -> Expression | None:
    """The expression that a call stands for if it needs no function; None if it does."""
    span, arguments = call.span, call.arguments
    members = _OF_TASKS.get(call.name)
    if members is not None and len(arguments) == 1 and not isinstance(arguments[0], WrittenType):
        return FieldAccess(span, FieldAccess(span, arguments[0], members[0]), members[1])
    if call.name != "container_of" or len(arguments) != 3:
        return None
    pointer, kind, member = arguments
    path: list[str] = []
    while isinstance(member, FieldAccess):
        path.insert(0, member.name)
        member = member.of
    if not isinstance(member, Name) or isinstance(pointer, WrittenType):
        return None
    if isinstance(kind, Name):
        kind = WrittenType(kind.span, kind.name)
    if isinstance(kind, TypeOf) and isinstance(kind.of, WrittenType):
        kind = kind.of
    if not isinstance(kind, WrittenType):
        return None
    offset = OffsetOf(span, kind, (member.name, *path))
    start = Binary(span, "-", Cast(span, WrittenType(span, "uint64"), pointer), offset)
    return Cast(span, WrittenType(kind.span, kind.name, (*kind.suffixes, "*")), start)


class _Finished(MacroTable):
    """No macros, but a size that is counted with another table's."""

    __slots__ = ("_whole",)

    def __init__(self, whole: MacroTable) -> None:
        super().__init__((), whole.remarks, whole.is_native)
        self._whole = whole

    def count(self, span: Span) -> None:
        self._whole.count(span)


_SPECIAL: Final[Mapping[type[ScriptNode], Callable[[MacroExpansion, ScriptNode], ScriptNode]]] = {
    ScratchName: MacroExpansion._variable,
    MapName: MacroExpansion._map,
    Declaration: MacroExpansion._declaration,
    Assignment: MacroExpansion._assignment,
    Name: MacroExpansion._name,
    CallExpression: MacroExpansion._call,
    WrittenType: MacroExpansion._type_name,
    SizeOf: MacroExpansion._of_type,
    TypeOf: MacroExpansion._of_type,
    OffsetOf: MacroExpansion._of_type,
    TypeInfoOf: MacroExpansion._of_type,
    Cast: MacroExpansion._of_type,
}


def forbid_jumps(macro: Macro, remarks: ScriptRemarks) -> None:
    """Remark upon jumps out of a macro; `exit()` is none."""
    waiting: list[tuple[ScriptNode, bool]] = [(macro.body, False)]
    while waiting:
        node, in_loop = waiting.pop()
        kind = node.kind if isinstance(node, Jump) else ""
        if kind == "return" or (kind and not in_loop):
            remarks.error(f"'{kind}' statement is not allowed in a macro", node.span)
        in_loop = in_loop or isinstance(node, While | For)
        waiting.extend([(part, in_loop) for part in parts(node)])


def parts(node: ScriptNode) -> list[ScriptNode]:
    """The nodes right below a node, in the order of the text."""
    found: list[ScriptNode] = []
    for name in type(node).__struct_fields__:
        value = getattr(node, name)
        if isinstance(value, ScriptNode):
            found.append(value)
        elif isinstance(value, tuple):
            found += _nodes_in(value)
    return found


def _nodes_in(values: tuple[object, ...]) -> list[ScriptNode]:
    found: list[ScriptNode] = []
    for value in values:
        if isinstance(value, ScriptNode):
            found.append(value)
        elif isinstance(value, tuple):
            found += _nodes_in(value)
    return found
