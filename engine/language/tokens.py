"""The words of an expression."""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.errors import CommandError
from engine.image.dies import MAX_CHAIN

_WORDS: Final = re.compile(
    r"""\s*(?:
    (?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlL]?|\d+[eE][+-]?\d+[fFlL]?)
    |(?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?P<suffix>[uUlL]*)(?![\w.])
    |(?P<char>(?:u8|[LuU])?'(?:[^'\\]|\\.[^']*)')
    |(?P<string>(?:u8|[LuU])?"(?:[^"\\]|\\.)*")
    |(?P<name>(?:[A-Za-z_]\w*::)*operator\s*(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|&&|\|\||\+\+|--
        |[-+*/%&|^=!<>]=?|[,~])|[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)*)
    |(?P<dollar>\$(?:\$\d+|\$|\w+)?)
    |(?P<quoted>'[^']{2,}')
    |(?P<op><<=|>>=|->\*|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|\.\*
        |[-+*/%&|^~!<>=?:,.()\[\]{}@])
    )""",
    re.VERBOSE,
)
_REST: Final = re.compile(r"(?:::~?[A-Za-z_]\w*)+")
"""Path behind a template in a name."""
_ESCAPES: Final = {
    "n": 10,
    "t": 9,
    "r": 13,
    "a": 7,
    "b": 8,
    "f": 12,
    "v": 11,
    "e": 27,
    "0": 0,
    "\\": 92,
    "'": 39,
    '"': 34,
    "?": 63,
}
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|(.))", re.DOTALL)


LIBRARY_FUNCTIONS: Final = frozenset(("std::get", "get", "std::any_cast", "any_cast"))
"""Functions that are written with what they are asked for between angle brackets."""


class Token(Struct, frozen=True):
    """A word.

    Attributes:
        kind: "number", "float", "name", "dollar", "char", "string", "op" or "end".
        text: the word as it is written.
        at: its first character in the expression.
        suffix: of a number: its u and l letters.
    """

    kind: str
    text: str
    at: int
    suffix: str = ""


def split(text: str, is_known: Callable[[str], bool] = lambda name: False) -> list[Token]:
    """The words of an expression, an "end" behind the last.

    Args:
        text: the expression.
        is_known: tells whether a name with a template's arguments is that of a type, a variable
            or a function.

    Raises:
        CommandError: it has something that is no word.
    """
    found: list[Token] = []
    at = 0
    while text[at:].strip():
        match = _WORDS.match(text, at)
        if match is None:
            rest = text[at:].strip()
            if rest[0] == '"':
                raise CommandError("Unterminated string in expression.")
            if rest.startswith("''"):
                raise CommandError("A character constant must contain at least one character.")
            if rest[0] == "'":
                raise CommandError("Unmatched single quote.")
            if number := re.match(r"[\d.][\w.]*", rest):
                raise CommandError(f'Invalid number "{number[0]}".')
            raise CommandError(f'invalid character {rest[0]!r} in expression "{rest}"')
        kind = match.lastgroup or "op"
        kind = "number" if kind == "suffix" else kind
        word = match.group(kind)
        start = match.start(kind)
        if kind == "quoted" and len(word) == len("'ab'"):  # what is longer is a name
            raise CommandError("Invalid character constant.")
        if kind == "name":
            if word.count("::") > MAX_CHAIN:
                raise CommandError(f'No symbol "{word}" in current context.')
            word = _whole_name(text, start, word, is_known)
        found.append(Token(kind, word, start, (match.group("suffix") or "").lower()))
        at = start + len(word) + len(found[-1].suffix)
    found.append(Token("end", "", len(text)))
    return found


def _whole_name(text: str, start: int, word: str, is_known: Callable[[str], bool]) -> str:
    """A name with what its templates are given: "Box<int>::made"."""
    end = start + len(word)
    while text[end : end + 1] == "<" and not word.endswith("operator"):
        closing = _closing(text, end)
        if closing < 0:
            break
        more = _REST.match(text, closing + 1)
        whole = text[start : closing + 1]
        tail = more[0] if more is not None else ""
        followed = text[closing + 1 + len(tail) :][:1] == "<"
        if tail and (followed or is_known(whole) or is_known(whole + tail)):
            end = closing + 1 + len(tail)
        elif not tail and (is_known(whole) or _is_call(text, word, closing)):
            end = closing + 1
        else:
            break
        word = text[start:end]
    return word


def _is_call(text: str, word: str, closing: int) -> bool:
    """True for a function of the library that is called with what it is asked for."""
    return word in LIBRARY_FUNCTIONS and text[closing + 1 :].lstrip().startswith("(")


def _closing(text: str, opening: int) -> int:
    """The bracket that closes a template's arguments; -1 where they are none."""
    if text.find(">", opening) < 0:
        return -1  # most often a comparison, in a long row of them
    depth = 0
    for at in range(opening, len(text)):
        letter = text[at]
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth -= 1
            if not depth:
                return at
        elif not (letter.isalnum() or letter in "_ :,&*()[]"):
            return -1
    return -1


def characters(quoted: str) -> bytes:
    """The bytes of a character or string constant, its quotes around it.

    Raises:
        CommandError: an escape means nothing.
    """

    def plain(match: re.Match[str]) -> str:
        digits, octal, letter = match.groups()
        if digits or octal:
            return chr(int(digits or octal, 16 if digits else 8) & 0xFF)
        code = _ESCAPES.get(letter)
        return letter if code is None else chr(code)

    body = quoted[1:-1]
    parts: list[bytes] = []
    at = 0
    for match in _ESCAPE.finditer(body):
        parts += [body[at : match.start()].encode(), plain(match).encode("latin-1")]
        at = match.end()
    return b"".join([*parts, body[at:].encode()])
