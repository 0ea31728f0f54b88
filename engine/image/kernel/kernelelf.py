"""A kernel image as an ELF file that has what everybody expects of one: sections and symbols.

Whoever reads ELF files (names, listings, searches, debug information) reads kernels then, too,
and need not know that a name came from kallsyms, or that a raw Image has no headers at all.
Files here are of 64 bits and little-endian, as the kernels of all architectures at hand are.
"""

import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from operator import or_
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import ImageError
from engine.image.headers import Buffer
from engine.image.kernel.kallsyms import KernelSymbols
from engine.image.kernel.recognition import ADDRESSES, LETTERS, ORDER

Piece = Buffer | memoryview
"""A part of a file."""

_REPLACED: Final = (LETTERS, ADDRESSES, ORDER, ".strtab", ".shstrtab")

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_PAGE: Final = 4096
_ET_EXEC, _PT_LOAD = 2, 1
NOBITS: Final = 8
"""Kind of a section without contents."""
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
    machine: int, segments: Sequence[MadeSegment], sections: Sequence[MadeSection]
) -> tuple[bytes, list[MadeSection]]:
    """The beginning of a file around memory that has no headers, and its sections there.

    Args:
        machine: e_machine.
        segments: all of them, by address; offsets count from the memory's beginning.
        sections: all but the first, empty one; the same.
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
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    _HEADER.pack_into(
        head, 0, ident, _ET_EXEC, machine, 1, segments[0].address if segments else 0,
        _HEADER.size, 0, 0, _HEADER.size, _SEGMENT.size, len(segments), _SECTION.size, 0, 0,
    )  # fmt: skip
    return bytes(head), [replace(s, offset=s.offset + front) for s in sections]


def with_symbols(
    pieces: Sequence[Piece], sections: Sequence[MadeSection], symbols: KernelSymbols
) -> list[Piece]:
    """The pieces of the same file with a symbol table in place of its own.

    A symbol reaches to the next one, as the kernel has it, or to the end of its section.

    Args:
        pieces: of an ELF file of 64 bits, little-endian; the first has its header.
        sections: of that file.
        symbols: sorted by address.
    """
    made = [
        replace(section, link=0)
        for section in sections
        if section.kind != _SHT_SYMTAB and section.name not in _REPLACED
    ]
    table, strings, order = _symbol_table(symbols, made)
    found = list(pieces)
    at = sum(map(len, found))
    for piece, title, kind, entry in (
        (strings, ".strtab", _SHT_STRTAB, 0),
        (table, ".symtab", _SHT_SYMTAB, _SYMBOL.size),
        (symbols.types, LETTERS, _SHT_PROGBITS, 0),
        (symbols.addresses.tobytes(), ADDRESSES, _SHT_PROGBITS, 8),
        (order, ORDER, _SHT_PROGBITS, 4),
    ):
        found.append(bytes(-at % 8))
        at += -at % 8
        link = len(made) if kind == _SHT_SYMTAB else 0
        made.append(MadeSection(title, kind, 0, 0, at, len(piece), link, entry))
        found.append(piece)
        at += len(piece)
    return with_sections(found, made)


def sections_of(data: Buffer, name: str) -> list[MadeSection]:
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


def with_sections(pieces: Sequence[Piece], sections: Sequence[MadeSection]) -> list[Piece]:
    """The pieces of the same file with these section headers at its end.

    Args:
        pieces: of it; the first has its header.
        sections: all but the first, empty one; their `link` counts from the second one.
    """
    at = sum(map(len, pieces))
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
    head = list(_HEADER.unpack_from(pieces[0]))
    head[6], head[11], head[12], head[13] = table_at, _SECTION.size, len(rows), len(rows) - 1
    rest = memoryview(pieces[0])[_HEADER.size :]
    return [_HEADER.pack(*head), rest, *pieces[1:], titles, *rows]


def _symbol_table(
    symbols: KernelSymbols, sections: Sequence[MadeSection]
) -> tuple[bytes, bytes, bytes]:
    """The contents of .symtab and .strtab, and the numbers of the symbols sorted by name."""
    addresses, names, letters = symbols.addresses, symbols.names, symbols.types
    raw = [name.encode("utf-8", "replace") for name in names]
    strings = b"\0".join([b"", *raw, b""])
    offsets = list(accumulate((len(name) + 1 for name in raw), initial=1))
    order = array("I", sorted(range(len(raw)), key=raw.__getitem__))
    del raw
    sizes = array("Q", bytes(8 * len(addresses)))
    ends = _ends(addresses)
    bindings = {
        letter: (2 if letter in _WEAK else int(chr(letter).isupper())) << 36
        for letter in set(letters)
    }
    absolute = _SHN_ABS << 48 | _OBJECT << 32
    infos = array("Q", [absolute | bindings[letter] for letter in letters])
    for number, section in enumerate(sections, 1):
        if not section.flags & _SHF_ALLOC or not section.size:
            continue
        low = bisect_left(addresses, section.address)
        end = section.address + section.size
        high = bisect_left(addresses, end)
        kind = _FUNC if section.flags & _SHF_EXEC else _OBJECT
        place = number << 48 | kind << 32
        for at in range(low, high):
            infos[at] = place | bindings[letters[at]]
            sizes[at] = min(ends[at], end) - addresses[at]
    table = array("Q", bytes(_SYMBOL.size * (len(addresses) + 1)))
    table[3::3], table[4::3] = array("Q", map(or_, infos, offsets)), addresses
    table[5::3] = sizes
    if sys.byteorder != "little":
        table.byteswap()
    return table.tobytes(), strings, order.tobytes()


def _ends(addresses: "array[int]") -> list[int]:
    """The next other address behind each."""
    ends: list[int] = [0] * len(addresses)
    following = beyond = 1 << 64
    for number in range(len(addresses) - 1, -1, -1):
        address = addresses[number]
        if address != following:
            beyond, following = following, address
        ends[number] = beyond
    return ends
