"""Functions of one unit by their entries, as libdw and tools/perf/util/dwarf-aux.c find them.

The functions carry the names of the questions; what differs from `engine.image.scopes` is on
purpose: perf counts an entry's address as libdw does, and looks at entries in their order.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

from engine.image import dies
from engine.image.dies import Die, Unit
from engine.image.ranges import read_ranges
from engine.trace.perfprobe.name_patterns import Glob
from engine.trace.perfprobe.unit_lines import UnitLines

if TYPE_CHECKING:
    from engine.image.debuginfo import DebugInfo

SUBPROGRAM, INLINED, PARAMETER, VARIABLE = 0x2E, 0x1D, 0x05, 0x34
_AT_INLINE, _AT_DECL_FILE, _AT_DECL_LINE = 0x20, 0x3A, 0x3B
_CALL_FILE, _CALL_LINE = 0x58, 0x59
# Tags whose children may be functions (libdw, may_have_scopes).
_SCOPES: Final = frozenset(
    (0x11, 0x1E, 0x0B, 0x22, 0x25, 0x32, 0x03, INLINED, SUBPROGRAM, 0x39, 0x02, 0x13)
)
_HARD: Final = frozenset((SUBPROGRAM, 0x0B, INLINED))
"""Of C only these are looked into for functions (libdw, dwarf_getfuncs)."""
_C: Final = frozenset((0x01, 0x02, 0x0C, 0x1D, 0x2C))

LineVisit = Callable[[str, int, int], None]
"""Told the file, the line and the address of a line."""


class UnitFunctions:
    """The functions, copies and lines of one unit.

    Attributes:
        unit: the unit.
        lines: its line table.
    """

    def __init__(self, info: "DebugInfo", unit: Unit, bits: int) -> None:
        """Read nothing yet."""
        self.unit = unit
        self.lines = UnitLines(info, unit, bits)
        self._dies: dict[int, Die] = {}
        self._spans: dict[int, list[tuple[int, int]]] = {}
        self._copies: dict[int, list[int]] = {}

    # -- entries -----------------------------------------------------------------

    def die(self, index: int) -> Die:
        """An entry by its index in the unit."""
        found = self._dies.get(index)
        if found is None:
            found = self._dies[index] = Die(self.unit, self.unit.shape.offsets[index])
        return found

    def children(self, index: int) -> list[int]:
        """The entries directly inside one."""
        return self.unit.shape.children(index)

    def tag(self, index: int) -> int:
        """DW_TAG_* of an entry."""
        return self.unit.shape.tags[index]

    def ranges(self, index: int) -> list[tuple[int, int]]:
        """The (start, end) of an entry's code."""
        found = self._spans.get(index)
        if found is None:
            found = self._spans[index] = read_ranges(self.die(index))
        return found

    def has_pc(self, index: int, address: int) -> bool:
        """True if an address is in an entry's code (dwarf_haspc)."""
        return any(low <= address < high for low, high in self.ranges(index))

    def entry_pc(self, index: int) -> int | None:
        """The entry of a function, of one piece or told to be it (dwarf_entrypc)."""
        die = self.die(index)
        return die.address(dies.AT_ENTRY_PC if die.has(dies.AT_ENTRY_PC) else dies.AT_LOW_PC)

    def lowest(self, index: int) -> int | None:
        """A function's entry, or the begin of its first piece (die_entrypc)."""
        found = self.entry_pc(index)
        if found is None and self.die(index).has(dies.AT_RANGES):
            ranges = self.ranges(index)
            return ranges[0][0] if ranges else None
        return found

    def high_pc(self, index: int) -> int | None:
        """The end of a function of one piece (dwarf_highpc)."""
        die = self.die(index)
        if die.has(dies.AT_RANGES) or not die.has(dies.AT_HIGH_PC):
            return None
        ranges = self.ranges(index)
        return ranges[0][1] if ranges else None

    def is_definition(self, index: int) -> bool:
        """True for a function that has code or is inlined (die_is_func_def)."""
        die = self.die(index)
        if die.tag != SUBPROGRAM or die.has(dies.AT_DECLARATION):
            return False
        return die.has(_AT_INLINE) or self.lowest(index) is not None

    def is_instance(self, index: int) -> bool:
        """True for a function or copy with code of its own (die_is_func_instance)."""
        die = self.die(index)
        return die.tag in (SUBPROGRAM, INLINED) and (
            self.entry_pc(index) is not None or die.has(dies.AT_RANGES)
        )

    # -- names and declarations --------------------------------------------------

    def name(self, index: int) -> str:
        """The name in the source; "" without."""
        return self.die(index).name or ""

    def matches(self, index: int, glob: Glob) -> bool:
        """True if a function's name, or the linker's, matches (die_match_name)."""
        die = self.die(index)
        name = die.name
        if name and glob.matches(name):
            return True
        linkage = next((s for one in die.origins() if (s := one.string(dies.AT_LINKAGE_NAME))), "")
        return bool(linkage) and glob.matches(linkage)

    def declared_file(self, index: int) -> str:
        """The file that declares it; "" for none (dwarf_decl_file)."""
        for die in self.die(index).origins():
            number = die.number(_AT_DECL_FILE)
            if number is not None:
                return self.lines.file(number)
        return ""

    def declared_line(self, index: int) -> int | None:
        """The line that declares it (dwarf_decl_line)."""
        found = (die.number(_AT_DECL_LINE) for die in self.die(index).origins())
        return next((line for line in found if line is not None), None)

    def call_file(self, index: int) -> str:
        """The file of an inlined call."""
        return self.lines.file(self.die(index).number(_CALL_FILE))

    def call_line(self, index: int) -> int:
        """The line of an inlined call; 0 without."""
        return self.die(index).number(_CALL_LINE) or 0

    def is_redundant(self, index: int) -> bool:
        """True for a copy that is called where it is declared: compilers leave such."""
        copy = self.die(index)
        origin = copy.reference(dies.AT_ABSTRACT_ORIGIN)
        if self.tag(index) != INLINED or origin is None:
            return False
        line = next((n for d in origin.origins() if (n := d.number(_AT_DECL_LINE))), None)
        file = next((n for d in origin.origins() if (n := d.number(_AT_DECL_FILE))), None)
        return copy.number(_CALL_LINE) == line and copy.number(_CALL_FILE) == file

    # -- searches ----------------------------------------------------------------

    @cached_property
    def functions(self) -> list[int]:
        """All functions in the order of their entries (dwarf_getfuncs)."""
        shape = self.unit.shape
        plain = self.unit.root.number(dies.AT_LANGUAGE) in _C
        found, at = list[int](), 1
        while at < len(shape.tags):
            tag = shape.tags[at]
            if tag == SUBPROGRAM:
                found.append(at)
            inside = tag in (_HARD if plain else _SCOPES)
            at = at + 1 if inside else max(shape.ends[at], at + 1)
        return found

    def function_at(self, address: int) -> int | None:
        """The function around an address, no copy (die_find_realfunc)."""
        rows = self._by_address
        at = bisect_right(rows, (address, 1 << 65, 0)) - 1
        return rows[at][2] if at >= 0 and address < rows[at][1] else None

    @cached_property
    def _by_address(self) -> list[tuple[int, int, int]]:
        return sorted(
            (low, high, index) for index in self.functions for low, high in self.ranges(index)
        )

    def copy_at(self, index: int, address: int) -> int | None:
        """The outermost inlined copy around an address inside an entry."""
        copies = self._copies.get(index)
        if copies is None:
            shape = self.unit.shape
            copies = self._copies[index] = [
                one for one in range(index + 1, shape.ends[index]) if shape.tags[one] == INLINED
            ]
        return next((one for one in copies if self.has_pc(one, address)), None)

    def around(self, address: int) -> Iterator[int]:
        """The function around an address and the copies in it, the outermost first."""
        here = self.function_at(address)
        while here is not None:
            yield here
            here = self.copy_at(here, address)

    def instances(self, function: int) -> Iterator[int]:
        """All code of an inlined function in the order of entries (die_walk_instances)."""
        shape, wanted = self.unit.shape, self.die(function).key
        for index, tag in enumerate(shape.tags):
            if tag not in (SUBPROGRAM, INLINED) or not self.is_instance(index):
                continue
            origin = self.die(index).reference(dies.AT_ABSTRACT_ORIGIN)
            if origin is not None and origin.key == wanted and not self.is_redundant(index):
                yield index

    # -- lines -------------------------------------------------------------------

    def line_of(self, address: int) -> tuple[str, int] | None:
        """The file and line of an address; a function's entry has the line of its name."""
        function = self.function_at(address)
        if function is not None and self.lowest(function) == address:
            line = self.declared_line(function)
            return (self.declared_file(function), line) if line else None
        row = self.lines.statement(address)
        return (self.lines.row_file(row), row.line) if row is not None and row.line else None

    def walk_lines(self, index: int, visit: LineVisit) -> None:
        """Tell of all lines of a function or copy (die_walk_lines); of index 0 the unit's."""
        if not index:
            for file, line, address in self._places:
                visit(file, line, address)
            return
        declared = self.declared_file(index), self.declared_line(index) or 0
        for low, high in sorted(self.ranges(index)):
            for row in self.lines.between(low, high):
                if row.is_stmt and self._is_own(index, row.line, row.address, declared):
                    visit(self.lines.row_file(row), row.line, row.address)
        self._walk_declared(index, visit, nested=False)

    @cached_property
    def places_by_line(self) -> dict[int, list[tuple[str, int]]]:
        """The (file, address) of all lines of the unit by their numbers, in perf's order."""
        found: dict[int, list[tuple[str, int]]] = {}
        for file, line, address in self._places:
            found.setdefault(line, []).append((file, address))
        return found

    @cached_property
    def _places(self) -> list[tuple[str, int, int]]:
        found = [
            (self.lines.row_file(row), row.line, row.address)
            for row in self.lines.rows
            if row.is_stmt and not row.is_end
        ]
        for function in self.functions:
            self._walk_declared(function, lambda *place: found.append(place), nested=True)
        return found

    def _is_own(self, index: int, line: int, address: int, declared: tuple[str, int]) -> bool:
        """True if a row belongs to a function itself and not to a copy in it."""
        inner, copy = None, self.copy_at(index, address)
        while copy is not None:
            inner, copy = copy, self.copy_at(copy, address)
        if inner is None:
            return True
        file = self.call_file(inner)
        if file and file == declared[0] and self.call_line(inner) == line:
            return True
        return (self.declared_file(inner), self.declared_line(inner) or 0) == declared

    def _walk_declared(self, function: int, visit: LineVisit, *, nested: bool) -> None:
        """Tell of the line of a function's name and of those of the calls inlined in it."""
        self._visit_declaration(function, visit)
        shape = self.unit.shape
        at, end = function + 1, shape.ends[function]
        while at < end:
            if shape.tags[at] != INLINED:
                at += 1
                continue
            file, line, address = self.call_file(at), self.call_line(at), self.lowest(at)
            if file and line > 0 and address is not None:
                visit(file, line, address)
            if not nested:
                at = max(shape.ends[at], at + 1)
                continue
            if address:
                self._visit_declaration(at, visit)
            at += 1

    def _visit_declaration(self, index: int, visit: LineVisit) -> None:
        file, line, entry = (
            self.declared_file(index),
            self.declared_line(index),
            self.lowest(index),
        )
        if file and line is not None and entry is not None:
            visit(file, line, entry)
