"""Machine code of x86-64 with labels: what the recorder of a detour is written in."""

import struct
from typing import Final

from engine.arch.recording import NotCompilableError

RAX, RCX, RDX, RSP, RSI, RDI = 0, 1, 2, 4, 6, 7

STORE, LOAD, LEA = "89", "8b", "8d"
"""`mov` to memory and from it, and `lea`, as opcodes of `Code.memory`."""

JB, JAE, JE, JNE, JBE, JA, JL, JGE, JLE, JG = 2, 3, 4, 5, 6, 7, 12, 13, 14, 15
"""Conditions of `Code.jump`."""

_WORDS: Final = {1: "<b", 2: "<h", 4: "<i", 8: "<i"}


class Code:
    """Machine code with labels; jumps are near ones."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self._labels: dict[str, int] = {}
        self._uses: list[tuple[int, str]] = []

    def label(self, name: str) -> int:
        """The next instruction has this name; its offset."""
        self._labels[name] = len(self.bytes)
        return len(self.bytes)

    def raw(self, text: str) -> None:
        """Bytes in hexadecimal."""
        self.bytes += bytes.fromhex(text)

    def jump(self, name: str, condition: int | None = None) -> None:
        """`jmp` or `jcc` to a label."""
        self.bytes += b"\xe9" if condition is None else bytes((0x0F, 0x80 | condition))
        self._uses.append((len(self.bytes), name))
        self.bytes += bytes(4)

    def finished(self) -> bytes:
        """The code with its jumps filled in."""
        for at, name in self._uses:
            struct.pack_into("<i", self.bytes, at, self._labels[name] - at - 4)
        return bytes(self.bytes)

    def absolute(self, address: int, *, store: bool = False, wide: bool = True) -> None:
        """`mov` between rax (eax) and an absolute address."""
        self.bytes += (b"\x48" if wide else b"") + (b"\xa3" if store else b"\xa1")
        self.bytes += struct.pack("<Q", address)

    def memory(self, opcode: str, register: int, base: int, offset: int) -> None:
        """An instruction of 64 bits with a register and `[base+offset]`."""
        self._operand("", bytes.fromhex(opcode), register, base, offset, 8)

    def load(self, register: int, base: int, offset: int, size: int) -> None:
        """`[base+offset]` with zeros above it."""
        opcode = {1: "0fb6", 2: "0fb7"}.get(size, LOAD)
        self._operand("", bytes.fromhex(opcode), register, base, offset, 8 * (size == 8))

    def compare_memory(self, base: int, offset: int, size: int, value: int) -> None:
        """`cmp` of 1, 2 or 4 bytes at `[base+offset]` with a constant."""
        opcode = b"\x80" if size == 1 else b"\x81"
        self._operand("66" if size == 2 else "", opcode, 7, base, offset, 0)
        self.bytes += value.to_bytes(size, "little")

    def _operand(
        self, prefix: str, opcode: bytes, register: int, base: int, offset: int, wide: int
    ) -> None:
        if not -(1 << 31) <= offset < 1 << 31:
            raise NotCompilableError(f"offset {offset:#x} has more than 32 bits")
        rex = wide | (register >> 3) << 2 | base >> 3
        short = -128 <= offset < 128
        form = [(0x40 if short else 0x80) | (register & 7) << 3 | base & 7]
        if base & 7 == RSP:
            form.append(0x24)
        self.bytes += bytes.fromhex(prefix) + (bytes([0x40 | rex]) if rex else b"") + opcode
        self.bytes += bytes(form) + struct.pack("<b" if short else "<i", offset)

    def sum(self, target: int, base: int, index: int, offset: int = 0) -> None:
        """`lea` of base + index + offset, with an offset of 8 bits."""
        rex = 0x48 | (target >> 3) << 2 | (index >> 3) << 1 | base >> 3
        sib = (index & 7) << 3 | base & 7
        self.bytes += bytes([rex, 0x8D, 0x44 | (target & 7) << 3, sib, offset & 0xFF])

    def constant(self, register: int, value: int) -> None:
        """`mov` of a constant, in its shortest form."""
        value &= (1 << 64) - 1
        rex = 0x40 | register >> 3
        if value < 1 << 32:
            prefix = bytes([rex]) if register > 7 else b""
            self.bytes += prefix + bytes([0xB8 | register & 7]) + struct.pack("<I", value)
        else:
            self.bytes += bytes([rex | 8, 0xB8 | register & 7]) + struct.pack("<Q", value)

    def two(self, opcode: int, register: int, other: int, size: int = 8) -> None:
        """An instruction on two registers, `other` being ModRM.rm; byte forms have their own."""
        rex = (0x48 if size == 8 else 0x40) | (register >> 3) << 2 | other >> 3
        front = b"\x66" if size == 2 else b""
        opcode -= size == 1
        self.bytes += front + bytes([rex, opcode, 0xC0 | (register & 7) << 3 | other & 7])

    def compare(self, register: int, value: int, size: int, *, bits: bool = False) -> bool:
        """`cmp` (with `bits`: `test`) of a register's low bytes with a constant.

        Args:
            register: which.
            value: signed or not; only its low `size` bytes count.
            size: 1, 2, 4 or 8.
            bits: whether they have bits in common.

        Returns:
            False where the constant does not fit the instruction: nothing is added then.
        """
        signed = (value & (1 << 8 * size) - 1 ^ 1 << 8 * size - 1) - (1 << 8 * size - 1)
        if not -(1 << 31) <= signed < 1 << 31:
            return False
        rex = (0x48 if size == 8 else 0x40) | register >> 3
        opcode = (0xF7 if bits else 0x81) - (size == 1)
        form = 0xC0 | (0 if bits else 7) << 3 | register & 7
        self.bytes += (b"\x66" if size == 2 else b"") + bytes([rex, opcode, form])
        self.bytes += struct.pack(_WORDS[size], signed)
        return True

    def shift(self, extension: int, register: int, count: int) -> None:
        """`shl` (4), `shr` (5) of 64 bits."""
        form = 0xC0 | extension << 3 | register & 7
        self.bytes += bytes([0x48 | register >> 3, 0xC1, form, count])
