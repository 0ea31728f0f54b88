"""A kernel image as an ELF file that has what everybody expects of one: sections and symbols.

Whoever reads ELF files (names, listings, searches, debug information) reads kernels then, too,
and need not know that a name came from kallsyms, or that a raw Image has no headers at all.
Files here are of 64 bits and little-endian, as the kernels of all architectures at hand are.
"""

import struct
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import ImageError
from engine.image.kernel.kallsyms import KernelSymbols
from engine.image.kernel.recognition import LETTERS

_REPLACED: Final = (LETTERS, ".strtab", ".shstrtab")

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_PAGE: Final = 4096
_ET_EXEC, _PT_LOAD = 2, 1
_SHT_PROGBITS, _SHT_SYMTAB, _SHT_STRTAB = 1, 2, 3
_SHF_ALLOC, _SHF_EXEC = 2, 4
_SHN_ABS: Final = 0xFFF1
_OBJECT, _FUNC = 1, 2
_WEAK: Final = b"wWvV"


class MadeSection(Struct, frozen=True):
    """A section of a file to be made.

    Attributes:
        name: of it.
        kind: SHT_*.
        flags: SHF_*.
        address: link address, 0 for what is not loaded.
        offset: in the file.
        size: bytes.
        link: number of a section that belongs to it, 0 for none; the first one is 1.
        entry: bytes of an entry, 0 where there are none.
        target: number of the section that relocations are for.
    """

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int = 0
    entry: int = 0
    target: int = 0


class MadeSegment(Struct, frozen=True):
    """A segment of a file to be made: PF_* flags, where it comes from and goes to."""

    flags: int
    offset: int
    address: int
    stored: int
    size: int


def elf_of(
    data: bytes,
    machine: int,
    segments: Sequence[MadeSegment],
    sections: Sequence[MadeSection],
) -> bytes:
    """An ELF file around memory that has no headers.

    Args:
        data: what offsets of segments and sections count from.
        machine: e_machine.
        segments: all of them, by address.
        sections: all but the first, empty one.
    """
    front = -(-(_HEADER.size + len(segments) * _SEGMENT.size) // _PAGE) * _PAGE
    head = bytearray(front)
    for number, segment in enumerate(segments):
        _SEGMENT.pack_into(
            head,
            _HEADER.size + number * _SEGMENT.size,
            _PT_LOAD,
            segment.flags,
            segment.offset + front,
            segment.address,
            segment.address,
            segment.stored,
            segment.size,
            _PAGE,
        )
    moved = [
        MadeSection(s.name, s.kind, s.flags, s.address, s.offset + front, s.size, s.link, s.entry)
        for s in sections
    ]
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    _HEADER.pack_into(
        head, 0, ident, _ET_EXEC, machine, 1, segments[0].address if segments else 0,
        _HEADER.size, 0, 0, _HEADER.size, _SEGMENT.size, len(segments), _SECTION.size, 0, 0,
    )  # fmt: skip
    return _with_sections(bytes(head) + data, moved)


def with_symbols(data: bytes, symbols: KernelSymbols, name: str) -> bytes:
    """The same file with a symbol table in place of its own.

    A symbol reaches to the next one, as the kernel has it, or to the end of its section.

    Args:
        data: an ELF file of 64 bits, little-endian.
        symbols: sorted by address.
        name: of the file, for messages.

    Raises:
        ImageError: the file's section headers are damaged.
    """
    made = [
        replace(section, link=0)
        for section in sections_of(data, name)
        if section.kind != _SHT_SYMTAB and section.name not in _REPLACED
    ]
    table, strings = _symbol_table(symbols, made)
    body = bytearray(data)
    for piece, title, kind, entry in (
        (strings, ".strtab", _SHT_STRTAB, 0),
        (table, ".symtab", _SHT_SYMTAB, _SYMBOL.size),
        (symbols.types, LETTERS, _SHT_PROGBITS, 0),
    ):
        body += bytes(-len(body) % 8)
        link = len(made) if kind == _SHT_SYMTAB else 0
        made.append(MadeSection(title, kind, 0, 0, len(body), len(piece), link, entry))
        body += piece
    return _with_sections(bytes(body), made)


def sections_of(data: bytes, name: str) -> list[MadeSection]:
    """The sections of a file, without the first, empty one.

    Raises:
        ImageError: they are damaged.
    """
    if len(data) < _HEADER.size:
        raise ImageError(f"{name}: ELF header: the file ends after {len(data)} bytes")
    head = _HEADER.unpack_from(data)
    at, size, count, names = head[6], head[11], head[12], head[13]
    if not at:
        return []
    if size != _SECTION.size or at + count * size > len(data) or names >= max(count, 1):
        raise ImageError(
            f"{name}: section headers: {count} of {size} bytes at {at:#x} do not fit the file"
            f" ({len(data)} bytes): is it cut short?"
        )
    rows = list(_SECTION.iter_unpack(data[at : at + count * size]))
    strings = data[rows[names][4] : rows[names][4] + rows[names][5]]
    found = []
    for title, kind, flags, address, offset, size, link, target, _, entry in rows[1:]:
        text = strings[title : strings.find(b"\0", title)].decode("utf-8", "replace")
        found.append(MadeSection(text, kind, flags, address, offset, size, link, entry, target))
    return found


def _with_sections(data: bytes, sections: Sequence[MadeSection]) -> bytes:
    """A file with these section headers at its end; their `link` counts from the second one."""
    at = len(data)
    titles = b"\0".join([b"", *(s.name.encode() for s in sections), b".shstrtab", b""])
    names = MadeSection(".shstrtab", _SHT_STRTAB, 0, 0, at, len(titles))
    rows, title = [bytes(_SECTION.size)], 1
    for s in (*sections, names):
        rows.append(
            _SECTION.pack(
                title, s.kind, s.flags, s.address, s.offset, s.size, s.link, 0, 1, s.entry
            )
        )
        title += len(s.name.encode()) + 1
    titles += bytes(-(at + len(titles)) % 8)
    table_at = at + len(titles)
    head = list(_HEADER.unpack_from(data))
    head[6], head[11], head[12], head[13] = table_at, _SECTION.size, len(rows), len(rows) - 1
    return b"".join((_HEADER.pack(*head), data[_HEADER.size :], titles, *rows))


def _symbol_table(symbols: KernelSymbols, sections: Sequence[MadeSection]) -> tuple[bytes, bytes]:
    """The contents of .symtab and .strtab."""
    placed = sorted(
        (section.address, section.address + section.size, number + 1, section.flags)
        for number, section in enumerate(sections)
        if section.flags & _SHF_ALLOC and section.size
    )
    lows = [row[0] for row in placed]
    strings = "\0".join(["", *symbols.names, ""]).encode("utf-8", "replace")
    offsets, at = array("I"), 1
    for name in symbols.names:
        offsets.append(at)
        at += len(name.encode("utf-8", "replace")) + 1
    addresses = symbols.addresses
    rows = [bytes(_SYMBOL.size)]
    ends: list[int] = [0] * len(addresses)
    following = beyond = 1 << 64
    for number in range(len(addresses) - 1, -1, -1):
        address = addresses[number]
        if address != following:
            beyond, following = following, address
        ends[number] = beyond
    pack, index = _SYMBOL.pack, -1
    low = high = place = flags = 0
    for number, address in enumerate(addresses):
        if not low <= address < high:
            index = bisect_right(lows, address) - 1
            if index >= 0 and address < placed[index][1]:
                low, high, place, flags = placed[index]
            else:
                low, high, place, flags = address, address + 1, _SHN_ABS, 0
        letter = symbols.types[number : number + 1]
        binding = 2 if letter in _WEAK else int(letter.isupper())
        kind = _FUNC if flags & _SHF_EXEC else _OBJECT
        size = min(ends[number], high) - address if place != _SHN_ABS else 0
        rows.append(pack(offsets[number], binding << 4 | kind, 0, place, address, size))
    return b"".join(rows), strings
