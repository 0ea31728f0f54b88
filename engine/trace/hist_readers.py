"""Reads the keys, values and variables of hist triggers from rows."""

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from engine.escaping import escaped_bytes
from engine.fetch.predicate import row_thread
from engine.trace.hist_fields import STACK_DEPTH, HistField, HistKind, computed, divided
from engine.trace.rows import string_at
from engine.trace.synthetic import SyntheticEvent

Key: TypeAlias = int | bytes | tuple[int, ...]
Reader: TypeAlias = Callable[[Any, int], Key]

_MASK: Final = (1 << 64) - 1
_STRING_MAX: Final = 255
_CODES: Final = {1: "b", 2: "h", 4: "i", 8: "q"}


def _made_nowhere(event: SyntheticEvent, thread: int, values: list[Key]) -> None:
    """No event is made."""


class HistNames(Struct, frozen=True):
    """The surroundings of a table: reading and printing.

    Attributes:
        symbol: text of an address as `%pS`.
        comm: a thread's name by its id.
        syscall: a system call's name by its number, None for none.
        stack: the call stack now, innermost first.
        exact: whether names and strings are printed byte for byte; else they are escaped.
        make: makes a synthetic event of a thread, of its values.
        snapshot: keeps what is in the ring now.
    """

    symbol: Callable[[int], str]
    comm: Callable[[int], bytes | None]
    syscall: Callable[[int], str | None]
    stack: Callable[[], tuple[int, ...]]
    exact: bool = False
    make: Callable[[SyntheticEvent, int, list[Key]], None] = _made_nowhere
    snapshot: Callable[[], None] | None = None

    def shown(self, data: bytes) -> bytes:
        """A name or string as a part of a line."""
        return data if self.exact else escaped_bytes(data)

    def symbol_text(self, address: int) -> bytes:
        """The text of an address as a part of a line."""
        return self.shown(self.symbol(address).encode(errors="surrogateescape"))


class HistReaders:
    """Makes readers of a trigger's fields."""

    def __init__(self, names: HistNames, outer: dict[int, Key]) -> None:
        """Set up.

        Args:
            names: of threads and addresses.
            outer: values of the variables that the trigger reads, by their references' identity.
        """
        self.names = names
        self.outer = outer

    def slots(self, variables: Iterable[HistField]) -> list[tuple[int, Reader]]:
        """The readers of variables, each with its slot."""
        return [(slot, self.of(one)) for slot, one in enumerate(variables)]

    def of(self, one: HistField) -> Reader:
        """The reader of a field."""
        match one.kind:
            case HistKind.STACK:
                return self._stack(one)
            case HistKind.COMM:
                return self._comm
            case HistKind.CPU:
                return lambda data, position: 0
            case HistKind.HITCOUNT:
                return lambda data, position: 1
            case HistKind.CONSTANT:
                constant = one.constant or 0
                return lambda data, position: constant
            case HistKind.REFERENCE | HistKind.ALIAS:
                outer, at = self.outer, id(one.reference)
                return lambda data, position: outer[at]
            case HistKind.EXPRESSION:
                return self._expression(one)
            case HistKind.TIME:
                time = struct.Struct("<8xQ").unpack_from
                return _modified(one, lambda data, position: int(time(data, position)[0]))
        return self._field(one)

    def _comm(self, data: Any, position: int) -> Key:
        return self.names.comm(row_thread(data, position)) or b""

    def _stack(self, one: HistField) -> Reader:
        stack = self.names.stack
        if one.field is None:
            return lambda data, position: stack()[:STACK_DEPTH]
        return _text(one.field.row)

    def _field(self, one: HistField) -> Reader:
        assert one.field is not None
        row, size = one.field.row, one.field.size
        if one.variable and one.modifier == "execname":
            return self._comm
        if one.is_string:
            return _text(row)
        if row < 0:
            return lambda data, position: 0
        if one.name == "common_pid":
            return _modified(one, row_thread)
        code = _CODES[size] if one.field.signed else _CODES[size].upper()
        unpack = struct.Struct("<" + code).unpack_from
        # Sign-extended to 64 bits, and unsigned from there on, as in the kernel.
        return _modified(one, lambda data, position: unpack(data, position + row)[0] & _MASK)

    def _expression(self, one: HistField) -> Reader:
        first = self._number(one.operands[0])
        if one.operator == "neg":
            return lambda data, position: -first(data, position) & _MASK
        divisor, operator = one.constant, one.operator
        if divisor is not None:
            return lambda data, position: divided(first(data, position), divisor)
        other = self._number(one.operands[1])
        return lambda data, position: computed(
            operator, first(data, position), other(data, position)
        )

    def _number(self, one: HistField) -> Callable[[Any, int], int]:
        read = self.of(one)

        def number(data: Any, position: int) -> int:
            value = read(data, position)
            assert isinstance(value, int), "strings are no operands"
            return value

        return number


def _text(row: int) -> Reader:
    word = struct.Struct("<Q").unpack_from

    def text(data: Any, position: int) -> bytes:
        found = string_at(data, position, word(data, position + row)[0]) or b""
        return found[:_STRING_MAX]

    return text


def _modified(one: HistField, read: Callable[[Any, int], int]) -> Reader:
    if one.modifier == "log2":
        # The kernel's ilog2(roundup_pow_of_two()), which is undefined for 0.
        return lambda data, position: max(read(data, position) - 1, 0).bit_length()
    if one.modifier == "buckets":
        width = one.buckets
        return lambda data, position: read(data, position) // width * width
    return read
