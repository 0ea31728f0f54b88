"""One instruction of x87 under way, and the table that instructions stand in."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from engine.arch.machine import ArchCpu
from engine.arch.x86_64.decode import OPERAND_SIZE, Decoded
from engine.arch.x86_64.extended import (
    DENORMAL,
    INDEFINITE,
    INVALID,
    ZERO_DIVIDE,
    Result,
)
from engine.arch.x86_64.floatstack import (
    EXCEPTIONS,
    FloatStack,
)

EARLY: Final = INVALID | DENORMAL | ZERO_DIVIDE
"""Exceptions that, if not masked, leave operands and stack as they were."""


class FloatStep:
    """One instruction under way.

    Attributes:
        cpu: on which.
        registers: of x87.
        address: of its operand in memory.
        index: of the register that it names.
        modrm: its ModRM byte.
        field: of that the middle, which tells instructions apart.
        short: environments are those of 16 bits.
    """

    def __init__(
        self, cpu: ArchCpu, registers: FloatStack, decoded: Decoded, address: int
    ) -> None:
        """Begin."""
        self.cpu = cpu
        self.registers = registers
        self.address = address
        self.index = decoded.modrm & 7
        self.modrm = decoded.modrm
        self.field = decoded.reg
        self.short = bool(decoded.prefixes & OPERAND_SIZE)

    def load(self, size: int, *, signed: bool = False) -> int:
        """The operand in memory."""
        return int.from_bytes(self.cpu.read(self.address, size), "little", signed=signed)

    def keep(self, result: Result, index: int, pops: int = 0) -> None:
        """Put a result into st(index) unless an exception forbids it, then pop."""
        registers = self.registers
        if result.flags & ~registers.word & EARLY:
            registers.raised(result.flags & EARLY)
            registers.direction(up=False)
            return
        registers.raised(result.flags)
        registers.direction(up=result.up)
        registers.put(index, result.value)
        for _ in range(pops):
            registers.pop()

    def lacks(self, *indices: int) -> bool:
        """True if one of these registers is empty."""
        return any(self.registers.empty(index) for index in indices)

    def refuse(self, index: int, pops: int = 0) -> None:
        """An operand is missing: the result is the indefinite NaN."""
        if self.registers.missing():
            self.registers.put(index, INDEFINITE)
            for _ in range(pops):
                self.registers.pop()

    def push(self, value: int, flags: int = 0) -> None:
        """Load a value, unless there is no room or an exception forbids it."""
        registers = self.registers
        if not registers.empty(7):
            if registers.missing(full=True):
                registers.push(INDEFINITE)
            return
        registers.direction(up=False)
        if not registers.raised(flags) & EARLY:
            registers.push(value)

    def store(self, result: Result, size: int, pops: int, forbidding: int) -> None:
        """Put a result into memory unless one of these exceptions forbids it."""
        registers = self.registers
        unmasked = result.flags & ~registers.word & EXCEPTIONS
        if not unmasked & forbidding:
            self.cpu.write(self.address, result.value.to_bytes(size, "little"))
        registers.raised(result.flags)
        registers.direction(up=result.up)
        if not unmasked & forbidding:
            for _ in range(pops):
                registers.pop()


Run = Callable[[FloatStep], None]
"""Carries an instruction out."""


class InstructionTable(Struct):
    """The instructions of x87.

    Attributes:
        memory: those with an operand in memory, by (opcode, ModRM.reg).
        registers: all others, by (opcode, ModRM).
    """

    memory: dict[tuple[int, int], Run] = field(default_factory=dict)
    registers: dict[tuple[int, int], Run] = field(default_factory=dict)

    def each(self, opcode: int, modrm: int, run: Run) -> None:
        """The same instruction for all of st(0) to st(7)."""
        self.registers.update({(opcode, modrm | index): run for index in range(8)})
