"""ELF files as the debugger needs them."""

from engine.image.cfi import Cie, Fde, find_fde, function_ranges
from engine.image.elf import ElfImage
from engine.image.headers import Section, Segment
from engine.image.symbols import SymbolTable
from engine.image.symtab import Symbol

__all__ = [
    "Cie",
    "ElfImage",
    "Fde",
    "Section",
    "Segment",
    "Symbol",
    "SymbolTable",
    "find_fde",
    "function_ranges",
]
