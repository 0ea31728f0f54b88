"""The guest's memory as far as a front end has been told of it, page by page.

A page that was told once stays until it is told again: after each motion of the guest those
that are looked at are asked for anew, and meanwhile the old ones are shown. The last ones that
were asked for are not: who tells them tells them again when they change.
"""

from collections.abc import Callable
from typing import Final

from engine.session.protocol.commands import KEPT_READS

PAGE: Final = 4096
_KEPT: Final = 1024
"""Pages kept at most."""


class MemoryPages:
    """Pages of one process.

    Attributes:
        want: called with the address and size of pages that are looked at and not known, or as
            they were before the guest moved. The answer comes to `remember`.
        version: counts changes of what is known.
    """

    def __init__(self) -> None:
        """Nothing is known."""
        self.want: Callable[[int, int], object] = lambda address, size: None
        self.version = 0
        self._known: dict[int, bytes] = {}
        self._asked: set[int] = set()
        self._kept: dict[tuple[int, int], None] = {}

    def age(self) -> None:
        """The guest has moved: what is looked at from now on is asked for again."""
        self._asked.clear()
        for start, size in self._kept:
            self._asked.update(range(start & -PAGE, start + size, PAGE))
        self.version += 1

    def forget(self) -> None:
        """Forget all pages: the process in sight, or the files in its memory, have changed."""
        self._known.clear()
        self._kept.clear()
        self.age()

    def ask(self, start: int, size: int) -> None:
        """Have the pages of a range told, if they were not since the guest moved."""
        first, run = start & -PAGE, 0
        for page in range(first, start + size, PAGE):
            if page not in self._asked:
                self._asked.add(page)
                first, run = (page, PAGE) if not run else (first, run + PAGE)
            elif run:
                self.want(first, run)
                run = 0
        if run:
            self.want(first, run)

    def remember(
        self,
        start: int,
        size: int,
        pieces: tuple[tuple[int, bytes], ...],
        *,
        kept: bool = False,
    ) -> bool:
        """Pages have been told.

        Args:
            start: of the range that was asked for.
            size: of it; what is in no piece is not mapped.
            pieces: (address, bytes), whole pages.
            kept: they are told again when they change, as the last `KEPT_READS` ranges are.

        Returns:
            True if that is other than what was known.
        """
        before, told = self.version, dict.fromkeys(range(start & -PAGE, start + size, PAGE), b"")
        for at, data in pieces:
            for offset in range(0, len(data), PAGE):
                told[at + offset] = data[offset : offset + PAGE]
        for page, data in told.items():
            if self._known.pop(page, None) != data:
                self.version += 1
            self._known[page] = data
        if kept:
            self._kept.pop((start, size), None)
            self._kept[start, size] = None
            if len(self._kept) > KEPT_READS:
                del self._kept[next(iter(self._kept))]
        while len(self._known) > _KEPT:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._asked.discard(oldest)
        return self.version != before

    def over(self, start: int, data: bytes) -> bytes:
        """Bytes of a file with those of memory in their place, as far as they are known."""
        end, found = start + len(data), bytearray(data)
        for page in range(start & -PAGE, end, PAGE):
            known = self._known.get(page)
            if known:
                low, high = max(page, start), min(page + len(known), end)
                found[low - start : high - start] = known[low - page : high - page]
        return bytes(found)

    def stretch(self, start: int, size: int) -> bytes:
        """The bytes from an address on, up to the first that are not known."""
        found, at, end = bytearray(), start, start + size
        while at < end:
            page = at & -PAGE
            known = self._known.get(page, b"")[at - page : end - page]
            found += known
            at += len(known)
            if not known or at % PAGE:
                break
        return bytes(found)
