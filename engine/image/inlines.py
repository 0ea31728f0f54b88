"""Functions that the compiler put into another one: who was inlined where, and from which line.

DWARF 5, section 3.3.8. The entries are read one unit at a time, on demand; damaged information
is no information.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec import Struct

from engine.errors import ImageError
from engine.image.debuginfo import DebugInfo
from engine.image.dies import Die, Unit
from engine.image.elf import ElfImage
from engine.image.lines import Lines
from engine.image.ranges import read_functions, read_ranges
from engine.image.reader import DamagedError

_INLINED = 0x1D
_CALL_FILE, _CALL_LINE = 0x58, 0x59


class InlinedCall(Struct, frozen=True):
    """A function that has become a part of its caller.

    Attributes:
        name: of the function.
        file: of the call, "??" if not known.
        line: of the call, 0 if not known.
    """

    name: str
    file: str
    line: int


_Row = tuple[int, int, int]
"""Start, end, index of the entry."""


class Inlines:
    """The inlined calls of one image; addresses are its link addresses."""

    def __init__(
        self, image: ElfImage, lines: Lines, debug_dirs: Sequence[str] | None = None
    ) -> None:
        """Nothing is read yet.

        Args:
            image: the program or library.
            lines: its line tables, which number the files.
            debug_dirs: folders to search for a separate debug file; None = the usual ones.
        """
        self._image = image
        self._lines = lines
        self._debug_dirs = debug_dirs
        self._calls: dict[tuple[int, int], list[_Row]] = {}

    @cached_property
    def _info(self) -> DebugInfo | None:
        return DebugInfo.of(self._image, self._debug_dirs)

    def at(self, address: int) -> tuple[InlinedCall, ...]:
        """The inlined calls that an instruction is in, the innermost first."""
        try:
            found = tuple(self._at(address))
        except DamagedError as error:
            self._image.damage.note(f"{self._image.name}: inlined calls at {address:#x}: {error}")
            return ()
        except ImageError:  # a part of it is in a file that we do not have
            return ()
        return found[::-1]

    def _at(self, address: int) -> Iterator[InlinedCall]:
        if self._info is None:
            return
        for unit in self._info.containing(address):
            index = self._function(unit, address)
            if index is None:
                continue
            for low, high, inner in self._inside(unit, index):
                if low <= address < high:
                    yield self._call(unit, Die(unit, unit.shape.offsets[inner]))
            return

    def _function(self, unit: Unit, address: int) -> int | None:
        table = unit.functions or read_functions(unit)
        at = bisect_right(table, address, key=lambda row: row[0]) - 1
        return table[at][2] if at >= 0 and address < table[at][1] else None

    def _inside(self, unit: Unit, function: int) -> list[_Row]:
        """The ranges of all inlined calls of a function, outer ones before inner ones."""
        key = unit.offset, function
        rows = self._calls.get(key)
        if rows is None:
            shape = unit.shape
            rows = self._calls[key] = [
                (low, high, index)
                for index in range(function + 1, shape.ends[function])
                if shape.tags[index] == _INLINED
                for low, high in read_ranges(Die(unit, shape.offsets[index]))
            ]
        return rows

    def _call(self, unit: Unit, die: Die) -> InlinedCall:
        number, line = die.number(_CALL_FILE), die.number(_CALL_LINE)
        file = None if number is None else self._lines.file_of(unit.offset, number)
        return InlinedCall(die.name or die.linkage_name or "??", file or "??", line or 0)
