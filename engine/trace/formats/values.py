"""The values of rows as plain data, for formats that keep types."""

import struct
from typing import Any, TypeAlias

from engine.arch.program import FieldType, ValueKind
from engine.trace.formats.base import Names
from engine.trace.rows import EventInfo, Scalar, Value

Plain: TypeAlias = "int | float | str | list[int | float | str | None] | None"


def text(data: bytes) -> str:
    """Bytes of a guest as text; what is no UTF-8 becomes a backslash, an x and two digits."""
    return data.decode(errors="backslashreplace")


def plain(value: Value, kind: FieldType, names: Names) -> Plain:
    """A decoded value: characters and symbols as text, strings without what is no UTF-8."""
    if isinstance(value, tuple):
        return [_one(item, kind, names) for item in value]
    return _one(value, kind, names)


def _one(value: Scalar, kind: FieldType, names: Names) -> int | float | str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return text(value)
    if isinstance(value, float):
        return value
    if kind.kind is ValueKind.CHAR:
        return text(bytes([value & 0xFF]))
    if kind.kind is ValueKind.SYMBOL:
        return names.symbol(value)
    return value


def frames(info: EventInfo, data: Any, position: int) -> tuple[int, ...]:
    """The addresses in the row of a call stack, innermost first."""
    words = struct.unpack_from("<2xH", data, position)[0] - info.words
    found: tuple[int, ...] = struct.unpack_from(f"<{words}Q", data, position + info.words * 8)
    return found


def kernel_frames(info: EventInfo, data: Any, position: int) -> int:
    """The number of those, the first ones, that are a kernel's which is the guest."""
    if not info.columns:
        return 0
    found: tuple[int] = struct.unpack_from("<Q", data, position + info.columns[0].word * 8)
    return found[0]


def function_name(symbol: str) -> str:
    """The symbol without offset and size."""
    return symbol.rpartition("+0x")[0] or symbol
