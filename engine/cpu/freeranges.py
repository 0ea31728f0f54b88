"""Free stretches of an address space, found by size without looking at all of them."""

from bisect import bisect_left, bisect_right, insort
from typing import Final

_PAGE_BITS: Final = 12
_EXACT: Final = 64
"""Sizes of fewer pages have a class each; above them there are eight classes to an octave."""

_MANY: Final = 1024
"""Stretches that may have changed before they are put into their classes, whoever asks."""


class OwnRanges:
    """The few stretches that the engine keeps for itself.

    Attributes:
        ranges: (start, end) of each, in no order.
    """

    __slots__ = ("ranges",)

    def __init__(self) -> None:
        """There are none."""
        self.ranges: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> None:
        """One more, which overlaps with none."""
        self.ranges.append((start, end))

    def remove(self, start: int, end: int) -> None:
        """Drop all that lies in a stretch."""
        self.ranges = [
            piece
            for low, high in self.ranges
            for piece in ((low, min(high, start)), (max(low, end), high))
            if piece[0] < piece[1]
        ]


def _class(size: int) -> int:
    pages = size >> _PAGE_BITS
    if pages < _EXACT:
        return pages
    octave = pages.bit_length()
    return _EXACT + (octave - 7) * 8 + (pages >> octave - 4 & 7)


class FreeRanges:
    """Stretches that do not touch each other, of whole pages.

    A request looks at one stretch of each class of sizes that surely fit, and at those of the
    class that may fit: with few sizes in a class its cost does not grow with their number. Which
    class a stretch is in is seen to by the next request: most stretches change without one.
    """

    def __init__(self, start: int, end: int) -> None:
        """Begin with one free stretch."""
        self._starts = [start]
        self._ends = {start: end}
        self._classes: dict[int, list[int]] = {}
        self._known: dict[int, int] = {}  # by start, the class that a stretch is in
        self._changed = {start}  # those that may be in the wrong one, or gone

    def all(self) -> list[tuple[int, int]]:
        """(start, end) of all stretches, by address."""
        return [(start, self._ends[start]) for start in self._starts]

    def take(self, start: int, end: int) -> bool:
        """Take a part; false if some of it is not free."""
        starts, ends = self._starts, self._ends
        index = bisect_right(starts, start) - 1
        if index < 0:
            return False
        low = starts[index]
        high = ends[low]
        if end > high:
            return False
        self._changed.add(low)
        if low < start:
            ends[low] = start
            if end < high:
                starts.insert(index + 1, end)
                ends[end] = high
                self._changed.add(end)
            return True
        del ends[low]
        if end < high:
            starts[index] = end
            ends[end] = high
            self._changed.add(end)
        else:
            del starts[index]
        return True

    def give(self, start: int, end: int) -> None:
        """Give back what was taken."""
        starts, ends = self._starts, self._ends
        index = bisect_left(starts, start)
        behind = index < len(starts) and starts[index] == end
        if behind:
            self._changed.add(end)
            end = ends.pop(end)
        if index and ends[starts[index - 1]] == start:
            if behind:
                del starts[index]
            start = starts[index - 1]
        elif behind:
            starts[index] = start
        else:
            starts.insert(index, start)
        ends[start] = end
        self._changed.add(start)
        if len(self._changed) > _MANY:
            self._settle()

    def _settle(self) -> None:
        """Put those that have changed into their classes."""
        for start in self._changed:
            end = self._ends.get(start)
            before, after = self._known.get(start), None if end is None else _class(end - start)
            if before == after:
                continue
            if before is not None:
                starts = self._classes[before]
                del starts[bisect_left(starts, start)]
                if not starts:
                    del self._classes[before]
            if after is None:
                del self._known[start]
            else:
                insort(self._classes.setdefault(after, []), start)
                self._known[start] = after
        self._changed.clear()

    def last_before(self, address: int) -> tuple[int, int] | None:
        """(start, end) of the highest stretch that begins before an address."""
        index = bisect_left(self._starts, address) - 1
        if index < 0:
            return None
        start = self._starts[index]
        return start, self._ends[start]

    def lowest(self, size: int) -> int | None:
        """Start of the lowest stretch of at least so many bytes."""
        if self._changed:
            self._settle()
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
        if self._changed:
            self._settle()
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
