"""Relocation of AArch64 kernel modules (arch/arm64/kernel/module.c)."""

from typing import Final

_MASK: Final = (1 << 64) - 1
_DATA: Final = {257: (8, False), 258: (4, False), 260: (8, True), 261: (4, True), 314: (4, True)}
"""Number to (bytes, relative to the place): ABS64, ABS32, PREL64, PREL32, PLT32."""
_BRANCHES: Final = {279: (5, 14), 280: (5, 19), 282: (0, 26), 283: (0, 26), 273: (5, 19)}
"""Number to (lowest bit, bits) of a distance in instructions."""
_OFFSETS: Final = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}
"""ADD and LDST of the low 12 bits: number to the shift by the size of the access."""
_MOVES: Final = {263: 0, 264: 0, 265: 16, 266: 16, 267: 32, 268: 32, 269: 48}
"""MOVW_UABS: number to the shift."""
_ADR, _ADRP, _ADRP_NC = 274, 275, 276
_DISTANCE: Final = 0x4000000


class Arm64Linker:
    """Relocations as arch/arm64/kernel/module.c knows them."""

    stub = bytes.fromhex("000080d2c0035fd6")

    def base(self, kernel: int) -> int:
        """64 MiB in front of the kernel, within reach of its branches; there are no veneers."""
        return kernel - _DISTANCE

    def relocate(self, kind: int, memory: bytearray, at: int, place: int, value: int) -> bool:
        """Carry one relocation out."""
        value &= _MASK
        if kind in _DATA:
            size, relative = _DATA[kind]
            value = (value - place if relative else value) & (1 << 8 * size) - 1
            memory[at : at + size] = value.to_bytes(size, "little")
            return True
        word = int.from_bytes(memory[at : at + 4], "little")
        if kind in _BRANCHES:
            low, bits = _BRANCHES[kind]
            word = _field(word, low, bits, value - place >> 2)
        elif kind in _OFFSETS:
            word = _field(word, 10, 12, (value & 0xFFF) >> _OFFSETS[kind])
        elif kind in _MOVES:
            word = _field(word, 5, 16, value >> _MOVES[kind])
        elif kind in (_ADR, _ADRP, _ADRP_NC):
            distance = value - place if kind == _ADR else (value >> 12) - (place >> 12)
            word = _field(_field(word, 29, 2, distance), 5, 19, distance >> 2)
        else:
            return kind in (0, 256)
        memory[at : at + 4] = word.to_bytes(4, "little")
        return True


def _field(word: int, low: int, bits: int, value: int) -> int:
    mask = (1 << bits) - 1
    return word & ~(mask << low) | (value & mask) << low
