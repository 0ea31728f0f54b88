"""Free stretches of an address space, found by size without looking at all of them."""

from bisect import bisect_left, bisect_right, insort
from typing import Final

_PAGE_BITS: Final = 12
_EXACT: Final = 64
"""Sizes of fewer pages have a class each; above them there are eight classes to an octave."""


def _class(size: int) -> int:
    pages = size >> _PAGE_BITS
    if pages < _EXACT:
        return pages
    octave = pages.bit_length()
    return _EXACT + (octave - 7) * 8 + (pages >> octave - 4 & 7)


class FreeRanges:
    """Stretches that do not touch each other, of whole pages.

    A request looks at one stretch of each class of sizes that surely fit, and at those of the
    class that may fit: with few sizes in a class its cost does not grow with their number.
    """

    def __init__(self, start: int, end: int) -> None:
        """Begin with one free stretch."""
        self._starts: list[int] = []
        self._ends: dict[int, int] = {}
        self._classes: dict[int, list[int]] = {}
        self._add(start, end)

    def all(self) -> list[tuple[int, int]]:
        """(start, end) of all stretches, by address."""
        return [(start, self._ends[start]) for start in self._starts]

    def take(self, start: int, end: int) -> bool:
        """Take a part; false if some of it is not free."""
        index = bisect_right(self._starts, start) - 1
        if index < 0:
            return False
        low = self._starts[index]
        high = self._ends[low]
        if end > high:
            return False
        if end == high and low < start:
            self._resize(low, start)
            return True
        if start == low and end < high:
            self._move(index, end)
            return True
        self._drop(index)
        if low < start:
            self._add(low, start)
        if end < high:
            self._add(end, high)
        return True

    def give(self, start: int, end: int) -> None:
        """Give back what was taken."""
        starts = self._starts
        index = bisect_left(starts, start)
        behind = index < len(starts) and starts[index] == end
        if index and self._ends[starts[index - 1]] == start:
            if behind:
                end = self._ends[end]
                self._drop(index)
            self._resize(starts[index - 1], end)
        elif behind:
            self._move(index, start)
        else:
            self._add(start, end)

    def _move(self, index: int, start: int) -> None:
        """Let a stretch begin elsewhere, between the same others."""
        old = self._starts[index]
        end = self._ends.pop(old)
        self._starts[index] = start
        self._ends[start] = end
        before, after = _class(end - old), _class(end - start)
        starts = self._classes[before]
        at = bisect_left(starts, old)
        if before == after:
            starts[at] = start
            return
        del starts[at]
        if not starts:
            del self._classes[before]
        insort(self._classes.setdefault(after, []), start)

    def _resize(self, start: int, end: int) -> None:
        """Let a stretch end elsewhere."""
        before, after = _class(self._ends[start] - start), _class(end - start)
        self._ends[start] = end
        if before != after:
            starts = self._classes[before]
            del starts[bisect_left(starts, start)]
            if not starts:
                del self._classes[before]
            insort(self._classes.setdefault(after, []), start)

    def last_before(self, address: int) -> tuple[int, int] | None:
        """(start, end) of the highest stretch that begins before an address."""
        index = bisect_left(self._starts, address) - 1
        if index < 0:
            return None
        start = self._starts[index]
        return start, self._ends[start]

    def lowest(self, size: int) -> int | None:
        """Start of the lowest stretch of at least so many bytes."""
        wanted = _class(size)
        best: int | None = None
        for kind, starts in self._classes.items():
            if kind < wanted:
                continue
            found = starts[0] if kind > wanted else self._first_fit(starts, size)
            if found is not None and (best is None or found < best):
                best = found
        return best

    def highest(self, size: int, before: int = 1 << 65) -> tuple[int, int] | None:
        """The highest stretch of at least so many bytes that begins before an address."""
        wanted = _class(size)
        best: int | None = None
        for kind, starts in self._classes.items():
            if kind < wanted:
                continue
            index = bisect_left(starts, before) - 1
            if kind == wanted:
                while index >= 0 and self._ends[starts[index]] - starts[index] < size:
                    index -= 1
            if index >= 0 and (best is None or starts[index] > best):
                best = starts[index]
        return None if best is None else (best, self._ends[best])

    def _first_fit(self, starts: list[int], size: int) -> int | None:
        return next((start for start in starts if self._ends[start] - start >= size), None)

    def _add(self, start: int, end: int) -> None:
        insort(self._starts, start)
        self._ends[start] = end
        insort(self._classes.setdefault(_class(end - start), []), start)

    def _drop(self, index: int) -> None:
        start = self._starts.pop(index)
        kind = _class(self._ends.pop(start) - start)
        starts = self._classes[kind]
        del starts[bisect_left(starts, start)]
        if not starts:
            del self._classes[kind]
