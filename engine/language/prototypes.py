"""Prototypes of C as a header has them: what a function is called with and what it returns.

Read are prototypes, typedefs, enumerations and structures that are only named (C11 6.7); lines of
the preprocessor and comments say nothing here. What is not understood is an error with its line
and column.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from msgspec import Struct

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.language.token_reader import TokenReader
from engine.language.value_types import (
    CHAR,
    MadeType,
    array_of,
    builtin,
    function_returning,
    pointer_to,
)

_LARGEST: Final = 1 << 20
"""Bytes of a header."""
_DEPTH: Final = 64
_PARAMETERS: Final = 64
_NEAR: Final = 24
_WORDS: Final = re.compile(
    r"""(?P<space>[ \t\r\n\f\v]+|/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>0[xX][0-9a-fA-F]+|[0-9]+)(?P<suffix>[uUlL]*)(?![\w.])
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<op>\.\.\.|[()\[\]{}*,;=-])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_BASE: Final = frozenset(
    ("void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "bool")
) | {"_Bool"}
_CONST: Final = frozenset(("const", "__const"))
_IDLE: Final = frozenset(
    (
        *("volatile", "restrict", "__restrict", "__restrict__", "extern", "static", "inline"),
        *("__inline", "__inline__", "__extension__", "_Noreturn", "register", "__volatile__"),
    )
)
"""Words that change nothing about how a value is passed."""
_ATTRIBUTES: Final = frozenset(("__attribute__", "__attribute", "__asm__", "asm", "_Alignas"))
_BYTES: Final = MadeType(TypeKind.VOID, None, "char")
"""Memory that a function fills, and that has no text before."""
_TRUTHS: Final = {"bool": "_Bool"}

Wrap = Callable[[MadeType], MadeType]


class HeaderWord(Struct, frozen=True):
    """A word of a header.

    Attributes:
        kind: "name", "number", "string", "op" or "end".
        text: the word.
        at: its place in the header.
    """

    kind: str
    text: str
    at: int


class MadeEnum(MadeType, frozen=True):
    """An enumeration that a header declares.

    Attributes:
        names: of its values.
    """

    names: tuple[tuple[str, int], ...] = ()

    @property
    def is_signed(self) -> bool:
        """True if one of its values is negative."""
        return any(value < 0 for _, value in self.names)

    @property
    def enumerators(self) -> Sequence[tuple[str, int]]:
        """The names of its values."""
        return self.names


class Parameter(Struct, frozen=True):
    """A parameter: its name, made up where the prototype has none, and its type."""

    name: str
    type: MadeType


class FunctionPrototype(Struct, frozen=True):
    """A function as a header declares it.

    Attributes:
        name: of the function.
        result: the type that it returns.
        parameters: in their order.
        variadic: further ones may follow.
    """

    name: str
    result: MadeType
    parameters: tuple[Parameter, ...]
    variadic: bool = False


class _Signature(Struct):
    """The parameters behind a function's name."""

    parameters: tuple[Parameter, ...]
    variadic: bool


class PrototypeHeader:
    """The declarations of one header after the other.

    Attributes:
        prototypes: by the function's name; a later one counts.
    """

    def __init__(self) -> None:
        """Nothing is declared."""
        self.prototypes: dict[str, FunctionPrototype] = {}
        self._types: dict[str, MadeType] = {}
        self._tags: dict[str, MadeType] = {}

    def child(self) -> "PrototypeHeader":
        """A header without prototypes in which the types of this one are known."""
        found = PrototypeHeader()
        found._types, found._tags = dict(self._types), dict(self._tags)
        return found

    def read(self, text: str, path: str) -> None:
        """Take in a header.

        Args:
            text: of it.
            path: what errors call it.

        Raises:
            CommandError: something in it is not understood; it names the line and the column.
        """
        if len(text) > _LARGEST:
            raise CommandError(f"{path}: a header of more than {_LARGEST} bytes")
        _HeaderReader(text, path, self.prototypes, self._types, self._tags).all()


class _HeaderReader(TokenReader[HeaderWord]):
    """Reads one header."""

    def __init__(
        self,
        text: str,
        path: str,
        prototypes: dict[str, FunctionPrototype],
        types: dict[str, MadeType],
        tags: dict[str, MadeType],
    ) -> None:
        self._path, self._prototypes, self._types, self._tags = path, prototypes, types, tags
        self._text = text
        super().__init__(text, self._split())
        self._linkage = 0

    def _split(self) -> list[HeaderWord]:
        found: list[HeaderWord] = []
        at, text = 0, self._text
        while at < len(text):
            match = _WORDS.match(text, at)
            if match is None:
                if text.startswith("/*", at):
                    self._fail(at, "the comment has no end")
                if text[at] == '"':
                    self._fail(at, "the string has no end")
                self._fail(at, f"{text[at]!r} means nothing in a prototype")
            kind = match.lastgroup or ""
            kind = "number" if kind == "suffix" else kind
            if kind != "space":
                word = match["number"] if kind == "number" else match[0]
                found.append(HeaderWord(kind, word, at))
            at = match.end()
        return [*found, HeaderWord("end", "", len(text))]

    def _fail(self, at: int, why: str) -> NoReturn:
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        raise CommandError(f"{self._path}:{line}:{column}: {why}")

    def _wrong(self) -> NoReturn:
        self._unexpected("something else")

    def _unexpected(self, wanted: str) -> NoReturn:
        word = self.peek
        shown = "the end of the file" if word.kind == "end" else repr(word.text[:_NEAR])
        self._fail(word.at, f"{shown} where {wanted} is expected")

    def _need(self, text: str, wanted: str = "") -> HeaderWord:
        if not self._is(text):
            self._unexpected(wanted or repr(text))
        return self._take()

    # -- declarations -----------------------------------------------------------------------

    def all(self) -> None:
        """All declarations."""
        while self.peek.kind != "end":
            if self._is(";"):
                self._take()
            elif self._is("}") and self._linkage:
                self._linkage -= 1
                self._take()
            else:
                self._declaration()
        if self._linkage:
            self._fail(self.peek.at, "the '}' of extern \"C\" is missing")

    def _declaration(self) -> None:
        if self.peek.text == "extern" and self._words[self._at + 1].kind == "string":
            self._take()
            self._take()
            if self._is("{"):
                self._take()
                self._linkage += 1
            return
        is_typedef = self.peek.text == "typedef"
        if is_typedef:
            self._take()
        start = self.peek.at
        base, is_const = self._specifiers()
        if self._is(";") and not is_typedef:
            self._take()
            return
        named = self.peek.at
        name, wrap, signature = self._declarator(is_const, is_result=True)
        self._attributes()
        if not name:
            self._fail(named, "a name is missing")
        if is_typedef:
            self._types[name] = wrap(base)
        elif signature is None:
            self._fail(start, f"{name} is no function")
        else:
            result = wrap(base).target
            assert isinstance(result, MadeType), "types of headers are made"
            self._check_value(result, start, f"the result of {name}")
            self._prototypes[name] = FunctionPrototype(
                name, result, signature.parameters, signature.variadic
            )
        if self._is("{"):
            self._fail(self.peek.at, f"{name} has a body: only its prototype is wanted")
        self._need(";")

    def _check_value(self, kind: MadeType, at: int, what: str) -> None:
        if kind.kind in (TypeKind.FUNCTION, TypeKind.ARRAY):
            self._fail(at, f"{what} cannot be a function or an array")
        if kind.kind is TypeKind.RECORD:
            self._fail(at, f"{what} is a {kind.name} by value, whose members are not known")

    def _attributes(self) -> None:
        """Skip attributes: `__attribute__((...))`."""
        while self.peek.kind == "name" and self.peek.text in _ATTRIBUTES:
            self._take()
            self._need("(")
            depth = 1
            while depth:
                if self.peek.kind == "end":
                    self._unexpected("')'")
                word = self._take().text
                depth += (word == "(") - (word == ")")

    # -- types ------------------------------------------------------------------------------

    def _specifiers(self) -> tuple[MadeType, bool]:
        """The type in front of a declarator, and whether it is const."""
        start = self.peek.at
        words: list[str] = []
        found: MadeType | None = None
        is_const = False
        while True:
            self._attributes()
            word = self.peek
            if word.kind != "name":
                break
            if word.text in _CONST:
                is_const = True
            elif word.text in _IDLE:
                pass
            elif word.text in _BASE and found is None:
                words.append(_TRUTHS.get(word.text, word.text))
            elif words or found is not None:
                if word.text in _BASE:
                    self._fail(word.at, f"{word.text!r} behind another type")
                break
            elif word.text in ("struct", "union", "enum"):
                found = self._tagged()
                continue
            elif word.text in self._types:
                found = self._types[word.text]
            else:
                self._fail(word.at, f"{word.text} is no type that is known here")
            self._take()
        if found is None and words:
            made = builtin(words)
            if made is None or contradict(words):
                self._fail(start, f"{' '.join(words)!r} is no type of C")
            found = made
        if found is None:
            self._unexpected("a type")
        return found, is_const

    def _tagged(self) -> MadeType:
        """A structure, union or enumeration."""
        keyword = self._take().text
        at = self.peek.at
        tag = self._take().text if self.peek.kind == "name" else ""
        if not tag and not self._is("{"):
            self._unexpected(f"the name of the {keyword}")
        key = f"{keyword} {tag}"
        if self._is("{"):
            if keyword != "enum":
                self._fail(
                    self.peek.at, f"members are not read here: declare it as '{key.strip()};'"
                )
            made: MadeType = MadeEnum(TypeKind.ENUM, 4, key.strip(), names=self._enumerators())
            if tag:
                self._tags[key] = made
            return made
        if key in self._tags:
            return self._tags[key]
        if keyword == "enum":
            self._fail(at, f"{key} is not declared")
        return self._tags.setdefault(key, MadeType(TypeKind.RECORD, None, key))

    def _enumerators(self) -> tuple[tuple[str, int], ...]:
        self._need("{")
        found: dict[str, int] = {}
        value = 0
        while not self._is("}"):
            word = self.peek
            if word.kind != "name":
                self._unexpected("the name of a value")
            if word.text in found:
                self._fail(word.at, f"{word.text} stands there twice")
            self._take()
            if self._is("="):
                self._take()
                value = self._number()
            found[word.text] = value
            value += 1
            if not self._is(","):
                break
            self._take()
        self._need("}")
        if not found:
            self._fail(self.peek.at, "an enumeration without values")
        return tuple(found.items())

    def _number(self) -> int:
        sign = 1
        if self._is("-"):
            self._take()
            sign = -1
        word = self.peek
        if word.kind != "number":
            self._unexpected("a number")
        self._take()
        is_octal = word.text.startswith("0") and word.text.isdigit() and len(word.text) > 1
        try:
            number = int(word.text, 8 if is_octal else 0)
        except ValueError:
            self._fail(word.at, f"{word.text} is no number")
        if number >> 63:
            self._fail(word.at, f"{word.text[:_NEAR]} is too large")
        return sign * number

    def _declarator(
        self, is_const: bool, *, is_result: bool = False
    ) -> tuple[str, Wrap, "_Signature | None"]:
        """A name, what the type in front becomes, and its parameters if it is a function.

        Args:
            is_const: the type in front is.
            is_result: a `char *` is a text, as what functions return is.
        """
        self._depth += 1
        if self._depth > _DEPTH:
            self._fail(self.peek.at, "the declaration is nested too deeply")
        stars: list[bool] = []
        while self._is("*") or (
            self.peek.kind == "name" and self.peek.text in _IDLE | _CONST | _ATTRIBUTES
        ):
            if self._is("*"):
                self._take()
                stars.append(is_const or is_result)
                is_const = False
            elif self.peek.text in _ATTRIBUTES:
                self._attributes()
            else:
                is_const = self._take().text in _CONST or is_const
        name, inner, nested = "", None, None
        if self._is("(") and self._begins_declarator():
            self._take()
            name, inner, nested = self._declarator(False)
            self._need(")")
        elif self.peek.kind == "name":
            word = self.peek
            if word.text in _BASE or word.text in self._types:
                self._unexpected("a name")
            name = self._take().text
        sizes, signature = self._behind()
        self._depth -= 1

        def wrap(kind: MadeType) -> MadeType:
            for is_text in stars:
                target = _BYTES if kind is CHAR and not is_text else kind
                kind = pointer_to(target)
            for count in reversed(sizes):
                kind = array_of(kind, count)
            if signature is not None:
                kind = function_returning(kind)
            return kind if inner is None else inner(kind)

        return name, wrap, nested if inner is not None else signature

    def _begins_declarator(self) -> bool:
        """True where a bracket holds a declarator and no parameters."""
        following = self._words[self._at + 1]
        if following.kind == "op":
            return following.text in ("*", "(")
        is_type = following.text in self._types or following.text in _BASE | _CONST
        return following.kind == "name" and not is_type and following.text not in _TAGS

    def _behind(self) -> tuple[list[int], "_Signature | None"]:
        """Sizes of an array, or parameters, behind a name."""
        sizes: list[int] = []
        while self._is("["):
            self._take()
            while self.peek.kind == "name" and self.peek.text in _IDLE | _CONST:
                self._take()
            sizes.append(0 if self._is("]") else self._number())
            self._need("]")
        if not self._is("("):
            return sizes, None
        if sizes:
            self._fail(self.peek.at, "an array of functions")
        return sizes, self._parameters()

    def _parameters(self) -> "_Signature":
        self._need("(")
        found: list[Parameter] = []
        names: set[str] = set()
        if self._is(")"):
            self._take()
            return _Signature((), False)
        while True:
            at = self.peek.at
            if self._is("..."):
                if not found:
                    self._fail(at, "'...' needs a parameter in front of it")
                self._take()
                self._need(")", "')' behind '...'")
                return _Signature(tuple(found), True)
            if len(found) >= _PARAMETERS:
                self._fail(at, f"more than {_PARAMETERS} parameters")
            base, is_const = self._specifiers()
            name, wrap, _ = self._declarator(is_const)
            self._attributes()
            kind = wrap(base)
            if kind.kind is TypeKind.VOID:
                if found or name or not self._is(")"):
                    self._fail(at, "a parameter of type void")
                self._take()
                return _Signature((), False)
            if kind.kind in (TypeKind.ARRAY, TypeKind.FUNCTION):
                target = kind.target if kind.kind is TypeKind.ARRAY else kind
                assert isinstance(target, MadeType), "types of headers are made"
                text = target is CHAR and not is_const
                kind = pointer_to(_BYTES if text else target)
            name = name or f"arg{len(found) + 1}"
            self._check_value(kind, at, f"the parameter {name}")
            if name in names:
                self._fail(at, f"two parameters are called {name}")
            names.add(name)
            found.append(Parameter(name, kind))
            if self._is(")"):
                self._take()
                return _Signature(tuple(found), False)
            self._need(",", "',' or ')'")


_TAGS: Final = frozenset(("struct", "union", "enum", *_IDLE, *_ATTRIBUTES))


def contradict(words: Sequence[str]) -> bool:
    """True for words that no type of C has together: "short double", "unsigned void"."""
    if "signed" in words and "unsigned" in words:
        return True
    if any(words.count(one) > 1 for one in words if one != "long"):
        return True
    sizes = "short" in words or "long" in words
    signs = "signed" in words or "unsigned" in words
    if "double" in words:
        return signs or "short" in words or words.count("long") > 1
    if "float" in words or "void" in words or "_Bool" in words:
        return len(words) > 1
    if "char" in words:
        return sizes
    return "short" in words and "long" in words
