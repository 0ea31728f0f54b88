"""Expressions of Go as trees (The Go Programming Language Specification, "Expressions").

The trees are those of `syntax`; what C has no words for is "slice" with its bounds, "assertion"
and "gotype" with a type by its text, and "truth". A conversion is a "call" of a type.
"""

import re
from typing import Final

from msgspec import Struct

from engine.errors import CommandError
from engine.language.syntax import Expression
from engine.language.token_reader import TokenReader

_WORDS: Final = re.compile(
    r"""\s*(?:
    (?P<float>0[xX][0-9a-fA-F_.]*[pP][+-]?\d+|\d[\d_]*\.[\d_]*(?:[eE][+-]?\d+)?
        |\.\d[\d_]*(?:[eE][+-]?\d+)?|\d[\d_]*[eE][+-]?\d+)
    |(?P<number>0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+(?!\d)|\d[\d_]*)(?![\w.])
    |(?P<name>~?[^\W\d]\w*)
    |(?P<dollar>\$(?:\$\d+|\$|\w+)?)
    |(?P<char>'(?:[^'\\]|\\(?:x..|u.{4}|U.{8}|[0-7]{3}|.))')
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<raw>`[^`]*`)
    |(?P<op><<=|>>=|&\^=|&\^|<-|\.\.\.|->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::
        |[-+*/%&|^!<>=:,.;()\[\]{}@~])
    )""",
    re.VERBOSE,
)
_BINARY: Final = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), 3),
    **dict.fromkeys(("+", "-", "|", "^"), 4),
    **dict.fromkeys(("*", "/", "%", "<<", ">>", "&", "&^"), 5),
    "@": 6,
}
_ASSIGN: Final = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))
_UNARY: Final = frozenset(("-", "+", "!", "^", "*", "&"))
_TYPE_WORDS: Final = frozenset(("map", "chan", "func", "struct", "interface"))
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_DEPTH: Final = 200


class _GoToken(Struct, frozen=True):
    """A word: its kind, its text, its first character and the one behind it."""

    kind: str
    text: str
    at: int
    end: int


def parse_go(text: str) -> Expression:
    """The tree of an expression.

    Raises:
        CommandError: it means nothing.
    """
    parser = _GoParser(text)
    node = parser.several()
    parser.end()
    return node


def _split(text: str) -> list[_GoToken]:
    found: list[_GoToken] = []
    at = 0
    while text[at:].strip():
        match = _WORDS.match(text, at)
        if match is None:
            raise CommandError(f"Syntax error near '{text[at:].strip()}'")
        kind = match.lastgroup or "op"
        found.append(_GoToken(kind, match[kind], match.start(kind), match.end()))
        at = match.end()
    found.append(_GoToken("end", "", len(text), len(text)))
    return found


class _GoParser(TokenReader[_GoToken]):
    """Reads one expression."""

    def __init__(self, text: str) -> None:
        super().__init__(text, _split(text))

    def several(self) -> Expression:
        """An expression, or an address and a length.

        Raises:
            CommandError: it means nothing.
        """
        node = self.whole()
        if self._is(","):
            self._take()
            node = Expression("comma", "", (node, self.whole()))
        return node

    def whole(self) -> Expression:
        """An expression, perhaps one that assigns.

        Raises:
            CommandError: it means nothing.
        """
        node = self._binary(0)
        if self.peek.kind == "op" and self.peek.text in _ASSIGN:
            word = self._take().text
            node = Expression("assign", word[:-1], (node, self.whole()))
        return node

    def _binary(self, floor: int) -> Expression:
        left = self._unary()
        while self.peek.kind == "op":
            strength = _BINARY.get(self.peek.text, -1)
            if strength <= floor:
                return left
            word = self._take().text
            left = Expression("binary", word, (left, self._binary(strength)))
        return left

    def _unary(self) -> Expression:
        self._depth += 1
        if self._depth > _DEPTH:
            raise CommandError("the expression is nested too deeply")
        try:
            if self._is("<-"):
                raise CommandError("An expression does not receive from channels.")
            if self.peek.kind == "op" and self.peek.text in _UNARY:
                word = self._take().text
                return Expression("unary", word, (self._unary(),))
            return self._postfix(self._primary())
        finally:
            self._depth -= 1

    def _postfix(self, node: Expression) -> Expression:
        while self._is("[", "(", ".", "->"):
            word = self._take().text
            if word == "[":
                node = self._index(node)
            elif word == "(":
                node = Expression("call", "", (node, *self._list()))
            elif self._is("("):
                self._take()
                node = Expression("assertion", self._type_until(")"), (node,))
            elif self.peek.kind == "name":
                node = Expression("member", self._take().text, (node,))
            else:
                self._wrong()
        return node

    def _index(self, node: Expression) -> Expression:
        """An element, or a slice: what stands behind an opening bracket."""
        none = Expression("none")
        bounds = [none if self._is(":") else self.whole()]
        while self._is(":") and len(bounds) < 3:
            self._take()
            bounds.append(none if self._is(":", "]") else self.whole())
        self._expect("]")
        if len(bounds) == 1:
            return Expression("index", "", (node, bounds[0]))
        return Expression("slice", "", (node, *bounds))

    def _list(self) -> list[Expression]:
        found: list[Expression] = []
        while not self._is(")"):
            found.append(self.whole())
            if not self._is(","):
                break
            self._take()
        self._expect(")")
        return found

    def _primary(self) -> Expression:
        word = self.peek
        if word.kind == "string" and self._words[self._at + 1].text == ".":
            self._take()  # a package by its path: "encoding/json".Marshal
            self._take()
            if self.peek.kind != "name":
                self._wrong()
            return Expression("name", f"{word.text[1:-1]}.{self._take().text}")
        if word.kind in ("number", "float", "char", "string", "raw", "dollar"):
            self._take()
            return Expression(word.kind, word.text)
        if self._is("("):
            self._take()
            node = self.whole()
            self._expect(")")
            return node
        if self._is("[") or word.text in _TYPE_WORDS:
            return Expression("gotype", self._type())
        if word.kind == "name":
            self._take()
            if word.text in ("true", "false"):
                return Expression("truth", word.text)
            return Expression("name", word.text)
        self._wrong()
        raise AssertionError("it raises")

    # -- types ------------------------------------------------------------------------------

    def _type_until(self, closing: str) -> str:
        """A type as it is written, up to a bracket that closes."""
        start = self.peek.at
        while not self._is(closing):
            if self.peek.kind == "end":
                self._wrong()
            self._group() if self._is(*_CLOSING) else self._take()
        text = self._text[start : self.peek.at].strip()
        self._take()
        return text

    def _group(self) -> None:
        """A bracket and all up to the one that closes it."""
        closing = _CLOSING[self._take().text]
        while not self._is(closing):
            if self.peek.kind == "end":
                self._wrong()
            self._group() if self._is(*_CLOSING) else self._take()
        self._take()

    def _type(self) -> str:
        """A type that begins with a word or bracket of its own: "[]int", "map[string]int"."""
        start = self.peek.at
        self._element()
        return self._text[start : self._words[self._at - 1].end].strip()

    def _element(self) -> None:
        word = self.peek
        if self._is("["):
            self._group()
            self._element()
        elif self._is("*", "("):
            self._group() if self._is("(") else self._take()
            if word.text == "*":
                self._element()
        elif word.kind == "string":
            self._take()
            self._expect(".")
            self._take()
        elif word.text in _TYPE_WORDS:
            self._composite(self._take().text)
        elif word.kind == "name":
            self._take()
            while self._is("."):
                self._take()
                self._take()
        else:
            self._wrong()

    def _composite(self, word: str) -> None:
        """The rest of a type behind the word that begins it."""
        if word == "map":
            self._group() if self._is("[") else self._wrong()
            self._element()
        elif word == "chan":
            self._element()
        elif word == "func":
            self._group() if self._is("(") else self._wrong()
            if self._is("("):
                self._group()
        else:
            self._group() if self._is("{") else self._wrong()
