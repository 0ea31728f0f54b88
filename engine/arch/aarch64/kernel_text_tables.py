"""Tables of AArch64 kernel images that have no symbols for them, found by their shape.

Without CONFIG_KALLSYMS_ALL only code has names. Each table is a long run of entries of one
size; what its entries point at tells it from the others: nops and branches, breakpoints,
instructions as long as their replacement. The layouts are those of include/linux/jump_label.h,
asm/extable.h, asm/alternative.h and asm-generic/bug.h.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from struct import Struct as Layout
from typing import Final

from engine.arch.kernel import KernelView
from engine.arch.kernelsites import TableShapes

_NOP: Final = 0xD503201F
_BTI: Final = (0xD503241F, 0xD503245F, 0xD503249F, 0xD50324DF)
_BRANCH_MASK, _BRANCH, _CALL = 0xFC000000, 0x14000000, 0x94000000
_BRK_MASK: Final = 0xFFE0001F
_BRK: Final = 0xD4200000
_CALLBACK: Final = 0x8000  # ARM64_CB_BIT of an alternative's feature
_IMAGE_MOST: Final = 1 << 28
_SEED: Final = 16
"""Entries in a row that make it worth while to try each."""
_FEWEST: Final = 8
"""Entries of a table that is believed: images with fewer have none worth naming."""

_BEHIND: Final = bytes(range(0xFC, 0x100))
"""Highest bytes of distances back to text, which lies before the tables."""

_UNNAMED: Final = 4
"""Functions in a row that may lack a symbol in a table of such."""
_SMALL: Final = 16

_FIVE: Final = Layout("<5I")
_PAIR: Final = Layout("<ii")
_ALTERNATIVE: Final = Layout("<iiHBB")


def image_bytes(view: KernelView, begin: int) -> bytes:
    """All bytes of an image from an address on, segment by segment as long as they adjoin."""
    parts: list[bytes] = []
    size = 0
    while size < _IMAGE_MOST:
        part = view.read(begin + size, _IMAGE_MOST - size)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


class ImageShapes(TableShapes):
    """The tables of one image, looked for all at once when the first is wanted."""

    def __init__(self, view: KernelView) -> None:
        """Nothing is looked for yet in `view`."""
        self._view = view
        self._found: dict[str, tuple[int, int]] | None = None

    def tables(self, starts: Sequence[int]) -> Mapping[str, tuple[int, int]]:
        """Name of a table to its address and size in bytes."""
        if self._found is None:
            begin, end = self._view.symbol("_stext"), self._view.symbol("_etext")
            if self._view.is_module or begin is None or end is None or begin & 3 or begin >= end:
                self._found = {}
            else:
                self._found = _TableSearch(self._view, begin, end, starts).found()
        return self._found

    def ftrace_sites(self, addresses: Sequence[int]) -> list[int]:
        """The second of the two nops at each function's start, behind a BTI.

        (arch/arm64/kernel/ftrace.c, ftrace_call_adjust: the first one becomes
        `mov x9, x30`. Kernels whose entries are calls of _mcount have those patched; since 6.3
        there may be two nops more before each function, for a pointer, whose address it is.)
        """
        start, data = self._read_text()
        starts = [self._words(address, start, data) for address in addresses]
        early = sum(map(_is_early, addresses, starts)) * 2 > len(starts)
        found = []
        for address, words in zip(addresses, starts, strict=True):
            if not words or words[0] & _BRANCH_MASK == _CALL:
                found.append(address)
                continue
            at = 2 if early else 0
            if len(words) > at and words[at] in _BTI:
                at += 1
            found.append(address + 4 * at + 4)
        return found

    def _words(self, address: int, start: int, data: bytes) -> tuple[int, ...]:
        """The instructions at an address, in text that begins at another or elsewhere."""
        at = address - start
        code = data[at : at + 20] if 0 <= at < len(data) else self._view.read(address, 20)
        return _FIVE.unpack(code) if len(code) == 20 else ()

    def _read_text(self) -> tuple[int, bytes]:
        """Address and bytes of the kernel's text."""
        start, end = self._view.symbol("_stext"), self._view.symbol("_etext")
        if start is None or end is None or self._view.is_module:
            return 0, b""
        return start, self._view.read(start, min(max(end - start, 0), _IMAGE_MOST))


def _is_early(address: int, words: Sequence[int]) -> bool:
    """True where two nops stand before a function's own two, with a BTI between them."""
    inside = words[3:5] if len(words) > 2 and words[2] in _BTI else words[2:4]
    return not address & 7 and tuple(words[:2]) == tuple(inside) == (_NOP, _NOP)


def _step(good: Callable[[int], bool], at: int, size: int) -> int:
    """Bytes that a table goes on for: one entry, or one that is odd with two good ones behind."""
    if good(at):
        return size
    return 3 * size if good(at + size) and good(at + 2 * size) else 0


class _TableSearch:
    """One image while its tables are looked for."""

    def __init__(self, view: KernelView, begin: int, end: int, starts: Sequence[int]) -> None:
        """The image from its text on.

        Args:
            view: the image.
            begin: of its text.
            end: of its text, init text not included.
            starts: addresses of all symbols, sorted.
        """
        data = image_bytes(view, begin)
        self._data = data[: len(data) & ~15]
        self._words = memoryview(self._data).cast("I")
        self._begin = begin
        self._text = end - begin
        self._init = (view.symbol("_einittext") or end) - begin
        self._starts = starts
        self._taken: list[range] = []  # positions of the tables found

    def found(self) -> dict[str, tuple[int, int]]:
        """Name of a table to its address and size in bytes."""
        tables: dict[str, tuple[int, int]] = {}
        behind = {3: _BEHIND, 7: _BEHIND}
        lengths = bytes(range(0, 0x80, 4))
        for name, size, align, bytes_at, good in (
            ("jump_labels", 16, 8, behind | dict.fromkeys((14, 15), b"\0\xff"), self._jump),
            ("alternatives", 12, 4, behind | {10: lengths, 11: lengths}, self._alternative),
            ("bugs", 12, 4, behind, self._bug),
            ("exceptions", 12, 4, behind | {8: bytes(range(1, 16)), 9: b"\0"}, self._exception),
        ):
            run = self._longest(size, align, bytes_at, good)
            if run is not None:
                tables[name] = self._begin + run[0], run[1]
                self._taken.append(range(run[0], sum(run)))
        sites = self._addresses(self._text, self._is_entry)
        if sites is not None:
            tables["ftrace"] = self._begin + sites[0], sites[1]
            names = self._addresses(sum(sites), self._is_start, first=True)
            if names is not None:
                tables["blacklist"] = self._begin + names[0], self._named(*names)
        return tables

    def _runs(
        self, begin: int, size: int, align: int, bytes_at: Mapping[int, bytes]
    ) -> Iterator[tuple[int, int]]:
        """Start and end of runs of entries that have certain bytes at certain offsets.

        Args:
            begin: position from which on.
            size: of an entry in bytes.
            align: of an entry in bytes.
            bytes_at: offset in the entry to the bytes that may stand there.
        """
        for phase in range(begin, begin + size, align):
            fits = -1
            count = max(len(self._data) - phase, 0) // size
            for offset, allowed in bytes_at.items():
                table = bytes(byte in allowed for byte in range(256))
                column = self._data[phase + offset :: size][:count].translate(table)
                fits &= int.from_bytes(column, "little")
            marks = fits.to_bytes(count, "little")
            at = 0
            while (at := marks.find(b"\1" * _SEED, at)) >= 0:
                end = marks.find(b"\0", at)
                end = count if end < 0 else end
                yield phase + at * size, phase + end * size
                at = end

    def _longest(
        self, size: int, align: int, bytes_at: Mapping[int, bytes], good: Callable[[int], bool]
    ) -> tuple[int, int] | None:
        """Position and size in bytes of the longest run of good entries."""
        best: tuple[int, int] | None = None
        tried = -1, 0
        for first, last in self._runs(self._text, size, align, bytes_at):
            seed = next(
                (at for at in range(first, last, size) if good(at) and good(at + size)), None
            )
            if seed is None or (tried[0] <= seed < tried[1] and (seed - tried[0]) % size == 0):
                continue
            start, end = seed, seed
            while step := _step(good, start - size, -size):
                start += step
            while step := _step(good, end, size):
                end += step
            tried = start, end
            if end - start >= _FEWEST * size and (best is None or end - start > best[1]):
                best = start, end - start
        return best

    def _jump(self, at: int) -> bool:
        """True for code that is a nop or a branch, and a target of the same text."""
        if at < self._text or at + 16 > len(self._data):
            return False
        code, target = _PAIR.unpack_from(self._data, at)
        code += at
        target += at + 4
        if code & 3 or target & 3 or not 0 <= code < len(self._data) - 3:
            return False
        if not 0 <= target < len(self._data) or not code or abs(code - target) > 1 << 27:
            return False
        word: int = self._words[code >> 2]
        return word == _NOP or word & _BRANCH_MASK == _BRANCH

    def _exception(self, at: int) -> bool:
        """True for an instruction of text and its fix-up, with a handler's type.

        A BUG in one of the first lines and an alternative look the same: they are found before.
        """
        if at < self._text or at + 12 > len(self._data) or any(at in run for run in self._taken):
            return False
        insn, fixup = _PAIR.unpack_from(self._data, at)
        insn += at
        fixup += at + 4
        kind = self._data[at + 8]
        if insn & 3 or fixup & 3 or not 0 < kind < 16 or self._data[at + 9]:
            return False
        return bool(0 < insn < self._text and 0 < fixup < len(self._data))

    def _bug(self, at: int) -> bool:
        """True for a breakpoint."""
        if at < self._text or at + 12 > len(self._data):
            return False
        place = at + _PAIR.unpack_from(self._data, at)[0]
        if place & 3 or not 0 < place < len(self._data) - 3:
            return False
        word: int = self._words[place >> 2]
        return word & _BRK_MASK == _BRK

    def _alternative(self, at: int) -> bool:
        """True for instructions and as many others, or for those a function makes."""
        if at < self._text or at + 12 > len(self._data):
            return False
        old, new, feature, size, replaced = _ALTERNATIVE.unpack_from(self._data, at)
        old += at
        new += at + 4
        if old & 3 or new & 3 or not size or size & 3 or feature & ~_CALLBACK > 511:
            return False
        if not 0 < old < len(self._data) or not 0 < new < len(self._data):
            return False
        return bool(replaced == (0 if feature & _CALLBACK else size))

    def _addresses(
        self, begin: int, good: Callable[[int], bool], *, first: bool = False
    ) -> tuple[int, int] | None:
        """Position and size in bytes of the longest run of addresses in text, or of the first.

        Args:
            begin: position from which on.
            good: tells whether an address may be in the table.
            first: the first run instead of the longest.
        """
        low, high = self._begin, self._begin + max(self._text, self._init)
        top = low.to_bytes(8, "little")
        bytes_at = {i: top[i : i + 1] for i in range(4, 8)}
        bytes_at[3] = bytes(range(low >> 24 & 255, (high >> 24 & 255) + 1))
        best: tuple[int, int] | None = None
        for run, end in self._runs(begin + 7 & ~7, 8, 8, bytes_at):
            start = run
            for at in (*range(run, end, 8), end):
                if at < end:
                    value = self._word(at)
                    if low <= value < high and not value & 3 and good(value):
                        continue
                if at - start >= _FEWEST * 8 and (best is None or at - start > best[1]):
                    best = start, at - start
                    if first:
                        return best
                start = at + 8
        return best

    def _named(self, start: int, size: int) -> int:
        """Bytes of a table of functions, with those in between that have no symbol.

        Behind it may begin the table of functions whose errors can be injected, whose entries
        are a function and a small number.
        """
        end = start + size
        gap = 0
        while gap <= _UNNAMED and end + 8 * gap + 8 <= len(self._data):
            value = self._word(end + 8 * gap)
            if not 0 <= value - self._begin < len(self._data) or value & 3:
                break
            gap += 1
            if self._is_start(value):
                end += 8 * gap
                gap = 0
        next_words = [self._word(end + 8 * i) for i in range(3)]
        injected = next_words[0] < _SMALL and self._is_start(next_words[1])
        return end - start - 8 * (injected and next_words[2] < _SMALL)

    def _word(self, at: int) -> int:
        """Eight bytes as a number."""
        return int.from_bytes(self._data[at : at + 8], "little")

    def _is_entry(self, address: int) -> bool:
        """True where nops, or a call of _mcount, wait for ftrace."""
        at = (address - self._begin) >> 2
        if at >= len(self._words):
            return False
        word: int = self._words[at]
        return word == _NOP or word in _BTI or word & _BRANCH_MASK == _CALL

    def _is_start(self, address: int) -> bool:
        """True for the address of a symbol."""
        i = bisect_left(self._starts, address)
        return i < len(self._starts) and self._starts[i] == address
