"""An instruction, and the processor and memory that code of an architecture may touch."""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

UNKNOWN: Final = "(unknown)"
"""Mnemonic of what a decoder does not know."""

OUTSIDE: Final = 1
"""In `Cpu.last_branches`: no instruction, but the kernel, sent control elsewhere."""


class TrapError(Exception):
    """An instruction that is carried out in software raises an exception of the processor.

    Attributes:
        number: of the exception.
        error: its error code.
        own: the instruction is there to raise it, and is done.
    """

    def __init__(self, number: int, error: int = 0, *, own: bool = False) -> None:
        super().__init__(f"exception {number}")
        self.number, self.error, self.own = number, error, own


class RegisterFile(Protocol):
    """Registers by name; values are unsigned integers."""

    def read_register(self, name: str) -> int:
        """Value of a register; KeyError for an unknown name."""

    def write_register(self, name: str, value: int) -> None:
        """Set a register."""


class MemoryAccess(Protocol):
    """Guest memory by address; raises `GuestFaultError` where nothing is mapped."""

    def read(self, address: int, size: int) -> bytes:
        """Copy `size` bytes out."""

    def write(self, address: int, data: bytes) -> None:
        """Copy bytes in."""


class SpelledInsn(Struct, frozen=True):
    """An instruction in the words of another disassembler.

    Attributes:
        text: mnemonic and operands.
        refers: the address that it reads or writes relative to its own; None without one.
    """

    text: str
    refers: int | None = None


class Insn(Struct, frozen=True):
    """A decoded instruction: what every layer needs, none of the decoder's objects.

    Attributes:
        address: where it stands.
        raw: its bytes; those of all its bundle where several share one.
        mnemonic: as the decoder prints it.
        operands: the same.
        step: distance to the next instruction where that is not all of `raw`.
    """

    address: int
    raw: bytes
    mnemonic: str
    operands: str
    step: int = 0

    @property
    def size(self) -> int:
        """Distance to the next instruction."""
        return self.step or len(self.raw)

    @property
    def unknown(self) -> bool:
        """True if the decoder does not know it: the bytes may be those of several."""
        return self.mnemonic == UNKNOWN

    @property
    def text(self) -> str:
        """Mnemonic and operands as the decoder prints them."""
        return f"{self.mnemonic} {self.operands}".rstrip()


class ArchCpu(RegisterFile, MemoryAccess, Protocol):
    """Registers and memory for an architecture's own emulation of an instruction."""

    def float_flags(self) -> int:
        """Sticky floating-point exceptions that no register shows, as IEEE flags of the CPU."""

    def clear_float_flags(self) -> None:
        """Forget them."""

    def execute(self, address: int, end: int) -> None:
        """Run engine-owned code at `address` until pc reaches `end`."""

    def counter(self) -> int:
        """The guest's cycle counter: deterministic, never decreasing."""

    def entropy(self, count: int) -> bytes:
        """Random bytes from the seed of the run."""


class FrameCpu(ArchCpu, Protocol):
    """The same for code that saves many registers at once."""

    def read_block(self, names: Sequence[str], size: int) -> bytes:
        """Registers one after another, little endian, each in so many bytes as the widest has."""

    def write_block(self, names: Sequence[str], size: int, data: bytes) -> None:
        """Set such registers; none of them is one of which only a part may be written."""


class LentCpu(FrameCpu, Protocol):
    """The same where the host lends what its processor has more than the emulated one."""

    def read_registers(self, names: Sequence[str]) -> tuple[int, ...]:
        """Several registers of up to 64 bits at once."""

    def on_host(self, code: bytes, block: bytes) -> bytes:
        """Have the host run an instruction on a block of registers and memory; the new block.

        It must be one that was screened as `Screening.BORROW`, see `engine.cpu.host_vectors`.
        """
