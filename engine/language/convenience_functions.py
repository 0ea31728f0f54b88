"""Functions of gdb's own in expressions: `$_strlen(s)`, `$_streq(a, b)`, `$_regex(s, "re")`.

gdb: gdb/python/lib/gdb/function/strfns.py, as_string.py and gdb/value.c.
"""

import re
from collections.abc import Callable
from typing import Final

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.enumerators import of_type
from engine.language.surroundings import Surroundings
from engine.language.values import MOST, TypedValue, made

ConvenienceFunction = Callable[[Surroundings, list[TypedValue]], TypedValue]
"""Takes the place of an expression and the arguments of a call; gives its value."""
_PIECE: Final = 64


def text_value(around: Surroundings, text: str) -> TypedValue:
    """A text as a value: an array of characters that stands nowhere."""
    raw = text.encode(errors="surrogateescape") + b"\0"
    kind = ct.array_of(ct.CHAR, len(raw))
    return TypedValue(kind, lambda: raw, order=around.order)


def string_of(around: Surroundings, value: TypedValue) -> bytes:
    """The characters of a text that a value is, or points at, without its NUL.

    Raises:
        CommandError: the value is no text, or the text has no end.
        GuestFaultError: memory cannot be read.
    """
    kind = value.type.resolved
    if kind.kind is TypeKind.ARRAY and kind.element.kind in ct.CHARS:
        return value.raw.partition(b"\0")[0]
    if kind.kind is not TypeKind.POINTER or kind.target.kind not in ct.CHARS:
        raise CommandError(f"Trying to read string with inappropriate type `{value.type.text}'.")
    found, at = b"", value.number
    while len(found) < MOST:
        step = _PIECE - at % _PIECE
        piece = around.read(at, step)
        end = piece.find(b"\0")
        if end >= 0:
            return found + piece[:end]
        found, at = found + piece, at + step
    raise CommandError(f"the text at {value.number:#x} does not end within {MOST} bytes")


def call(
    name: str, function: ConvenienceFunction, around: Surroundings, given: list[TypedValue]
) -> TypedValue:
    """Call a function of the table or another one.

    Args:
        name: of it, for errors.
        function: the function.
        around: the place of the expression.
        given: the arguments.

    Raises:
        CommandError: the arguments do not fit.
        GuestFaultError: memory cannot be read.
    """
    least, most = _ARGUMENTS.get(name, (0, 8))
    if not least <= len(given) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise CommandError(f"${name} takes {wanted} arguments, {len(given)} were given.")
    return function(around, given)


def pattern_of(text: bytes) -> re.Pattern[bytes]:
    """A regular expression.

    Raises:
        CommandError: it is none.
    """
    try:
        return re.compile(text)
    except re.error as error:
        raise CommandError(f"Invalid regexp: {error}") from None


def truth_value(around: Surroundings, *, holds: bool) -> TypedValue:
    """True or false as the language at hand has it."""
    return made(ct.BOOL if around.is_cpp else ct.INT, int(holds), around.order)


def _strlen(around: Surroundings, given: list[TypedValue]) -> TypedValue:
    return made(ct.INT, len(string_of(around, given[0])), around.order)


def _streq(around: Surroundings, given: list[TypedValue]) -> TypedValue:
    first, second = (string_of(around, one) for one in given)
    return truth_value(around, holds=first == second)


def _regex(around: Surroundings, given: list[TypedValue]) -> TypedValue:
    text, pattern = (string_of(around, one) for one in given)
    return truth_value(around, holds=pattern_of(pattern).match(text) is not None)


def _memeq(around: Surroundings, given: list[TypedValue]) -> TypedValue:
    length = given[2].number
    if length < 0:
        raise CommandError("length must be non-negative")
    if length > MOST:
        raise CommandError(f"{length} bytes are too many to compare")
    first, second = (_bytes_at(around, one, length) for one in given[:2])
    return truth_value(around, holds=first == second)


def _bytes_at(around: Surroundings, value: TypedValue, length: int) -> bytes:
    if value.type.resolved.kind is TypeKind.ARRAY and value.address is None:
        return value.raw[:length]
    return around.read(value.as_address, length)


def _as_string(around: Surroundings, given: list[TypedValue]) -> TypedValue:
    value, kind = given[0], given[0].type.resolved
    if kind.kind is TypeKind.ENUM:
        return text_value(around, of_type(value.number, kind))
    return text_value(around, str(value.number))


def _isvoid(around: Surroundings, given: list[TypedValue]) -> TypedValue:
    return truth_value(around, holds=given[0].type.resolved.kind is TypeKind.VOID)


FUNCTIONS: Final[dict[str, ConvenienceFunction]] = {
    "_strlen": _strlen,
    "_streq": _streq,
    "_regex": _regex,
    "_memeq": _memeq,
    "_as_string": _as_string,
    "_isvoid": _isvoid,
}
"""The functions that need no more than values and memory, by name without the dollar."""
_ARGUMENTS: Final = {
    "_strlen": (1, 1),
    "_streq": (2, 2),
    "_regex": (2, 2),
    "_memeq": (3, 3),
    "_as_string": (1, 1),
    "_isvoid": (1, 1),
    "_caller_is": (1, 2),
    "_caller_matches": (1, 2),
    "_any_caller_is": (1, 1),
    "_any_caller_matches": (1, 1),
    "_gdb_setting": (1, 1),
    "_gdb_setting_str": (1, 1),
}
