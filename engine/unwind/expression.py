"""DWARF expressions as far as unwind rules use them (DWARF 5, section 2.5).

Untyped 64-bit arithmetic; no operations on objects, types, entry values or thread-local
storage, which need debug information or a place outside the frame.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from engine.errors import GuestFaultError
from engine.image.reader import DamagedError, Reader

ReadMemory = Callable[[int, int], bytes]
"""(address, size) to bytes of the guest; raises `GuestFaultError`."""

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
_STEPS: Final = 10_000
_DEPTH: Final = 256
_CONSTANTS: Final = {
    **{0x08 + index: (1 << index // 2, bool(index & 1)) for index in range(8)},
}
"""DW_OP_const1u .. DW_OP_const8s: (bytes, signed)."""


class ExpressionError(Exception):
    """An expression has no value: damaged, not supported, or it reads what is not there."""


def evaluate(
    code: bytes,
    start: int | None,
    registers: Mapping[int, int],
    read: ReadMemory,
    order: str,
) -> int:
    """The value of an expression.

    Args:
        code: its bytes.
        start: what lies on the stack at the beginning; None = nothing.
        registers: by DWARF number.
        read: the guest's memory.
        order: "<" or ">".

    Raises:
        ExpressionError: there is none.
    """
    try:
        return RuleMachine(code, registers, read, order).run([] if start is None else [start])
    except (DamagedError, GuestFaultError) as error:
        raise ExpressionError(str(error)) from error
    except KeyError as error:
        raise ExpressionError(f"register {error} is not known") from error
    except IndexError as error:
        raise ExpressionError("its stack ran empty") from error


class RuleMachine:
    """Runs one expression; those of variables have more operations (`_rare`)."""

    def __init__(
        self, code: bytes, registers: Mapping[int, int], read: ReadMemory, order: str
    ) -> None:
        self._reader = Reader(code, 0, len(code), order)
        self._registers = registers
        self._read = read
        self._order: Literal["little", "big"] = "little" if order == "<" else "big"

    def run(self, stack: list[int]) -> int:
        """The number on top of the stack in the end."""
        reader = self._reader
        for _ in range(_STEPS):
            if reader.place >= reader.end:
                return stack[-1]
            self._step(reader.u8(), stack)
            if len(stack) > _DEPTH:
                raise ExpressionError("its stack grows too deep")
        raise ExpressionError("it does not end")

    def _step(self, op: int, stack: list[int]) -> None:
        reader = self._reader
        if 0x30 <= op <= 0x4F:
            stack.append(op - 0x30)
        elif 0x70 <= op <= 0x8F:
            stack.append(self._registers[op - 0x70] + reader.sleb() & _MASK)
        elif op in _CONSTANTS:
            size, signed = _CONSTANTS[op]
            value = reader.sint(size) if signed else reader.uint(size)
            stack.append(value & _MASK)
        elif op in _BINARY:
            right, left = stack.pop(), stack.pop()
            stack.append(_BINARY[op](left, right) & _MASK)
        elif op in _UNARY:
            stack.append(_UNARY[op](stack.pop()) & _MASK)
        else:
            self._rare(op, stack)

    def _rare(self, op: int, stack: list[int]) -> None:
        reader = self._reader
        if op == 0x03:  # addr
            stack.append(reader.uint(8))
        elif op == 0x06:  # deref
            stack.append(self._load(stack.pop(), 8))
        elif op == 0x94:  # deref_size
            size = reader.u8()
            if size not in (1, 2, 4, 8):
                raise ExpressionError(f"it reads {size} bytes")
            stack.append(self._load(stack.pop(), size))
        elif op == 0x10:  # constu
            stack.append(reader.uleb())
        elif op == 0x11:  # consts
            stack.append(reader.sleb() & _MASK)
        elif op == 0x12:  # dup
            stack.append(stack[-1])
        elif op == 0x13:  # drop
            stack.pop()
        elif op == 0x14:  # over
            stack.append(stack[-2])
        elif op == 0x15:  # pick
            stack.append(stack[-1 - reader.u8()])
        elif op == 0x16:  # swap
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif op == 0x17:  # rot
            stack[-1], stack[-2], stack[-3] = stack[-2], stack[-3], stack[-1]
        elif op == 0x23:  # plus_uconst
            stack.append(stack.pop() + reader.uleb() & _MASK)
        elif op == 0x2F:  # skip
            self._jump(reader.sint(2))
        elif op == 0x28:  # bra
            distance = reader.sint(2)
            if stack.pop():
                self._jump(distance)
        elif op == 0x92:  # bregx
            number = reader.uleb()
            stack.append(self._registers[number] + reader.sleb() & _MASK)
        elif op != 0x96:  # nop
            raise ExpressionError(f"operation {op:#x} is not one of unwind rules")

    def _jump(self, distance: int) -> None:
        place = self._reader.place + distance
        if not 0 <= place <= self._reader.end:
            raise ExpressionError("it jumps out of itself")
        self._reader.place = place

    def _load(self, address: int, size: int) -> int:
        return int.from_bytes(self._read(address, size), self._order)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _divide(left: int, right: int) -> int:
    dividend, divisor = _signed(left), _signed(right)
    if not divisor:
        raise ExpressionError("it divides by zero")
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _modulo(left: int, right: int) -> int:
    if not right:
        raise ExpressionError("it divides by zero")
    return left % right


_BINARY: Final[dict[int, Callable[[int, int], int]]] = {
    0x1A: lambda left, right: left & right,
    0x1B: _divide,
    0x1C: lambda left, right: left - right,
    0x1D: _modulo,
    0x1E: lambda left, right: left * right,
    0x21: lambda left, right: left | right,
    0x22: lambda left, right: left + right,
    0x24: lambda left, right: left << right if right < 64 else 0,
    0x25: lambda left, right: left >> right if right < 64 else 0,
    0x26: lambda left, right: _signed(left) >> min(right, 63),
    0x27: lambda left, right: left ^ right,
    0x29: lambda left, right: left == right,
    0x2A: lambda left, right: _signed(left) >= _signed(right),
    0x2B: lambda left, right: _signed(left) > _signed(right),
    0x2C: lambda left, right: _signed(left) <= _signed(right),
    0x2D: lambda left, right: _signed(left) < _signed(right),
    0x2E: lambda left, right: left != right,
}
_UNARY: Final[dict[int, Callable[[int], int]]] = {
    0x19: lambda value: abs(_signed(value)),
    0x1F: lambda value: -value,
    0x20: lambda value: ~value,
}


def unsigned(value: int) -> bytes:
    """A number of at least 0, in LEB128 (DWARF 5, section 7.6)."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def signed(value: int) -> bytes:
    """Any number, likewise."""
    found = bytearray()
    while not -0x40 <= value <= 0x3F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value & 0x7F)
    return bytes(found)
