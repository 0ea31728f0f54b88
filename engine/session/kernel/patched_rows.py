"""Live text and the file's, side by side: what a place was, what it became, and why."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.arch.machine import Insn
from engine.insn.decoder import Decoder
from engine.session.kernel.opened import OpenedKernel

CAUSES: Final = {
    "alternatives": "alternative",
    "endbr_seal": "sealed landing pad",
    "ftrace": "ftrace nop",
    "jump_labels": "jump label",
    "paravirt": "paravirtual operation",
    "retpoline_sites": "retpoline",
    "return_sites": "return thunk",
    "runtime_constants": "runtime constant",
    "smp_locks": "lock prefix",
    "static_calls": "static call",
}
"""Table by which a place is patched, to the kind of the patch in words."""

_LONGEST: Final = 1 << 20
"""Bytes of one name's text that are decoded at most in front of an address."""


class PatchedRow(Struct, frozen=True):
    """One instruction of the live text, and what the file has in its place.

    Attributes:
        live: the instruction as it runs.
        file: bytes of the file in the same place, as many.
        was: the file's instructions that begin in that place; none where one that began
            before goes on there. They may end behind it.
        kinds: of the patches that touch it, in words; none where the file has the same.
    """

    live: Insn
    file: bytes
    was: tuple[Insn, ...]
    kinds: tuple[str, ...]

    @property
    def address(self) -> int:
        """Of the place."""
        return self.live.address

    @property
    def patched(self) -> bool:
        """True if the kernel changes it at boot."""
        return self.live.raw != self.file

    @property
    def before(self) -> str:
        """The file's instructions as text, "" where they are the same."""
        return "; ".join(insn.text for insn in self.was) if self.patched else ""


def patched_rows(opened: OpenedKernel, low: int, high: int) -> Iterator[PatchedRow]:
    """A row for each instruction that begins in [low, high).

    Both texts are decoded from where names begin, as the kernel does, so that a row is the same
    whatever range it is asked with.

    Args:
        opened: the image.
        low: address of the first instruction; inside of one, the next one is the first.
        high: behind the last one's first byte.
    """
    decoder = Decoder(opened.arch)
    at = low
    while at < high:
        found = opened.names.bounds(at)
        start, end = found[1:] if found is not None else (at, high)
        if not start <= at < end:
            start, end = at, high
        start = max(start, at - _LONGEST)
        stop = min(end, high + opened.arch.insn_max)
        for row in _decoded(opened, decoder, start, stop):
            if low <= row.address < high:
                yield row
        if end <= at:
            return
        at = end


def _decoded(
    opened: OpenedKernel, decoder: Decoder, start: int, stop: int
) -> Iterator[PatchedRow]:
    """The rows of a stretch that begins with an instruction in both texts."""
    code = opened.live.read(start, stop - start)
    text = opened.image.read(start, len(code))
    patches = [
        (patch.address, patch.address + len(patch.after), CAUSES.get(patch.cause, patch.cause))
        for patch in opened.live.patches_in(start - opened.arch.insn_max, stop)
    ]
    live = list(decoder.all(start, code))
    old = live if code == text else list(decoder.all(start, text))
    begins = [insn.address for insn in old]
    first = 0
    for insn in live:
        low, high = insn.address, insn.address + insn.size
        while first < len(patches) and patches[first][1] <= low:
            first += 1
        file = text[low - start : high - start]
        kinds: dict[str, None] = {}
        if file != insn.raw:
            touching = first
            while touching < len(patches) and patches[touching][0] < high:
                kinds[patches[touching][2]] = None
                touching += 1
        was = old[bisect_left(begins, low) : bisect_left(begins, high)]
        yield PatchedRow(insn, file, tuple(was), tuple(kinds))
