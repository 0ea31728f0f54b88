"""Types as gdb's `ptype` writes them, with all that they are made of (gdb/c-typeprint.c)."""

import re
from typing import Final

from engine.image.classes import ClassField, ClassParts, class_parts
from engine.image.datatypes import Member, TypeKind
from engine.image.dietypes import DieType
from engine.language.enumerators import enumeration_text, is_nameless_enumeration
from engine.language.layouttexts import HEADING, LayoutText
from engine.language.type_flags import (
    OwnNames,
    TypeFlags,
    bases_text,
    class_head,
    is_bare,
    plain_head,
)
from engine.language.user_types import is_known_by_name, user_type
from engine.language.value_types import (
    UNKNOWN_CHOICE,
    UNKNOWN_FUNCTION,
    CType,
    is_reference,
)

_TYPEDEF: Final = 0x16
_MARK: Final = "\0"
"""Beside a function's name while the lines of a class are made."""
_METHOD: Final = re.compile(rf"(.*){_MARK}(.*){_MARK}(.*)")
_ALL: Final = TypeFlags()
_BEHIND: Final = re.compile(r"(?<=[*&])(?: (?:const|volatile))+$")


def definition_of(kind: CType, flags: TypeFlags = _ALL) -> str:
    """`type = ...`: a structure with its members, an enumeration with its names."""
    return "\n".join(map(_line_of_user, _definition(kind, flags).split("\n")))


def _line_of_user(line: str) -> str:
    """A line with types as users write them; the names of functions stay as they are."""
    match = _METHOD.fullmatch(line)
    if match is None:
        return user_type(line)
    return f"{user_type(match[1])}{match[2]}{user_type(match[3])}"


def _definition(kind: CType, flags: TypeFlags) -> str:
    if kind.text in (UNKNOWN_FUNCTION, UNKNOWN_CHOICE):
        return "type = <unknown return type> ()"
    if kind.resolved.kind is TypeKind.FUNCTION:
        return re.sub(r"^type = \?(?= \()", "type = void", _function(kind.resolved, flags))
    base, before, wrap = _base_of(kind)
    if base.kind is TypeKind.RECORD:
        bare = base is kind.resolved  # a pointer's name is none of those that are known
        if bare and not (before or flags.raw) and is_known_by_name(base.text):
            return f"type = {wrap(user_type(base.text))}"
        if flags.offsets:
            heading = HEADING if base is kind.resolved and not _is_typedef(kind) else ""
            return f"{heading}type = {before}{wrap(LayoutText(flags).text(base))}"
        parts = class_parts(base) if isinstance(base, DieType) else None
        if parts is None or base.is_declared_only:
            return f"type = {before}{wrap(_record(base))}"
        return f"type = {before}{wrap(_class(base, parts, flags))}"
    if base.kind is TypeKind.ENUM:
        return f"type = {before}{wrap(enumeration_text(base))}"
    if base.kind is TypeKind.FUNCTION:
        return f"type = {kind.resolved.text}"
    return f"type = {before}{wrap(base.text)}"


def behind_typedef(kind: CType) -> CType:
    """The type that a typedef is written as, which may be one itself; another type as it is."""
    named = kind.named if isinstance(kind, DieType) else None
    return DieType(named.type) if named is not None and named.tag == _TYPEDEF else kind


def _is_typedef(kind: CType) -> bool:
    """True for another name of a type."""
    named = kind.named if isinstance(kind, DieType) else None
    return named is not None and named.tag == _TYPEDEF


def _function(kind: CType, flags: TypeFlags) -> str:
    """A function: what it returns with all that it is made of, and its parameters."""
    returned = kind.target
    text, begin = kind.text, returned.text
    whole = _definition(returned, flags).removeprefix("type = ")
    if not begin or (not text.startswith(f"{begin} (") and not text.startswith(f"{begin}(")):
        return f"type = {text}"
    return f"type = {whole}{' ' if whole[-1:] != '*' else ''}{text[len(begin) :].lstrip()}"


class _Wrapped:
    """Puts a pointer's or an array's declarator behind a type's definition."""

    def __init__(self, declarator: str) -> None:
        self._declarator = declarator

    def __call__(self, text: str) -> str:
        return f"{text} {self._declarator}" if self._declarator else text


def _base_of(kind: CType) -> tuple[CType, str, _Wrapped]:
    """The type at the bottom of pointers and arrays, its qualifiers, and their marks."""
    marks = ""
    bottom: CType = kind
    here = kind.resolved
    for _ in range(32):
        if here.kind is TypeKind.POINTER and here.owner is not None:
            break  # a member's offset leads to no thing of a type of its own
        if here.kind is TypeKind.POINTER:
            mark = "*" if not is_reference(here) else "&&" if "&&" in here.text else "&"
            marks = mark + _constancy(bottom.text) + marks
        elif here.kind is TypeKind.ARRAY:
            marks = f"({marks})" if marks.startswith(("*", "&")) else marks
            marks += "[]" if here.count is None else f"[{here.count}]"
            bottom = here.element
            here = bottom.resolved
            continue
        else:
            break
        bottom = here.target
        here = bottom.resolved
    return here, _qualifiers(bottom.text), _Wrapped(marks)


def _constancy(text: str) -> str:
    """`const` and `volatile` behind a pointer's mark."""
    found = _BEHIND.search(text)
    return f" {found[0].strip()}" if found else ""


def _qualifiers(text: str) -> str:
    """`const` and `volatile` in front of a type."""
    found = ""
    while text.startswith(("const ", "volatile ")):
        word, _, text = text.partition(" ")
        found += f"{word} "
    return found


def _record(kind: CType) -> str:
    """A structure, class or union."""
    bases = [member.type.text for member in kind.members if member.is_base]
    head = plain_head(kind)
    if bases:
        head += " : " + ", ".join(f"public {base}" for base in bases)
    body = _members(kind, 4)
    return f"{head} {{\n{body}}}"


def _class(kind: CType, parts: ClassParts, flags: TypeFlags) -> str:
    """A class of C++, as gdb's c_type_print_base_struct_union writes it."""
    names = OwnNames(parts, flags)
    head = class_head(kind, parts, flags) + bases_text(parts, names)
    lines = _ClassLines(parts, flags, names).text
    if not lines and is_bare(kind, parts):
        lines = "    <no data fields>\n"
    return f"{head} {{\n{lines}}}"


class _ClassLines:
    """The lines between the braces of a class, with labels where access changes."""

    def __init__(self, parts: ClassParts, flags: TypeFlags, names: OwnNames) -> None:
        self._section = ""
        self._lines: list[str] = []
        self._names = names
        shown = [field for field in parts.fields if not field.hidden]
        for field in shown:
            if parts.needs_labels:
                self._label(field.access)
            self._lines.append(self._field(field))
        methods = parts.methods if flags.methods else ()
        typedefs = parts.typedefs if flags.typedefs else ()
        if methods and self._section:
            self._lines.append("")
        for method in methods:
            self._label(method.access)
            given = [names.written(one, "") for one in method.parameters]
            given += ["..."] if method.more else []
            result = ""
            if method.result is not None:
                result = names.written(method.result, "") + " "
            arguments = ", ".join(given) or "void"
            name = (
                f"{method.before}{result}{_MARK}{method.name}{_MARK}({arguments}){method.behind}"
            )
            self._lines.append(f"    {name};")
        if typedefs and (parts.fields or methods):
            self._lines.append("")
        for name, one, access in typedefs:
            if parts.needs_labels:
                self._label(access)
            self._lines.append(f"    typedef {names.declared(one, name)};")

    @property
    def text(self) -> str:
        """All of them."""
        return "".join(f"{line}\n" for line in self._lines)

    def _label(self, access: str) -> None:
        if access != self._section:
            self._section = access
            self._lines.append(f"  {access}:")

    def _field(self, field: ClassField) -> str:
        if not field.static and field.type.text.endswith("{...}"):
            part = Member(field.name or None, field.type, 0, bit_size=field.bits)
            return _member(part, 4).removesuffix("\n")
        bits = f" : {field.bits}" if field.bits else ""
        static = "static " if field.static else ""
        return f"    {static}{self._names.written(field.type, field.name)}{bits};"


def _members(kind: CType, indent: int, *, deeper: bool = True) -> str:
    """The lines between the braces; unnamed structures written out if `deeper`."""
    if kind.is_declared_only:
        return " " * indent + "<incomplete type>\n"
    members = [member for member in kind.members if not member.is_base]
    lines = [_member(member, indent, deeper=deeper) for member in members]
    return "".join(lines) or " " * indent + "<no data fields>\n"


def _member(member: Member, indent: int, *, deeper: bool = True) -> str:
    """One of them; unnamed structures stand written out if `deeper`."""
    space = " " * indent
    bits = f" : {member.bit_size}" if member.bit_size else ""
    inner = member.type
    bare = inner.resolved
    if deeper and bare.kind is TypeKind.RECORD and inner.text.endswith("{...}"):
        body = _members(bare, indent + 4, deeper=False)
        name = f" {member.name}" if member.name else ""
        return f"{space}{bare.keyword} {{\n{body}{space}}}{name};\n"
    if is_nameless_enumeration(inner):
        return f"{space}{enumeration_text(bare)} {member.name or ''}{bits};\n"
    return f"{space}{inner.declared(member.name or '')}{bits};\n"
