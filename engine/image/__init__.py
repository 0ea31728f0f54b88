"""ELF files as the debugger needs them: programs to load, names, unwind rules, lines.

Opening a file reads its headers and nothing else; everything here waits for its first
question, because a debugger opens dozens of libraries and asks most of them nothing.
Whatever a program needs to run comes from its program headers, with Linux's rules
(`checks`), and damage there is an `ImageError`. Everything else - sections, symbols,
unwind tables, lines - is help for people: damage there means "not known", with the reason
in `damage`, and never keeps a program from running.

The parsers are our own where the input decides how much work is done: pyelftools reads whole
tables at once (5.8 s for 258,000 symbols that `index` sorts in a tenth), and on damaged files it
raises anything from KeyError to RecursionError or counts to 2**60. It finds the sections of .dwo
and .dwp files, nothing else; it and the demangler are imported when first needed. Every own parser
reads through `reader.Reader` or bounded slices, so time and memory follow the size of the file,
never a number written in it.

Addresses in this package are link addresses: the loader adds the bias. Refused: object
files and core dumps (nothing to run), x32 and other ILP32 variants, sections compressed
with zstd while Python's library lacks it.

What asks for more than headers is imported with its first use: a plain run needs none of it.
What a search for a name has found in a file is kept on disk for the next session (`knownunits`).
"""

from typing import TYPE_CHECKING, Any, Final

from engine.image.elf import ElfImage
from engine.image.headers import Section, Segment

if TYPE_CHECKING:
    from engine.image.cfi import Cie, Fde, find_fde, function_ranges, range_at, signal_frames
    from engine.image.lines import Lines
    from engine.image.symbols import SymbolTable
    from engine.image.symtab import Symbol

__all__ = [
    "Cie",
    "ElfImage",
    "Fde",
    "Lines",
    "Section",
    "Segment",
    "Symbol",
    "SymbolTable",
    "find_fde",
    "function_ranges",
    "range_at",
    "signal_frames",
]

_CFI: Final = ("Cie", "Fde", "find_fde", "function_ranges", "range_at", "signal_frames")


def __getattr__(name: str) -> Any:
    """Give what is imported late to whoever imports it (PEP 562)."""
    if name in _CFI:
        from engine.image import cfi

        return getattr(cfi, name)
    if name == "Lines":
        from engine.image.lines import Lines

        return Lines
    if name == "SymbolTable":
        from engine.image.symbols import SymbolTable

        return SymbolTable
    if name == "Symbol":
        from engine.image.symtab import Symbol

        return Symbol
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
