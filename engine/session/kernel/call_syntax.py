"""Calls as a user writes them: FUNC(ARGS), with C's literals, buffers and initialised objects."""

from typing import Final

from msgspec import Struct

from engine.errors import CommandError
from engine.language.tokens import Token, characters, split

BUFFER_MAX: Final = 16 << 20
_DEEP: Final = 32
_LEAST: Final = -(1 << 63)
_MASK: Final = (1 << 64) - 1
_CONSTANTS: Final = {"NULL": 0, "false": 0, "true": 1, "GFP_KERNEL": 0xCC0}
"""Names that are macros; GFP_KERNEL is the same number in all kernels at hand."""
_KINDS: Final = (
    "numbers, 'c', \"text\", &name[SIZE], (u32[]){1, 2}, (struct s){.member = 1}, names of"
    " buffers and symbols are"
)


class Number(Struct, frozen=True):
    """A number; below zero as it was written."""

    value: int


class Text(Struct, frozen=True):
    """A string's bytes, its NUL among them."""

    data: bytes
    user: bool = False


class Buffer(Struct, frozen=True):
    """Memory of a name that the function may write: `&buf[16]`; without a size by its type."""

    name: str
    size: int | None
    user: bool = False


class Named(Struct, frozen=True):
    """A buffer that was named before, a symbol, or a name of an enumeration."""

    name: str


class Initial(Struct, frozen=True):
    """A value between the braces of an object, and the member or element that it is for.

    Attributes:
        path: names of members and numbers of elements; empty for the next one.
        value: the value between the braces.
    """

    path: tuple[str | int, ...]
    value: "Argument | Braces"


class Braces(Struct, frozen=True):
    """Values in braces."""

    values: tuple[Initial, ...]


class Object(Struct, frozen=True):
    """A compound literal.

    Attributes:
        type: words of its type: ("struct", "qstr"), stars as "*".
        is_array: its type ends with "[]": it has as many elements as values.
        by_address: its address is meant (`&`; of an array always).
        values: of its parts.
        user: it lies in user memory.
    """

    type: tuple[str, ...]
    is_array: bool
    by_address: bool
    values: Braces
    user: bool = False


Argument = Number | Text | Buffer | Named | Object


class WrittenCall(Struct, frozen=True):
    """A call as written.

    Attributes:
        text: the call's text.
        function: name of the function.
        arguments: what it is called with.
    """

    text: str
    function: str
    arguments: tuple[Argument, ...]


def read_call(text: str) -> WrittenCall:
    """Read a call.

    Raises:
        CommandError: it is none, or an argument is none; the text says which.
    """
    return _CallReader(text).call()


class _CallReader:
    """Reads one call."""

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            self._tokens = split(text.rstrip().removesuffix(";"))
        except CommandError as error:
            raise self._error(str(error)) from error
        self._at = 0
        self._depth = 0

    def _error(self, what: str) -> CommandError:
        return CommandError(f"{self._text}: {what}")

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _has(self, text: str) -> bool:
        """True, and it is passed, if an operator comes next."""
        token = self._next
        found = token.kind == "op" and token.text == text
        self._at += found
        return found

    def _need(self, text: str) -> None:
        if not self._has(text):
            raise self._error(f"{text!r} is missing {self._where()}")

    def _where(self) -> str:
        token = self._next
        if token.kind == "end":
            return "at the end"
        return f"in front of {self._text[token.at :][:20]!r}"

    def call(self) -> WrittenCall:
        """All of it."""
        name = self._name()
        if not name or not self._has("("):
            raise self._error("a call is needed, as in 'strlen(\"hello\")'")
        arguments: list[Argument] = []
        if not self._has(")"):
            arguments.append(self._argument())
            while self._has(","):
                arguments.append(self._argument())
            self._need(")")
        if self._next.kind != "end":
            raise self._error(f"too much: {self._text[self._next.at :]!r}")
        return WrittenCall(self._text.strip(), name, tuple(arguments))

    def _name(self) -> str:
        """A name of a function; compilers' copies have dots in theirs."""
        if self._next.kind != "name":
            return ""
        first = last = self._take()
        while self._next.at == last.at + len(last.text) and (
            self._next.text.startswith(".") or last.text == "."
        ):
            last = self._take()
        return self._text[first.at : last.at + len(last.text)]

    def _argument(self) -> Argument:
        self._depth += 1
        if self._depth > _DEEP:
            raise self._error("too deep")
        try:
            return self._value()
        finally:
            self._depth -= 1

    def _value(self) -> Argument:
        token = self._next
        user = False
        if token.kind == "name" and token.text == "__user":
            self._at += 1
            user, token = True, self._next
        if token.kind in ("char", "string"):
            return self._quoted(user)
        if token.kind == "number" or (token.kind == "op" and token.text in "+-~"):
            return Number(self._number())
        if token.kind == "op" and token.text == "(":
            return self._object(by_address=False, user=user)
        if self._has("&"):
            if self._next.kind == "op" and self._next.text == "(":
                return self._object(by_address=True, user=user)
            name = self._needed_name()
            if not self._has("["):
                return Buffer(name, None, user)
            size = self._number()
            self._need("]")
            if not 0 < size <= BUFFER_MAX:
                raise self._error(f"&{name}[{size}]: a buffer has 1 to {BUFFER_MAX} bytes")
            return Buffer(name, size, user)
        if token.kind == "name":
            name = self._name()
            return Number(_CONSTANTS[name]) if name in _CONSTANTS else Named(name)
        raise self._error(f"no argument {self._where()}; {_KINDS}")

    def _needed_name(self) -> str:
        name = self._name()
        if not name:
            raise self._error(f"a name is missing {self._where()}")
        return name

    def _number(self) -> int:
        """A number behind its operators, which count in 64 bits, the innermost first."""
        operators = []
        while self._next.kind == "op" and self._next.text in "+-~":
            operators.append(self._take().text)
        if self._next.kind != "number":
            raise self._error(f"a number is missing {self._where()}")
        digits = self._take().text
        octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
        try:
            value = int(digits, 8 if octal else 0)
        except ValueError:
            raise self._error(f"{digits}: no number") from None
        for operator in ("+", *reversed(operators)):
            if operator == "-":
                value = -value
            elif operator == "~":
                value = ~value if ~value >= _LEAST else ~value & _MASK
            if not _LEAST <= value <= _MASK:
                raise self._error(f"{value}: does not fit 64 bits")
        return value

    def _quoted(self, user: bool) -> Argument:
        try:
            if self._next.kind == "char":
                letters = characters(self._take().text)
                if len(letters) != 1:
                    raise CommandError("one character between '' is needed")
                return Number(letters[0])
            data = b""
            while self._next.kind == "string":
                data += characters(self._take().text)
        except CommandError as error:
            raise self._error(str(error)) from error
        return Text(data + b"\0", user)

    def _object(self, *, by_address: bool, user: bool) -> Argument:
        """A compound literal, or a number with a cast in front, which says nothing."""
        self._need("(")
        words: list[str] = []
        while self._next.kind == "name" or (words and self._next.text == "*"):
            word = self._take().text
            if word not in ("const", "volatile"):
                words.append(word)
        is_array = self._has("[")
        if is_array:
            self._need("]")
        self._need(")")
        if not words:
            raise self._error(f"a type is missing {self._where()}")
        if self._next.kind == "op" and self._next.text == "{":
            braces = self._braces()
            return Object(tuple(words), is_array, by_address or is_array, braces, user)
        if by_address or is_array:
            raise self._error(f"'{{' is missing {self._where()}")
        return self._argument()

    def _braces(self) -> Braces:
        self._depth += 1
        if self._depth > _DEEP:
            raise self._error("too deep")
        self._need("{")
        values: list[Initial] = []
        while not self._has("}"):
            if values:
                self._need(",")
                if self._has("}"):
                    break
            path = self._path()
            nested = self._next.kind == "op" and self._next.text == "{"
            values.append(Initial(path, self._braces() if nested else self._argument()))
        self._depth -= 1
        return Braces(tuple(values))

    def _path(self) -> tuple[str | int, ...]:
        """The designators of a value: `.a.b = `, `[2] = `."""
        path: list[str | int] = []
        while True:
            if self._has("."):
                if self._next.kind != "name":
                    raise self._error(f"a member's name is missing {self._where()}")
                path.append(self._take().text)
            elif self._has("["):
                path.append(self._number())
                self._need("]")
            else:
                break
        if path:
            self._need("=")
        return tuple(path)
