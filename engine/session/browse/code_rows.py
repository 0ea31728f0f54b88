"""Disassembly as rows that can be entered anywhere: a large program is never decoded as a whole.

What is decoded is the guest's memory. Where that is not known yet, it is the file.

Code is decoded in blocks, from one place where an instruction surely begins to the next: where
symbols begin, sections begin, and every few kilobytes in between. A block is decoded when a
row of it is asked for.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.machine import Insn
from engine.image.headers import PF_X, SHF_EXECINSTR, SHT_NOBITS
from engine.insn.decoder import Decoder
from engine.session.browse.memory_pages import PAGE, MemoryPages
from engine.session.program.libraries import ProgramFile
from engine.session.protocol.views import MappingView

BeforeBoot = Callable[[int, int], Mapping[int, str]]
"""(start, end) to what `CodeSource.before` says of them."""

_BLOCK: Final = 1 << 14
_BLOCKS: Final = 256


class CodeRow(Struct, frozen=True):
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
        was: bytes and instruction that the file has in its place, "" where it has the same.
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
    was: str = ""

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size


class CodeSource(Protocol):
    """Code that rows are made of: stretches of it, and what is known of them."""

    @property
    def in_step(self) -> bool:
        """An instruction begins where a stretch does; else anywhere."""

    @property
    def areas(self) -> list[tuple[int, int]]:
        """(start, end) of the stretches, by address."""

    @property
    def anchors(self) -> list[int]:
        """Addresses at which an instruction begins for sure, in order."""

    def read(self, start: int, size: int) -> bytes:
        """The bytes as they were written; fewer where they are not known."""

    def before(self, start: int, end: int) -> Mapping[int, str]:
        """By address: bytes and instruction that the file had before a kernel's boot."""

    def label(self, address: int) -> str:
        """Name of the symbol that begins at an address, "" for none."""

    def line(self, address: int) -> tuple[str, int] | None:
        """(source file, line) of an address."""

    def note(self, target: int) -> str:
        """Name of the target of a branch, "" without."""


class FileSource:
    """The code of a file, where it is in the guest's memory."""

    in_step: bool = True

    def __init__(self, file: ProgramFile, bias: int = 0, before: BeforeBoot | None = None) -> None:
        """Nothing is read yet.

        Args:
            file: the program or library.
            bias: what is added to a link address to get a guest address.
            before: of a kernel image: what its boot has changed.
        """
        self._file = file
        self._before = before
        self._bias = bias
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
        self.areas = sorted((start + bias, end + bias) for start, end in areas)

    @cached_property
    def anchors(self) -> list[int]:
        """The beginnings of functions."""
        return sorted(at + self._bias for at in self._file.symbols.function_addresses())

    def read(self, start: int, size: int) -> bytes:
        """The bytes of the file."""
        return self._file.image.read_vaddr(start - self._bias, size)

    def before(self, start: int, end: int) -> Mapping[int, str]:
        """The changes that a kernel's boot has made there."""
        return {} if self._before is None else self._before(start, end)

    def label(self, address: int) -> str:
        """Name of the symbol that begins at an address, "" for none."""
        symbol = self._file.symbols.at(address - self._bias)
        return symbol.demangled if symbol and symbol.address == address - self._bias else ""

    def line(self, address: int) -> tuple[str, int] | None:
        """(source file, line) of an address."""
        return self._file.lines.line_at(address - self._bias)

    def note(self, target: int) -> str:
        """Name of the target of a branch, "" without."""
        symbol = self._file.symbols.at(target - self._bias)
        if symbol is None:
            return ""
        offset = target - self._bias - symbol.address
        return symbol.demangled + (f"+{offset:#x}" if offset else "")


class MappingSource:
    """Code in memory that no file holds: written by the guest itself, or by the machinery."""

    in_step: bool = False

    def __init__(self, mapping: MappingView, pages: MemoryPages, name: Callable[[int], str]):
        """Nothing is read yet.

        Args:
            mapping: the mapping whose code is shown.
            pages: the guest's memory.
            name: gives an address as SYMBOL+OFF, "" for none.
        """
        self.areas = [(mapping.start, mapping.end)]
        self.anchors: list[int] = []
        self._pages = pages
        self._name = name

    def read(self, start: int, size: int) -> bytes:
        """The bytes that were told of it."""
        return self._pages.stretch(start, size)

    def before(self, start: int, end: int) -> Mapping[int, str]:
        """Nothing is known of it."""
        return {}

    def label(self, address: int) -> str:
        """There is none."""
        return ""

    def line(self, address: int) -> tuple[str, int] | None:
        """There is none."""
        return None

    def note(self, target: int) -> str:
        """The target in a file, "" elsewhere."""
        return self._name(target).removesuffix("+0x0")


class Reading(Struct):
    """The manner of reading code, the same for all code of a guest.

    Attributes:
        arch: of the guest.
        pages: its memory.
        marks: addresses of which it is known that an instruction begins there: pc, and where
            the user has gone.
        planted: guest address to bytes that stand there instead of the original.
        executed: as the processor finds it, planted bytes and all; else as it was written.
        changes: counts changes of all that.
    """

    arch: Arch
    pages: MemoryPages
    marks: tuple[int, ...] = ()
    planted: Mapping[int, bytes] = field(default_factory=dict)
    executed: bool = False
    changes: int = 0

    @property
    def stamp(self) -> tuple[int, int]:
        """Generation of the rows; changes whenever rows may differ from those given before."""
        return self.changes, self.pages.version


class Code:
    """Rows of a source, of the bytes that the guest's memory has there."""

    def __init__(self, source: CodeSource, reading: Reading) -> None:
        """Nothing is decoded before it is asked for."""
        self._source = source
        self._reading = reading
        self._areas = source.areas
        self._decoder = Decoder(reading.arch)
        self._stamp = (-1, -1)
        self._now: dict[tuple[int, int], tuple[CodeRow, ...]] = {}
        self._decode = lru_cache(maxsize=_BLOCKS)(self._decoded)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """(start, end) of the stretches of code, by address."""
        return list(self._areas)

    def covers(self, address: int) -> bool:
        """True if an address is in a stretch of code."""
        return self._area(address) is not None

    def row_at(self, address: int, *, asks: bool = True) -> CodeRow | None:
        """The row of the instruction that covers an address; None outside of all code."""
        area = self._area(address)
        rows = () if area is None else self._rows_around(address, area, asks=asks)
        index = bisect_right(rows, address, key=lambda row: row.address) - 1
        return rows[index] if index >= 0 and address < rows[index].end else None

    def forward(self, address: int, *, asks: bool = True) -> Iterator[CodeRow]:
        """Rows from the one that covers an address on, over the gaps between stretches.

        Args:
            address: in the guest.
            asks: memory that was not told since the guest moved is asked for.
        """
        at: int | None = address
        while at is not None:
            area = self._area(at)
            if area is None:
                at = next((start for start, _ in self._areas if start > at), None)
                continue
            rows = self._rows_around(at, area, asks=asks)
            if not rows or rows[-1].end <= at:
                return
            first = bisect_right(rows, at, key=lambda row: row.address) - 1
            yield from rows[max(first, 0) :]
            at = rows[-1].end

    def backward(self, address: int, *, asks: bool = True) -> Iterator[CodeRow]:
        """Rows in front of the one that covers an address, the nearest first."""
        at = address
        while True:
            area = self._area(at)
            if area is not None:
                rows = self._rows_around(at, area, asks=asks)
                if not rows:
                    return
                last = bisect_right(rows, at, key=lambda row: row.address) - 1
                yield from reversed(rows[: max(last, 0)])
                at = rows[0].address
            gone = [span for span in self._areas if span[0] < at]
            if not gone:
                return
            at = min(at, gone[-1][1])
            rows = self._rows_around(at - 1, gone[-1], asks=asks)
            if not rows:
                return
            yield rows[-1]
            at = rows[-1].address

    # -- blocks -----------------------------------------------------------------------------

    def _area(self, address: int) -> tuple[int, int] | None:
        index = bisect_right(self._areas, address, key=lambda area: area[0]) - 1
        if index >= 0 and address < self._areas[index][1]:
            return self._areas[index]
        return None

    def _rows_around(
        self, address: int, area: tuple[int, int], *, asks: bool = True
    ) -> tuple[CodeRow, ...]:
        """The rows of the block that holds an address."""
        anchors = self._source.anchors
        index = bisect_right(anchors, address) - 1
        start = max(anchors[index], area[0]) if index >= 0 else area[0]
        end = min(anchors[index + 1], area[1]) if index + 1 < len(anchors) else area[1]
        if not self._source.in_step:
            start, end = self._page(address, area, asks=asks)
        rows = self._block(start, end, asks=asks)
        while rows and rows[-1].end <= address < end and rows[-1].end > start:
            start = rows[-1].end  # a long stretch is several blocks
            rows = self._block(start, end, asks=asks)
        return rows

    def _page(self, address: int, area: tuple[int, int], *, asks: bool) -> tuple[int, int]:
        """A page to decode; its first instruction is the one behind those of the page before."""
        start = max(address & -PAGE, area[0])
        end = min((address & -PAGE) + PAGE, area[1])
        if start > area[0]:
            before = self._block(max(start - PAGE, area[0]), start, asks=asks)
            if before and start < before[-1].end <= address:
                start = before[-1].end
            elif before and before[-1].end > address:
                return max(start - PAGE, area[0]), start
        return start, end

    def _block(self, start: int, end: int, *, asks: bool) -> tuple[CodeRow, ...]:
        """The rows from a boundary on: to the end, or for about one block."""
        reading, longest = self._reading, self._reading.arch.insn_max
        size = min(end - start, _BLOCK + longest)
        if asks:
            reading.pages.ask(start, size)
        if not self._source.in_step:
            size += longest  # the last instruction may go on in the next page
        if self._stamp != reading.stamp:
            self._stamp = reading.stamp
            self._now.clear()
        rows = self._now.get((start, end))
        if rows is None:
            written = self._source.read(start, size)
            stands = reading.pages.over(start, written)
            rows = self._decode(start, end, stands, None if stands == written else written)
            for mark in reading.marks:
                if start <= mark < end:
                    rows = self._split(rows, mark)
            if reading.executed:
                rows = self._executed(rows, start, end)
            self._now[start, end] = rows
        return rows

    def _decoded(
        self, start: int, end: int, data: bytes, written: bytes | None
    ) -> tuple[CodeRow, ...]:
        """Rows of bytes.

        Args:
            start: where they begin.
            end: where rows end at the latest.
            data: the bytes, some more than a block has.
            written: what the file has in their place, if it is something else.
        """
        source, stop = self._source, min(end, start + _BLOCK)
        line: tuple[str, int] | None = None
        rows = []
        label = source.label(start)
        before = source.before(start, stop)
        for insn in self._decoder.all(start, data):
            if insn.address >= stop:
                break
            here = source.line(insn.address)
            was = self._was(insn, start, written) if written is not None else ""
            was = was or before.get(insn.address, "")
            rows.append(self._row(insn, label, here if here != line else None, was))
            label, line = "", here
        return tuple(rows)

    def _was(self, insn: Insn, start: int, written: bytes) -> str:
        """The file's bytes and instruction at a place, "" where memory has the same."""
        base = insn.address - insn.address % self._reading.arch.code_unit
        old = written[base - start :][: len(insn.raw)]
        if old == insn.raw:
            return ""
        before = next(self._decoder.all(insn.address, written[insn.address - start :][:64]), None)
        if base < insn.address:  # a part of a unit: its instruction alone
            unit = self._decoder.all(base, old)
            before = next((one for one in unit if one.address == insn.address), None)
        text = f"  {before.text}" if before is not None else ""
        whole = before.raw if before is not None and before.size > len(old) else old
        return whole.hex(" ") + text

    def _row(
        self, insn: Insn, label: str = "", line: tuple[str, int] | None = None, was: str = ""
    ) -> CodeRow:
        target = self._reading.arch.probes.target(insn.raw, insn.address)
        note = self._source.note(target) if target is not None else ""
        words = insn.mnemonic, insn.operands
        return CodeRow(insn.address, insn.raw, *words, label, target, note, line, insn.size, was)

    def _split(self, rows: tuple[CodeRow, ...], at: int) -> tuple[CodeRow, ...]:
        """Rows with one that begins at an address, up to where they are in step again."""
        index = bisect_right(rows, at, key=lambda row: row.address) - 1
        if index < 0 or rows[index].address == at or at >= rows[index].end:
            return rows
        cut, starts = rows[index], {row.address for row in rows[index:]}
        if self._reading.arch.code_unit > 1 or at % self._reading.arch.insn_align:
            return rows
        front = _plain(cut, cut.raw[: at - cut.address])
        data = b"".join(row.raw for row in rows[index:])[at - cut.address :]
        fresh = []
        for insn in self._decoder.all(at, data):
            if insn.address in starts:
                break
            fresh.append(self._row(insn))
        end = fresh[-1].address + fresh[-1].size
        return (*rows[:index], front, *fresh, *(row for row in rows[index:] if row.address >= end))

    def _executed(self, rows: tuple[CodeRow, ...], start: int, end: int) -> tuple[CodeRow, ...]:
        """Rows with what is planted in them: a trap, a jump over several instructions."""
        planted = {at: data for at, data in self._reading.planted.items() if start <= at < end}
        if not planted:
            return rows
        unit, found, covered = self._reading.arch.code_unit, [], 0
        for row in rows:
            if row.address < covered:
                continue  # the jump stands over it
            base = row.address - row.address % unit
            raw = row.raw
            for at, data in planted.items():
                if at - at % unit == base and (unit > 1 or at == row.address):
                    raw = _mixed(raw, row.raw, data)
            if raw == row.raw:
                found.append(row)
                continue
            insns = self._decoder.all(base, raw)
            insn = next((one for one in insns if one.address == row.address), None)
            if insn is None:
                found.append(row)
                continue
            if unit > 1 and insn.text == f"{row.mnemonic} {row.operands}".rstrip():
                found.append(replace(row, raw=raw))  # another one of its unit is planted
                continue
            fresh = self._row(insn, row.label, row.line)
            following = max(row.end, insn.address + insn.size)
            covered = next((one.address for one in rows if one.address >= following), following)
            rest = b"".join(one.raw for one in rows if row.end <= one.address < covered)
            if unit == 1:
                raw += rest[len(raw) - len(row.raw) :]
            was = f"{row.raw.hex(' ')}  {row.mnemonic} {row.operands}".rstrip()
            found.append(replace(fresh, raw=raw, size=covered - row.address, was=was))
        return tuple(found)


def _mixed(raw: bytes, original: bytes, planted: bytes) -> bytes:
    """Bytes with the bits that a patch changes; longer ones where the patch is longer."""
    size = max(len(raw), len(planted))
    grown, was = raw.ljust(size, b"\0"), original.ljust(size, b"\0")
    new = planted + was[len(planted) :]
    return bytes(have ^ (old ^ put) for have, old, put in zip(grown, was, new, strict=True))


def _plain(row: CodeRow, raw: bytes) -> CodeRow:
    """The front of an instruction that another one begins in."""
    text = ", ".join(f"{byte:#04x}" for byte in raw)
    return replace(
        row, raw=raw, mnemonic=".byte", operands=text, target=None, note="", size=len(raw)
    )
