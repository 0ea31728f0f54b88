"""The text of an image as a running kernel has it, patched when it is read."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from mmap import mmap

from engine.arch.kernelsites import TextPatch
from engine.image.kernel.columnfile import Column, ColumnSet
from engine.image.kernel.kernelimage import KernelImage


class LiveText:
    """The text of an image as a running kernel has it: the file's, patched when it is read."""

    def __init__(
        self, image: KernelImage, text: Sequence[tuple[int, int]], patches: ColumnSet
    ) -> None:
        """Take patches.

        Args:
            image: whose text it is.
            text: the [start, end) of its parts, sorted.
            patches: made at boot, see `patch_columns`.
        """
        self._image = image
        self._text = text
        self._starts = patches.numbers("addresses")
        self._offsets = patches.numbers("offsets")
        self._after = patches.numbers("after")
        self._causes = patches.numbers("causes")
        self._names = patches.bytes("names").decode().split()

    def __len__(self) -> int:
        """Number of patches."""
        return len(self._starts)

    def parts(self) -> Iterator[tuple[int, bytes]]:
        """Address and live bytes of each part."""
        for low, high in self._text:
            yield low, self.read(low, high - low)

    def read(self, address: int, size: int) -> bytes:
        """Live bytes; those of the file where it is no text."""
        data = self._image.read(address, size)
        starts = self._starts
        end = address + len(data)
        at = bisect_left(starts, address)
        while at and self._end(at - 1) > address:
            at -= 1
        if at == len(starts) or starts[at] >= end:
            return data
        live = bytearray(data)
        self._patch(live, address, at, end)
        return bytes(live)

    def patch(self, memory: bytearray | mmap, low: int, at: int, size: int) -> None:
        """Write patches into a copy of the file.

        Args:
            memory: the copy of the file.
            low: an address.
            at: the place of that in the copy.
            size: bytes from there on that may be patched.
        """
        starts = self._starts
        first, last = bisect_left(starts, low), bisect_left(starts, low + size)
        after = self._after.tobytes()
        places = starts[first:last].tolist()
        offsets = self._offsets[first : last + 1].tolist()
        shift = at - low
        for start, begin, end in zip(places, offsets, offsets[1:], strict=False):
            place = start + shift
            memory[place : place + end - begin] = after[begin:end]

    def _end(self, number: int) -> int:
        return self._starts[number] + self._offsets[number + 1] - self._offsets[number]

    def _patch(self, live: bytearray, address: int, at: int, end: int) -> None:
        starts, offsets, after = self._starts, self._offsets, self._after
        size = len(live)
        while at < len(starts) and (start := starts[at]) < end:
            code = after[offsets[at] : offsets[at + 1]]
            low = start - address
            high = low + len(code)
            if low < 0 or high > size:
                code = code[max(0, -low) : len(code) - max(0, high - size)]
                low, high = max(0, low), min(high, size)
            live[low:high] = code
            at += 1

    def patches_in(self, low: int, high: int) -> Iterator[TextPatch]:
        """The patches that begin in [low, high)."""
        first, last = bisect_left(self._starts, low), bisect_left(self._starts, high)
        for number in range(first, last):
            start = self._starts[number]
            after = self._after[self._offsets[number] : self._offsets[number + 1]].tobytes()
            before = self._image.read(start, len(after))
            yield TextPatch(start, before, after, self._names[self._causes[number]])


def patch_columns(patches: Iterable[TextPatch]) -> dict[str, Column]:
    """Patches as columns, sorted: where, what, and by which table."""
    addresses, offsets, after = array("Q"), array("I", (0,)), bytearray()
    causes = array("B")
    names: dict[str, int] = {}
    for patch in sorted(patches):
        addresses.append(patch.address)
        after += patch.after
        offsets.append(len(after))
        causes.append(names.setdefault(patch.cause, len(names)))
    return {
        "addresses": addresses,
        "offsets": offsets,
        "after": after,
        "causes": causes,
        "names": " ".join(names).encode(),
    }
