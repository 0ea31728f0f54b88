"""Macros of the preprocessor, as a unit of debug information lists them (gcc -g3).

DWARF 5, section 6.3: .debug_macro; GCC writes the same for DWARF 4 as an extension.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.image.dies import Unit
from engine.image.reader import DamagedError, Reader

_AT_MACROS: Final = 0x79
_AT_GNU_MACROS: Final = 0x2119
_DEEP: Final = 64
"""Lists that are imported into each other, at the most."""
_IMPORTS: Final = 1 << 16
"""Lists that a unit imports, at the most: the same one may be imported again and again."""
_DEFINITIONS: Final = (0x01, 0x05, 0x0B)
"""DW_MACRO_define, DW_MACRO_define_strp, DW_MACRO_define_strx."""
_HAS_LINES, _HAS_OPERANDS = 2, 4


class MacroRow(Struct, frozen=True):
    """An entry of the list: a macro is defined or undefined, a file begins or ends.

    Attributes:
        kind: "define", "undef", "file" or "end".
        line: where that is, in the file around; 0 for what the compiler itself defines.
        text: of a macro its name, parameters and replacement: "MAX(a,b) ((a)>(b)?(a):(b))".
        file: the number of a file that begins, in the unit's table of lines.
    """

    kind: str
    line: int = 0
    text: str = ""
    file: int = 0


def has_macros(unit: Unit) -> bool:
    """True if a unit tells of macros."""
    return _start(unit) is not None


def macro_rows(unit: Unit) -> Iterator[MacroRow]:
    """The list of a unit, in the order of the source; nothing if the unit has none.

    Raises:
        DamagedError: it cannot be read.
    """
    start = _start(unit)
    if start is not None:
        yield from _rows(unit, start, 0, iter(range(_IMPORTS)))


def _start(unit: Unit) -> int | None:
    root = unit.root
    found = root.number(_AT_MACROS)
    return root.number(_AT_GNU_MACROS) if found is None else found


def _kind(code: int) -> str:
    return "define" if code in _DEFINITIONS else "undef"


def _rows(unit: Unit, start: int, depth: int, left: Iterator[int]) -> Iterator[MacroRow]:
    info = unit.info
    data = info.section(".debug_macro")
    if depth > _DEEP or start >= len(data) or next(left, None) is None:
        raise DamagedError(f"no list of macros at {start:#x}")
    reader = Reader(data, start, len(data), info.order)
    reader.uint(2)  # the version: 4 and 5 differ in nothing that is read here
    flags = reader.u8()
    width = 8 if flags & 1 else 4
    if flags & _HAS_LINES:
        reader.uint(width)
    if flags & _HAS_OPERANDS:
        raise DamagedError("a list of macros with entries of the compiler's own")
    while True:
        match reader.u8():
            case 0:
                return
            case 1 | 2 as kind:
                line, text = reader.uleb(), reader.cstring().decode(errors="replace")
                yield MacroRow(_kind(kind), line, text)
            case 3:
                line, file = reader.uleb(), reader.uleb()
                yield MacroRow("file", line, file=file)
            case 4:
                yield MacroRow("end")
            case 5 | 6 as kind:
                line, offset = reader.uleb(), reader.uint(width)
                text = info.string(".debug_str", offset)
                yield MacroRow(_kind(kind), line, text)
            case 7:
                yield from _rows(unit, reader.uint(width), depth + 1, left)
            case 11 | 12 as kind:
                line, index = reader.uleb(), reader.uleb()
                base = unit.str_offsets_base
                offset = info.number(".debug_str_offsets", base, index, unit.widths.offset)
                text = info.string(".debug_str", offset)
                yield MacroRow(_kind(kind), line, text)
            case other:
                raise DamagedError(f"an entry {other:#x} in a list of macros")
