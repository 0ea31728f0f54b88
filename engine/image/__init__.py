"""ELF files as the debugger needs them."""

from engine.image.cfi import Cie, Fde, find_fde, function_ranges
from engine.image.elf import ElfImage
from engine.image.headers import Section, Segment

__all__ = ["Cie", "ElfImage", "Fde", "Section", "Segment", "find_fde", "function_ranges"]
