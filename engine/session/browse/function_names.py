"""Names of functions, kept so that a search costs little with each letter that is typed."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate, islice
from typing import Final

from engine.image import Symbol
from engine.session.program.libraries import ProgramFile

Named = tuple[str, Symbol, ProgramFile]

_OF_FILE: Final = re.compile(r"([^:/\s]+):(?!:)")


class NameSearch:
    """Names in one text, the shortest first: what is found in it is in the order of a result."""

    def __init__(self, names: Iterable[Named]) -> None:
        """Index names.

        Args:
            names: each with its symbol and file, those of the program's own file first.
        """
        listed = list(enumerate(names))
        listed.sort(key=lambda item: (len(item[1][0]), item[1][0]))
        self._rank = [rank for rank, _ in listed]
        self._names = [name for _, name in listed]
        lines = [name.replace("\n", " ") for name, _, _ in self._names]
        # A letter's other case may be two letters: each line has a beginning in both texts.
        folded = [line.lower() for line in lines]
        self._raw = _SearchedLines(lines)
        self._folded = self._raw if folded == lines else _SearchedLines(folded)

    def find(self, typed: str, limit: int) -> list[Named]:
        """Names that fit: the exact ones, then beginnings, then parts, short ones first.

        Args:
            typed: without a capital it fits in any case; LIB:NAME is a name of one file.
            limit: the most names that are found.
        """
        match = _OF_FILE.match(typed)
        library = match[1] if match is not None else ""
        typed = typed[match.end() :] if match is not None else typed
        if "\n" in typed:
            return []
        lines = self._folded if typed == typed.lower() else self._raw
        exact = sorted(self._of(library, lines.exact(typed)), key=self._rank.__getitem__)
        begins = islice(self._of(library, lines.beginning(typed)), limit)
        found = exact + list(begins)
        if len(found) < limit:
            found += islice(self._of(library, lines.holding(typed)), limit - len(found))
        return [self._names[index] for index in found[:limit]]

    def _of(self, library: str, found: Iterator[int]) -> Iterator[int]:
        """Leave the names of one file, which is given without its folder."""
        if not library:
            return found
        names = self._names
        return (at for at in found if names[at][2].path.rpartition("/")[2] == library)


class _SearchedLines:
    """Lines as one text, which is searched at the speed of memory."""

    def __init__(self, lines: list[str]) -> None:
        self._text = "\n".join(["", *lines, ""])
        self._starts = list(accumulate((len(line) + 1 for line in lines), initial=1))

    def exact(self, typed: str) -> Iterator[int]:
        """Lines that are the text."""
        return (line for line, _ in self._each(f"\n{typed}\n", 1))

    def beginning(self, typed: str) -> Iterator[int]:
        """Lines that begin with the text and go on."""
        text, end = self._text, len(typed)
        for line, at in self._each(f"\n{typed}", 1):
            if text[at + end] != "\n":
                yield line

    def holding(self, typed: str) -> Iterator[int]:
        """Lines that hold the text, but not at their beginning."""
        for line, at in self._each(typed, 0):
            if at != self._starts[line] and not self._text.startswith(typed, self._starts[line]):
                yield line

    def _each(self, typed: str, skipped: int) -> Iterator[tuple[int, int]]:
        """Each line with the text, once, and where in all of them it is found.

        Args:
            typed: the text.
            skipped: letters in front that belong to the line before.
        """
        find, starts, last = self._text.find, self._starts, len(self._starts) - 1
        at = find(typed)
        while at >= 0:
            line = bisect_right(starts, at + skipped) - 1
            if line >= last:
                return
            if line >= 0:
                yield line, at + skipped
            at = find(typed, starts[line + 1] - skipped)
