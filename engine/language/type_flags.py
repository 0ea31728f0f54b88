"""Flags of `ptype` and `whatis`, and the first line of a type as they say (gdb/typeprint.c)."""

import re

from msgspec import Struct

from engine.errors import CommandError
from engine.image.classes import ClassParts
from engine.image.methods import functions_of
from engine.language.value_types import CType


class TypeFlags(Struct, frozen=True):
    """Flags of `ptype`.

    Attributes:
        methods: functions of a class.
        typedefs: types that are declared in it.
        raw: no names of typedefs and of template parameters for types in it.
        offsets: the place and size of each part.
        hexadecimal: these in hexadecimal.
    """

    methods: bool = True
    typedefs: bool = True
    raw: bool = False
    offsets: bool = False
    hexadecimal: bool = False


def split_flags(rest: str, *, whole: bool) -> tuple[TypeFlags, str]:
    """The flags behind a slash, and what follows.

    Args:
        rest: all behind the word.
        whole: the type is written with its parts; offsets are told of no other.

    Raises:
        CommandError: a letter is none of a flag.
    """
    if not rest.startswith("/"):
        return TypeFlags(), rest
    match = re.match(r"/(\S*)(\s*)", rest)
    assert match is not None, "a slash is there"
    letters = match[1]
    methods = typedefs = True
    raw = offsets = hexadecimal = False
    for letter in letters:
        match letter:
            case "m" | "M":
                methods = letter == "M"
            case "t" | "T":
                typedefs = letter == "T"
            case "r":
                raw = True
            case "x" | "d":
                hexadecimal = letter == "x"
            case "o":
                if whole:
                    offsets, methods, typedefs = True, False, False
            case _:
                raise CommandError(f"unrecognized flag '{letter}'")
    if not letters:
        raise CommandError("flag expected")
    behind = rest[len(letters) + 1 :]
    if not behind:
        raise CommandError("expected space after format")
    return TypeFlags(methods, typedefs, raw, offsets, hexadecimal), behind.lstrip()


def plain_head(kind: CType) -> str:
    """The keyword and name of a structure of C."""
    head = kind.text.replace(" {...}", "")
    return head if head.startswith(("struct", "union", "class")) else f"{kind.keyword} {head}"


def class_head(kind: CType, parts: ClassParts, flags: TypeFlags) -> str:
    """The keyword and name of a class of C++, with what its template was given."""
    head = kind.text.replace(" {...}", "")
    if not head.startswith(("struct ", "union ", "class ")) and head != kind.keyword:
        head = f"{kind.keyword} {head}"
    if parts.arguments and not flags.raw:
        given = ", ".join(f"{name} = {one.text}" for name, one in parts.arguments)
        head += f" [with {given}]"
    return head


def bases_text(parts: ClassParts, flags: TypeFlags) -> str:
    """Write the bases of a class, behind its name; arguments of its own template by name."""
    if not parts.bases:
        return ""
    bases = list(parts.bases)
    if not flags.raw:
        known = {one.text: name for name, one in parts.arguments}
        bases = [_with_names(base, known) for base in bases]
    return " : " + ", ".join(bases)


def _with_names(base: str, known: dict[str, str]) -> str:
    """`A<int, B<int> >` with `int` and `B<int>` by the names of a template's parameters."""
    start = base.find("<")
    if start < 0 or not base.endswith(">"):
        return base
    parts, depth, at = list[str](), 0, start + 1
    for place in range(start + 1, len(base) - 1):
        depth += {"<": 1, ">": -1}.get(base[place], 0)
        if base[place] == "," and not depth:
            parts.append(base[at:place].strip())
            at = place + 1
    parts.append(base[at:-1].strip())
    shown = ", ".join(known.get(part, part) for part in parts)
    return f"{base[:start]}<{shown}{' ' if shown.endswith('>') else ''}>"


def is_bare(kind: CType, parts: ClassParts) -> bool:
    """True for a class with nothing in it: bases and functions that compilers make count, too."""
    if kind.members or parts.fields or parts.typedefs:
        return False
    return not any(True for _ in functions_of(kind.resolved))
