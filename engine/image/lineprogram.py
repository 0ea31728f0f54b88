"""The line number program of one unit: DWARF 2 to 5, section 6.2 of the standard.

Read here and not with pyelftools because its header parser believes the counts of
DWARF 5's entry tables (a count of 2**40 empty entries is never done) and because it needs
the DIEs' structures for a table that describes itself.
"""

from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from posixpath import join, normpath
from typing import Final, NamedTuple

from msgspec import Struct, field

from engine.image.headers import text
from engine.image.reader import DamagedError, Reader

_LNCT_PATH, _LNCT_DIRECTORY = 1, 2
_FORM_SIZES: Final = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16, 0x0C: 1}
_STRX_SIZES: Final = {0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4}
_MAX_UNIT: Final = 0xFFFFFFFFFFFFFFFF


class LineSections(Struct, frozen=True):
    """The bytes a line program refers to."""

    line: bytes
    line_str: bytes
    strings: bytes
    order: str
    bits: int


class LineHeader(Struct, frozen=True):
    """The header of a line number program.

    Attributes:
        files: paths by file number; index 0 is unused before DWARF 5.
        written: the same as the compiler was given them: relative to its folder where they were.
        spelled: the same in the table's own spelling, perhaps relative to `folder`.
        folder: that the relative ones start at.
        program: offset of the first opcode in .debug_line.
        end: first offset behind the program.
    """

    files: tuple[str, ...]
    written: tuple[str, ...]
    spelled: tuple[str, ...]
    folder: str
    program: int
    end: int
    min_insn: int
    max_ops: int
    default_is_stmt: bool
    line_base: int
    line_range: int
    opcode_lengths: tuple[int, ...]


class LineTable(Struct):
    """The rows of one unit.

    Attributes:
        spans: (start, end, file number, line) of all non-empty rows, sorted; as in gdb
            (dwarf_record_line_p), rows of one line that discriminators tell apart are one.
        statements: (file number, line, address) where a statement begins.
        halves: starts of spans at which no statement begins.
        doubled: addresses of two rows of one file that follow one another: a function without
            instructions in front of its body begins there.
        bodies: (address, file number) where the compiler says that a function's body begins
            (DWARF 5, 6.2.5.2, DW_LNS_set_prologue_end).
    """

    files: tuple[str, ...]
    spans: list[tuple[int, int, int, int]] = field(default_factory=list)
    statements: list[tuple[int, int, int]] = field(default_factory=list)
    halves: set[int] = field(default_factory=set)
    doubled: set[int] = field(default_factory=set)
    bodies: list[tuple[int, int]] = field(default_factory=list)

    def at(self, address: int) -> tuple[str, int] | None:
        """The (file, line) of an address; None between rows."""
        index = bisect_right(self.spans, (address, _MAX_UNIT, 0, 0)) - 1
        if index < 0 or address >= self.spans[index][1]:
            return None
        _, _, number, line = self.spans[index]
        return self.file(number), line

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
    if version >= 5:
        paths, written, folder = _names_5(names, sections, width, folder)
    else:
        paths = written = _names_2(names)
    return LineHeader(
        files=tuple(
            path if path in ("", "??") else normpath(join(folder, path)) for path in paths
        ),
        written=tuple(written),
        spelled=tuple(paths),
        folder=folder,
        program=program,
        end=end,
        min_insn=min_insn,
        max_ops=max(max_ops, 1),
        default_is_stmt=default_is_stmt,
        line_base=line_base,
        line_range=max(line_range, 1),
        opcode_lengths=lengths,
    )


def _names_2(reader: Reader) -> list[str]:
    folders = [""]
    while name := reader.cstring():
        folders.append(text(name))
    paths = [""]
    while name := reader.cstring():
        index = reader.uleb()
        reader.uleb()
        reader.uleb()
        paths.append(_path(folders, index, text(name)))
    return paths


def _names_5(
    reader: Reader, sections: LineSections, width: int, folder: str
) -> tuple[list[str], list[str], str]:
    """Paths, the same as they are written, and the folder that relative ones start at.

    Beside the unit's own file, those of the compiler's folder are written with it, as gdb has it.
    """
    folders = [name for name, _ in _entries(reader, sections, width)]
    if folders:
        # The compilation directory itself (DWARF 5, 6.2.4), relative or not.
        folder = normpath(folders[0]) if folders[0] else folder
    entries = list(_entries(reader, sections, width))
    own = entries[0] if entries and folder.startswith("/") else None
    home = ["", *folders[1:]]
    paths = [_path(home, at, name) for name, at in entries]
    written = [
        path if one == own else _path(folders, one[1], one[0])
        for path, one in zip(paths, entries, strict=True)
    ]
    return paths, written, folder


def _path(folders: list[str], index: int, name: str) -> str:
    return join(folders[index] if index < len(folders) else "", name) if name else "??"


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
    rows: list[LineRow] = []
    for row in read_rows(sections, header, damaged):
        rows.append(row)
        if row.is_end:
            if low <= rows[0].address < high:
                _add_sequence(table, rows)
            rows = []
    table.spans.sort()
    table.bodies.sort()
    return table


class LineRow(NamedTuple):
    """A row of the table (DWARF 5, 6.2.2).

    Attributes:
        address: link address.
        file: number of the file.
        line: from 1; 0 for code without one.
        is_stmt: a statement begins there.
        is_end: it ends a sequence.
        goes_on: it is the line of the row before, told apart only by number.
        is_body: a function's body begins there.
    """

    address: int
    file: int
    line: int
    is_stmt: bool
    is_end: bool
    goes_on: bool
    is_body: bool = False


def _add_sequence(table: LineTable, rows: list[LineRow]) -> None:
    """Add the rows of a sequence.

    Code of line 0 counts to the line before it, as in gdb (lnp_state_machine::record_line): rustc
    writes such rows amid the code of a line.
    """
    rows = [row for row in rows if row.line > 0 or row.is_end]
    previous = (0, 0, 0)
    spans = table.spans
    begun: LineRow | None = None  # the last statement that begins at this address
    for row, follower in pairwise(rows):
        if row.is_body:
            table.bodies.append((row.address, row.file))
        if row[:2] == follower[:2] and not follower.is_end:
            table.doubled.add(row.address)
        if row.is_stmt:
            begun = row
            this = (row.file, row.line, row.address)
            if this != previous and not (row.goes_on and this[:2] == previous[:2]):
                table.statements.append(this)
            previous = this
        if row.address >= follower.address:
            continue
        # Of several rows at an address the last counts, a statement before others (gdb/symtab.c,
        # find_pc_sect_line).
        shown = begun if begun is not None else row
        here = (shown.file, shown.line)
        if shown is row and row.goes_on and spans and spans[-1][1:] == (row.address, *here):
            spans[-1] = (spans[-1][0], follower.address, *here)
        else:
            spans.append((row.address, follower.address, *here))
            if begun is None:
                table.halves.add(row.address)
        begun = None


def read_rows(
    sections: LineSections, header: LineHeader, damaged: Callable[[str], object]
) -> list[LineRow]:
    """The rows in the order of the program: the opcodes are decoded (6.2.5).

    Every row costs a byte of the program at least; damage ends the list.
    """
    reader = Reader(sections.line, header.program, header.end, sections.order)
    data, base = sections.line, len(header.opcode_lengths) + 1
    mask = (1 << sections.bits) - 1
    found: list[LineRow] = []
    is_body = False
    number, told_apart = 0, False  # a row's discriminator; whether the line's rows have some
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
                by = header.line_base + opcode % header.line_range
                line, told_apart = line + by, number != 0 if by else told_apart
            elif opcode == 0:
                size = reader.uleb()
                start = reader.place
                after = start + size
                kind = reader.u8() if size else 0
                if kind == 1:
                    found.append(LineRow(address, file, line, is_stmt, True, False))
                    address, op_index, file, line = 0, 0, 1, 1
                    number, told_apart, is_body = 0, False, False
                    is_stmt = header.default_is_stmt
                elif kind == 2:
                    address, op_index = reader.uint(size - 1), 0
                elif kind == 4:
                    number = reader.uleb()
                    told_apart = told_apart or number != 0
                reader.place = start
                reader.take(after - start)
                continue
            elif opcode == 2:
                advance = reader.uleb()
            elif opcode == 3:
                by = reader.sleb()
                line, told_apart = line + by, number != 0 if by else told_apart
            elif opcode == 4:
                file = reader.uleb()
            elif opcode == 6:
                is_stmt = not is_stmt
            elif opcode == 10:
                is_body = True
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
                found.append(LineRow(address, file, line, is_stmt, False, told_apart, is_body))
                number, is_body = 0, False
    except DamagedError as error:
        damaged(str(error))
    return found
