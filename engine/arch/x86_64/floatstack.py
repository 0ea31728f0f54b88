"""The registers of x87: a stack of eight, with control, status and tag word (SDM volume 1, 8.1).

Of the instruction and operand before (FIP, FDP, the opcode) nothing is kept: zeros are stored
for them.
"""

import struct
from typing import Final

from engine.arch.machine import ArchCpu
from engine.arch.x86_64.extended import INVALID, ControlWord, NumberKind, kind_of

C0, C1, C2, C3 = 0x100, 0x200, 0x400, 0x4000
"""Condition codes of the status word."""
EXCEPTIONS: Final = 0x3F
"""The exceptions in the status word, and their masks in the control word."""
VALUES_SIZE: Final = 80
"""Bytes of the values behind an environment in memory."""
_CODES: Final = C0 | C1 | C2 | C3
_STACK_FAULT: Final = 0x40
_SUMMARY: Final = 0x8080
_FRESH: Final = 0x37F


def environment_size(*, short: bool) -> int:
    """Bytes of an environment in memory; `short` with a prefix of 16 bits."""
    return 14 if short else 28


class FloatStack:
    """The registers of x87, as one instruction sees and leaves them.

    Attributes:
        word: the control word.
        control: what it says.
        status: the status word without the top of the stack.
        top: number of the register that is st(0).
    """

    def __init__(self, cpu: ArchCpu) -> None:
        self._cpu = cpu
        self.word = self._word_before = cpu.read_register("fctrl")
        self.control = ControlWord.of(self.word)
        status = cpu.read_register("fstat")
        self._before = status
        self.status = status & ~0x3800
        self.top = status >> 11 & 7
        self.tags = self._tags_before = cpu.read_register("ftag")
        self._values: dict[int, int] = {}

    @property
    def pending(self) -> bool:
        """An exception waits that is not masked."""
        return bool(self.status & ~self.word & EXCEPTIONS)

    def empty(self, index: int) -> bool:
        """True if nothing is in st(index)."""
        return self.tags >> 2 * (self.top + index & 7) & 3 == 3

    def get(self, index: int) -> int:
        """The value of st(index), whether or not it is empty."""
        number = self.top + index & 7
        if number in self._values:
            return self._values[number]
        # The emulator names them by their distance from the top as it was.
        return self._cpu.read_register(f"st{number - (self._before >> 11) & 7}")

    def put(self, index: int, value: int) -> None:
        """Set st(index)."""
        number = self.top + index & 7
        self._values[number] = value
        self.tags &= ~(3 << 2 * number)

    def free(self, index: int) -> None:
        """Mark st(index) as empty."""
        self.tags |= 3 << 2 * (self.top + index & 7)

    def push(self, value: int) -> None:
        """A new st(0)."""
        self.top = self.top - 1 & 7
        self.put(0, value)

    def pop(self) -> None:
        """St(1) is st(0)."""
        self.free(0)
        self.top = self.top + 1 & 7

    def raised(self, flags: int) -> int:
        """Note exceptions; those that are not masked."""
        self.status |= flags
        return flags & ~self.word & EXCEPTIONS

    def codes(self, bits: int) -> None:
        """Set the condition codes."""
        self.status = self.status & ~_CODES | bits

    def direction(self, *, up: bool) -> None:
        """C1: whether the last result was rounded up."""
        self.status = self.status & ~C1 | (C1 if up else 0)

    def missing(self, *, full: bool = False) -> bool:
        """A stack fault; True if it is masked."""
        self.status |= _STACK_FAULT
        self.direction(up=full)
        return not self.raised(INVALID)

    def load_word(self, word: int) -> None:
        """Set the control word."""
        self.word = word & 0x1F3F | 0x40
        self.control = ControlWord.of(self.word)

    def reset(self) -> None:
        """As fninit leaves it."""
        self.load_word(_FRESH)
        self.status, self.top, self.tags = 0, 0, 0xFFFF

    @property
    def status_word(self) -> int:
        """The status word as a program sees it."""
        summary = _SUMMARY if self.pending else 0
        return self.status & ~_SUMMARY | summary | self.top << 11

    @property
    def tag_word(self) -> int:
        """Two bits a register: valid, zero, special, empty."""
        word = 0
        for number in range(8):
            tag = self.tags >> 2 * number & 3
            if tag != 3:
                kind = kind_of(self.get(number - self.top & 7))
                tag = {NumberKind.ZERO: 1, NumberKind.NORMAL: 0}.get(kind, 2)
            word |= tag << 2 * number
        return word

    def load_tags(self, word: int) -> None:
        """Which registers are empty."""
        self.tags = sum(3 << 2 * number for number in range(8) if word >> 2 * number & 3 == 3)

    # -- in memory ------------------------------------------------------------------------

    def environment(self, *, short: bool) -> bytes:
        """Words and tags as fnstenv stores them; `short` with a prefix of 16 bits."""
        words = self.word, self.status_word, self.tag_word
        if short:
            return struct.pack("<7H", *words, 0, 0, 0, 0)
        ones = 0xFFFF0000
        return struct.pack("<7I", *(ones | word for word in words), 0, 0, 0, ones)

    def set_environment(self, image: bytes, *, short: bool) -> None:
        """Set words and tags as fldenv does."""
        control, status, tags = struct.unpack_from("<3H8x" if short else "<H2xH2xH18x", image)
        self.load_word(control)
        self.status, self.top = status & ~0x3800, status >> 11 & 7
        self.load_tags(tags)

    def saved(self, *, short: bool) -> bytes:
        """All of it as fnsave stores it."""
        values = b"".join(self.get(index).to_bytes(10, "little") for index in range(8))
        return self.environment(short=short) + values

    def restore(self, image: bytes, *, short: bool) -> None:
        """Set all of it as frstor does."""
        self.set_environment(image, short=short)
        tags, size = self.tags, environment_size(short=short)
        for index in range(8):
            self.put(index, int.from_bytes(image[size + 10 * index :][:10], "little"))
        self.load_tags(tags)

    def leave(self) -> None:
        """Write all that has changed."""
        write = self._cpu.write_register
        status = self.status_word
        if status != self._before:
            write("fstat", status)
        if self.word != self._word_before:
            write("fctrl", self.word)
        for number, value in self._values.items():
            write(f"st{number - self.top & 7}", value)
        if self.tags != self._tags_before:
            write("ftag", self.tags)
