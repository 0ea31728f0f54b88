"""Disassembly as rows that can be entered anywhere: a large program is never decoded as a whole.

Code is decoded in blocks, from one place where an instruction surely begins to the next: where
symbols begin, sections begin, and every few kilobytes in between. A block is decoded when a
row of it is asked for.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from engine.arch.base import Arch
from engine.arch.machine import Insn
from engine.image.headers import PF_X, SHF_EXECINSTR, SHT_NOBITS
from engine.session.browse.listing import Decoder
from engine.session.program.libraries import ProgramFile

_BLOCK: Final = 1 << 14
_BLOCKS: Final = 256


@dataclass(frozen=True, slots=True)
class CodeRow:
    """One instruction.

    Attributes:
        address: where it stands.
        raw: its bytes, without what is planted; those of all its bundle where several share one.
        mnemonic: ".byte" for bytes that are none.
        operands: as the disassembler prints them.
        label: name of the symbol that begins there, "" if none does.
        target: of a direct branch.
        note: name of the target, "" without.
        line: (source file, line) where a line of the source begins.
        size: distance to the next instruction.
    """

    address: int
    raw: bytes
    mnemonic: str
    operands: str
    label: str = ""
    target: int | None = None
    note: str = ""
    line: tuple[str, int] | None = None
    size: int = 0

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size


class FileCode:
    """The code of one file, where it is in the guest's memory."""

    def __init__(self, arch: Arch, file: ProgramFile, bias: int = 0) -> None:
        """Nothing is decoded before it is asked for.

        Args:
            arch: of the file.
            file: it.
            bias: what is added to a link address to get a guest address.
        """
        self._arch = arch
        self._file = file
        self._bias = bias
        self._decoder = Decoder(arch)
        image = file.image
        areas = [
            (s.addr, s.addr + s.size)
            for s in image.sections
            if s.flags & SHF_EXECINSTR and s.type != SHT_NOBITS and s.size
        ]
        if not areas:
            areas = [
                (s.vaddr, s.vaddr + s.filesz)
                for s in image.load_segments
                if s.flags & PF_X and s.filesz
            ]
        self._areas = sorted((start + bias, end + bias) for start, end in areas)
        self._starts: list[int] | None = None
        self._block = lru_cache(maxsize=_BLOCKS)(self._decode)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """(start, end) of the stretches of code, by address."""
        return list(self._areas)

    def row_at(self, link: int) -> CodeRow | None:
        """The row of the instruction that covers an address; None outside of all code."""
        area = self._area(link)
        if area is None:
            return None
        rows = self._rows_around(link, area)
        return rows[bisect_right(rows, link, key=lambda row: row.address) - 1]

    def forward(self, link: int) -> Iterator[CodeRow]:
        """Rows from the one that covers an address on, over the gaps between stretches."""
        at: int | None = link
        while at is not None:
            area = self._area(at)
            if area is None:
                at = next((start for start, _ in self._areas if start > at), None)
                continue
            rows = self._rows_around(at, area)
            first = bisect_right(rows, at, key=lambda row: row.address) - 1
            yield from rows[max(first, 0) :]
            at = rows[-1].end

    def backward(self, link: int) -> Iterator[CodeRow]:
        """Rows in front of the one that covers an address, the nearest first."""
        at = link
        while True:
            area = self._area(at)
            if area is not None:
                rows = self._rows_around(at, area)
                last = bisect_right(rows, at, key=lambda row: row.address) - 1
                yield from reversed(rows[:last])
                at = rows[0].address
            before = [span for span in self._areas if span[0] < at]
            if not before:
                return
            end = before[-1][1]
            at = min(at, end)
            rows = self._rows_around(at - 1, before[-1])
            yield rows[-1]
            at = rows[-1].address

    # -- blocks -----------------------------------------------------------------------------

    def _area(self, link: int) -> tuple[int, int] | None:
        index = bisect_right(self._areas, link, key=lambda area: area[0]) - 1
        if index >= 0 and link < self._areas[index][1]:
            return self._areas[index]
        return None

    def _anchors(self) -> list[int]:
        if self._starts is None:
            symbols = self._file.symbols
            self._starts = sorted({s.address + self._bias for s in symbols.functions()})
        return self._starts

    def _rows_around(self, link: int, area: tuple[int, int]) -> tuple[CodeRow, ...]:
        """The rows of the block that holds an address."""
        anchors = self._anchors()
        index = bisect_right(anchors, link) - 1
        start = max(anchors[index], area[0]) if index >= 0 else area[0]
        end = min(anchors[index + 1], area[1]) if index + 1 < len(anchors) else area[1]
        rows = self._block(start, end)
        while rows[-1].end <= link:  # a long stretch is several blocks
            rows = self._block(rows[-1].end, end)
        return rows

    def _decode(self, start: int, end: int) -> tuple[CodeRow, ...]:
        """Rows from a boundary on: to the end, or for about one block."""
        file, bias = self._file, self._bias
        stop = min(end, start + _BLOCK)
        size = min(end - start, _BLOCK + self._arch.insn_max)
        data = file.image.read_vaddr(start - bias, size)
        rows = []
        symbol = file.symbols.at(start - bias)
        begins = symbol is not None and symbol.address == start - bias
        label = symbol.demangled if symbol is not None and begins else ""
        line: tuple[str, int] | None = None
        for insn in self._decoder.all(start, data):
            if insn.address >= stop:
                break
            here = file.lines.line_at(insn.address - bias)
            rows.append(self._row(insn, label, here if here != line else None))
            label, line = "", here
        return tuple(rows)

    def _row(self, insn: Insn, label: str, line: tuple[str, int] | None) -> CodeRow:
        target = self._arch.probes.target(insn.raw, insn.address)
        note = ""
        if target is not None:
            symbol = self._file.symbols.at(target - self._bias)
            if symbol is not None:
                offset = target - self._bias - symbol.address
                note = symbol.demangled + (f"+{offset:#x}" if offset else "")
        words = insn.mnemonic, insn.operands
        return CodeRow(insn.address, insn.raw, *words, label, target, note, line, insn.size)


def plain_rows(arch: Arch, start: int, data: bytes) -> list[CodeRow]:
    """Rows of bytes that belong to no file."""
    target = arch.probes.target
    return [
        CodeRow(
            insn.address,
            insn.raw,
            insn.mnemonic,
            insn.operands,
            target=target(insn.raw, insn.address),
            size=insn.size,
        )
        for insn in Decoder(arch).all(start, data)
    ]
