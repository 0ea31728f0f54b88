"""The windows of all instructions of a function, looked at in one pass.

A verdict on a whole program asks the conditions of a jump at each of its instructions. Most of
them hold in nearly all of a function, and windows side by side share their instructions: what
is told here of a function at once is what the rules of `jumprules` say one place after the other.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from engine.arch.jump import ArchJumps, Leaves, Movable
from engine.arch.plan import Mode
from engine.probes.jumpplace import JumpPlace
from engine.probes.site import FunctionCode, ImageCode

_KEPT: Final = 1 << 14
_BAD, _LEAVES, _STAYS = range(3)


@lru_cache(maxsize=_KEPT)
def _moves(movable: Callable[[bytes, int], Movable | str], raw: bytes) -> int:
    """Kind of move of an instruction; that it has one, and where it leads, its bytes decide."""
    moved = movable(raw, 0)
    if isinstance(moved, str):
        return _BAD
    return _STAYS if moved.leaves is Leaves.NEVER else _LEAVES


@lru_cache(maxsize=_KEPT)
def _copied(copyable: Callable[[bytes], bool], raw: bytes) -> bool:
    return copyable(raw)


class JumpWindows:
    """The instructions that a jump at each instruction of a function would overwrite.

    Attributes:
        place: the function's first instruction as the rules see it; no guest is asked.
        function: the function.
        code: its file.
        jumps: of its architecture.
        strict: whether our own rules count, too.
        starts: addresses of its instructions.
        ends: for each of them the number of the instruction behind its window; beyond the last
            one where the window is cut off.
        bounds: addresses of all instructions, and the one behind the last.
    """

    def __init__(self, place: JumpPlace, function: FunctionCode) -> None:
        """Find the windows.

        Args:
            place: any of the function; its architecture has jumps.
            function: the function around it.
        """
        self.place = place
        self.function = function
        self.code: ImageCode = place.code
        self.jumps: ArchJumps = place.jumps
        self.strict = place.mode is Mode.STRICT
        self.starts: Sequence[int] = function.starts
        self.bounds = [*function.starts, function.end]
        self.ends = self._ends()

    def _ends(self) -> list[int]:
        bounds, least = self.bounds, self.jumps.least
        count, end = len(self.starts), 0
        found: list[int] = []
        for address in self.starts:
            wanted = address + least
            while end < count and bounds[end] < wanted:
                end += 1
            found.append(end)
        return found

    def everywhere(self, wrong: bool) -> Iterable[int]:
        """All of its instructions, or none."""
        return range(len(self.starts)) if wrong else ()

    def cut_off(self, size: int) -> Iterable[int]:
        """Instructions with fewer than `size` bytes from there to the function's end."""
        first = bisect_left(self.starts, self.function.start + len(self.function.data) - size + 1)
        return range(first, len(self.starts))

    def too_large(self) -> Iterator[int]:
        """Return the instructions whose windows no jump can take."""
        bounds, most = self.bounds, self.jumps.most
        for number, (address, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            if bounds[end] - address > most:
                yield number

    def long(self) -> Iterator[int]:
        """Return the instructions whose windows have more than one instruction."""
        return (number for number, end in enumerate(self.ends) if end > number + 1)

    def branched_into(self) -> Iterator[int]:
        """The places behind which a branch of the function leads, up to the end of the jump."""
        targets, bounds, least = self.function.inward.targets, self.bounds, self.jumps.least
        count, strict = len(targets), self.strict
        at = 0
        for number, (address, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            while at < count and targets[at] <= address:
                at += 1
            if at == count:
                return
            last = address + least
            if strict:
                if end == number + 1:
                    continue
                last = max(bounds[end] - 1, last)
            if targets[at] <= last:
                yield number

    def containing(self, addresses: Iterable[int], *, behind: int = 0) -> Iterator[int]:
        """The places with one of some instructions in their windows, so many behind the first.

        One may be told twice.
        """
        ends, starts = self.ends, self.starts
        for address in addresses:
            at = bisect_left(starts, address)
            if at == len(starts) or starts[at] != address:
                continue
            number = at - behind
            while number >= 0 and ends[number] > at:
                yield number
                number -= 1

    def spanning(self, addresses: Sequence[int]) -> Iterator[int]:
        """The places in whose windows one of some sorted addresses is, behind the first byte."""
        bounds, at, count = self.bounds, 0, len(addresses)
        for number, (address, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            while at < count and addresses[at] <= address:
                at += 1
            if at == count:
                return
            if end > number + 1 and addresses[at] < bounds[end]:
                yield number

    def unmoved(self) -> Iterator[int]:
        """The places whose windows are too short, or have what cannot be moved."""
        bounds, least = self.bounds, self.jumps.least
        movable, copyable = self.jumps.movable, self.jumps.copyable
        raws, ends, strict = self.function.raws, self.ends, self.strict
        bad = leaving = len(self.starts)  # the next one that cannot be moved, or may leave
        wrong: list[int] = []
        for number in range(len(self.starts) - 1, -1, -1):
            raw, end = raws[number], ends[number]
            moves = _moves(movable, raw)
            if moves == _BAD or not (strict or _copied(copyable, raw)):
                bad = number
            elif strict and moves == _LEAVES:
                leaving = number
            if bad < end or leaving < end - 1 or bounds[end] - bounds[number] < least:
                wrong.append(number)
        return reversed(wrong)

    def asked(self, numbers: Iterable[int], check: Callable[[JumpPlace], object]) -> Iterator[int]:
        """The places of some where a rule, asked of one after the other, finds something."""
        for number in numbers:
            if check(replace(self.place, address=self.starts[number])):
                yield number
