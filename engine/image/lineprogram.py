"""The line number program of one unit: DWARF 2 to 5, section 6.2 of the standard.

Read here and not with pyelftools because its header parser believes the counts of
DWARF 5's entry tables (a count of 2**40 empty entries is never done) and because it needs
the DIEs' structures for a table that describes itself.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from posixpath import join, normpath
from typing import Final

from engine.image.headers import text
from engine.image.reader import DamagedError, Reader

_LNCT_PATH, _LNCT_DIRECTORY = 1, 2
_FORM_SIZES: Final = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16, 0x0C: 1}
_STRX_SIZES: Final = {0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4}
_MAX_UNIT: Final = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class LineSections:
    """The bytes a line program refers to."""

    line: bytes
    line_str: bytes
    strings: bytes
    order: str
    bits: int


@dataclass(frozen=True, slots=True)
class LineHeader:
    """The header of a line number program.

    Attributes:
        files: paths by file number; index 0 is unused before DWARF 5.
        program: offset of the first opcode in .debug_line.
        end: first offset behind the program.
    """

    files: tuple[str, ...]
    program: int
    end: int
    min_insn: int
    max_ops: int
    default_is_stmt: bool
    line_base: int
    line_range: int
    opcode_lengths: tuple[int, ...]


@dataclass(slots=True)
class LineTable:
    """The rows of one unit.

    Attributes:
        spans: (start, end, file number, line) of all non-empty rows, sorted.
        statements: (file number, line, address) where a statement begins.
    """

    files: tuple[str, ...]
    spans: list[tuple[int, int, int, int]] = field(default_factory=list)
    statements: list[tuple[int, int, int]] = field(default_factory=list)

    def at(self, address: int) -> tuple[str, int] | None:
        """The (file, line) of an address; None between rows and for line 0 (no source)."""
        index = bisect_right(self.spans, (address, _MAX_UNIT, 0, 0)) - 1
        if index < 0 or address >= self.spans[index][1]:
            return None
        _, _, number, line = self.spans[index]
        return (self.file(number), line) if line > 0 else None

    def file(self, number: int) -> str:
        """The path of a file number; "??" for one that does not exist."""
        return self.files[number] if 0 <= number < len(self.files) else "??"


def read_header(sections: LineSections, offset: int, folder: str) -> LineHeader:
    """Read the header at `offset` of .debug_line; relative paths start at `folder`.

    Raises:
        DamagedError: it is not a line program of DWARF 2 to 5.
    """
    reader = Reader(sections.line, offset, len(sections.line), sections.order)
    length, width = reader.initial_length()
    end = reader.end = min(reader.place + length, len(sections.line))
    version = reader.uint(2)
    if not 2 <= version <= 5:
        raise DamagedError(f"line program version {version}")
    if version >= 5:
        reader.take(2)
    header_length = reader.uint(width)
    program = reader.place + header_length
    if program > end:
        raise DamagedError("the line program starts behind its end")
    min_insn = reader.u8()
    max_ops = reader.u8() if version >= 4 else 1
    default_is_stmt = reader.u8() != 0
    line_base, line_range, opcode_base = reader.sint(1), reader.u8(), reader.u8()
    lengths = tuple(reader.block(max(opcode_base - 1, 0)))
    names = Reader(sections.line, reader.place, program, sections.order)
    paths = _names_5(names, sections, width, folder) if version >= 5 else _names_2(names, folder)
    return LineHeader(
        files=tuple(paths),
        program=program,
        end=end,
        min_insn=min_insn,
        max_ops=max(max_ops, 1),
        default_is_stmt=default_is_stmt,
        line_base=line_base,
        line_range=max(line_range, 1),
        opcode_lengths=lengths,
    )


def _names_2(reader: Reader, folder: str) -> list[str]:
    folders = [folder]
    while name := reader.cstring():
        folders.append(normpath(join(folder, text(name))))
    paths = [""]
    while name := reader.cstring():
        index = reader.uleb()
        reader.uleb()
        reader.uleb()
        paths.append(_path(folders, index, text(name)))
    return paths


def _names_5(reader: Reader, sections: LineSections, width: int, folder: str) -> list[str]:
    folders = [folder]
    for number, (name, _) in enumerate(_entries(reader, sections, width)):
        if number == 0:
            # The compilation directory itself (DWARF 5, 6.2.4), relative or not.
            folder = folders[0] = normpath(name) if name else folder
        else:
            folders.append(normpath(join(folder, name)) if name else folder)
    return [_path(folders, at, name) for name, at in _entries(reader, sections, width)]


def _path(folders: list[str], index: int, name: str) -> str:
    folder = folders[index] if index < len(folders) else ""
    return normpath(join(folder, name)) if name else "??"


def _entries(reader: Reader, sections: LineSections, width: int) -> list[tuple[str, int]]:
    """Read one DWARF 5 table of names as (name, directory index)."""
    form = [(reader.uleb(), reader.uleb()) for _ in range(reader.u8())]
    count = reader.uleb()
    if count > reader.end - reader.place:
        # Every entry has a name, and that takes a byte at least.
        raise DamagedError(f"{count} names in {reader.end - reader.place} bytes")
    found: list[tuple[str, int]] = []
    for _ in range(count):
        name, folder = "", 0
        for content, kind in form:
            value = _form_value(reader, sections, kind, width)
            if content == _LNCT_PATH and isinstance(value, str):
                name = value
            elif content == _LNCT_DIRECTORY and isinstance(value, int):
                folder = value
        found.append((name, folder))
    return found


def _form_value(reader: Reader, sections: LineSections, form: int, width: int) -> str | int:
    if form == 0x08:  # DW_FORM_string
        return text(reader.cstring())
    if form in (0x1F, 0x0E):  # DW_FORM_line_strp, DW_FORM_strp
        strings = sections.line_str if form == 0x1F else sections.strings
        return text(Reader(strings, reader.uint(width), len(strings), "<").cstring())
    if form == 0x0F:  # DW_FORM_udata
        return reader.uleb()
    if form == 0x09:  # DW_FORM_block
        reader.take(reader.uleb())
        return 0
    if form == 0x1A:  # DW_FORM_strx: needs the unit's string offsets; no compiler uses it here
        reader.uleb()
        return 0
    if form in _STRX_SIZES:
        reader.take(_STRX_SIZES[form])
        return 0
    size = _FORM_SIZES.get(form)
    if size is None:
        raise DamagedError(f"form {form:#x} in a line program header")
    return int.from_bytes(reader.block(size), "little" if reader.order == "<" else "big")


def run(
    sections: LineSections,
    header: LineHeader,
    low: int,
    high: int,
    damaged: Callable[[str], object] = lambda reason: None,
) -> LineTable:
    """Execute a line program; keep the sequences that start in [low, high).

    Sequences of functions that the linker dropped start at 0 or another tombstone.
    A damaged program ends where the damage is; `damaged` is told.
    """
    table = LineTable(header.files)
    rows: list[tuple[int, int, int, bool]] = []
    for address, file, line, is_stmt, is_end in _rows(sections, header, damaged):
        rows.append((address, file, line, is_stmt))
        if is_end:
            if low <= rows[0][0] < high:
                _add_sequence(table, rows)
            rows = []
    table.spans.sort()
    return table


def _add_sequence(table: LineTable, rows: list[tuple[int, int, int, bool]]) -> None:
    previous = (0, 0)
    for row, follower in pairwise(rows):
        address, file, line, is_stmt = row
        if address < follower[0]:
            table.spans.append((address, follower[0], file, line))
        if is_stmt and line and (file, line) != previous:
            table.statements.append((file, line, address))
            previous = (file, line)


def _rows(
    sections: LineSections, header: LineHeader, damaged: Callable[[str], object]
) -> list[tuple[int, int, int, bool, bool]]:
    """Decode the opcodes (6.2.5) to (address, file, line, is_stmt, end of sequence).

    Every row costs a byte of the program at least; damage ends the list.
    """
    reader = Reader(sections.line, header.program, header.end, sections.order)
    data, base = sections.line, len(header.opcode_lengths) + 1
    mask = (1 << sections.bits) - 1
    found: list[tuple[int, int, int, bool, bool]] = []
    address, op_index, file, line, is_stmt = 0, 0, 1, 1, header.default_is_stmt
    try:
        while reader.place < reader.end:
            opcode = data[reader.place]
            reader.place += 1
            advance = 0
            emits = opcode == 1 or opcode >= base
            if opcode >= base:
                opcode -= base
                advance = opcode // header.line_range
                line += header.line_base + opcode % header.line_range
            elif opcode == 0:
                size = reader.uleb()
                start = reader.place
                after = start + size
                kind = reader.u8() if size else 0
                if kind == 1:
                    found.append((address, file, line, is_stmt, True))
                    address, op_index, file, line = 0, 0, 1, 1
                    is_stmt = header.default_is_stmt
                elif kind == 2:
                    address, op_index = reader.uint(size - 1), 0
                reader.place = start
                reader.take(after - start)
                continue
            elif opcode == 2:
                advance = reader.uleb()
            elif opcode == 3:
                line += reader.sleb()
            elif opcode == 4:
                file = reader.uleb()
            elif opcode == 6:
                is_stmt = not is_stmt
            elif opcode == 8:
                advance = (255 - base) // header.line_range
            elif opcode == 9:
                address, op_index = address + reader.uint(2), 0
            elif opcode != 1:
                for _ in range(header.opcode_lengths[opcode - 1]):
                    reader.uleb()
            if advance:
                op_index += advance
                address += header.min_insn * (op_index // header.max_ops) & mask
                op_index %= header.max_ops
            if emits:
                found.append((address, file, line, is_stmt, False))
    except DamagedError as error:
        damaged(str(error))
    return found
