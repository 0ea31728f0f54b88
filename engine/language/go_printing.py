"""Values of Go as delve prints them (delve/service/api/prettyprint.go)."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from engine.escaping import escaped
from engine.image.datatypes import TypeKind
from engine.image.gotypes import GoKind
from engine.language.go_parts import GoParts
from engine.language.go_types import NIL, address_text, kind_of
from engine.language.go_values import LONG, SHORT, GoLimits, GoReader, GoValue, go_quoted
from engine.language.languages import Forms
from engine.language.print_options import DEFAULT
from engine.language.printing import Printer
from engine.language.value_types import CType, MadeType
from engine.language.values import TypedValue

_SHORT_TEXT: Final = 7
"""Bytes of a string beside which others may stand in a line."""
_LARGE: Final = frozenset(
    (GoKind.SLICE, GoKind.ARRAY, GoKind.STRUCT, GoKind.MAP, GoKind.INTERFACE)
)


class GoForms(Forms):
    """The forms of Go's values."""

    def __init__(self, printer: Printer) -> None:
        """Write what a printer looks at."""
        self._printer = printer
        self._parts = GoParts(printer.around)

    def whole(self, value: TypedValue, letter: str) -> str | None:
        """A value on as many lines as it needs; None to have it written as C's (`/r`)."""
        if letter == "r" or value.label or not self._is_go(value.type):
            return None
        elements = self._printer.options.elements
        limits = LONG
        if elements != DEFAULT.elements:
            limits = replace(LONG, text=elements, elements=elements)
        return self._written(value, limits, "" if letter == "s" else letter, lines=True)

    def brief(self, value: TypedValue) -> str | None:
        """A value in a line: nothing of what it leads to."""
        if value.label or not self._is_go(value.type):
            return None
        return self._written(value, SHORT, "", lines=False)

    def partial(self, value: TypedValue, *, lines: bool) -> str | None:
        """A slice whose capacity is lost: nobody needs it any more where code is optimised."""
        if kind_of(value.type) != GoKind.SLICE or not self._parts.has_elements(value):
            return None
        return self._written(value, LONG if lines else SHORT, "", lines=lines)

    @staticmethod
    def _is_go(kind: CType) -> bool:
        """True for a type of Go's; pointers in registers have C's."""
        if isinstance(kind, MadeType) and kind.kind is TypeKind.POINTER:
            return kind.target.kind not in (TypeKind.VOID, TypeKind.FUNCTION)
        bare = kind.resolved.kind
        return bool(kind_of(kind)) or bare is TypeKind.FUNCTION or kind is NIL

    def _written(self, value: TypedValue, limits: GoLimits, letter: str, *, lines: bool) -> str:
        reader = GoReader(self._printer.around, self._printer.symbol, limits, letter)
        return escaped(_Writer(lines=lines).top(reader.read(value)), keep="\n\t")

    def opens(self, value: TypedValue) -> bool:
        """True if a value has parts."""
        return next(self.parts(value), None) is not None

    def parts(self, value: TypedValue) -> Iterator[tuple[str, TypedValue]]:
        """The parts of a value: members, elements, entries, what it leads to."""
        parts, reach = self._parts, self._parts.reach
        match kind_of(value.type):
            case GoKind.POINTER if value.number:
                target = value.type.resolved.target
                if kind_of(target):
                    there = reach.at(target, value.number)
                    is_struct = kind_of(target) == GoKind.STRUCT
                    yield from self.parts(there) if is_struct else iter([("*", there)])
            case GoKind.STRUCT:
                for member in value.type.resolved.members:
                    yield member.name or "", reach.part(value, member)
            case GoKind.SLICE | GoKind.ARRAY:
                for index in range(parts.length(value)):
                    yield f"[{index}]", parts.element(value, index)
            case GoKind.MAP:
                for key, held in parts.entries(value):
                    yield f"[{self.brief(key)}]", held
            case GoKind.CHAN if any(value.raw):
                yield from parts.channel(value)
            case GoKind.INTERFACE:
                inside = parts.concrete(value)
                if inside is not None:
                    yield "data", inside


class _Writer:
    """Writes a value that was read; on several lines where that is wanted."""

    def __init__(self, *, lines: bool) -> None:
        self._lines = lines

    def top(self, value: GoValue) -> str:
        """The text of a value that is asked for itself."""
        return self._text(value, "", top=True, lines=self._lines, typed=True)

    def _text(
        self, value: GoValue, indent: str, *, lines: bool, typed: bool, top: bool = False
    ) -> str:
        if value.trouble:
            return f"(unreadable {value.trouble})"
        if not top and not value.address and not value.text and not value.raw:
            return f"{value.type} nil" if typed and value.type != "void" else "nil"
        prefix = f"{value.type} " if typed else ""
        match value.kind:
            case GoKind.SLICE:
                if typed:
                    room = "<optimized out>" if value.capacity < 0 else value.capacity
                    prefix += f"len: {value.length}, cap: {room}, "
                if not value.base and not value.children:
                    return f"{prefix}nil"
                return prefix + self._list(value, indent, lines=lines)
            case GoKind.ARRAY:
                return prefix + self._list(value, indent, lines=lines)
            case GoKind.MAP:
                if not value.base:
                    return f"{prefix}nil"
                return prefix + self._map(value, indent, lines=lines)
            case GoKind.POINTER:
                there = value.children[0]
                if there.bare and there.address:
                    return address_text(value.type, there.address)
                return f"*{self._text(there, indent, lines=lines, typed=typed)}"
            case GoKind.UNSAFE_POINTER:
                return f"unsafe.Pointer({value.base:#x})"
            case GoKind.CHAN:
                if not value.base:
                    return f"{value.type} nil"
                if not lines:
                    return f"{value.type} {value.children[0].text}/{value.children[1].text}"
                return self._structure(value, indent, lines=lines, typed=typed)
            case GoKind.STRUCT:
                return self._structure(value, indent, lines=lines, typed=typed)
            case GoKind.INTERFACE:
                return self._interface(value, indent, lines=lines, typed=typed)
            case GoKind.STRING:
                more = value.length - len(value.raw)
                return go_quoted(value.raw + (f"...+{more} more".encode() if more else b""))
        return value.text or "nil"

    def _interface(self, value: GoValue, indent: str, *, lines: bool, typed: bool) -> str:
        inside = value.children[0]
        if not inside.kind and not inside.text:
            return f"{value.type} nil" if typed else "nil"
        prefix = f"{value.type}({inside.type}) " if typed else ""
        if inside.kind == GoKind.POINTER:
            there = inside.children[0]
            if not there.address:
                return f"{prefix}nil"
            if there.bare:
                return f"{prefix}{there.address:#x}"
        elif inside.bare:
            return f"{prefix}*{_place_text(value)}"
        return prefix + self._text(inside, indent, lines=lines, typed=not typed)

    def _structure(self, value: GoValue, indent: str, *, lines: bool, typed: bool) -> str:
        if value.length and not value.children:
            return _place_text(value)
        apart = lines and any(_is_large(child) for child in value.children)
        inner = f"\n{indent}\t" if apart else ""
        parts = [
            f"{inner}{child.name}: " + self._text(child, f"{indent}\t", lines=apart, typed=True)
            for child in value.children
        ]
        text = ("," if apart else ", ").join(parts) + ("," if apart else "")
        more = value.length - len(value.children)
        if more:
            text += f"{inner or ','}...+{more} more"
        if value.text:
            return f"{value.type}({value.text}){{{text}}}"
        return (f"{value.type} " if typed else "") + "{" + text + "}"

    def _list(self, value: GoValue, indent: str, *, lines: bool) -> str:
        apart = lines and bool(value.children) and _is_large(value.children[0], value.children)
        inner = f"\n{indent}\t" if apart else ""
        parts = [
            inner + self._text(child, f"{indent}\t", lines=apart, typed=False)
            for child in value.children
        ]
        text = ",".join(parts) + ("," if apart else "")
        more = value.length - len(value.children)
        if more:
            between = inner if apart else ","
            text += f"{between}...+{more} more" if parts else "..."
        return "[" + text + (f"\n{indent}" if apart else "") + "]"

    def _map(self, value: GoValue, indent: str, *, lines: bool) -> str:
        apart = lines and bool(value.children)
        inner = f"\n{indent}\t" if apart else ""
        text = ""
        for key, held in zip(value.children[::2], value.children[1::2], strict=True):
            text += inner + self._text(key, f"{indent}\t", lines=False, typed=False) + ": "
            text += self._text(held, f"{indent}\t", lines=apart, typed=False) + ", "
        more = value.length - len(value.children) // 2
        if more:
            between = inner if apart else ","
            text += f"{between}...+{more} more" if value.children else "..."
        return "[" + text + (f"\n{indent}" if apart else "") + "]"


def _place_text(value: GoValue) -> str:
    """A pointer to a value, by which an expression reaches the value."""
    name = f'"{value.type}"' if "/" in value.type else value.type
    return f"(*{name})({max(value.address, 0):#x})"


def _is_large(value: GoValue, others: list[GoValue] | None = None) -> bool:
    """True for a part that has a line of its own."""
    leads = False
    while value.kind == GoKind.POINTER and value.children:
        leads, value = True, value.children[0]
    if value.kind == GoKind.STRING:
        return leads or any(len(one.raw) > _SHORT_TEXT for one in others or [value])
    return value.kind in _LARGE
