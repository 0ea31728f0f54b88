"""Expressions of variables in a frame whose registers are known (DWARF 5, 2.5 and 2.6).

They have what those of unwind rules lack: registers as places, the frame's base, values that are
computed, values at the function's entry, and variables of threads.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.image.dies import Unit
from engine.image.expressions import FrameContext, Where
from engine.unwind.expression import ExpressionError, ReadMemory, RuleMachine

_MASK: Final = (1 << 64) - 1


class KnownFrame(Struct, frozen=True):
    """A frame that expressions are asked in.

    Attributes:
        register: a register by its DWARF number; None if nobody knows it.
        entry: the same at the function's first instruction.
        thread_local: the address of a variable by its offset in its file's block.
        read: memory.
        bias: of the file.
        order: of bytes, "<" or ">".
    """

    register: Callable[[int], int | None]
    entry: Callable[[int], int | None]
    thread_local: Callable[[int], int | None]
    read: ReadMemory
    bias: int
    order: str


class FoundValue(Struct, frozen=True):
    """Place or value of a variable.

    Attributes:
        where: MEMORY, REGISTER or VALUE.
        number: an address, the DWARF number of a register, a value.
    """

    where: Where
    number: int


class _AskedRegisters(dict[int, int]):
    """Registers that are asked for when an expression needs them."""

    def __init__(self, ask: Callable[[int], int | None]) -> None:
        self._ask = ask

    def __missing__(self, number: int) -> int:
        value = self._ask(number)
        if value is None:
            raise ExpressionError(f"register {number} is not saved")
        return value


def found_value(
    code: bytes, known: KnownFrame, unit: Unit, context: FrameContext | None
) -> FoundValue | None:
    """Evaluate an expression; None where it finds nothing.

    Args:
        code: the expression.
        known: the frame.
        unit: where the expression stands.
        context: the function's frame; None where its base is not asked for.
    """
    try:
        return _FrameMachine(code, known, unit, context).found()
    except (ExpressionError, ValueError, IndexError):
        return None


class _FrameMachine(RuleMachine):
    """Runs one expression."""

    def __init__(
        self, code: bytes, known: KnownFrame, unit: Unit, context: FrameContext | None
    ) -> None:
        self._bare = _AskedRegisters(known.register)
        super().__init__(code, self._bare, known.read, known.order)
        self._known, self._unit, self._context = known, unit, context
        self._result: FoundValue | None = None

    def found(self) -> FoundValue:
        """The place or value."""
        stack: list[int] = []
        number = self.run(stack) if self._reader.end else None
        if number is None:
            raise ExpressionError("it says nothing")
        return self._result or FoundValue(Where.MEMORY, number)

    def _rare(self, op: int, stack: list[int]) -> None:
        reader, known = self._reader, self._known
        if self._result is not None:
            raise ExpressionError("it has several parts")
        if 0x50 <= op <= 0x6F or op == 0x90:  # reg, regx
            number = op - 0x50 if op != 0x90 else reader.uleb()
            self._result = FoundValue(Where.REGISTER, number)
            stack.append(number)
        elif op == 0x9F:  # stack_value
            self._result = FoundValue(Where.VALUE, stack[-1])
        elif op == 0x03:  # addr
            stack.append(reader.uint(self._unit.widths.address) + known.bias & _MASK)
        elif op in (0xA1, 0xFB):  # addrx
            stack.append(self._unit.address(reader.uleb()) + known.bias & _MASK)
        elif op in (0xA2, 0xFC):  # constx
            stack.append(self._unit.address(reader.uleb()))
        elif op == 0x91:  # fbreg
            stack.append(self._base() + reader.sleb() & _MASK)
        elif op == 0x9C:  # call_frame_cfa
            if self._context is None or self._context.cfa is None:
                raise ExpressionError("no frame address is known")
            register, offset = self._context.cfa
            stack.append(self._bare[register] + offset & _MASK)
        elif op in (0xA3, 0xF3):  # entry_value
            stack.append(self._at_entry(reader.block(reader.uleb())))
        elif op in (0xA4, 0xF4):  # const_type
            reader.uleb()
            stack.append(int.from_bytes(reader.block(reader.u8()), self._order))
        elif op in (0xA5, 0xF5):  # regval_type
            stack.append(self._bare[reader.uleb()])
            reader.uleb()
        elif op in (0xA6, 0xF6):  # deref_type
            size = reader.u8()
            reader.uleb()
            stack.append(int.from_bytes(self._read(stack.pop(), size), self._order))
        elif op in (0x9B, 0xE0):  # form_tls_address
            address = known.thread_local(stack.pop())
            if address is None:
                raise ExpressionError("no block of thread-local variables is known")
            stack.append(address)
        else:
            super()._rare(op, stack)

    def _base(self) -> int:
        if self._context is None:
            raise ExpressionError("no frame base is known")
        base = self._context.base()
        if base.where is Where.REGISTER:
            return self._bare[base.register]
        if base.where not in (Where.MEMORY, Where.VALUE) or base.term.derefs:
            raise ExpressionError("no frame base is known")
        start = 0 if base.term.register is None else self._bare[base.term.register]
        return start + base.term.offset + (self._known.bias if base.term.is_link else 0)

    def _at_entry(self, code: bytes) -> int:
        """The value of an expression of one register at the function's entry."""
        known = self._known
        there = KnownFrame(
            known.entry, lambda _: None, lambda _: None, known.read, known.bias, known.order
        )
        found = _FrameMachine(code, there, self._unit, None).found()
        if found.where is not Where.REGISTER:
            return int.from_bytes(self._read(found.number, 8), self._order)
        value = known.entry(found.number)
        if value is None:
            raise ExpressionError("its value at the entry is not known")
        return value
