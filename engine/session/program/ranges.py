"""Where functions begin and end in a file."""

from functools import lru_cache
from typing import Final

from engine.image import ElfImage, Symbol, range_at, signal_frames
from engine.image.headers import PF_X, SHF_EXECINSTR
from engine.session.program.libraries import ProgramFile

_KEPT: Final = 1 << 14


class FunctionRanges:
    """Functions remembered by address: a probe's way from its place to its plan asks often."""

    def __init__(self) -> None:
        self.at = lru_cache(maxsize=_KEPT)(function_at)


def function_at(file: ProgramFile, link: int) -> tuple[int, int] | None:
    """(start, size) of the function around a link address; None outside of all.

    A symbol with a size says it best, then the unwind tables, then a symbol without a size
    up to the next name or the end of its section.
    """
    symbol = file.symbols.at(link)
    if symbol is not None and not is_code(file.image, symbol):
        return None
    for start, size in signal_frames(file.image):
        # Signal return code is described from one byte before it on: unwinders look up
        # return addresses at address - 1 (glibc, sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c).
        if start < link < start + size:
            return start + 1, size - 1
    if symbol is not None and symbol.size and link < symbol.address + symbol.size:
        return symbol.address, symbol.size
    described = range_at(file.image, link)
    if symbol is None:
        return described
    if described is not None and described[0] == symbol.address:
        return described
    return symbol.address, _unsized_end(file, symbol, link) - symbol.address


def _unsized_end(file: ProgramFile, symbol: Symbol, link: int) -> int:
    """Where a symbol without a size ends: at the next one, or with its section."""
    low, high = link, file.image.high
    for section in file.image.sections:
        if section.holds(symbol.address):
            high = section.addr + section.size
    while low + 1 < high:  # symbols.at is monotonous up to the next name
        middle = (low + high) // 2
        covering = file.symbols.at(middle)
        if covering is not None and covering.address == symbol.address:
            low = middle
        else:
            high = middle
    return high


def is_code(image: ElfImage, symbol: Symbol) -> bool:
    """Whether a symbol names something in executable memory that is not typed as data."""
    if symbol.is_function:
        return True
    if symbol.kind != "notype":
        return False
    sections = image.sections
    if 0 < symbol.section < len(sections):
        return bool(sections[symbol.section].flags & SHF_EXECINSTR)
    return any(s.flags & PF_X and s.covers(symbol.address) for s in image.load_segments)
