"""The words of an expression."""

import re
from typing import Final

from msgspec import Struct

from engine.errors import CommandError

_WORDS: Final = re.compile(
    r"""\s*(?:
    (?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fFlL]?|\d+[eE][+-]?\d+[fFlL]?)
    |(?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?P<suffix>[uUlL]*)(?![\w.])
    |(?P<name>[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)*)
    |(?P<dollar>\$(?:\$\d+|\$|\w+)?)
    |(?P<char>'(?:[^'\\]|\\.[^']*)')
    |(?P<quoted>'[^']{2,}')
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<op><<=|>>=|->\*|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|\.\*
        |[-+*/%&|^~!<>=?:,.()\[\]{}@])
    )""",
    re.VERBOSE,
)
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


def split(text: str) -> list[Token]:
    """The words of an expression, an "end" behind the last.

    Raises:
        CommandError: it has something that is no word.
    """
    found: list[Token] = []
    at = 0
    while text[at:].strip():
        match = _WORDS.match(text, at)
        if match is None:
            rest = text[at:].strip()
            if rest[0] in "'\"":
                raise CommandError(
                    f"unmatched {'single' if rest[0] == chr(39) else 'double'} quote"
                )
            raise CommandError(f'invalid character {rest[0]!r} in expression "{rest}"')
        kind = match.lastgroup or "op"
        kind = "number" if kind == "suffix" else kind
        word = match.group(kind)
        start = match.start(kind)
        found.append(Token(kind, word, start, (match.group("suffix") or "").lower()))
        at = start + len(word) + len(found[-1].suffix)
    found.append(Token("end", "", len(text)))
    return found


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
