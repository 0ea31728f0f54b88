"""Values of event probes' arguments: fields of another event's row, and what they point to.

As process_fetch_insn of kernel/trace/trace_eprobe.c does, but for what the kernel leaves
undefined: unreadable memory gives 0 for a number and "(fault)" for a string, as elsewhere here.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, Literal, Protocol, TypeAlias

from engine.arch.program import FetchArg, FieldType, Source, ValueKind
from engine.errors import GuestFaultError
from engine.fetch.context import STRING_MAX, FetchContext
from engine.trace.fields import Field, own_fields
from engine.trace.rows import EventInfo, string_at

_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
_MASK: Final = (1 << 64) - 1
_WORD: Final = struct.Struct("<Q")

Words: TypeAlias = "list[int | bytes]"
"""The part of a row that is an argument's: a number or a string, or one for each element."""
RowValues: TypeAlias = "Callable[[Any, int], list[Words]]"
"""Makes those of all arguments of the row at the start of a buffer, and its thread's id."""
_Base: TypeAlias = "Callable[[Any, int], int | bytes]"
_NO_TEXT: Final = b""


class GuestBytes(Protocol):
    """The memory of the program that runs."""

    def read(self, address: int, size: int) -> bytes:
        """The bytes there; GuestFaultError if they cannot be read."""

    def read_cstring(self, address: int, limit: int) -> bytes:
        """The bytes there up to a NUL, without it, and no more than the limit."""


class FieldReaders:
    """Makes readers of arguments."""

    def __init__(self, context: FetchContext, memory: Callable[[], GuestBytes]) -> None:
        """Set up.

        Args:
            context: names of threads and addresses, width and order of words.
            memory: of the program that runs.
        """
        self._context = context
        self._memory = memory

    def of(self, args: tuple[FetchArg, ...], info: EventInfo) -> RowValues:
        """The reader of all arguments of a probe on an event."""
        fields = own_fields(info)
        readers = [self._reader(arg, fields) for arg in args]
        return lambda data, thread: [read(data, thread) for read in readers]

    def _reader(self, arg: FetchArg, fields: tuple[Field, ...]) -> Callable[[Any, int], Words]:
        base, kind, derefs = self._base(arg, fields), arg.type, arg.derefs
        in_memory = bool(derefs) or arg.base.source in (Source.ADDRESS, Source.SYMBOL)
        lacking: Words = [_NO_TEXT if kind.is_string else 0] * max(kind.count, 1)

        def read(data: Any, thread: int) -> Words:
            value = base(data, thread)
            try:
                if not in_memory:
                    return [self._value(value, kind)]
                return self._loaded(value, derefs, kind)
            except GuestFaultError:
                return list(lacking)

        return read

    def _base(self, arg: FetchArg, fields: tuple[Field, ...]) -> _Base:
        base, context = arg.base, self._context
        match base.source:
            case Source.FIELD:
                return _text(fields[base.value]) if base.text else _number(fields[base.value])
            case Source.COMM:
                return lambda data, thread: context.comm(thread)
            case Source.TEXT:
                return lambda data, thread: base.text
            case Source.SYMBOL:
                name = base.text.decode(errors="surrogateescape")
                return lambda data, thread: (context.where(name) or 0) + base.value & _MASK
            case _:
                return lambda data, thread: base.value

    def _value(self, value: int | bytes, kind: FieldType) -> int | bytes:
        """A value that is recorded as it is."""
        if isinstance(value, bytes):
            return value.partition(b"\0")[0][: STRING_MAX - 1] + b"\0"
        if kind.kind is ValueKind.SYMSTR:
            return self._context.symbol(value).encode(errors="surrogateescape") + b"\0"
        if kind.is_string:
            return self._memory().read_cstring(value, STRING_MAX - 1) + b"\0"
        if kind.width:
            return value >> kind.offset & (1 << kind.width) - 1
        return value & (1 << 8 * kind.size) - 1

    def _loaded(self, value: int | bytes, derefs: tuple[int, ...], kind: FieldType) -> Words:
        """A value that lies in memory; that of a string's field in the string itself."""
        *ways, last = derefs or (0,)
        word = self._context.arch.bits // 8
        place: int | bytes = value
        for offset in ways:
            place = self._integer(place, offset, word)
        if kind.is_string and kind.kind is not ValueKind.SYMSTR and not kind.count:
            if isinstance(place, bytes):
                return [self._value(place[last:] if last >= 0 else b"", kind)]
            return [self._value(place + last & _MASK, kind)]
        size = kind.size or word
        found: Words = []
        for at in range(max(kind.count, 1)):
            number = self._integer(place, last + at * size, size)
            found.append(self._value(number, kind))
        return found

    def _integer(self, place: int | bytes, offset: int, size: int) -> int:
        if isinstance(place, bytes):
            raw = place[offset : offset + size].ljust(size, b"\0") if offset >= 0 else bytes(size)
        else:
            raw = self._memory().read(place + offset & _MASK, size)
        order: Literal["little", "big"] = (
            "little" if self._context.arch.byteorder == "little" else "big"
        )
        return int.from_bytes(raw, order)


def _text(field: Field) -> _Base:
    row = field.row

    def text(data: Any, thread: int) -> bytes:
        return string_at(data, 0, _WORD.unpack_from(data, row)[0]) or b""

    return text


def _number(field: Field) -> _Base:
    """Sign-extended to 64 bits, and unsigned from there on (get_event_field)."""
    row, code = field.row, _CODES[field.size]
    if row < 0:
        return lambda data, thread: 0
    unpack = struct.Struct("<" + (code.lower() if field.signed else code)).unpack_from
    return lambda data, thread: unpack(data, row)[0] & _MASK
