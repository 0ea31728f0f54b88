"""AArch64's `Image`: a kernel as it lies in memory, without sections or symbols.

It is position-independent: words with addresses are filled in by the kernel itself when it
starts, from the relocation records in its own data. Source: arch/arm64/kernel/head.S,
arch/arm64/kernel/pi/relocate.c, Documentation/arch/arm64/booting.rst.
"""

import re
import struct
from collections import Counter
from typing import Final

from engine.errors import ImageError
from engine.image.headers import PF_R, PF_W, PF_X, Buffer
from engine.image.kernel.kallsyms import KernelSymbols, NamelessError, read_kallsyms
from engine.image.kernel.kernelelf import MadeSection, MadeSegment, Piece, elf_of, with_symbols

_MACHINE: Final = 183
_PROGBITS, _NOTE, _NOBITS = 1, 7, 8
_WRITE, _ALLOC, _EXEC = 1, 2, 4
_BUILD_ID: Final = re.compile(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
_NOTE_SIZE: Final = 16 + 20
_VDSO_MAX: Final = 0x4000
_BTF: Final = re.compile(rb"\x9f\xeb\x01\x00\x18\x00\x00\x00")
_BTF_HEADER: Final = struct.Struct("<HBBIIIII")
_RELATIVE: Final = 0x403  # R_AARCH64_RELATIVE
_RELA: Final = struct.Struct("<QQQ")
_UPPER: Final = 0xFFFF
"""The upper half of a kernel's addresses."""
_SAMPLE: Final = 8
"""One page of so many is looked at for pointers."""
_RUN: Final = 16
"""Pointers into one place that are no accident."""
_PIE_ALIGN: Final = 0x200000
_PAGE: Final = 4096


def elf_of_raw(data: Buffer, name: str, symbols: KernelSymbols | None = None) -> list[Piece]:
    """The pieces of an ELF file of a raw Image: relocated, with sections and symbols.

    Args:
        data: the unpacked Image; it is written to where it can be.
        name: of the file, for messages.
        symbols: its names, where they are given; None = its own.

    Raises:
        NamelessError: it has none.
        ImageError: it is damaged.
    """
    (size,) = struct.unpack_from("<Q", data, 16)
    records = _Relocations(data)
    if symbols is None:
        try:
            symbols = read_kallsyms(
                data, name, base_of=records.value_at, address_of=records.address_of
            )
        except NamelessError as error:
            if 2 * len(data) > size:
                raise
            cut = f"of {size} bytes in memory {len(data)} are there: is it cut short?"
            raise NamelessError(f"{name}: Image header: {cut}") from error
        base = symbols.addresses[0] // _PIE_ALIGN * _PIE_ALIGN
    else:
        text = symbols.addresses[symbols.names.index("_stext")] if "_stext" in symbols.names else 0
        base = text // _PIE_ALIGN * _PIE_ALIGN
    memory = memoryview(data)
    if memory.readonly:
        memory = memoryview(bytearray(data))
    records.apply(memory, base)
    size = max(size, len(data)) if size < 1 << 30 else len(data)
    front, sections = _elf(data, base, size, symbols, name)
    return with_symbols([front, memory], sections, symbols)


class _Relocations:
    """The relocation records of an Image."""

    def __init__(self, data: Buffer) -> None:
        self._data = data
        self._known = 0

    def value_at(self, position: int) -> int | None:
        """The word that relocation writes to a position in the file.

        The image begins at a multiple of 2 MiB; the one record that may be asked for before
        this is known holds the first name's address, which lies at the image's beginning.
        """
        low = struct.pack("<H", position & 0xFFFF)
        pattern = re.compile(re.escape(low) + b".{6}" + struct.pack("<Q", _RELATIVE), re.DOTALL)
        for match in pattern.finditer(self._data):
            if match.start() + _RELA.size > len(self._data):
                break
            address, _, addend = _RELA.unpack_from(self._data, match.start())
            if address - position == addend // _PIE_ALIGN * _PIE_ALIGN:
                self._known = match.start()
                return int(addend)
        return None

    def address_of(self, position: int) -> int | None:
        """The link address of a position, by where pointers lead; None where it is not told.

        With RELR records the words in the file are link addresses already, and most that look
        like addresses of a kernel lie in the image.
        """
        found: Counter[int] = Counter()
        for at in range(0, len(self._data) - _PAGE, _SAMPLE * _PAGE):
            words = struct.unpack_from(f"<{_PAGE // 8}Q", self._data, at)
            found.update(word // _PIE_ALIGN for word in words if word >> 48 == _UPPER)
        if not found:
            return None
        densest = found.most_common(1)[0][0]
        reach = len(self._data) // _PIE_ALIGN + 1
        near = (c for c, count in found.items() if abs(c - densest) <= reach and count >= _RUN)
        lowest = min(near, default=None)
        return None if lowest is None else lowest * _PIE_ALIGN + position

    def apply(self, memory: memoryview, base: int) -> None:
        """Write all words that the records name."""
        if not self._known:
            return  # RELR, or no PIE: the words are in the file
        size = len(memory)
        low = high = self._known
        while low >= _RELA.size and self._is_record(low - _RELA.size):
            low -= _RELA.size
        while high + _RELA.size <= size and self._is_record(high):
            high += _RELA.size
        write = struct.Struct("<Q").pack_into
        for address, kind, addend in _RELA.iter_unpack(self._data[low:high]):
            at = address - base
            if kind == _RELATIVE and 0 <= at <= size - 8:
                write(memory, at, addend)

    def _is_record(self, at: int) -> bool:
        return self._data[at + 8 : at + 16] == b"\x03\x04\0\0\0\0\0\0"


def _elf(
    data: Buffer, base: int, size: int, symbols: KernelSymbols, name: str
) -> tuple[bytes, list[MadeSection]]:
    """The beginning of a file around the Image, and its sections there."""
    known = dict(zip(reversed(symbols.names), reversed(symbols.addresses), strict=True))
    limit = base + len(data)

    def span(first: str, last: str) -> tuple[int, int] | None:
        start, end = known.get(first), known.get(last)
        if start is None or end is None or not base <= start < end <= limit:
            return None
        return start, end

    text = span("_stext", "_etext")
    if text is None:
        raise ImageError(f"{name}: kallsyms: _stext and _etext are not among the names")
    init = span("_sinittext", "_einittext")
    sections, segments = [], []
    at = base
    for title, part in ((".text", text), (".init.text", init)):
        if part is None:
            continue
        low, high = part
        if low < at:
            raise ImageError(f"{name}: kallsyms: {title} begins inside of what is before it")
        end = min(-(-high // _PAGE) * _PAGE, limit)
        if at < low:
            before = ".image.head" if at == base else ".image.rodata"
            sections.append(_loaded(before, _WRITE, at, low, base))
        sections.append(_loaded(title, _EXEC, low, high, base))
        start = low // _PAGE * _PAGE
        if at < start:
            segments.append(MadeSegment(PF_R | PF_W, at - base, at, start - at, start - at))
        segments.append(MadeSegment(PF_R | PF_X, start - base, start, end - start, end - start))
        at = end
    if at < limit:
        sections.append(_loaded(".image.data", _WRITE, at, limit, base))
        segments.append(MadeSegment(PF_R | PF_W, at - base, at, limit - at, base + size - at))
    if size > len(data):
        flags = _ALLOC | _WRITE
        sections.append(MadeSection(".bss", _NOBITS, flags, limit, len(data), size - len(data)))
    types = _btf(data)
    if types is not None:
        sections.append(MadeSection(".BTF", _PROGBITS, 0, 0, *types))
    note = _build_id(data)
    if note is not None:
        sections.append(MadeSection(".note.gnu.build-id", _NOTE, 0, 0, note, _NOTE_SIZE))
    return elf_of(_MACHINE, segments, sections)


def _build_id(data: Buffer) -> int | None:
    """Position of the note with the kernel's build-id: the first that is not of a vDSO in it."""
    for match in _BUILD_ID.finditer(data):
        if data.rfind(b"\x7fELF", max(0, match.start() - _VDSO_MAX), match.start()) < 0:
            return match.start()
    return None


def _loaded(name: str, flags: int, low: int, high: int, base: int) -> MadeSection:
    return MadeSection(name, _PROGBITS, _ALLOC | flags, low, low - base, high - low)


def _btf(data: Buffer) -> tuple[int, int] | None:
    """Position and bytes of the types: the largest piece whose header fits the file."""
    best = None
    for match in _BTF.finditer(data):
        at = match.start()
        if at + _BTF_HEADER.size > len(data):
            break
        header = _BTF_HEADER.unpack_from(data, at)
        size = header[3] + max(header[4] + header[5], header[6] + header[7])
        if at + size <= len(data) and (best is None or size > best[1]):
            best = at, size
    return best
