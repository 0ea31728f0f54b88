"""Instructions that the host's processor has and the emulated one has not, carried out by it.

One instruction at a time runs on a block of registers and memory, with all exceptions of floating
point masked and its own control kept. Which ones may run, and on what, is the architecture's to
know: an instruction that the host does not have would end the process.

The emulator executes what it can execute of the same later processors
(`UnicornMachine.extend`): code that was compiled for such a one uses both.
"""

import ctypes
import mmap
from typing import Any, Final

from engine.cpu import native
from engine.cpu.ram import PAGE

_MOST: Final = 1024
"""Pieces of code, a page each, that are kept at once."""

# void run(block): the instruction stands between these two; the block is `vex._BLOCK`.
_BEFORE: Final = bytes.fromhex(
    "0fae9ffc000000"  # stmxcsr [rdi+0xfc]
    "0fae97f8000000"  # ldmxcsr [rdi+0xf8]
    "c57e6f07"  # vmovdqu ymm8, [rdi]
    "c57e6f4f20"  # vmovdqu ymm9, [rdi+0x20]
    "c57e6f5740"  # vmovdqu ymm10, [rdi+0x40]
    "c57e6f5f60"  # vmovdqu ymm11, [rdi+0x60]
    "c5fe6f8780000000"  # vmovdqu ymm0, [rdi+0x80]
    "4c8b87c0000000"  # mov r8, [rdi+0xc0]
    "4c8b8fc8000000"  # mov r9, [rdi+0xc8]
    "4c8b97d0000000"  # mov r10, [rdi+0xd0]
    "488b87d8000000"  # mov rax, [rdi+0xd8]
    "488b97e0000000"  # mov rdx, [rdi+0xe0]
    "488b8fe8000000"  # mov rcx, [rdi+0xe8]
    "ffb7f0000000"  # push qword [rdi+0xf0]
    "9d"  # popfq
)
_AFTER: Final = bytes.fromhex(
    "9c"  # pushfq
    "8f87f0000000"  # pop qword [rdi+0xf0]
    "c57e7f07"  # vmovdqu [rdi], ymm8
    "c57e7f4f20"  # vmovdqu [rdi+0x20], ymm9
    "c57e7f5740"  # vmovdqu [rdi+0x40], ymm10
    "c5fe7f8780000000"  # vmovdqu [rdi+0x80], ymm0
    "4c8987c0000000"  # mov [rdi+0xc0], r8
    "4c898fc8000000"  # mov [rdi+0xc8], r9
    "4c8997d0000000"  # mov [rdi+0xd0], r10
    "48898fe8000000"  # mov [rdi+0xe8], rcx
    "0fae9ff8000000"  # stmxcsr [rdi+0xf8]
    "0fae97fc000000"  # ldmxcsr [rdi+0xfc]
    "c5f877"  # vzeroupper
    "c3"  # ret
)
_Run: Final = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


class HostVectors:
    """The host's processor, for single instructions of one emulator."""

    def __init__(self) -> None:
        """No code is there yet."""
        self._pieces: dict[bytes, tuple[Any, object]] = {}
        self._block = mmap.mmap(-1, PAGE)  # some instructions want their operand aligned
        self._at = ctypes.addressof(ctypes.c_char.from_buffer(self._block))

    def run(self, code: bytes, block: bytes) -> bytes:
        """Run an instruction on a block; the block as it leaves it.

        Args:
            code: an instruction that the host has, which uses what the block holds and no more.
            block: as `engine.arch.x86_64.vex` makes it.

        Raises:
            MemoryError: the host refuses executable memory.
        """
        piece = self._pieces.get(code) or self._placed(code)
        self._block[: len(block)] = block
        piece[0](self._at)
        return self._block[: len(block)]

    def _placed(self, code: bytes) -> tuple[Any, object]:
        if len(self._pieces) >= _MOST:
            self._pieces.clear()
        placed = native.place((_BEFORE + code + _AFTER,))
        if placed is None:
            raise MemoryError("the host refuses executable memory")
        (at,), memory = placed
        piece = self._pieces[code] = _Run(at), memory
        return piece
