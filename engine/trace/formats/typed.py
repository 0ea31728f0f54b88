"""Values of functions as the source has them: `area(c=BLUE, label=0x402004 "box", k=1.5)`."""

import struct
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from engine.arch.program import ValueKind
from engine.escaping import escaped
from engine.image.symtab import demangle
from engine.language.enumerators import enumerator
from engine.language.quoting import character
from engine.language.real_texts import real
from engine.message_text import bare_name
from engine.trace.rows import Column, FormKind, ValueForm, string_at

Place = Callable[[int], bytes]
"""The symbol of an address, as `placed` writes it."""

_WORD: Final = struct.Struct("<Q").unpack_from
_UNREAD: Final = b"?"


def typed_arguments(columns: Sequence[Column], place: Place) -> Callable[[bytes, int], bytes]:
    """Makes the text of arguments, with parentheses around them.

    Args:
        columns: the arguments of an event.
        place: the symbol of an address, b"" for none.
    """
    parts = [
        (escaped(column.name).encode() + b"=", typed_text(column, place)) for column in columns
    ]

    def text(data: bytes, position: int) -> bytes:
        return b"(%s)" % b", ".join(name + value(data, position) for name, value in parts)

    return text


def typed_text(column: Column, place: Place) -> Callable[[bytes, int], bytes]:
    """Makes the text of one value of rows.

    Args:
        column: with the value's form.
        place: the symbol of an address, b"" for none.
    """
    assert column.form is not None, "only values with a type are shown so"
    if column.form.variadic:
        alone = ValueForm(column.form.kind, column.form.names)
        one = typed_text(replace(column, form=alone), place)
        return lambda data, position: one(data, position) + b", ..."
    at, mask = column.word * 8, (1 << 8 * column.type.size) - 1
    sign = (mask + 1) >> 1 if column.type.kind is ValueKind.SIGNED else 0
    kind, names = column.form.kind, column.form.names

    if kind is FormKind.TEXT:
        return lambda data, position: (
            string_at(data, position, _WORD(data, position + at)[0]) or _UNREAD
        )

    if kind is FormKind.REAL:
        size = column.type.size
        return lambda data, position: real(
            data[position + at : position + at + size], "little"
        ).encode()

    def number(data: bytes, position: int) -> int:
        value: int = _WORD(data, position + at)[0] & mask
        return (value ^ sign) - sign

    def shown(data: bytes, position: int) -> bytes:
        value = number(data, position)
        match kind:
            case FormKind.TRUTH:
                return {0: b"false", 1: b"true"}.get(value) or b"%d" % value
            case FormKind.CHARACTER:
                return b"%d %s" % (value, character(value).encode())
            case FormKind.ENUMERATION:
                return escaped(enumerator(value, names)).encode()
            case FormKind.POINTER:
                symbol = place(value) if value else b""
                return b"0x%x" % value + (b" <%s>" % symbol if symbol else b"")
        return b"%d" % value

    return shown


def placed(symbol: bytes) -> bytes:
    """A symbol of `Names.symbol` as debuggers write it: "main+4"; b"" for a plain address."""
    name, plus, rest = symbol.rpartition(b"+0x")
    if not plus:
        return b""
    offset = int(rest.partition(b"/")[0], 16)
    return function_name(name.decode()).encode() + (b"+%d" % offset if offset else b"")


def function_name(symbol: str) -> str:
    """A function as its source calls it, without parameters: C++ and Rust names are mangled."""
    plain = demangle(symbol)
    return symbol if plain == symbol else bare_name(plain)
