"""The bounds of the function around an address, by symbols, tables, sections and calls."""

from bisect import bisect_right
from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

from engine.arch.base import Arch
from engine.arch.frames import Flow
from engine.guest.modules import Module
from engine.image import ElfImage
from engine.image.headers import PF_X
from engine.image.plt import plt_sections

_UNSIZED: Final = 1 << 16
"""Bytes looked at behind a place in a function whose end is not known."""
_SWEPT: Final = 1 << 20
"""Bytes of code that are searched for calls where nothing else tells of functions."""


class Functions:
    """The functions of all files in a guest."""

    def __init__(self, arch: Arch, module_at: Callable[[int], Module | None]) -> None:
        """Nothing is read before the first question."""
        self._arch = arch
        self._module_at = module_at
        self._called: WeakKeyDictionary[ElfImage, list[int]] = WeakKeyDictionary()

    def at(self, address: int) -> tuple[int, int] | None:
        """(start, end) of the function around a guest address; None where none is known.

        Split-off parts (NAME.cold) are none: they are not entered by a call.
        """
        module = self._module_at(address)
        if module is None:
            return None
        symbol = module.symbol_at(address)
        if symbol is None:
            return self._stub(module, address) or self._between_calls(module, address)
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

    def _between_calls(self, module: Module, address: int) -> tuple[int, int] | None:
        """From the last address that is called somewhere to the next one."""
        image = module.image
        starts = self._called.get(image)
        if starts is None:
            starts = self._called[image] = self._call_targets(image)
        at = bisect_right(starts, address - module.bias)
        if not at:
            return None
        end = starts[at] if at < len(starts) else image.high
        return starts[at - 1] + module.bias, end + module.bias

    def _call_targets(self, image: ElfImage) -> list[int]:
        assert self._arch.unwind is not None, "checked by the unwinder"
        read, align, longest = self._arch.unwind.read, self._arch.insn_align, self._arch.insn_max
        found = {image.entry}
        left = _SWEPT
        for segment in image.load_segments:
            if not segment.flags & PF_X:
                continue
            code = image.read_vaddr(segment.vaddr, min(segment.filesz, left))
            left -= len(code)
            place = 0
            while place < len(code):
                insn = read(code[place : place + longest], segment.vaddr + place)
                if insn is None:
                    place += align
                    continue
                if insn.flow is Flow.CALL and insn.target is not None:
                    found.add(insn.target)
                place += insn.size
        code_of = [s for s in image.load_segments if s.flags & PF_X]
        return sorted(address for address in found if any(s.covers(address) for s in code_of))

    def is_entry(self, address: int) -> bool:
        """True if the kernel enters a program or its loader there."""
        module = self._module_at(address)
        return module is not None and address == module.image.entry + module.bias
