"""Addresses that KVM gives its code at boot, on machines that start kernels at EL1.

They consist of a distance into memory and a tag above it, which is random. A text of
/proc/cpuinfo can be told more, by lines that the kernel does not write: `memory` (START-END,
physical), `kernel at` (physical) and `hyp tag`. Where one is missing the instructions are left
as the file has them. (arch/arm64/kvm/va_layout.c)
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine.arch.kernel import KernelView
from engine.arch.kernelcpu import CpuModel

_BASE_ALIGN: Final = 1 << 21
_MEMORY_ALIGN: Final = 1 << 30
_SIX: Final = 0x3F << 10
_TWELVE: Final = 0xFFF << 10
_SIXTEEN: Final = 0xFFFF << 5
_ADDRESS_BITS: Final = 64
_MOVE, _KEEP, _BRANCH = 0xD2800000, 0xF2800000, 0xD61F0000
_HALF: Final = 1 << 21
"""Step of the shift in movz and movk."""
_VECTORS: Final = 0x780
_PREAMBLE: Final = 8
"""Bytes of a vector that were carried out before: it stores two registers."""


class HypAddresses(Struct, frozen=True):
    """The layout of KVM's addresses.

    Attributes:
        bits: of a distance into memory.
        tag: above them.
        offset: of physical addresses from the kernel's own.
        memory: physical address that distances count from.
    """

    bits: int
    tag: int
    offset: int
    memory: int

    def translated(self, words: Sequence[int]) -> list[int]:
        """The five instructions that make an address of KVM's from one of the kernel's."""
        mask, right, low, high, left = words
        return [
            mask & ~_SIX | self.bits - 1 << 10,
            right & ~_SIX | self.bits << 10,
            low & ~_TWELVE | (self.tag & 0xFFF) << 10,
            high & ~_TWELVE | (self.tag >> 12 & 0xFFF) << 10,
            left & ~_SIX | _ADDRESS_BITS - self.bits << 10,
        ]

    def vector(self, table: int, address: int) -> list[int]:
        """The four instructions that go on in a table of vectors.

        Args:
            table: its address.
            address: of the instructions, whose place tells the vector.
        """
        distance = table - self.offset - self.memory & (1 << self.bits) - 1
        target = (distance | self.tag << self.bits | address & _VECTORS) + _PREAMBLE
        parts = [target >> 16 * i & 0xFFFF for i in range(3)]
        moves = [_MOVE | parts[0] << 5, *(_KEEP | _HALF * i | parts[i] << 5 for i in (1, 2))]
        return [*moves, _BRANCH]

    def kernel_offset(self, words: Sequence[int]) -> list[int]:
        """The four instructions that load the offset of physical addresses."""
        value = self.offset & (1 << _ADDRESS_BITS) - 1
        return [word & ~_SIXTEEN | (value >> 16 * i & 0xFFFF) << 5 for i, word in enumerate(words)]


def hyp_addresses(view: KernelView, cpu: CpuModel) -> HypAddresses | None:
    """The layout on a machine of which enough is told; None otherwise."""
    text = view.symbol("_stext")
    start, _, end = cpu.fields.get("memory", "").partition("-")
    try:
        first, last = int(start, 0), int(end, 0)
        tag = int(cpu.fields["hyp tag"], 0)
        kernel = int(cpu.fields["kernel at"], 0)
    except (KeyError, ValueError):
        return None
    if text is None or not first < last:
        return None
    bits = (last - first - 1).bit_length()
    offset = text // _BASE_ALIGN * _BASE_ALIGN - kernel
    return HypAddresses(bits, tag, offset, first // _MEMORY_ALIGN * _MEMORY_ALIGN)
