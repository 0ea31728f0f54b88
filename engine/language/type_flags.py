"""Flags of `ptype` and `whatis`, and the first line of a type as they say (gdb/typeprint.c)."""

import re

from msgspec import Struct

from engine.errors import CommandError
from engine.image.classes import ClassParts, written_as
from engine.image.datatypes import DataType
from engine.image.methods import functions_of
from engine.language.user_types import is_known_by_name, with_names
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


class OwnNames:
    """A class's own names for types: its template's parameters, and its typedefs."""

    def __init__(self, parts: ClassParts | None, flags: TypeFlags) -> None:
        """Take those of a class, as the flags say; None for a type that has none."""
        self._given: dict[object, str] = {}
        self._all: dict[object, str] = {}
        self._texts: dict[object, str] = {}
        self._inner: dict[object, str] = {}
        if parts is None or flags.raw:
            return
        self._given = {one.key: name for name, one in parts.arguments}
        self._all = self._given | parts.own_names
        self._texts = {one.text: name for name, one in parts.arguments}
        self._inner = self._texts | {one.text: name for name, one, _ in parts.typedefs}

    def written(self, kind: DataType, name: str) -> str:
        """A declaration of a thing of a type; without a name the type alone."""
        return written_as(kind, name, self._all, self._spelled)

    def declared(self, kind: DataType, name: str) -> str:
        """The declaration of one of the typedefs, which are not named by each other."""
        return written_as(kind, name, self._given, self._spelled)

    def base(self, text: str) -> str:
        """A base class, of which only arguments have such names."""
        return with_names(text, self._texts)

    def _spelled(self, text: str) -> str:
        """Write any other type; the library's templates have names of their own."""
        return text if is_known_by_name(text) else with_names(text, self._inner)


def bases_text(parts: ClassParts, names: OwnNames) -> str:
    """Write the bases of a class, behind its name; arguments of its own template by name."""
    return " : " + ", ".join(map(names.base, parts.bases)) if parts.bases else ""


def is_bare(kind: CType, parts: ClassParts) -> bool:
    """True for a class with nothing in it: bases and functions that compilers make count, too."""
    if kind.members or parts.fields or parts.typedefs:
        return False
    return not any(True for _ in functions_of(kind.resolved))
