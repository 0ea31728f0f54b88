"""Words that show lines of source files: list, forward-search, reverse-search."""

import re
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.frames import window
from engine.session.debugger.linespecs import WantedPlace
from engine.session.debugger.places import PlaceMissingError

_SIZE: Final = "listsize"


class SourceListing:
    """Shows source lines; remembers which were shown last (gdb/source.c)."""

    def __init__(self, debugger: Debugger) -> None:
        """List files of a debugger's guest."""
        self._debugger = debugger
        self._source: tuple[str, int, int] | None = None
        self._last = self._searched = self._middle = 0
        self._pattern = ""

    @property
    def _size(self) -> int:
        return self._debugger.settings.limit(_SIZE)

    @property
    def source_file(self) -> str:
        """The file that was shown last; "" for none."""
        return self._source[0] if self._source is not None else ""

    @property
    def last_shown(self) -> tuple[str, int] | None:
        """The file and the number of the line that was shown last; None for none."""
        return (self._source[0], self._last) if self._source is not None else None

    def told(self, file: str, line: int) -> None:
        """Take a line for the last one that was shown."""
        if self._source is None:
            self._source = (file, self._around(line), 0)
        self._source = (file, *self._source[1:]) if self._source[0] == file else self._source
        self._last = self._searched = line

    def about(self, file: str, line: int) -> None:
        """Let `list` begin around a line, which was just shown."""
        self._source = (file, self._around(line), 0)
        self._last = self._middle = line
        self._searched = 0  # the next search begins at an end of the file, as gdb's

    def _around(self, line: int) -> int:
        """The first line of a listing that has a line in its middle."""
        size = self._size
        return 1 if size > line * 2 else max(line - size // 2, 1)

    def show(self, rest: str) -> None:
        """Source lines: list [LINE|FUNCTION|*ADDRESS|FIRST,LAST]."""
        rest = rest.strip()
        size = count = self._size
        if "," in rest:
            count = self._range(rest)
        elif rest in ("+", "-") and self._middle:
            self._need_source()  # around what has just been shown
        elif rest == "-":
            if self._source is not None:
                file, start, before = self._source
                begin = before or start
                self._source = (file, max(begin - size, 1), 0)
                count = min(size, begin - 1)
        elif rest and rest != "+":
            if rest[0] != "*" and self._show_overloads(rest):
                return
            relative = re.fullmatch(r"([+-])(\d+)", rest)
            if relative is not None:
                file, start = self._need_source()
                distance = int(relative[2]) or 5  # as gdb, of which 0 is none
                distance = distance if relative[1] == "+" else -distance
                line = (self._middle or start) + distance
            else:
                file, line = self._address(rest) if rest[0] == "*" else self._place(rest)
            self._source = (file, self._around(line), 0)
        else:
            self._need_source()
        self._show_on(count)

    def _show_overloads(self, name: str) -> bool:
        """Show the lines of several functions of one name, each under a heading; False for one."""
        if re.fullmatch(r"(?:.+:)?\d+", name):
            return False
        debugger = self._debugger
        wanted = debugger.places.wanted(name, debugger.frame, debugger.value)
        try:
            places = debugger.places.beginnings(wanted)
        except PlaceMissingError:
            return False
        found = {(one.file, one.line): one for one in places if one.file}
        if len(found) < 2:
            return False
        for (file, line), one in sorted(found.items()):
            head = f'file: "{one.written}", line number: {line}, symbol: "{one.function}"'
            debugger.put(head)
            self._source = (file, self._around(line), 0)
            self._show_on(self._size)
        return True

    def _show_on(self, count: int) -> None:
        """Show lines from the noted one on."""
        assert self._source is not None
        file, start, _ = self._source
        sources = self._debugger.frames.sources
        lines = sources.lines(file)
        if lines is None:  # told with the number once, and the next list begins there again
            self._debugger.put(sources.line(file, start))
            self._source, self._last = (file, start, start), start
            self._searched = start
            return
        if start > len(lines):
            shown = f"{self._debugger.files.written(file)} has {len(lines)} lines."
            raise CommandError(f"Line number {start} out of range; {shown}")
        for number, text in window(start, count, lines):
            self._debugger.put(f"{number}\t{text}")
        behind = min(start + count, len(lines) + 1)
        self._source, self._last = (file, behind, start), start
        self._searched = start
        self._middle = 0

    def _range(self, rest: str) -> int:
        """Take note of the first line of "FIRST,LAST", and give the number of lines."""
        size = self._size
        first, last = (part.strip() for part in rest.split(",", 1))
        if not first and not last:
            raise CommandError("Two empty args do not say what lines to list.")
        if not first:
            file, end = self._place(last)
            start = max(end - size + 1, 1)
        else:
            file, start = self._place(first)
            end = start + size - 1
            if re.fullmatch(r"\+\d+", last):
                end = start + int(last)
            elif last:
                end = self._place(last)[1]
        self._source = (file, start, 0)
        return end - start + 1

    def _need_source(self) -> tuple[str, int]:
        """The file that is shown and its next line; at first those of main."""
        if self._source is None:
            main = self._debugger.places.function("main")
            around = max(main.line - self._size + 1, 1)
            self._source = (main.file, self._around(around), 0)
        return self._source[:2]

    def _lines(self, file: str) -> list[str]:
        lines = self._debugger.frames.sources.lines(file)
        if lines is None:
            raise CommandError(f"{self._debugger.files.written(file)}: No such file or directory.")
        return lines

    def _place(self, text: str) -> tuple[str, int]:
        """The file and line that a text names; a function's is that of its first instruction."""
        debugger = self._debugger
        number = re.fullmatch(r"(?:(.+):)?(\d+)", text)
        if number and number[1] is None and self._source is not None:
            return self._source[0], int(number[2])
        if number and number[1] is None:
            return debugger.places.function("main").file, int(number[2])
        wanted = debugger.wanted(text)
        if wanted.is_line:
            return self._file_of(wanted), wanted.line
        place = debugger.places.beginnings(wanted)[0]
        if not place.file:
            raise CommandError(f'Function "{text}" not defined.')
        return place.file, place.line

    def _file_of(self, wanted: WantedPlace) -> str:
        """The whole path of a line's file, which need not have the line."""
        finder = self._debugger.places
        try:
            return finder.beginnings(wanted)[0].file
        except PlaceMissingError:
            return finder.beginnings(replace(wanted, line=1))[0].file

    def _address(self, text: str) -> tuple[str, int]:
        """The file and line of an address, which is told of first."""
        place = self._debugger.place(text)
        if not place.file:
            raise CommandError(f"No line number known for {text}.")
        where = f"{place.function} ({place.written}:{place.line})"
        self._debugger.put(f"{place.address:#x} is in {where}.")
        return place.file, place.line

    # -- search -----------------------------------------------------------------------------

    def forward_search(self, rest: str) -> None:
        """Show the next line that a regular expression fits: forward-search [REGEXP]."""
        self._search(rest, 1)

    def reverse_search(self, rest: str) -> None:
        """Show the last line before that fits: reverse-search [REGEXP]."""
        self._search(rest, -1)

    def _search(self, rest: str, step: int) -> None:
        if not rest and not self._pattern:
            raise CommandError("No previous regular expression")
        self._pattern = rest = rest or self._pattern
        try:
            pattern = re.compile(rest)
        except re.error as error:
            raise CommandError(f"Invalid regexp: {error}") from None
        file, _ = self._need_source()
        lines, number = self._lines(file), self._searched + step
        while 1 <= number <= len(lines):
            if pattern.search(lines[number - 1]):
                self._debugger.put(f"{number}\t{lines[number - 1]}")
                self.about(file, number)
                self._searched = number
                return
            number += step
        raise CommandError("Expression not found")
