"""The lines of source that a probe may stand at: `perf probe -x FILE --line RANGE`.

tools/perf/util/probe-finder.c of Linux 6.1, debuginfo__find_line_range, and __show_line_range.
"""

from typing import Final

from engine.errors import CommandError, ImageError
from engine.image.reader import DamagedError
from engine.trace.perfprobe.commands import NO_END, LineRange, one_line, read_line_range
from engine.trace.perfprobe.fetch_writer import SearchError
from engine.trace.perfprobe.function_entries import UnitFunctions
from engine.trace.perfprobe.name_patterns import Glob, same_tail
from engine.trace.perfprobe.perf_events import place_of
from engine.trace.perfprobe.place_search import ProbedFile, read_source
from engine.trace.perfprobe.symbol_places import SymbolPlaces

_BEHIND: Final = 2
"""Lines that are shown behind the last one of an open range."""


class _LineFinder:
    """Collects the lines of a range."""

    def __init__(self, wanted: LineRange) -> None:
        self._wanted = wanted
        self._glob = Glob(wanted.function)
        self.numbers: set[int] = set()
        self.path = ""
        self.folder = ""
        self.offset = 0
        self.start, self.end = wanted.start, wanted.end

    def search(self, file: ProbedFile) -> bool:
        """Search the units up to the first that has lines of the range."""
        wanted = self._wanted
        for unit in file.units(wanted.function):
            name = ""
            if wanted.file:
                files = (path for path in unit.lines.files if path)
                name = next((path for path in files if same_tail(path, wanted.file)), "")
                if not name:
                    continue
            if wanted.function:
                self._by_function(unit)
            else:
                self._walk(unit, 0, name)
            if self.numbers:
                self.folder = unit.lines.folder
                return True
        return False

    def _by_function(self, unit: UnitFunctions) -> None:
        wanted = self._wanted
        for index in unit.functions:
            declared = unit.declared_file(index)
            if wanted.file and not same_tail(wanted.file, declared):
                continue
            if not unit.matches(index, self._glob) or not unit.is_definition(index):
                continue
            self.offset = unit.declared_line(index) or 0
            self.start = min(self.offset + wanted.start, NO_END)
            self.end = min(self.offset + wanted.end, NO_END)
            if unit.is_instance(index):
                self._walk(unit, index, declared)
            else:
                for copy in unit.instances(index):
                    self._walk(unit, copy, declared)
            return

    def _walk(self, unit: UnitFunctions, index: int, name: str) -> None:
        def visit(file: str, line: int, address: int) -> None:
            if not same_tail(file, name) or not self.start <= line <= self.end:
                return
            known = unit.line_of(address)
            if known != (file, line):
                return  # the place is another line's, or no statement begins there
            self.path = self.path or file
            self.numbers.add(line)

        unit.walk_lines(index, visit)


def lines_of(file: ProbedFile, symbols: SymbolPlaces, text: str) -> list[str]:
    """The lines of a range with their numbers, as perf shows them.

    Args:
        file: with its debug information.
        symbols: of the file.
        text: the range.

    Raises:
        CommandError: it is none, it has no lines, or their source is not there.
    """
    wanted = read_line_range(text)
    try:
        finder = _LineFinder(wanted)
        if not finder.search(file):
            again = _alternative(file, symbols, wanted)
            finder = _LineFinder(again) if again is not None else finder
            if again is None or not finder.search(file):
                raise CommandError(
                    f"{text}: Specified source line is not found; "
                    "check --funcs lists functions; a file is given as SRC:LINE"
                )
        path = file.source(finder.path, finder.folder)
        return _shown(finder, wanted.function, path, read_source(path))
    except SearchError as error:
        raise CommandError(f"{text}: {one_line(str(error))}") from error
    except (DamagedError, ImageError) as error:
        raise CommandError(f"{text}: debug information: {error}") from error


def _alternative(file: ProbedFile, symbols: SymbolPlaces, wanted: LineRange) -> LineRange | None:
    """The range of what a symbol stands for that the debug information calls otherwise."""
    address = symbols.named(wanted.function) if wanted.function and not wanted.file else None
    if address is None:
        return None
    try:
        found = place_of(file, address)
    except SearchError:
        return None
    return LineRange(found.function, found.file, wanted.start, wanted.end)


def _shown(finder: _LineFinder, function: str, path: str, source: list[str]) -> list[str]:
    offset, start, end = finder.offset, finder.start, finder.end
    at = start - offset
    found = [f"<{function}@{path}:{at}>" if function else f"<{path}:{start}>"]
    if source and not source[-1]:
        source = source[:-1]  # what stands behind the last line's end
    last = max(finder.numbers)
    if last > len(source):
        raise SearchError("EINVAL", f"Source file is shorter than expected: {path}")
    end = last + 1 + _BEHIND if end == NO_END else end
    for number in range(max(start, 1), min(end, len(source)) + 1):
        line = source[number - 1]
        if number in finder.numbers:
            found.append(f"{number - offset:7d}  {line}")
        else:
            found.append(f"         {line}")
    return found
