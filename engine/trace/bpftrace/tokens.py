"""The words of a script, cut one at a time, and the numbers and strings among them.

What a character means depends on where it stands: the slashes of an attach point are a path, a
slash behind it begins a predicate. So words are cut as the parser asks for them
(bpftrace's src/parser.cpp reads characters in the same order).
"""

import re
from typing import Final, NoReturn

from engine.trace.bpftrace.text import ScriptRemark, ScriptText, Span, WrongScriptError

NAME: Final = 1
VARIABLE: Final = 2
MAP: Final = 3
NUMBER: Final = 4
STRING: Final = 5
PARAMETER: Final = 6
OPERATOR: Final = 7
END: Final = 0
"""The end of the text, and a character that means nothing."""

LAYOUT: Final = r"(?:[ \t\r\n]+|//[^\n]*|/\*(?s:.*?)(?:\*/|\Z))*+"
_WORD: Final = re.compile(
    LAYOUT
    + r"""(?:([A-Za-z_]\w*)
    |(\$[A-Za-z_]\w*)
    |(@(?:[A-Za-z_]\w*)?)
    |(0[xX][0-9a-fA-F_]*|[0-9]\w*)
    |("(?:[^"\\\n]|\\(?s:.))*+")
    |(\$(?:[0-9]+|\#))
    |(<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.|[-+*/%&|^~!<>=?:;,.()\[\]{}])
    )?""".replace("\n", "").replace("    ", ""),
    re.ASCII,
)
_SPACE: Final = re.compile(LAYOUT)
_NEAR: Final = re.compile(r"[A-Za-z_]\w*|[0-9][A-Za-z0-9.]*|[@$]\w*|(?s:.)|", re.ASCII)
"""The part of a text that an error marks; of a number it is more than the number."""

Mark = tuple[int, str, int, int, int]


class TokenStream:
    """A place in a script.

    Attributes:
        script: the text.
        source: what words are cut from: the script's text, or that of a macro of C.
        limit: where it ends for this reader.
        kind: of the next word: `NAME` and the like.
        word: the next word; "" at the end.
        start: where it begins.
        stop: where it ends.
        end: where the last word that was taken ends.
    """

    __slots__ = ("_within", "end", "kind", "limit", "script", "source", "start", "stop", "word")

    def __init__(
        self,
        script: ScriptText,
        source: str | None = None,
        within: Span | None = None,
        part: Span | None = None,
    ) -> None:
        """Stand in front of the first word.

        Args:
            script: the script.
            source: a text of a macro to be read instead of the script's.
            within: the place of the macro's use, which all words of `source` get.
            part: the part to be read; all of it if it is not given.
        """
        self.script = script
        self.source = script.text if source is None else source
        self._within = within
        self.kind, self.word = END, ""
        self.limit = len(self.source) if part is None else part.end
        self.start = self.stop = self.end = 0 if part is None else part.start
        self.next()

    def next(self) -> None:
        """Take a word."""
        self.end = stop = self.stop
        match = _WORD.match(self.source, stop, self.limit)
        assert match is not None, "every part of the pattern may be empty"
        kind = match.lastindex
        if kind is None:
            self.kind, self.word = END, ""
            self.start = self.stop = match.end()
        else:
            self.kind, self.word = kind, match[kind]
            self.start, self.stop = match.span(kind)

    def mark(self) -> Mark:
        """The place, to come back to."""
        return self.kind, self.word, self.start, self.stop, self.end

    def back(self, mark: Mark) -> None:
        """Go back to a place."""
        self.kind, self.word, self.start, self.stop, self.end = mark

    def go(self, offset: int) -> None:
        """Go on from a character that other ways of reading have come to."""
        self.stop = offset
        self.next()

    def begins(self, text: str) -> bool:
        """True if a text stands in front, whatever words it is made of."""
        return self.source.startswith(text, self.start, self.limit)

    def settle(self) -> None:
        """Count the space behind the last word as taken, up to the end of the line.

        bpftrace has looked over it at some places, and what ends there ends behind it.
        """
        if "\n" not in self.source[self.end : self.start]:
            self.end = self.start

    def follows(self, character: str) -> bool:
        """True if a character stands behind the next word, and behind space and comments."""
        match = _SPACE.match(self.source, self.stop, self.limit)
        assert match is not None, "the pattern may be empty"
        return self.source.startswith(character, match.end())

    @property
    def is_at_end(self) -> bool:
        """True if nothing is left."""
        return self.kind == END and self.start >= self.limit

    def span(self, start: int, end: int | None = None) -> Span:
        """A part of the script, up to what was taken last."""
        return self._within or Span(start, self.end if end is None else end)

    def taken(self, word: str) -> bool:
        """Take a word if it is the next one."""
        if self.word != word:
            return False
        self.next()
        return True

    def expect(self, word: str) -> None:
        """Take a word that must be there.

        Raises:
            WrongScriptError: it is not.
        """
        if self.word != word:
            raise self.failure(f"expected '{word}'")
        self.next()

    def name(self, wanted: str) -> str:
        """Take a name.

        Raises:
            WrongScriptError: there is none; `wanted` says what was expected.
        """
        if self.kind != NAME:
            raise self.failure(wanted)
        word = self.word
        self.next()
        return word

    def failure(self, text: str, span: Span | None = None, hint: str = "") -> WrongScriptError:
        """The error that refuses the script.

        Args:
            text: what is wrong.
            span: where; the next word if it is not given.
            hint: the way out.
        """
        if span is None:
            near = _NEAR.match(self.source, self.start, self.limit)
            end = self.start if near is None else near.end()
            span = self._within or Span(self.start, end)
        return WrongScriptError(ScriptRemark("ERROR", f"syntax: {text}", span, self.script, hint))

    def number(self) -> int:
        """Take a number, its suffix and its unit worked in (src/util/int_parser.cpp).

        Raises:
            WrongScriptError: it is none.
        """
        word, start = self.word, self.start
        shape = _NUMBER.match(word)
        if self.kind != NUMBER or shape is None:
            raise self.failure("invalid integer")
        self._check_number(shape, word, start)
        value = whole_number(word)
        if isinstance(value, str):
            raise self.failure(value, self.span(start, self.stop))
        self.next()
        return value

    def _check_number(self, shape: re.Match[str], word: str, start: int) -> None:
        for digits in ("digits", "decimal", "power"):
            if (shape[digits] or "").endswith("_"):
                end = start + shape.end(digits)
                raise self.failure(
                    "trailing underscore in integer literal", self.span(end - 1, end)
                )
        if shape.end() < len(word):
            bad = word[shape.end() :]
            place = self.span(start + shape.end(), self.stop)
            raise self.failure(f"invalid integer suffix '{bad}'", place)

    def string(self) -> bytes:
        """Take a string.

        Raises:
            WrongScriptError: it has no end, or an escape that means nothing.
        """
        if self.kind != STRING:
            return self._broken_string()
        word = self.word
        found = word[1:-1] if "\\" not in word else None
        value = self._unescaped(word) if found is None else found.encode(errors="surrogateescape")
        self.next()
        return value

    def _unescaped(self, word: str) -> bytes:
        parts: list[bytes] = []
        at = 1
        for match in _ESCAPE.finditer(word, 1, len(word) - 1):
            parts.append(word[at : match.start()].encode(errors="surrogateescape"))
            parts.append(self._escaped(match))
            at = match.end()
        parts.append(word[at:-1].encode(errors="surrogateescape"))
        return b"".join(parts)

    def _escaped(self, match: re.Match[str]) -> bytes:
        start, end = self.start + match.start(), self.start + match.end()
        octal, hexadecimal, letter = match.groups()
        if octal:
            if int(octal, 8) > 0xFF:
                raise self.failure(
                    f"octal escape sequence out of range '\\{octal}'", self.span(start, end)
                )
            return bytes((int(octal, 8),))
        if hexadecimal is not None:
            if not hexadecimal:
                near = _NEAR.match(self.source, end, self.limit)
                until = end if near is None else near.end()
                raise self.failure("invalid hex escape sequence", self.span(end, until))
            return bytes((int(hexadecimal, 16),))
        value = _ESCAPES.get(letter)
        if letter == "\n":
            raise self.failure("unterminated string", self.span(end - 1, end - 1))
        if value is None:
            near = _NEAR.match(self.source, end - 1, self.limit)
            until = end if near is None else near.end()
            raise self.failure(f"invalid escape character '\\{letter}'", self.span(end - 1, until))
        return value

    def _broken_string(self) -> NoReturn:
        line_end = self.source.find("\n", self.start, self.limit)
        end = self.limit if line_end < 0 else line_end
        raise self.failure("unterminated string", self.span(end, end))


_ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{0,2})|(.))", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", '"': b'"', "\\": b"\\"}

_NUMBER: Final = re.compile(
    r"(?:(?P<digits>0[xX][0-9a-fA-F_]*)"
    r"|(?P<decimal>[0-9_]+)(?:[eE](?P<power>[0-9_]*))?"
    r"(?:ns|us|ms|[smhd]|[uU](?:[lL]{1,2})?|[lL]{1,2})?)"
)
_PARTS: Final = re.compile(
    r"(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|(?P<octal>0[0-7]+)"
    r"|(?P<decimal>0|[1-9][0-9]*)(?:[eE](?P<power>[1-9][0-9]*))?)(?P<suffix>\w*)"
)
_LARGEST: Final = (1 << 64) - 1
_SUFFIXES: Final = {
    "": (_LARGEST, 1),
    "u": ((1 << 32) - 1, 1),
    "ul": (_LARGEST, 1),
    "ull": (_LARGEST, 1),
    "l": ((1 << 63) - 1, 1),
    "ll": ((1 << 63) - 1, 1),
    "ns": (_LARGEST, 1),
    "us": (_LARGEST, 1_000),
    "ms": (_LARGEST, 1_000_000),
    "s": (_LARGEST, 1_000_000_000),
    "m": (_LARGEST, 60_000_000_000),
    "h": (_LARGEST, 3_600_000_000_000),
    "d": (_LARGEST, 86_400_000_000_000),
}
"""The largest value of a number with a suffix, and what it is multiplied by."""


def whole_number(text: str) -> int | str:
    """A number as it is written, with suffix or unit; what is wrong with it if it is none."""
    match = _PARTS.fullmatch(text.replace("_", ""))
    if match is None:
        return f"invalid integer: {text}"
    digits = match["hex"] or match["binary"] or match["octal"] or match["decimal"]
    base = 16 if match["hex"] else 2 if match["binary"] else 8 if match["octal"] else 10
    value = int(digits, base) if len(digits) <= _DIGITS else _LARGEST + 1
    if value > _LARGEST:
        return f"overflow error, maximum value is {_LARGEST}: {text}"
    power = match["power"]
    if power is not None:
        if not 0 < value < 10:
            return f"coefficient part of scientific literal must be 1-9: {text}"
        value = value * 10 ** int(power) if len(power) < 3 else _LARGEST + 1
        if value > _LARGEST:
            return f"overflow error, maximum value is {_LARGEST}: {text}"
    limit = _SUFFIXES.get(match["suffix"].lower())
    if limit is None:
        return f"invalid trailing bytes: {text}"
    largest, factor = limit
    if value > largest // factor:
        return f"overflow error, maximum value is {largest}: {text}"
    return value * factor


_DIGITS: Final = 70
"""More digits than any number of 64 bits has."""
