"""Objects as their tables of virtual functions tell: `info vtbl`, types behind pointers."""

from typing import Final

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.image.methods import virtual_methods
from engine.language.class_members import ClassMembers
from engine.language.evaluation import tree_of
from engine.language.reach import Reach
from engine.language.syntax import Expression
from engine.language.user_types import bare_type
from engine.language.value_types import is_reference
from engine.language.values import TypedValue
from engine.session.debugger.debugger import Debugger

_NONE: Final = "This object does not have a virtual function table"


def _calls(node: Expression) -> bool:
    """True if a part of an expression calls a function."""
    return node.kind == "call" or any(map(_calls, node.parts))


class VirtualTableWords:
    """Shows tables of virtual functions."""

    def __init__(self, debugger: Debugger) -> None:
        """Show those of a debugger's guest."""
        self._debugger = debugger

    def info_vtbl(self, rest: str) -> None:
        """Virtual functions of an object, or of what a pointer points at: info vtbl EXPR."""
        debugger = self._debugger
        scope = debugger.scope
        reach = Reach(scope)
        value = reach.used(debugger.value(rest))
        if value.type.resolved.kind is TypeKind.POINTER:
            value = reach.pointed(value)
        members = ClassMembers(scope, reach)
        if members.table(value) is None:
            raise CommandError(_NONE)
        seen = set[int]()
        blocks: list[list[str]] = []
        for part in members.parts(value):
            table = members.table(part)
            if table is None or table in seen:
                continue
            seen.add(table)
            lines = self._lines(members, part, table)
            if lines:
                blocks.append(lines)
        if not blocks:
            debugger.put("")
        for number, lines in enumerate(blocks):
            for line in [""] * bool(number) + lines:
                debugger.put(line)

    def _lines(self, members: ClassMembers, part: TypedValue, table: int) -> list[str]:
        """The table of one part of an object."""
        scope = self._debugger.scope
        last = max(
            (
                method.slot
                for one in members.parts(part)
                if members.table(one) == table
                for method in virtual_methods(one.type.resolved)
                if method.slot is not None and not method.name.startswith("~")
            ),
            default=-1,
        )
        if last < 0:
            return []
        name = bare_type(part.type.resolved.text)
        lines = [f"vtable for '{name}' @ {table:#x} (subobject @ {part.address or 0:#x}):"]
        size, order = scope.pointer, scope.order
        for slot in range(last + 1):
            place = int.from_bytes(scope.read(table + slot * size, size), order)
            symbol = scope.symbol(place)
            lines.append(f"[{slot}]: {place:#x}" + (f" <{symbol}>" if symbol else ""))
        return lines

    def real_type(self, text: str) -> str:
        """The class of the object behind an expression, `geo::Square *`; "" where nobody says.

        As in gdb an address that is taken leads nowhere: the expression is not evaluated.

        Raises:
            CommandError: the expression means nothing.
        """
        if text.strip().startswith("&"):
            return ""
        scope = self._debugger.scope
        if _calls(tree_of(text, scope)):
            return ""  # as in gdb, which calls nothing for a type
        reach = Reach(scope)
        value = self._debugger.value(text)
        mark = " &" if is_reference(value.type) else ""
        inner = reach.used(value)
        if inner.type.resolved.kind is TypeKind.POINTER:
            mark = " * const" if inner.type.text.endswith("* const") else " *"
            if inner.type.resolved.target.resolved.kind is not TypeKind.RECORD or not inner.number:
                return ""
            inner = reach.pointed(inner)
        elif not mark and not text.strip().isidentifier():
            return ""
        whole = ClassMembers(scope, reach).whole(inner)
        fixed = "const " * (bool(mark) and inner.type.text.startswith("const "))
        return f"{fixed}{bare_type(whole.type.text)}{mark}" if whole is not None else ""
