"""Rules of an architecture for laying out and relocating a kernel's loadable modules."""

from typing import Protocol


class ModuleLinker(Protocol):
    """Carries relocations out as the kernel's loader does (apply_relocate_add)."""

    @property
    def stub(self) -> bytes:
        """Code of a function that returns 0, for what nobody exports."""
        ...

    def base(self, kernel: int) -> int:
        """Address of the first module.

        Args:
            kernel: address of the kernel's text.
        """
        ...

    def relocate(self, kind: int, memory: bytearray, at: int, place: int, value: int) -> bool:
        """Carry one relocation out.

        Args:
            kind: R_* of the architecture.
            memory: a section's bytes.
            at: offset in them.
            place: address of that.
            value: of the symbol plus the addend.

        Returns:
            False where the kind is not known.
        """
        ...
