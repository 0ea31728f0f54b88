"""All that looks like a near jump in a file's code, found by where it goes.

Bytes between instructions may be code that no symbol names, so each byte is taken for the
beginning of a jump. A library of 100 MB has millions of those: they are kept as numbers in arrays,
one for each 64 KiB of targets, and an array is put in order when somebody asks about its targets.
"""

import re
from array import array
from bisect import bisect_left
from collections import defaultdict
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
_PIECE: Final = 1 << 20
"""Bytes of code that are read at a time."""


class NearJumps:
    """The targets and sources of all that looks like a near jump in a file, at any byte.

    They are more than the real ones: that only refuses more.
    """

    def __init__(self, image: ElfImage) -> None:
        """Look through all of the file's code."""
        code = [segment for segment in image.load_segments if segment.flags & PF_X]
        self._low = low = min((segment.vaddr for segment in code), default=0)
        reach = max((segment.vaddr + segment.filesz for segment in code), default=0) - low
        parts: defaultdict[int, array[int]] = defaultdict(lambda: array("Q"))
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
                        parts[target >> _PART].append((target & _TARGET) << _SOURCE | base + begin)
        image.let_go()
        self._parts = dict(parts)
        self._in_order = lru_cache(maxsize=8)(self._ordered)

    def _ordered(self, part: int) -> "array[int]":
        return array("Q", sorted(self._parts.get(part, ())))

    def into(self, start: int, end: int) -> list[tuple[int, int]]:
        """(target, source) of those that go to link addresses in [start, end), in that order."""
        found: list[tuple[int, int]] = []
        low = self._low
        at, stop = max(start - low, 0), end - low
        while at < stop:
            part, inside = at >> _PART, at & _TARGET
            rows, base = self._in_order(part), low + (part << _PART)
            index = bisect_left(rows, inside << _SOURCE)
            behind = bisect_left(rows, min(stop - at + inside, 1 << _PART) << _SOURCE)
            found += [
                (base + (row >> _SOURCE), low + (row & _DISTANCE)) for row in rows[index:behind]
            ]
            at += (1 << _PART) - inside
        return found


@lru_cache(maxsize=16)
def near_jumps(image: ElfImage) -> NearJumps:
    """The near jumps of a file."""
    return NearJumps(image)
