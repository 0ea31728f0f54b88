"""Where the function around an address begins and ends, from symbols and sections."""

from collections.abc import Callable
from typing import Final

from engine.arch.base import Arch
from engine.guest.modules import Module
from engine.image.plt import plt_sections

_UNSIZED: Final = 1 << 16
"""Bytes looked at behind a place in a function whose end is not known."""


class Functions:
    """The functions of all files in a guest."""

    def __init__(self, arch: Arch, module_at: Callable[[int], Module | None]) -> None:
        self._arch = arch
        self._module_at = module_at

    def at(self, address: int) -> tuple[int, int] | None:
        """(start, end) of the function around a guest address; None where none is known.

        Split-off parts (NAME.cold) are none: they are not entered by a call.
        """
        module = self._module_at(address)
        if module is None:
            return None
        symbol = module.symbol_at(address)
        if symbol is None:
            return self._stub(module, address)
        if symbol.name.endswith(".cold") or ".cold." in symbol.name:
            return None
        start = symbol.address + module.bias
        return start, start + symbol.size if symbol.size else address + _UNSIZED

    def _stub(self, module: Module, address: int) -> tuple[int, int] | None:
        """The head of a linkage table, which no symbol names."""
        for section in plt_sections(module.image):
            if section.holds(address - module.bias):
                start = section.addr + module.bias
                return start, start + section.size
        return None

    def is_entry(self, address: int) -> bool:
        """Whether the kernel enters a program or its loader there."""
        module = self._module_at(address)
        return module is not None and address == module.image.entry + module.bias
