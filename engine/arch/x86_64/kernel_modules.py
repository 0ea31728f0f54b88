"""Relocation of x86-64 kernel modules (arch/x86/kernel/module.c)."""

_MASK = (1 << 64) - 1
_NONE, _64, _PC32, _PLT32, _32, _32S, _PC64 = 0, 1, 2, 4, 10, 11, 24


class X86Linker:
    """Relocations as arch/x86/kernel/module.c knows them.

    Sums are taken modulo 2**64: per-CPU symbols are small numbers that code reaches relative to
    itself, by wrapping around.
    """

    stub = bytes.fromhex("31c0c3")

    def base(self, kernel: int) -> int:
        """MODULES_VADDR of a kernel without KASLR."""
        return 0xFFFFFFFFC0000000

    def relocate(self, kind: int, memory: bytearray, at: int, place: int, value: int) -> bool:
        """Carry one relocation out."""
        if kind in (_64, _PC64):
            value = value - (place if kind == _PC64 else 0) & _MASK
            memory[at : at + 8] = value.to_bytes(8, "little")
        elif kind in (_PC32, _PLT32, _32, _32S):
            value = value - (place if kind in (_PC32, _PLT32) else 0) & 0xFFFFFFFF
            memory[at : at + 4] = value.to_bytes(4, "little")
        else:
            return kind == _NONE
        return True
