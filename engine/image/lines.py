"""Source lines: from an address to FILE:LINE and back, one unit at a time.

The debug information is that of the file itself or of the separate debug file that its
build-id or .gnu_debuglink names. Damaged information is no information: the reason is
noted as damage of the file and nothing is raised.

Two threads may ask the same tables: what is read is put in place when it is complete, and read
twice at the worst.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from posixpath import normpath
from typing import Final

from msgspec import Struct

from engine.errors import ImageError
from engine.image import cfi, dies
from engine.image.debugfiles import find_debug_file, is_moved
from engine.image.debuginfo import DebugInfo, covering
from engine.image.elf import ElfImage
from engine.image.lineprogram import LineHeader, LineSections, LineTable, read_header, run
from engine.image.longwork import look_up
from engine.image.ranges import read_ranges
from engine.image.reader import DamagedError

_NAMING: Final = (".debug_line", ".debug_line_str", ".debug_str")
"""Sections that names of files are in."""


class LineUnit(Struct, frozen=True):
    """The part of a compilation unit that lines need.

    Attributes:
        offset: of the unit in .debug_info.
        line_offset: of its program in .debug_line; None without.
        folder: DW_AT_comp_dir, "" when absent.
        ranges: (start, end) link addresses.
    """

    offset: int
    line_offset: int | None
    folder: str
    ranges: tuple[tuple[int, int], ...]


class LineUnits:
    """The units of one file, each read when it is asked for; damaged ones are left out."""

    def __init__(self, info: DebugInfo) -> None:
        """Read nothing yet; damage is noted where `info` notes its own."""
        self._info = info
        self._units: dict[int, LineUnit | None] = {}

    def containing(self, address: int) -> list[LineUnit]:
        """Units whose ranges hold a link address, by .debug_aranges if it says so."""
        found = covering(self._info.aranges, address) or covering(self._top_ranges, address)
        return [unit for offset in found if (unit := self.unit(offset)) is not None]

    def all(self) -> list[LineUnit]:
        """Every compilation unit that can be read."""
        found: list[LineUnit] = []
        for number, offset in enumerate(self._offsets):
            look_up(self._info.name, number, len(self._offsets))
            unit = self.unit(offset)
            if unit is not None:
                found.append(unit)
        return found

    def unit(self, offset: int) -> LineUnit | None:
        """The unit at an offset into .debug_info; None when it is damaged or of a type."""
        if offset not in self._units:
            self._units[offset] = self._read(offset)
        return self._units[offset]

    @cached_property
    def _offsets(self) -> list[int]:
        return self._info.offsets()

    @cached_property
    def _top_ranges(self) -> list[tuple[int, int, int]]:
        """(start, end, unit) from the entries of units that .debug_aranges does not list."""
        listed = {row[2] for row in self._info.aranges}
        units = [u for o in self._offsets if o not in listed and (u := self.unit(o)) is not None]
        return sorted((low, high, unit.offset) for unit in units for low, high in unit.ranges)

    def _read(self, offset: int) -> LineUnit | None:
        try:
            unit = self._info.unit("info", offset)
            if unit.kind in dies.TYPE_UNITS:
                return None
            top = unit.root
        except DamagedError as error:
            self._blame(offset, error)
            return None
        try:
            folder = top.string(dies.AT_COMP_DIR) or ""
        except (DamagedError, ImageError):  # dwz has put it into a file that we do not have
            folder = ""
        try:
            ranges = tuple(read_ranges(top))
        except DamagedError as error:
            self._blame(offset, error)
            ranges = ()
        return LineUnit(offset, top.number(dies.AT_STMT_LIST), folder, ranges)

    def _blame(self, offset: int, error: DamagedError) -> None:
        reason = str(error)[:200]
        self._info.damage.note(f"{self._info.name}: debug information, unit {offset:#x}: {reason}")


class Lines:
    """The line tables of one image; addresses are its link addresses.

    Attributes:
        image: the program or library.
    """

    def __init__(self, image: ElfImage, debug_dirs: Sequence[str] | None = None) -> None:
        """Nothing is read yet.

        Args:
            image: whose lines these are.
            debug_dirs: folders to search for a separate debug file; None = the usual ones.
        """
        self.image = image
        self._debug_dirs = debug_dirs
        self._headers: dict[int, LineHeader | None] = {}
        self._tables: dict[int, LineTable] = {}
        self._written: dict[str, str] = {}
        self._statements: dict[str, dict[int, int]] = {}

    @cached_property
    def debug_image(self) -> ElfImage | None:
        """The file that holds the debug information; None = there is none."""
        for name in (".debug_line", ".zdebug_line"):
            section = self.image.section(name)
            if section is not None and section.size:
                return self.image
        found = find_debug_file(self.image, self._debug_dirs)
        return None if found is None or is_moved(self.image, found) else found

    def line_at(self, address: int) -> tuple[str, int] | None:
        """The (file, line) that an instruction belongs to; None without information.

        For a return address ask for address - 1. Code that the compiler gives line 0
        has no line.
        """
        for unit in self._units.containing(address) if self._units else ():
            table = self._table(unit)
            if table is not None and (found := table.at(address)) is not None:
                return found
        return None

    def addresses_of(
        self, file_suffix: str, line: int, copy_at: Callable[[int], object] | None = None
    ) -> list[int]:
        """The addresses of a breakpoint at FILE:LINE: sorted link addresses.

        A line without code stands for the next line of that file that has some, as in
        gdb. Within a function only the lowest address counts: a loop's head has several.

        Args:
            file_suffix: the last parts of the path: "main.c", "src/main.c" or all of it.
            line: from 1.
            copy_at: which inlined copy of a function an address is in: each counts as one.
        """
        wanted = normpath(file_suffix)
        best: int | None = None
        found: list[int] = []
        for at, address in self._statements_in(wanted):
            if at >= line and (best is None or at <= best):
                if at != best:
                    best, found = at, []
                found.append(address)
        lowest: dict[tuple[int, object], int] = {}
        for address in sorted(found):
            fde = cfi.find_fde(self.image, address)
            copy = copy_at(address) if copy_at is not None else None
            lowest.setdefault((fde.start if fde else address, copy), address)
        return sorted(lowest.values())

    def _statements_in(self, path: str) -> Iterator[tuple[int, int]]:
        """(line, address) of all statements of files whose paths end so."""
        for unit in self._units.all() if self._units else ():
            header = self._header(unit)
            numbers = {
                number
                for number, known in enumerate(header.files if header else ())
                if known == path or known.endswith("/" + path)
            }
            table = self._table(unit) if numbers else None
            for number, line, address in table.statements if table else ():
                if number in numbers:
                    yield line, address

    def statements_at(self, file_suffix: str, line: int) -> tuple[int, list[int]]:
        """All link addresses where statements of a line begin, and the line's number.

        A line without code stands for the next line of the file that has some; 0 for none.

        Args:
            file_suffix: the last parts of the path: "main.c", "src/main.c" or all of it.
            line: from 1.
        """
        wanted = normpath(file_suffix)
        best, found = 0, list[int]()
        if not self._mentions(wanted.rpartition("/")[2]):
            return 0, found
        for at, address in self._statements_in(wanted):
            if at >= line and (not best or at <= best):
                if at != best:
                    best, found = at, []
                found.append(address)
        return best, sorted(set(found))

    def _mentions(self, name: str) -> bool:
        """True if the tables have a file's name at all: a glance that saves reading them."""
        return self._info is not None and self._info.mentions(name, _NAMING)

    def begins_statement(self, address: int) -> bool:
        """True if a row of lines begins at an address, and a statement with it."""
        span = self.span_at(address)
        return span is not None and span[0] == address and not self.begins_no_statement(address)

    def begins_no_statement(self, address: int) -> bool:
        """True if a row of lines begins at an address, but no statement."""
        for unit in self._units.containing(address) if self._units else ():
            table = self._table(unit)
            if table is not None and table.at(address) is not None:
                return address in table.halves
        return False

    def statements_of(self, path: str) -> dict[int, int]:
        """Line to lowest link address of the statements that a file has code for.

        Args:
            path: as `line_at` gives it.
        """
        if path not in self._statements:
            found: dict[int, int] = {}
            for unit in self._units.all() if self._units else ():
                header = self._header(unit)
                files = header.files if header else ()
                numbers = {number for number, name in enumerate(files) if name == path}
                table = self._table(unit) if numbers else None
                for number, line, address in table.statements if table else ():
                    if number in numbers and address < found.get(line, address + 1):
                        found[line] = address
            self._statements[path] = found
        return self._statements[path]

    def prologue_end(self, start: int) -> int | None:
        """The start of the second row of lines of the function at `start`; None without lines.

        Unoptimised code has stored its parameters in its frame there, which debuggers rely on.
        """
        for unit in self._units.containing(start) if self._units else ():
            table = self._table(unit)
            if table is not None and table.at(start) is not None:
                index = bisect_right(table.spans, start, key=lambda span: span[0])
                return table.spans[index][0] if index < len(table.spans) else None
        return None

    def marked_body(self, start: int, end: int) -> int | None:
        """The place where the compiler says that a function's body begins; None if it does not.

        Args:
            start: of the function.
            end: of its code.
        """
        for unit in self._units.containing(start) if self._units else ():
            table = self._table(unit)
            if table is not None and table.at(start) is not None:
                return _marked_body(table, start, end)
        return None

    def body_by_lines(self, start: int, end: int, is_inlined: Callable[[int], bool]) -> int | None:
        """The place at which a function's body begins, as its rows of lines tell it.

        Some compilers say it. Of others the first row is the prologue, and so are rows behind it
        of lower lines of the same file (gdb/symtab.c, skip_prologue_using_sal).

        Args:
            start: of the function.
            end: of its code.
            is_inlined: tells whether an address is in an inlined copy of another function.

        Returns:
            A link address; None where the lines do not tell.
        """
        for unit in self._units.containing(start) if self._units else ():
            table = self._table(unit)
            if table is None or table.at(start) is None:
                continue
            marked = _marked_body(table, start, end)
            if marked is not None:
                return marked
            spans = table.spans
            index = bisect_right(spans, start, key=lambda span: span[0]) - 1
            first, after, file, line = spans[index]
            if start in table.doubled:
                return start
            for begin, behind, other, number in spans[index + 1 :]:
                if not number and begin == after:
                    after = behind  # line 0 belongs to what stands before
                    continue
                if begin != after or after >= end or not 0 < number < line or other != file:
                    break
                if is_inlined(begin):
                    break
                first, after, line = begin, behind, number
            return after if after < end else first
        return None

    def span_at(self, address: int) -> tuple[int, int] | None:
        """(first address, one past the last) of the row of lines around an address."""
        for unit in self._units.containing(address) if self._units else ():
            table = self._table(unit)
            if table is not None and table.at(address) is not None:
                index = bisect_right(table.spans, address, key=lambda span: span[0]) - 1
                return table.spans[index][:2]
        return None

    def written(self, path: str) -> str | None:
        """A path of `line_at` as the compiler was given it; None for another one."""
        return self._written.get(path)

    def files(self) -> tuple[str, ...]:
        """All source paths, sorted; the whole .debug_info is visited once."""
        names: set[str] = set()
        for unit in self._units.all() if self._units else ():
            header = self._header(unit)
            names.update(header.files if header else ())
        return tuple(sorted(names - {"", "??"}))

    def has_file(self, file_suffix: str) -> bool:
        """True if there is a source file of that path, or one that ends so."""
        wanted = normpath(file_suffix)
        return self._mentions(wanted.rpartition("/")[2]) and any(
            path == wanted or path.endswith("/" + wanted) for path in self.files()
        )

    def file_of(self, unit_offset: int, number: int) -> str | None:
        """The path of a unit's file number; None if either does not exist.

        Args:
            unit_offset: of the unit in .debug_info.
            number: as DW_AT_decl_file and DW_AT_call_file count.
        """
        unit = self._units.unit(unit_offset) if self._units else None
        header = self._header(unit) if unit is not None else None
        if header is None or not 0 <= number < len(header.files):
            return None
        return header.files[number] or None

    # -- parts -------------------------------------------------------------------

    @cached_property
    def _info(self) -> DebugInfo | None:
        image = self.debug_image
        return None if image is None else DebugInfo.within(image, self._debug_dirs)

    @cached_property
    def _units(self) -> LineUnits | None:
        return LineUnits(self._info) if self._info is not None else None

    @cached_property
    def _sections(self) -> LineSections:
        assert self._info is not None, "there are units"
        line, line_str, strings = (
            self._info.section(name) for name in (".debug_line", ".debug_line_str", ".debug_str")
        )
        return LineSections(line, line_str, strings, self._info.order, self.image.bits)

    def _header(self, unit: LineUnit) -> LineHeader | None:
        if unit.line_offset is None:
            return None
        if unit.offset not in self._headers:
            header = None
            try:
                header = read_header(self._sections, unit.line_offset, unit.folder)
            except DamagedError as error:
                self._note(unit, str(error))
            else:
                for path, written in zip(header.files, header.written, strict=True):
                    self._written.setdefault(path, written)
            self._headers[unit.offset] = header
        return self._headers[unit.offset]

    def _table(self, unit: LineUnit) -> LineTable | None:
        header = self._header(unit)
        if header is None:
            return None
        table = self._tables.get(unit.offset)
        if table is None:
            low, high = max(self.image.low, 1), self.image.high
            table = run(self._sections, header, low, high, partial(self._note, unit))
            self._tables[unit.offset] = table
        return table

    def _note(self, unit: LineUnit, reason: str) -> None:
        text = f"{self.image.name}: line table of unit {unit.offset:#x}: {reason}"
        self.image.damage.note(text)


def _marked_body(table: LineTable, start: int, end: int) -> int | None:
    """The first place from `start` on that is marked as the begin of a body of the same file."""
    index = bisect_right(table.spans, start, key=lambda span: span[0]) - 1
    file = table.spans[index][2]
    for body, other in table.bodies[bisect_left(table.bodies, (start, 0)) :]:
        if body >= end:
            break
        if other == file:
            return body
    return None
