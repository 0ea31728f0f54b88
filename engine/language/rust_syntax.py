"""Expressions of Rust as trees, as far as gdb takes them (gdb/rust-parse.c).

The trees are those of `syntax`; what C has no words for is "cast" with a type by its text,
"range", "list" and "filled" arrays, "field", a part of a tuple by number, "tuple", "raw" texts,
and "made", a structure whose parts are "part", a field by name, and "base", behind `..`.
"""

import re
from typing import Final

from msgspec import Struct

from engine.errors import CommandError
from engine.language.syntax import Expression, TypeName
from engine.language.token_reader import TokenReader

_WORDS: Final = re.compile(
    r"""\s*(?:
    (?P<float>\d[\d_]*\.\d[\d_]*(?:[eE][+-]?\d+)?(?:_?f(?:32|64))?
        |\d[\d_]*(?:[eE][+-]?\d+)(?:_?f(?:32|64))?|\d[\d_]*_?f(?:32|64))
    |(?P<number>0x[0-9a-fA-F_]+?(?=[iu]|\b)|0o[0-7_]+|0b[01_]+|\d[\d_]*)
        (?P<suffix>[iu](?:8|16|32|64|128|size))?(?!\w)
    |(?P<raw>b?r(?P<hashes>\#*)".*?"(?P=hashes))
    |(?P<bytes>b"(?:[^"\\]|\\.)*")
    |(?P<byte>b'(?:[^'\\]|\\.[^']*)')
    |(?P<name>(?:::)?[^\W\d]\w*)
    |(?P<dollar>\$(?:\$\d+|\$|\w+)?)
    |(?P<char>'(?:[^'\\]|\\[^']+|\\')')
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<op><<=|>>=|\.\.=|\.\.|->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::
        |[-+*/%&|^~!<>=:,.;()\[\]{}@])
    )""",
    re.VERBOSE,
)
_BINARY: Final = {
    "||": 2,
    "&&": 3,
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), 4),
    "|": 5,
    "^": 6,
    "&": 7,
    "<<": 8,
    ">>": 8,
    "@": 9,
    "+": 10,
    "-": 10,
    "*": 11,
    "/": 11,
    "%": 11,
}
_AS: Final = 12
_ASSIGN: Final = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))
_CLOSING: Final = {"(": ")", "[": "]", "<": ">"}
_DEPTH: Final = 200


class _RustToken(Struct, frozen=True):
    """A word: its kind, its text, its first character, a number's suffix."""

    kind: str
    text: str
    at: int
    suffix: str = ""


def parse_rust(text: str) -> Expression:
    """The tree of an expression.

    Args:
        text: the expression's text.

    Raises:
        CommandError: it means nothing.
    """
    parser = _RustParser(text)
    node = parser.whole()
    parser.end()
    return node


def _split(text: str) -> list[_RustToken]:
    found: list[_RustToken] = []
    at = 0
    while text[at:].strip():
        match = _WORDS.match(text, at)
        if match is None:
            raise CommandError(f"Syntax error near '{text[at:].strip()}'")
        kind = match.lastgroup or "op"
        kind = "number" if kind == "suffix" else kind
        if kind == "float" and found and found[-1].text == ".":
            kind, match = "number", re.compile(r"\s*(?P<number>\d+)(?P<suffix>)").match(text, at)
            assert match is not None, "a float begins with digits"
        found.append(_RustToken(kind, match[kind], match.start(kind), match["suffix"] or ""))
        at = match.end()
    found.append(_RustToken("end", "", len(text)))
    return found


class _RustParser(TokenReader[_RustToken]):
    """Reads one expression."""

    cut_off = "unexpected token"

    def __init__(self, text: str) -> None:
        super().__init__(text, _split(text))

    def whole(self) -> Expression:
        """An expression, perhaps one that assigns.

        Raises:
            CommandError: it means nothing.
        """
        self._depth += 1
        if self._depth > _DEPTH:
            raise CommandError("the expression is nested too deeply")
        node = self._range()
        if self.peek.kind == "op" and self.peek.text in _ASSIGN:
            word = self._take().text
            node = Expression("assign", word[:-1], (node, self.whole()))
        self._depth -= 1
        return node

    def _range(self) -> Expression:
        none = Expression("none")
        low = none if self._is("..", "..=") else self._binary(0)
        if not self._is("..", "..="):
            return low
        word = self._take().text
        high = none if self.peek.kind == "end" or self._is("]", ")", ",") else self._binary(0)
        return Expression("range", word, (low, high))

    def _binary(self, floor: int) -> Expression:
        left = self._unary()
        while True:
            if self.peek.kind == "name" and self.peek.text == "as" and floor < _AS:
                self._take()
                left = Expression("cast", "", (left,), TypeName((self._type(),)))
                continue
            strength = _BINARY.get(self.peek.text, -1) if self.peek.kind == "op" else -1
            if strength <= floor:
                return left
            word = self._take().text
            left = Expression("binary", word, (left, self._binary(strength)))

    def _unary(self) -> Expression:
        self._depth += 1
        if self._depth > _DEPTH:
            raise CommandError("the expression is nested too deeply")
        try:
            if self._is("&&"):  # two signs
                self._take()
                return Expression("unary", "&", (Expression("unary", "&", (self._unary(),)),))
            if self._is("-", "+", "!", "*", "&"):
                word = self._take().text
                if word == "&" and self.peek.text == "mut":
                    self._take()
                return Expression("unary", word, (self._unary(),))
            return self._postfix(self._primary())
        finally:
            self._depth -= 1

    def _postfix(self, node: Expression) -> Expression:
        while self._is("[", "(", "."):
            word = self._take().text
            if word == "[":
                node = Expression("index", "", (node, self.whole()))
                self._expect("]")
            elif word == "(":
                node = Expression("call", "", (node, *self._list(")")))
            elif self.peek.kind == "number":
                node = Expression("field", self._take().text, (node,))
            elif self.peek.kind == "name":
                node = Expression("member", self._take().text, (node,))
            else:
                raise CommandError("field name expected")
        return node

    def _list(self, closing: str) -> list[Expression]:
        found: list[Expression] = []
        while not self._is(closing):
            found.append(self.whole())
            if not self._is(","):
                break
            self._take()
        self._expect(closing)
        return found

    def _primary(self) -> Expression:
        word = self.peek
        if word.kind in ("number", "float", "char", "string", "bytes", "raw", "byte", "dollar"):
            self._take()
            return Expression(word.kind, word.text, suffix=word.suffix)
        if self._is("("):
            return self._brackets()
        if self._is("<"):  # <Type as Trait>::function
            group = self._group()
            return Expression("name", f"{group}::{self._path()}")
        if self._is("["):
            return self._array()
        if word.kind == "name" or self._is("::"):
            return self._named()
        self._wrong()
        raise AssertionError("it raises")

    def _brackets(self) -> Expression:
        self._take()
        if self._is(")"):
            self._take()
            return Expression("unit")
        node = self.whole()
        if self._is(","):
            self._take()
            return Expression("tuple", "", (node, *self._list(")")))
        self._expect(")")
        return node

    def _array(self) -> Expression:
        self._take()
        if self._is("]"):
            raise CommandError("empty arrays have no type")
        first = self.whole()
        if self._is(";"):
            self._take()
            node = Expression("filled", "", (first, self.whole()))
            self._expect("]")
            return node
        if self._is(","):
            self._take()
        return Expression("list", "", (first, *self._list("]")))

    def _named(self) -> Expression:
        word = self.peek
        if word.text in ("true", "false"):
            self._take()
            return Expression("truth", word.text)
        if word.text == "sizeof":
            return self._sizeof()
        name = self._path()
        return self._structure(name) if self._is("{") else Expression("name", name)

    def _structure(self, name: str) -> Expression:
        """The fields of a structure: "{x: 1, y, ..other}"."""
        self._take()
        parts: list[Expression] = []
        while not self._is("}"):
            if self._is(".."):
                self._take()
                parts.append(Expression("base", "", (self.whole(),)))
                break
            if self.peek.kind not in ("name", "number"):
                raise CommandError("'}', '..', or identifier expected")
            word = self._take()
            field = f"__{word.text}" if word.kind == "number" else word.text
            value = Expression("name", field)
            if self._is(":"):
                self._take()
                value = self.whole()
            parts.append(Expression("part", field, (value,)))
            if not self._is(","):
                break
            self._take()
        self._expect("}")
        return Expression("made", name, tuple(parts))

    def _sizeof(self) -> Expression:
        self._take()
        self._expect("(")
        node = self.whole()
        self._expect(")")
        return Expression("sizeof", "", (node,))

    # -- names and types --------------------------------------------------------------------

    def _path(self) -> str:
        """A path: "core::option::Option<i32>"."""
        found = self._take().text if self.peek.kind == "name" else ""
        while self._is("::") or (self.peek.kind == "name" and self.peek.text.startswith("::")):
            if self.peek.kind == "name":
                found += self._take().text
                continue
            self._take()
            if self._is("<"):
                found += self._group()
            elif self._is("{"):
                start = self._take().at
                while not self._is("}") and self.peek.kind != "end":
                    self._take()
                found += "::" + self._text[start : self.peek.at + 1]
                self._expect("}")
            elif self.peek.kind != "name":
                self._wrong()
            else:
                found += f"::{self._take().text}"
        return found.removeprefix("::")

    def _group(self) -> str:
        """A text up to the bracket that closes the one here."""
        start = self.peek.at
        open_ = list[str]()
        while self.peek.kind != "end":
            text = self._take().text
            if text in _CLOSING:
                open_.append(_CLOSING[text])
            for letter in text if text in (")", "]", ">", ">>") else "":
                if not open_ or open_.pop() != letter:
                    self._wrong()
            if not open_:
                return self._text[start : self._words[self._at - 1].at + len(text)]
        self._wrong()
        raise AssertionError("it raises")

    def _type(self) -> str:
        """A type as it is written: "*const u8", "&mut [i32]", "[u8; 4]", "core::fmt::Error"."""
        start = self.peek.at
        while self._is("*", "&", "&&") or (
            self.peek.kind == "name" and self.peek.text in ("mut", "const", "dyn")
        ):
            self._take()
        if self._is("(", "["):
            self._group()
        elif self.peek.kind == "name":
            self._path()
            if self._is("<"):
                self._group()
        else:
            self._wrong()
        last = self._words[self._at - 1]
        return self._text[start : last.at + len(last.text)]
