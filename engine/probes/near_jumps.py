"""Near jumps in a file's code, and what looks like them, by their targets.

Bytes between instructions may be code that no symbol names, so each byte is taken for the
beginning of a jump. A library of 100 MB has millions of those: they are kept as numbers in arrays,
one for each 64 KiB of targets, and an array is put in order when somebody asks about its targets.
"""

import re
from array import array
from bisect import bisect_left
from functools import lru_cache
from typing import Final

from engine.image import ElfImage
from engine.image.headers import PF_X

_NEAR_JUMP: Final = re.compile(rb"\xe9|\x0f[\x80-\x8f]")
_REACH: Final = 4
"""Bytes of a near jump's distance."""
_LONGEST: Final = _REACH + 2
_PART: Final = 16
"""Bits of a target's place in its part of the code."""
_TARGET: Final = (1 << _PART) - 1
_SOURCE: Final = 40
"""Bits of a source's distance from the first byte of code."""
_DISTANCE: Final = (1 << _SOURCE) - 1
_LARGE: Final = 1 << 24
"""Bytes of code whose pages are given back once they were read."""
_PIECE: Final = 1 << 20
"""Bytes of code that are read at a time."""


class NearJumps:
    """Targets and sources of the near jumps of a file, and of what looks like one at any byte.

    More jumps than there are only refuse more.
    """

    def __init__(self, image: ElfImage) -> None:
        """Look through all of the file's code."""
        code = [segment for segment in image.load_segments if segment.flags & PF_X]
        self._low = low = min((segment.vaddr for segment in code), default=0)
        reach = max((segment.vaddr + segment.filesz for segment in code), default=0) - low
        parts: dict[int, array[int]] = {}
        for segment in code:
            for skip in range(0, segment.filesz, _PIECE):
                left = segment.filesz - skip
                size, base = min(_PIECE, left), segment.vaddr + skip - low
                data = image.read_vaddr(base + low, min(size + _LONGEST, left))
                for match in _NEAR_JUMP.finditer(data):
                    begin, at = match.span()
                    if begin >= size:
                        break  # the next piece has it
                    target = int.from_bytes(data[at : at + _REACH], "little", signed=True)
                    target += base + at + _REACH
                    if 0 <= target < reach:
                        part = parts.get(target >> _PART)
                        if part is None:
                            part = parts[target >> _PART] = array("Q")
                        part.append((target & _TARGET) << _SOURCE | base + begin)
                if reach > _LARGE:
                    image.let_go()
        self._parts = parts
        self._ordered: set[int] = set()

    def into(self, start: int, end: int, bias: int = 0) -> list[tuple[int, int]]:
        """(target, source) of those that go to addresses in [start, end), in that order.

        Args:
            start: the first address.
            end: behind the last one.
            bias: what is added to link addresses to get all of these.
        """
        found: list[tuple[int, int]] = []
        low = self._low + bias
        at, stop = max(start - low, 0), end - low
        while at < stop:
            part, inside = at >> _PART, at & _TARGET
            rows = self._parts.get(part)
            if rows is not None:
                if part not in self._ordered:
                    rows = self._parts[part] = array("Q", sorted(rows))
                    self._ordered.add(part)
                base = low + (part << _PART)
                index = bisect_left(rows, inside << _SOURCE)
                behind = bisect_left(rows, min(stop - at + inside, 1 << _PART) << _SOURCE)
                found += [
                    (base + (row >> _SOURCE), low + (row & _DISTANCE))
                    for row in rows[index:behind]
                ]
            at += (1 << _PART) - inside
        return found


near_jumps: Final = lru_cache(maxsize=16)(NearJumps)
"""The near jumps of a file."""
