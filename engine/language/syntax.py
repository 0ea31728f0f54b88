"""Expressions as trees, by the precedence of C's operators and gdb's `@`.

gdb: gdb/c-exp.y.
"""

from collections.abc import Callable
from typing import Final, NoReturn

from msgspec import Struct

from engine.errors import CommandError
from engine.language.token_reader import TokenReader
from engine.language.tokens import Token, split

_BINARY: Final = {
    "||": 2,
    "&&": 3,
    "|": 4,
    "^": 5,
    "&": 6,
    "==": 7,
    "!=": 7,
    "<": 8,
    ">": 8,
    "<=": 8,
    ">=": 8,
    "<<": 9,
    ">>": 9,
    "@": 10,
    "+": 11,
    "-": 11,
    "*": 12,
    "/": 12,
    "%": 12,
    ".*": 13,
    "->*": 13,
}
_ASSIGN: Final = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))
_UNARY: Final = frozenset(("-", "+", "~", "!", "*", "&", "++", "--"))
_TYPE_WORDS: Final = frozenset(
    (
        *("struct", "union", "enum", "class", "const", "volatile", "unsigned", "signed"),
        *("char", "short", "int", "long", "float", "double", "void", "bool", "_Bool"),
    )
)
_TYPE_OF: Final = frozenset(("decltype", "__decltype", "typeof", "__typeof", "__typeof__"))
"""Words that make a type of the expression behind them."""
_ALIGN_OF: Final = frozenset(("alignof", "_Alignof", "__alignof__"))
_CASTS: Final = frozenset(("dynamic_cast", "static_cast", "reinterpret_cast", "const_cast"))
_DEPTH: Final = 200


class TakenTypes(Struct, frozen=True):
    """A function's parameters, as they are written behind the type of its result.

    Attributes:
        types: its parameters; None where nothing stands between the parentheses.
        more: it takes more of any type.
    """

    types: "tuple[TypeName, ...] | None"
    more: bool = False


class TypeName(Struct, frozen=True):
    """A type as it is written.

    Attributes:
        words: of its name, in the order in which they stand, const and volatile left out.
        suffixes: "*", "&", "[N]" and what functions take behind it, the innermost first.
        of: the expression whose type it is, `decltype(EXPR)`; None for a name.
        constant: `const` stands beside its name.
    """

    words: tuple[str, ...]
    suffixes: tuple[str | TakenTypes, ...] = ()
    of: "Expression | None" = None
    constant: bool = False


class Expression(Struct, frozen=True):
    """A part of an expression.

    Attributes:
        kind: "number", "float", "char", "string", "name", "scoped" (the text is its file or
            function), "entry" (a parameter as the function was called with it), "dollar",
            "unary", "postfix", "binary", "assign", "choice", "cast", "sizeof", "sizeof type",
            "alignof", "typeid", "type", "index", "call", "made" (a type and what its value is made
            from), "member", "arrow", "comma", "brace", or C++'s casts by their names,
            "static_cast".
        text: the operator, the name or the constant.
        parts: what it is made of.
        type: of a cast, a sizeof and a brace.
        suffix: u and l letters of a number.
    """

    kind: str
    text: str = ""
    parts: tuple["Expression", ...] = ()
    type: TypeName | None = None
    suffix: str = ""


def parse(
    text: str,
    is_type: Callable[[str], bool],
    is_known: Callable[[str], bool] = lambda name: False,
    check: Callable[[str], None] = lambda name: None,
) -> Expression:
    """The tree of an expression.

    Args:
        text: the expression's text.
        is_type: tells whether a name is that of a type.
        is_known: the same of a name with a template's arguments, which may be a variable's or a
            function's too.
        check: refuses a name that means nothing; gdb tells of one before a mistake behind it.

    Raises:
        CommandError: it means nothing.
    """
    parser = _Parser(text, is_type, is_known, check)
    node = parser.comma()
    parser.end()
    return node


def parse_type(
    text: str,
    is_type: Callable[[str], bool],
    is_known: Callable[[str], bool] = lambda name: False,
) -> TypeName | None:
    """A type's name that stands alone; None where it is none.

    Raises:
        CommandError: it begins as a type and means nothing.
    """
    parser = _Parser(text, is_type, is_known)
    if not parser.at_type():
        return None
    found = parser.type_name()
    return found if parser.peek.kind == "end" else None


class _Parser(TokenReader[Token]):
    """Reads one expression."""

    trouble = "A syntax error in expression, near `{}'."
    cut_off = "A syntax error in expression, near `'."

    def __init__(
        self,
        text: str,
        is_type: Callable[[str], bool],
        is_known: Callable[[str], bool],
        check: Callable[[str], None] = lambda name: None,
    ) -> None:
        super().__init__(text, split(text, is_known))
        self._is_type, self._check = is_type, check

    def _wrong(self) -> NoReturn:
        before, seen = "", set(_TYPE_WORDS)
        for word in self._words[: self._at]:
            if word.kind == "name" and before not in (".", "->") and word.text not in seen:
                seen.add(word.text)  # to look a name up may cost a look at all files
                if not self._is_type(word.text):
                    self._check(word.text)
            before = word.text
        super()._wrong()

    def comma(self) -> Expression:
        """The whole."""
        node = self._assign()
        while self._is(","):
            self._take()
            node = Expression("comma", ",", (node, self._assign()))
        return node

    def _assign(self) -> Expression:
        self._depth += 1
        if self._depth > _DEPTH:
            raise CommandError("the expression is nested too deeply")
        left = self._choice()
        if self.peek.kind == "op" and self.peek.text in _ASSIGN:
            word = self._take().text
            left = Expression("assign", word[:-1], (left, self._assign()))
        self._depth -= 1
        return left

    def _choice(self) -> Expression:
        condition = self._binary(0)
        if not self._is("?"):
            return condition
        self._take()
        yes = self.comma()
        self._expect(":")
        return Expression("choice", "?", (condition, yes, self._choice()))

    def _binary(self, floor: int) -> Expression:
        left = self._unary()
        while self.peek.kind == "op":
            strength = _BINARY.get(self.peek.text, -1)
            if strength <= floor:
                break
            word = self._take().text
            left = Expression("binary", word, (left, self._binary(strength)))
        return left

    def _unary(self) -> Expression:
        self._depth += 1
        if self._depth > _DEPTH:
            raise CommandError("the expression is nested too deeply")
        try:
            return self._unary_here()
        finally:
            self._depth -= 1

    def _unary_here(self) -> Expression:
        if self.peek.kind == "op" and self.peek.text in _UNARY:
            word = self._take().text
            return Expression("unary", word, (self._unary(),))
        if self.peek.kind == "name" and self.peek.text == "sizeof":
            return self._sizeof()
        if self.peek.kind == "name" and self.peek.text in _ALIGN_OF and self._next_is("("):
            return self._of_type_or_value("alignof")
        if (name := self._type_within("(", ")")) is not None:
            if self._begins_operand():
                return Expression("cast", "", (self._unary(),), name)
            return Expression("type", "", (), name)
        if (name := self._type_within("{", "}")) is not None:
            return Expression("brace", "", (self._unary(),), name)
        return self._postfix(self._primary())

    def _of_type_or_value(self, kind: str) -> Expression:
        """A word with a type or an expression between parentheses: `typeid(x)`."""
        self._take()
        if (name := self._type_within("(", ")")) is not None:
            return Expression(kind, "", (), name)
        self._expect("(")
        inner = self.comma()
        self._expect(")")
        return Expression(kind, "", (inner,))

    def _type_within(self, opening: str, closing: str) -> TypeName | None:
        """The type between two brackets; None, and nothing taken, where no type is there."""
        if not self._is(opening):
            return None
        mark = self._at
        self._take()
        if not self.at_type():
            self._at = mark
            return None
        name = self.type_name()
        self._expect(closing)
        return name

    def _sizeof(self) -> Expression:
        self._take()
        if self._is("("):
            mark = self._at
            self._take()
            if self.at_type():
                name = self.type_name()
                self._expect(")")
                return Expression("sizeof type", "", (), name)
            self._at = mark
        return Expression("sizeof", "", (self._unary(),))

    def _begins_operand(self) -> bool:
        token = self.peek
        return token.kind not in ("op", "end") or (
            token.kind == "op"
            and token.text in ("(", "-", "+", "~", "!", "*", "&", "{", "++", "--")
        )

    def _postfix(self, node: Expression) -> Expression:
        while self.peek.kind == "op":
            word = self.peek.text
            if word == "[":
                self._take()
                node = Expression("index", "", (node, self.comma()))
                self._expect("]")
            elif word == "(":
                self._take()
                node = Expression("call", "", (node, *self._arguments(")")))
            elif word in (".", "->"):
                self._take()
                if self.peek.kind != "name":
                    self._wrong()
                kind = "member" if word == "." else "arrow"
                node = Expression(kind, self._take().text, (node,))
            elif word in ("++", "--"):
                self._take()
                node = Expression("postfix", word, (node,))
            else:
                break
        return node

    def _primary(self) -> Expression:
        token = self.peek
        match token.kind:
            case "number" | "float" | "char":
                self._take()
                return Expression(token.kind, token.text, suffix=token.suffix)
            case "string":
                mark, whole = "", ""
                while self.peek.kind == "string":
                    own, _, text = self._take().text.partition('"')
                    mark, whole = mark or own, whole + text[:-1]
                return Expression("string", f'{mark}"{whole}"')
            case "dollar":
                self._take()
                return Expression("dollar", token.text)
            case "name" | "quoted":
                return self._name()
        if self._is("("):
            self._take()
            node = self.comma()
            self._expect(")")
            return node
        if self._is("::"):
            self._take()
            return Expression("name", "::" + self._name().text)
        self._wrong()
        raise AssertionError("it raises")

    def _named_cast(self) -> Expression:
        """`static_cast<TYPE>(EXPR)`."""
        word = self._take().text
        self._expect("<")
        if not self.at_type():
            self._wrong()
        name = self.type_name()
        self._expect(">")
        self._expect("(")
        inner = self.comma()
        self._expect(")")
        return Expression(word, word, (inner,), name)

    def _name(self) -> Expression:
        if self.peek.text in _CASTS and self._next_is("<"):
            return self._named_cast()
        if self.peek.text == "typeid" and self._next_is("("):
            return self._of_type_or_value("typeid")
        if self.at_type():
            name = self.type_name()
            return self._made(name) if self._is("{") else Expression("type", "", (), name)
        token = self._take()
        text = token.text.strip("'")
        if token.kind == "quoted" and self._is("::"):
            self._take()
            return Expression("scoped", text, (self._name(),))
        if self._text.startswith("@entry", self.peek.at) and self._next_is_word("entry"):
            self._take()
            self._take()
            return Expression("entry", text)
        return Expression("name", text)

    def _made(self, name: TypeName) -> Expression:
        """`TYPE{VALUE, VALUE}`."""
        self._take()
        parts = self._arguments("}")
        return Expression("made", "", tuple(parts), name)

    def _arguments(self, closing: str) -> list[Expression]:
        """Expressions with commas between them, and the bracket that closes them."""
        found: list[Expression] = []
        while not self._is(closing):
            found.append(self._assign())
            if not self._is(","):
                break
            self._take()
        self._expect(closing)
        return found

    def _next_is_word(self, word: str) -> bool:
        following = self._words[min(self._at + 1, len(self._words) - 1)]
        return following.kind == "name" and following.text == word

    # -- types ------------------------------------------------------------------------------

    def at_type(self) -> bool:
        """True if a type's name begins here."""
        token = self.peek
        if token.kind != "name":
            return False
        if token.text in _TYPE_OF and self._next_is("("):
            return True
        return token.text in _TYPE_WORDS or self._is_type(token.text)

    def type_name(self) -> TypeName:
        """The type that begins here."""
        if self.peek.text in _TYPE_OF and self._next_is("("):
            word = self._take().text
            self._take()
            inner = self.comma()
            self._expect(")")
            return TypeName((word,), tuple(self._suffixes()), inner)
        words: list[str] = []
        plain = constant = False
        while self.peek.kind == "name":
            word = self.peek.text
            if word in ("struct", "union", "enum", "class"):
                self._take()
                if self.peek.kind != "name":
                    self._wrong()
                words += [word, self._take().text]
                plain = True
            elif word in _TYPE_WORDS:
                self._take()
                constant |= word == "const"
                if word not in ("const", "volatile"):
                    words.append(word)
                    plain = True
            elif not plain and self._is_type(word):
                words.append(self._take().text)
                plain = True
            else:
                break
        if not words:
            self._wrong()
        return TypeName(tuple(words), tuple(self._suffixes()), constant=constant)

    def _suffixes(self) -> list[str | TakenTypes]:
        """The abstract declarator behind a type's name."""
        found: list[str | TakenTypes] = []
        while self._is("*", "&") or (
            self.peek.kind == "name" and self.peek.text in ("const", "volatile")
        ):
            word = self._take().text
            if word in "*&":
                found.append(word)
        inner: list[str | TakenTypes] = []
        if self._is("(") and self._next_is("*", "&"):
            self._take()
            inner = self._suffixes()
            self._expect(")")
        behind: list[str | TakenTypes] = []
        while self._is("[") or (self._is("(") and self._at_taken()):
            if self._take().text == "(":
                behind.append(self._taken())
                continue
            count = "" if self._is("]") else self._take().text
            if count and not count.isdigit():
                self._wrong()
            self._expect("]")
            behind.append(f"[{count}]")
        return found + behind[::-1] + inner

    def _at_taken(self) -> bool:
        """True if a function's parameters stand behind the parenthesis that begins here."""
        if self._next_is(")"):
            return True
        self._at += 1
        found = self.at_type()
        self._at -= 1
        return found

    def _taken(self) -> TakenTypes:
        """Read a function's parameters, to the closing parenthesis."""
        types: list[TypeName] = []
        more = False
        while not self._is(")"):
            if types:
                self._expect(",")
            if self._is("."):
                for _ in range(3):
                    self._expect(".")
                more = True
                break
            types.append(self.type_name())
        self._expect(")")
        if len(types) == 1 and types[0].words == ("void",) and not types[0].suffixes:
            return TakenTypes(())
        return TakenTypes(tuple(types) if types or more else None, more)

    def _next_is(self, *texts: str) -> bool:
        following = self._words[self._at + 1] if self._at + 1 < len(self._words) else self.peek
        return following.kind == "op" and following.text in texts
