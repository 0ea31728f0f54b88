"""Disassembly as lines: of a program's files, of a function, of plain bytes."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.machine import Insn
from engine.image.headers import PF_X, SHF_EXECINSTR, SHT_NOBITS
from engine.insn.decoder import Decoder
from engine.session.program.libraries import ProgramFile
from engine.session.program.places import Place

_WINDOW: Final = 64


class ListedInsn(Struct, frozen=True):
    """One line of a listing.

    Attributes:
        insn: the instruction; mnemonic ".byte" for bytes that are none.
        symbol: name of the symbol that covers it, None without.
        offset: distance from that symbol.
    """

    insn: Insn
    symbol: str | None = None
    offset: int = 0


class Area(Struct, frozen=True):
    """A stretch of code to list: a section, a segment or a function."""

    start: int
    data: bytes


class Listing:
    """Decodes one file's code, starting afresh at every symbol, as objdump does."""

    def __init__(self, arch: Arch, file: ProgramFile | None = None) -> None:
        """List code of `file`, or bytes without names."""
        self._decoder = Decoder(arch)
        self._file = file

    def sections(self) -> Iterator[Area]:
        """The executable sections in order of address; segments where there are none."""
        if self._file is None:
            return
        image = self._file.image
        code = [s for s in image.sections if s.flags & SHF_EXECINSTR and s.type != SHT_NOBITS]
        for section in sorted(code, key=lambda section: section.addr):
            yield Area(section.addr, image.section_data(section))
        if not code:
            for segment in image.load_segments:
                if segment.flags & PF_X:
                    data = image.data(segment.offset, segment.filesz)
                    yield Area(segment.vaddr, data)

    def around(self, place: Place) -> Area:
        """The function around a place; outside of all functions, the bytes from there."""
        start, size = place.function or (place.link, _WINDOW)
        return Area(start, place.image.read_vaddr(start, min(size, place.image.size)))

    def lines(self, area: Area) -> Iterator[ListedInsn]:
        """All instructions of an area; names change where symbols begin and end."""
        end = area.start + len(area.data)
        at = area.start
        starts, fresh = self._symbol_starts(area)
        name: str | None = None
        base = change = at
        while at < end:
            following = bisect_right(fresh, at)
            stop = min(fresh[following], end) if following < len(fresh) else end
            piece = area.data[at - area.start : stop - area.start]
            for insn in self._decoder.all(at, piece):
                if insn.address >= change:
                    name, base, change = self._name_at(insn.address, starts, end)
                yield ListedInsn(insn, name, insn.address - base)
            at = stop

    def _name_at(self, address: int, starts: list[int], end: int) -> tuple[str | None, int, int]:
        """(symbol, its address, where another one may begin)."""
        following = bisect_right(starts, address)
        change = starts[following] if following < len(starts) else end
        symbol = self._file.symbols.at(address) if self._file else None
        if symbol is None:
            return None, address, change
        if address < symbol.address + symbol.size < change:
            change = symbol.address + symbol.size
        return symbol.name, symbol.address, change

    def _symbol_starts(self, area: Area) -> tuple[list[int], list[int]]:
        """Addresses in an area where names begin: all, and those that the file itself gives.

        The unwind tables' ranges need not begin with an instruction: glibc's signal return code
        is described from one byte before it.
        """
        if self._file is None:
            return [], []
        return self._file.symbols.starts(area.start, area.start + len(area.data))
