"""The search for the places of a command: functions, inlined copies, lines, patterns of lines.

tools/perf/util/probe-finder.c of Linux 6.1: debuginfo__find_probe_location and what it calls. The
search goes unit by unit, hands each place with its scope to a `Visitor`, and ends at the first
error; remarks are perf's warnings in their order.
"""

import os
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from engine.image import dies
from engine.image.cfa import cfa_at
from engine.image.debuginfo import DebugInfo
from engine.image.dies import Unit
from engine.image.elf import ElfImage
from engine.image.headers import PF_X
from engine.image.loclists import entry_at
from engine.image.longwork import look_up
from engine.trace.perfprobe.commands import ProbeCommand
from engine.trace.perfprobe.fetch_writer import (
    FirstOperation,
    ReadingPlace,
    SearchError,
    first_operation,
)
from engine.trace.perfprobe.function_entries import PARAMETER, VARIABLE, UnitFunctions
from engine.trace.perfprobe.name_patterns import Glob, is_glob, same_tail

_FRAME_BASE, _CFA, _BREGX, _COMPILE_UNIT = 0x40, 0x9C, 0x92, 0x11
MAX_PLACES: Final = 128
"""Places of one command (perf probe --max-probes)."""
_MAX_SOURCE: Final = 16 << 20
"""Bytes of a source file that a pattern is looked for in."""
SKIPPED: Final = (
    "Target program is compiled without optimization. Skipping prologue.\n"
    "Probe on address 0x{:x} to force probing at the function entry.\n"
)


class FoundPlace(NamedTuple):
    """A place of a command.

    Attributes:
        unit: it is in.
        scope: index of the function or copy that was meant.
        function: of the function around it.
        spot: where variables are read.
        symbol: the function's name.
        offset: in it.
    """

    unit: UnitFunctions
    scope: int
    function: int
    spot: ReadingPlace
    symbol: str
    offset: int


Visitor = Callable[[FoundPlace], None]
"""Takes a place; a SearchError ends the search."""


class ProbedFile(Struct, frozen=True, eq=False):
    """The file that places are searched in.

    Attributes:
        image: the program or library.
        info: its debug information.
        registers: tracefs' names of registers by DWARF number, with '%'.
        root: folder in front of the paths of source files, "" for none.
    """

    image: ElfImage
    info: DebugInfo
    registers: dict[int, str]
    root: str = ""

    def units(self, function: str = "") -> "Iterator[UnitFunctions]":
        """The units with code, in their order.

        Args:
            function: only those that may have an entry of this name; "" for all.

        Raises:
            DamagedError: the debug information is damaged.
            ImageError: a part of it is in a file that is missing.
        """
        for unit in self.info.naming((function,)) if function else self.info.units():
            look_up()
            if unit.kind not in dies.TYPE_UNITS and unit.root.tag == _COMPILE_UNIT:
                yield self._functions(self.info.whole(unit))

    def covering(self, address: int) -> "Iterator[UnitFunctions]":
        """The units that have code at an address; likewise."""
        for unit in self.info.containing(address):
            yield self._functions(unit)

    def _functions(self, unit: Unit) -> UnitFunctions:
        known = self.image.once(_known_units)
        key = unit.info.name, unit.offset  # units of .dwo files have offsets of their own
        found = known.get(key)
        if found is None:
            found = known[key] = UnitFunctions(self.info, unit, self.image.bits)
        return found

    def has_code(self, address: int) -> bool:
        """False for code that the linker dropped, which perf takes for real."""
        return any(
            one.flags & PF_X and one.vaddr <= address < one.vaddr + one.memsz
            for one in self.image.segments
        )

    def source(self, path: str, folder: str) -> str:
        """The place of a source file (find_source_path).

        Raises:
            SearchError: it is not there.
        """
        whole = path if path.startswith("/") or not folder else f"{folder}/{path}"
        # A relative folder has been joined to the path already, which perf does not know.
        places = [self.root + whole] if path.startswith("/") else [whole, path]
        for place in places:
            if os.path.isfile(place) and os.access(place, os.R_OK):
                return place
        raise SearchError("ENOENT", f"Failed to find source file path: {places[0]} is not there.")


def _known_units(_: ElfImage) -> dict[tuple[str, int], UnitFunctions]:
    """The units of a file by their offsets: a list of commands asks again and again."""
    return {}


def read_source(path: str) -> list[str]:
    """The lines of a source file.

    Raises:
        SearchError: it cannot be read.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            return file.read(_MAX_SOURCE).split("\n")
    except OSError as error:
        raise SearchError("ENOENT", f"Failed to open {path}: {error.strerror}") from error


class PlaceSearch:
    """The search for the places of one command.

    Attributes:
        remarks: perf's warnings up to now.
    """

    def __init__(
        self, file: ProbedFile, command: ProbeCommand, visit: Visitor, *, inlines: bool = True
    ) -> None:
        """Set up.

        Args:
            file: is searched.
            command: names the places.
            visit: takes each.
            inlines: copies of inlined functions count (perf probe without --no-inlines).
        """
        self.remarks: list[str] = []
        self._file = file
        self._command = command
        self._point = command.point
        self._visit = visit
        self._inlines = inlines
        self._glob = Glob(self._point.function)
        self._line = 0
        self._path = ""
        self._matched: frozenset[int] | None = None

    def run(self) -> None:
        """Search all units.

        Raises:
            SearchError: what perf would fail with.
        """
        point = self._point
        named = "" if is_glob(point.function) or "\\" in point.function else point.function
        for unit in self._file.units(named):
            self._path = ""
            if point.file:
                files = [path for path in unit.lines.files if path]
                path = next((path for path in files if same_tail(path, point.file)), None)
                if path is None:
                    continue
                self._path = path
            if point.function:
                self._by_function(unit)
            elif point.pattern:
                self._by_pattern(unit, 0)
            else:
                self._line = point.line
                self._by_line(unit)

    def _remark(self, text: str) -> None:
        self.remarks.append(text)

    # -- functions ---------------------------------------------------------------

    def _by_function(self, unit: UnitFunctions) -> None:
        point = self._point
        for index in unit.functions:
            if not unit.is_definition(index) or not unit.matches(index, self._glob):
                continue
            declared = unit.declared_file(index)
            if point.file and not same_tail(point.file, declared):
                continue
            self._path = declared
            if point.line:
                self._line = (unit.declared_line(index) or 0) + point.line
                self._by_line(unit)
            elif unit.is_instance(index):
                self._at_function(unit, index)
            elif self._inlines:
                self._at_copies(unit, index)
            if not is_glob(point.function):
                return  # no other one of that name in the unit, perf believes

    def _at_function(self, unit: UnitFunctions, index: int) -> None:
        address = unit.lowest(index)
        if address is None or not self._file.has_code(address):
            return
        if self._point.pattern:
            self._by_pattern(unit, index)
            return
        address = self._behind_prologue(unit, index, address)
        self._call(unit, index, address + self._point.offset)

    def _behind_prologue(self, unit: UnitFunctions, index: int, address: int) -> int:
        """The place at which a function without optimisation has its parameters."""
        point = self._point
        other = point.line or point.is_return or point.pattern or point.offset
        if other or point.address is not None or not self._command.has_variables:
            return address
        if _is_optimized(unit):
            return address
        self._remark(SKIPPED.format(address))
        high = unit.high_pc(index)
        found = unit.lines.behind_prologue(address, high) if high is not None else None
        return address if found is None else found

    def _at_copies(self, unit: UnitFunctions, index: int) -> None:
        point = self._point
        for copy in unit.instances(index):
            if point.pattern:
                self._by_pattern(unit, copy)
                continue
            address = unit.lowest(copy)
            if address is None:
                continue
            try:
                self._call(unit, copy, address + point.offset)
            except SearchError as error:
                if error.code != "ENOENT":
                    raise
                self._remark(str(error))  # perf takes it for a function without copies
                return

    # -- lines -------------------------------------------------------------------

    def _by_line(self, unit: UnitFunctions) -> None:
        for file, address in unit.places_by_line.get(self._line, ()):
            if same_tail(file, self._path):
                self._verify_line(unit, file, self._line, address)
                self._call_in_scope(unit, address)

    def _verify_line(self, unit: UnitFunctions, file: str, line: int, address: int) -> None:
        """Refuse a line whose place another line has, too."""
        known = unit.line_of(address)
        if known is None or known[0] != file or known[1] == line:
            return
        name, other = known
        function = self._point.function
        scope = self._scope(unit, address) if function else None
        if scope is not None and unit.matches(scope, self._glob):
            declared = unit.declared_line(scope)
            if declared is not None:
                name, other = unit.name(scope), other - declared
        text = (
            "This line is sharing the address with other lines.\n"
            f"Please try to probe at {name}:{other} instead."
        )
        raise SearchError("ENOENT", text)

    def _by_pattern(self, unit: UnitFunctions, index: int) -> None:
        if self._matched is None:
            path = self._file.source(self._path, unit.lines.folder)
            glob = Glob(self._point.pattern, lazy=True)
            lines = enumerate(read_source(path), 1)
            self._matched = frozenset(number for number, text in lines if glob.matches(text))
        matched = self._matched

        def visit(file: str, line: int, address: int) -> None:
            if line in matched and same_tail(file, self._path):
                self._line = line
                self._call_in_scope(unit, address)

        if matched:
            unit.walk_lines(index, visit)
        else:
            self._matched = None  # perf looks again in the next unit

    def _call_in_scope(self, unit: UnitFunctions, address: int) -> None:
        scope = self._scope(unit, address)
        if scope is None:
            raise SearchError("ENOENT", "Failed to find scope of probe point.")
        self._call(unit, scope, address)

    def _scope(self, unit: UnitFunctions, address: int) -> int | None:
        """The function or copy around an address that is meant (find_best_scope)."""
        around = list(unit.around(address))
        best, nearest = None, 1 << 31
        for index in around:
            if self._path and unit.declared_file(index) != self._path:
                continue
            if self._point.function:
                if unit.matches(index, self._glob):
                    return index
                continue
            line = unit.declared_line(index) or 0
            if line < self._line and self._line - line < nearest:
                best, nearest = index, self._line - line
        return best if best is not None else around[0] if around else None

    # -- places ------------------------------------------------------------------

    def _call(self, unit: UnitFunctions, scope: int, address: int) -> None:
        if not self._file.has_code(address):
            return
        function: int | None = scope
        if not unit.is_definition(scope):
            function = unit.function_at(address)
            if function is None:
                self._no_function(unit, address)
                return
        assert function is not None, "a definition is a function"
        spot = ReadingPlace(
            address,
            self._frame(unit, function, address),
            unit.entry_pc(function),
            unit.high_pc(function),
            self._file.registers,
        )
        name = unit.name(function)
        if not unit.has_pc(function, address):
            raise SearchError("EINVAL", f"Specified offset is out of {name}")
        entry = spot.entry if spot.entry is not None else unit.lowest(function)
        assert entry is not None, "it has code"
        self._visit(FoundPlace(unit, scope, function, spot, name, address - entry))

    def _no_function(self, unit: UnitFunctions, address: int) -> None:
        tails = (index for index in unit.functions if unit.high_pc(index) == address)
        tail = next(tails, None)
        if tail is None:
            raise SearchError("ENOENT", "Failed to find probe point in any functions.")
        self._remark(f"Ignoring tail call from {unit.name(tail)}")

    def _frame(self, unit: UnitFunctions, function: int, address: int) -> FirstOperation | None:
        die = unit.die(function)
        value = die.get(_FRAME_BASE)
        if isinstance(value, int):
            value = entry_at(die, _FRAME_BASE, value, address)
        if not value:
            return None
        op = first_operation(value, unit.unit.info.order, unit.unit.widths.address)
        if op.code != _CFA or not op.alone:
            return op
        cfa = cfa_at(self._file.image, address)
        if cfa is None:
            raise SearchError("ENOENT", f"Failed to get call frame on 0x{address:x}")
        return FirstOperation(_BREGX, *cfa)


def _is_optimized(unit: UnitFunctions) -> bool:
    """True if any variable of the unit has a list of locations (die_is_optimized_target)."""
    for index, tag in enumerate(unit.unit.shape.tags):
        if tag not in (PARAMETER, VARIABLE):
            continue
        for die in unit.die(index).origins():
            if die.has(dies.AT_LOCATION):
                if die.form(dies.AT_LOCATION) == 0x17:  # DW_FORM_sec_offset
                    return True
                break
    return False
