"""The rows of a unit's line table as elfutils gives them to perf: by address, with all files.

`engine.image.lines` answers as gdb does; perf walks the plain rows (libdw, dwarf_getsrclines) and
compares the paths as the table spells them.
"""

from bisect import bisect_left, bisect_right
from functools import cached_property
from posixpath import join
from typing import TYPE_CHECKING

from engine.image import dies
from engine.image.dies import Unit
from engine.image.lineprogram import LineHeader, LineRow, LineSections, read_header, read_rows
from engine.image.reader import DamagedError

if TYPE_CHECKING:
    from engine.image.debuginfo import DebugInfo


class UnitLines:
    """The line table of one unit."""

    def __init__(self, info: "DebugInfo", unit: Unit, bits: int) -> None:
        """Read nothing yet.

        Args:
            info: the file that the unit's line table is in.
            unit: the unit.
            bits: width of an address.
        """
        self._info = info
        self._unit = unit.skeleton or unit
        self._bits = bits

    @cached_property
    def folder(self) -> str:
        """The folder that the unit was compiled in (DW_AT_comp_dir)."""
        return self._unit.root.string(dies.AT_COMP_DIR) or ""

    @cached_property
    def rows(self) -> list[LineRow]:
        """All rows by address, those of one address in the table's order."""
        if self._header is None:
            return []
        found = read_rows(self._sections, self._header, self._info.damage.note)
        return sorted(found, key=lambda row: (row.address, not row.is_end))

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The paths by their numbers; "" for none."""
        header = self._header
        if header is None:
            return ()
        return tuple(
            "" if path in ("", "??") else join(header.folder, path) for path in header.spelled
        )

    def file(self, number: int | None) -> str:
        """The path of a number; "" for none. 0 is none, even where DWARF 5 has a file 0."""
        return self.files[number] if number is not None and 0 < number < len(self.files) else ""

    def row_file(self, row: LineRow) -> str:
        """The path of a row."""
        return self.files[row.file] if 0 <= row.file < len(self.files) else ""

    def between(self, low: int, high: int) -> list[LineRow]:
        """The rows of a range of addresses that end no sequence."""
        starts = self._starts
        rows = self.rows[bisect_left(starts, low) : bisect_left(starts, high)]
        return [row for row in rows if not row.is_end]

    def statement(self, address: int) -> LineRow | None:
        """The row that perf takes an address' line from (cu_getsrc_die); None for none.

        It is the first statement of the rows at the address, or of the row around it. The very
        first row of a table is never found, as in perf.
        """
        rows, starts = self.rows, self._starts
        at = bisect_right(starts, address) - 1
        if at < 1:
            return None
        while at > 0 and starts[at - 1] == starts[at] == address:
            at -= 1
        if starts[at] == address and at == 0:
            return None
        while at < len(rows) and starts[at] <= address:
            if rows[at].is_stmt:
                return rows[at]
            at += 1
        return None

    def behind_prologue(self, entry: int, high: int) -> int | None:
        """The first place behind a function's prologue (die_skip_prologue); None without rows.

        Args:
            entry: of the function.
            high: its end.
        """
        rows = self.rows
        first = bisect_right(self._starts, entry - 1)
        if first >= len(rows) or rows[first].address != entry:
            return None
        line = rows[first].line
        at = first
        for at in range(first, len(rows)):
            row = rows[at]
            if row.address >= high or row.is_body or row.line != line or at != first:
                break
        found = rows[at].address
        return rows[at - 1].address if found >= high else found

    @cached_property
    def _starts(self) -> list[int]:
        return [row.address for row in self.rows]

    @cached_property
    def _sections(self) -> LineSections:
        info = self._info
        line, line_str, strings = (
            info.section(name) for name in (".debug_line", ".debug_line_str", ".debug_str")
        )
        return LineSections(line, line_str, strings, info.order, self._bits)

    @cached_property
    def _header(self) -> LineHeader | None:
        offset = self._unit.root.number(dies.AT_STMT_LIST)
        if offset is None:
            return None
        try:
            return read_header(self._sections, offset, self.folder)
        except DamagedError as error:
            self._info.damage.note(f"{self._info.name}: line table at {offset:#x}: {error}")
            return None
