"""Calls as a user writes them: FUNC(ARGS), with C's literals and buffers."""

import re
from typing import Final

from msgspec import Struct

from engine.errors import CommandError

BUFFER_MAX: Final = 16 << 20
_CALL: Final = re.compile(r"\s*([A-Za-z_][\w.]*)\s*\((.*)\)\s*;?\s*", re.DOTALL)
_BUFFER: Final = re.compile(r"&\s*([A-Za-z_]\w*)\s*\[\s*(\w+)\s*\]")
_NAME: Final = re.compile(r"&?\s*([A-Za-z_][\w.]*)")
_ARRAY: Final = re.compile(r"\(\s*(?:const\s+)?(\w+)\s*\[\s*\]\s*\)\s*\{(.*)\}", re.DOTALL)
_WIDTHS: Final = {
    **dict.fromkeys(("u8", "s8", "char", "uint8_t", "int8_t", "bool"), 1),
    **dict.fromkeys(("u16", "s16", "short", "uint16_t", "int16_t"), 2),
    **dict.fromkeys(("u32", "s32", "int", "unsigned", "uint32_t", "int32_t"), 4),
    **dict.fromkeys(("u64", "s64", "long", "uint64_t", "int64_t", "size_t"), 8),
}
_ESCAPES: Final = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, '"': 34, "'": 39, "a": 7, "e": 27}
_NUMBER: Final = re.compile(r"([+-]?)\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uUlL]*")
_MASK: Final = (1 << 64) - 1


class Buffer(Struct, frozen=True):
    """Memory of a name that the function may write: `&buf[16]`."""

    name: str
    size: int


class Contents(Struct, frozen=True):
    """Bytes in memory: a string or an array."""

    data: bytes


class Named(Struct, frozen=True):
    """A buffer that was named before, or a symbol: its address."""

    name: str


Argument = int | Buffer | Contents | Named


class WrittenCall(Struct, frozen=True):
    """A call as written.

    Attributes:
        text: it.
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
    match = _CALL.fullmatch(text)
    if match is None:
        raise CommandError(f"{text}: a call is needed, as in 'strlen(\"hello\")'")
    words = _split(match[2], text)
    return WrittenCall(text.strip(), match[1], tuple(_argument(word, text) for word in words))


def _split(text: str, whole: str) -> list[str]:
    """The arguments between commas; those in brackets and quotes are none."""
    found, depth, start, at = [], 0, 0, 0
    while at < len(text):
        letter = text[at]
        if letter in "\"'":
            end = at + 1
            while end < len(text) and text[end] != letter:
                end += 2 if text[end] == "\\" else 1
            if end >= len(text):
                raise CommandError(f"{whole}: a {letter} is not closed")
            at = end
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            found.append(text[start:at])
            start = at + 1
        at += 1
    if text[start:].strip() or found:
        found.append(text[start:])
    return [word.strip() for word in found]


def _argument(word: str, whole: str) -> Argument:
    if word in ("NULL", "false"):
        return 0
    if word == "true":
        return 1
    if word.startswith('"'):
        return Contents(_characters(word[1:-1], whole) + b"\0")
    if word.startswith("'"):
        letters = _characters(word[1:-1], whole)
        if len(letters) == 1:
            return letters[0]
    if (number := _number(word)) is not None:
        return number & _MASK
    if (match := _BUFFER.fullmatch(word)) is not None:
        size = _number(match[2])
        if size is None or not 0 < size <= BUFFER_MAX:
            raise CommandError(f"{whole}: {word}: a buffer has 1 to {BUFFER_MAX} bytes")
        return Buffer(match[1], size)
    if (match := _ARRAY.fullmatch(word)) is not None and match[1] in _WIDTHS:
        width = _WIDTHS[match[1]]
        values = [_number(each) for each in _split(match[2], whole)]
        if None not in values:
            mask = (1 << 8 * width) - 1
            whole_values = [value & mask for value in values if value is not None]
            return Contents(b"".join(v.to_bytes(width, "little") for v in whole_values))
    if (match := _NAME.fullmatch(word)) is not None:
        return Named(match[1])
    raise CommandError(
        f"{whole}: {word or 'nothing'}: no argument; numbers, 'c', \"text\", &name[SIZE],"
        " (u32[]){1, 2}, names of buffers and symbols are"
    )


def _number(word: str) -> int | None:
    match = _NUMBER.fullmatch(word.strip())
    if match is None:
        return None
    digits = match[2]
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    try:
        value = int(digits, 8 if octal else 0)
    except ValueError:
        return None
    return -value if match[1] == "-" else value


def _characters(text: str, whole: str) -> bytes:
    """The bytes of C's text between quotes."""
    out = bytearray()
    at = 0
    while at < len(text):
        if text[at] != "\\":
            out += text[at].encode("utf-8", "surrogateescape")
            at += 1
            continue
        escape = text[at + 1 : at + 2]
        if escape == "x":
            match = re.compile(r"[0-9a-fA-F]{1,2}").match(text, at + 2)
            if match is None:
                raise CommandError(f"{whole}: \\x needs hexadecimal digits")
            out.append(int(match[0], 16))
            at = match.end()
        elif escape in _ESCAPES and escape:
            out.append(_ESCAPES[escape])
            at += 2
        else:
            raise CommandError(f"{whole}: \\{escape} is no escape")
    return bytes(out)
