"""Machine code of AArch64 with labels: what the recorder of a detour is written in."""

import struct
from typing import Final

from engine.arch.aarch64.relocate import load_constant, word
from engine.arch.recording import NotCompilableError

BASE, VALUE = 16, 17
"""Registers that are free in a detour (`relocate.needs`)."""
SP: Final = 31

B, CBNZ, CBZ, TBNZ63, TBZ63 = 0x14000000, 0xB5000000, 0xB4000000, 0xB7F80000, 0xB6F80000
ADD, SUB, AND, BIC, ORR, ORN, EOR = (
    0x8B000000,
    0xCB000000,
    0x8A000000,
    0x8A200000,
    0xAA000000,
    0xAA200000,
    0xCA000000,
)
"""Instructions on three registers."""
LSL, LSR, ASR = 0 << 22, 1 << 22, 2 << 22
"""How the last of them is shifted first."""

_SCALED: Final = {1: 0x39400000, 2: 0x79400000, 4: 0xB9400000, 8: 0xF9400000}
_UNSCALED: Final = {1: 0x38400000, 2: 0x78400000, 4: 0xB8400000, 8: 0xF8400000}


class Code:
    """Machine code with labels."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self._labels: dict[str, int] = {}
        self._uses: list[tuple[int, str]] = []

    def label(self, name: str) -> int:
        """The next instruction has this name; its offset."""
        self._labels[name] = len(self.words) * 4
        return len(self.words) * 4

    def add(self, *words: int) -> None:
        """Instructions."""
        self.words += words

    def constant(self, register: int, value: int) -> None:
        """A constant into a register."""
        code = load_constant(register, value & (1 << 64) - 1)
        self.words += struct.unpack(f"<{len(code) // 4}I", code)

    def branch(self, opcode: int, name: str) -> None:
        """A branch to a label: `b`, or one with 19 or 14 bits of distance."""
        self._uses.append((len(self.words), name))
        self.words.append(opcode)

    def three(self, opcode: int, target: int, one: int, other: int, shift: int = 0) -> None:
        """An instruction on three registers; `shift`: LSL, LSR, ASR with a count times 1 << 10."""
        self.add(opcode | shift | other << 16 | one << 5 | target)

    def move(self, target: int, source: int) -> None:
        """`mov` between registers; the source may be sp."""
        if source == SP:
            self.add(0x91000000 | source << 5 | target)
        else:
            self.three(ORR, target, SP, source)

    def plus(self, register: int, value: int) -> None:
        """Add a constant below 4,096."""
        if not 0 <= value < 4096:
            raise NotCompilableError("too long a row")
        if value:
            self.add(0x91000000 | value << 10 | register << 5 | register)

    def load(self, register: int, base: int, offset: int, size: int = 8) -> None:
        """From [base+offset]; far from a base it changes BASE."""
        if not offset % size and 0 <= offset < 4096 * size:
            self.add(_SCALED[size] | offset // size << 10 | base << 5 | register)
        elif -256 <= offset < 256:
            self.add(_UNSCALED[size] | (offset & 0x1FF) << 12 | base << 5 | register)
        elif base in (SP, BASE):
            raise NotCompilableError("too far from the stack pointer")
        else:
            self.constant(BASE, offset)
            self.three(ADD, BASE, base, BASE)
            self.load(register, BASE, 0, size)

    def store(self, register: int, base: int, offset: int) -> None:
        """To [base+offset], a multiple of 8 up to 32,760."""
        if not 0 <= offset < 4096 * 8:
            raise NotCompilableError("too long a row")
        self.add(0xF9000000 | offset // 8 << 10 | base << 5 | register)

    def store_pair(self, first: int, second: int, base: int, offset: int) -> None:
        """`stp`, the offset a multiple of 8 up to 504."""
        self.add(0xA9000000 | (offset // 8 & 0x7F) << 15 | second << 10 | base << 5 | first)

    def finished(self) -> bytes:
        """The code with its branches filled in."""
        for at, name in self._uses:
            distance = self._labels[name] // 4 - at
            if self.words[at] & 0x7C000000 == B:
                self.words[at] |= distance & 0x3FFFFFF
            elif self.words[at] & 0x7E000000 == 0x36000000:
                if not -(1 << 13) <= distance < 1 << 13:
                    raise NotCompilableError("too long a recorder")
                self.words[at] |= (distance & 0x3FFF) << 5
            else:
                self.words[at] |= (distance & 0x7FFFF) << 5
        return b"".join(map(word, self.words))
