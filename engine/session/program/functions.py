"""The functions of a file: their beginnings and ends, inlined copies, parts kept elsewhere.

A cold part of a function has a symbol or a range of the unwind tables of its own, but it is jumped
to and never called: where it begins the stack is in the middle of its function.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.errors import ImageError
from engine.image import ElfImage, Symbol, find_fde, range_at, signal_frames
from engine.image.headers import PF_X, SHF_EXECINSTR
from engine.session.program.libraries import ProgramFile
from engine.unwind.program import rows
from engine.unwind.rows import CfaRegister

_KEPT: Final = 1 << 14
_ASKED: Final = 1 << 16
"""Addresses whose functions are remembered: all functions are gone through three times."""
_LATEST: Final = 8
"""Functions whose neighbourhoods are remembered."""
_COLD: Final = re.compile(r"\.cold(\.\d+)?$")


class Neighbourhood(Struct, frozen=True):
    """Addresses that one symbol covers and that are in one function.

    Attributes:
        file: where.
        low: the first of them.
        high: behind the last one; at `low`, which was asked about, while nothing more than the
            function is known.
        symbol: the symbol that covers the addresses.
        function: the function that the addresses are in.
    """

    file: ProgramFile
    low: int
    high: int
    symbol: Symbol | None
    function: tuple[int, int] | None


class FunctionRanges:
    """Functions remembered by address: a probe's way from its place to its plan asks often."""

    def __init__(self) -> None:
        self.at = lru_cache(maxsize=_ASKED)(function_at)
        self._latest: list[Neighbourhood] = []

    def near(self, file: ProgramFile, link: int) -> Neighbourhood | None:
        """All that an address shares with its neighbours, after two of one function.

        A few functions are remembered: a caller's and its callees' are asked about in turn.
        """
        latest = self._latest
        for one in latest:
            if one.low <= link < one.high and one.file is file:
                return one
        found = self.at(file, link)
        known = next((one for one in latest if one.function == found and one.file is file), None)
        if known is None:
            latest.insert(0, Neighbourhood(file, link, link, None, found))
            del latest[_LATEST:]
            return None
        if known.symbol is None and known.low == link:
            return None  # of one address alone its function is remembered
        about = self.around(file, link)
        if about is None:
            return None
        latest.remove(known)
        latest.insert(0, about)
        return about

    def around(self, file: ProgramFile, link: int) -> Neighbourhood | None:
        """The addresses around one that have its symbol, which says where their function is.

        None where more than the symbol says that.
        """
        found = self.at(file, link)
        symbol, low, high = file.symbols.span(link)
        if found is None or symbol is None or (symbol.address, symbol.size) != found:
            return None
        if signal_frames(file.image):
            return None
        # The symbol says where the function is: it is the same wherever that covers.
        low, high = max(low, found[0]), min(high, found[0] + found[1])
        return Neighbourhood(file, low, high, symbol, found)


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
        return _extent(symbol.address, symbol.size)
    described = range_at(file.image, link)
    if described is not None and (symbol is None or described[0] == symbol.address):
        return _extent(*described)
    if symbol is None:
        return None
    return _extent(symbol.address, _unsized_end(file, symbol, link) - symbol.address)


@lru_cache(maxsize=_KEPT)
def _extent(start: int, size: int) -> tuple[int, int]:
    """Start and size; all places of a function keep the same."""
    return start, size


def _unsized_end(file: ProgramFile, symbol: Symbol, link: int) -> int:
    """The end of a symbol without a size: the next one, or the end of its section."""
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
    """True if a symbol names something in executable memory that is not typed as data."""
    if symbol.is_function:
        return True
    if symbol.kind != "notype":
        return False
    sections = image.sections
    if 0 < symbol.section < len(sections):
        return bool(sections[symbol.section].flags & SHF_EXECINSTR)
    return any(s.flags & PF_X and s.covers(symbol.address) for s in image.load_segments)


def inlined_sites(name: str, files: Sequence[ProgramFile]) -> tuple[ProgramFile, list[int]] | None:
    """The first file that has inlined copies of a function, and their link addresses.

    Args:
        name: of the function, in the source or as the linker would call it.
        files: where to look, in this order. One whose debug information is damaged or missing
            in part knows of no copies: that there is no symbol remains the answer.
    """
    for file in files:
        try:
            found = file.variables.inlined(name)
        except ImageError:
            continue
        if found:
            return file, found
    return None


def is_part(arch: Arch, image: ElfImage, start: int, symbol: str | None) -> bool:
    """Tell whether what looks like a function is code that another function jumps to.

    Args:
        arch: of the program.
        image: the file.
        start: link address of the entry.
        symbol: its name, None without.
    """
    if symbol is not None and _COLD.search(symbol):
        return True
    fde = find_fde(image, start)
    if fde is None or fde.start != start:
        return False
    names = {r.dwarf: r.name for r in arch.registers if r.dwarf is not None}
    row = rows(fde, names, image.bits, image.layout.order)[1][0]
    if row is None or not isinstance(row.cfa, CfaRegister):
        return False
    pushed = 0 if arch.roles.link else arch.bits // 8
    return (row.cfa.register, row.cfa.offset) != (arch.roles.sp, pushed)
