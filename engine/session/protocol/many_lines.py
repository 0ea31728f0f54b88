"""Lines of text of which there may be a million: they are compressed then, some together.

A request keeps the definitions that were given until its run is over, and they are read once.
"""

import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, overload

_FEW: Final = 10_000
"""Lines that stay as they are."""
_TOGETHER: Final = 4096
"""Lines that are compressed, and taken out again, together."""
_LEVEL: Final = 1
"""Of zlib: the quickest; lines of programs are so alike that a better one gains little."""


def many_lines(lines: Iterable[str]) -> Sequence[str]:
    """Keep lines: few of them in a tuple."""
    left = iter(lines)
    first = tuple(islice(left, _FEW))
    return first if len(first) < _FEW else PackedLines(chain(first, left))


class PackedLines(Sequence[str]):
    """Compressed lines; to go through them is quick, to pick single ones is not."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Compress lines."""
        self._pieces: list[tuple[array[int], bytes]] = []
        self._count = 0
        left = iter(lines)
        while some := list(islice(left, _TOGETHER)):
            data = "".join(some).encode(errors="surrogatepass")
            self._pieces.append((array("I", map(len, some)), zlib.compress(data, _LEVEL)))
            self._count += len(some)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        for piece in range(len(self._pieces)):
            yield from self._piece(piece)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return tuple(self)[index]
        number = range(self._count)[index]
        return self._piece(number // _TOGETHER)[number % _TOGETHER]

    def _piece(self, number: int) -> list[str]:
        sizes, data = self._pieces[number]
        text = zlib.decompress(data).decode(errors="surrogatepass")
        found: list[str] = []
        at = 0
        for size in sizes:
            found.append(text[at : at + size])
            at += size
        return found
