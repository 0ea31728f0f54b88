"""Functions of a Go program by the table that its runtime unwinds by (pclntab).

Every program and library with Go's runtime has the table, stripped ones as well. Its form changes
with releases of Go: read here is that of Go 1.18 and later (cmd/link/internal/ld/pcln.go,
runtime/symtab.go: pcHeader, funcTab, _func). All of it is relative to the beginning of Go's code,
so that no relocation has to be done.
"""

import struct
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.image.headers import PF_X

if TYPE_CHECKING:
    from engine.image.elf import ElfImage

ASSEMBLY: Final = ".abi0"
"""Behind the names of Go's functions in assembly in the symbol table, and nowhere else."""
_TABLES: Final = (".gopclntab", ".data.rel.ro.gopclntab")
_MARKS: Final = (*_TABLES, ".go.buildinfo", ".note.go.buildid")
"""Sections that only files with Go's runtime have."""
_MAGICS: Final = (0xFFFFFFF0, 0xFFFFFFF1)
"""Of Go 1.18 and 1.20."""
_HEAD: Final = struct.Struct("<IHBB")
"""Magic, zero, least size of an instruction, size of a pointer."""
_WORDS: Final = struct.Struct("<8Q")
"""Number of functions and of files, start of the code, offsets of names, compilation units, files,
positions, functions."""
_UNITS: Final = (1, 2, 4)
_POINTER: Final = 8
_ALIGNED: Final = 8
_MOST: Final = 1 << 24
"""Functions of a program, at most; a damaged file may claim any number."""


class GoFunctions(Struct, frozen=True):
    """The table of one file.

    Attributes:
        image: the file.
        start: link address of the first of Go's functions.
        names: offset of the names in the file.
        names_size: bytes of those.
        entries: (offset of the entry's address from `start`, of its description) in turn, and
            at last the offset of the end of the code.
        table: offset of the entries in the file; descriptions are relative to it.
    """

    image: "ElfImage"
    start: int
    names: int
    names_size: int
    entries: tuple[int, ...]
    table: int

    @property
    def end(self) -> int:
        """Link address behind the last of Go's functions."""
        return self.start + self.entries[-1]

    def find(self, wanted: Collection[str]) -> dict[str, list[tuple[int, int]]]:
        """(link address, end) of all functions that have one of some names, by name.

        A function and its wrapper for another calling convention share one.
        """
        names = self.image.data(self.names, self.names_size)
        known = {at: name for name in wanted if (at := _offset(names, name)) is not None}
        found: dict[str, list[tuple[int, int]]] = {}
        entries, table = self.entries, self.table
        last = max(entries[1:-1:2], default=0) + 8
        data = self.image.data(table, last)
        unpack = struct.Struct("<I").unpack_from
        for index in range(0, len(entries) - 1, 2):
            at = entries[index + 1] + 4  # behind the entry's address
            if at + 4 > len(data):
                continue
            name = known.get(unpack(data, at)[0])
            if name is not None:
                bounds = self.start + entries[index], self.start + entries[index + 2]
                found.setdefault(name, []).append(bounds)
        return found


def go_name(symbol: str) -> str:
    """The name of a function as Go itself has it."""
    return symbol.removesuffix(ASSEMBLY)


def without_types(name: str) -> str:
    """The name of a function without the types that it is made for: "main.(*stack).push"."""
    depth, kept = 0, ""
    for letter in name:
        depth += letter == "["
        kept += "" if depth else letter
        depth -= letter == "]"
    return kept


def has_go(image: "ElfImage") -> bool:
    """True if a file has Go's runtime, of whatever release."""
    return any(image.section(name) is not None for name in _MARKS) or (
        not image.sections and go_functions(image) is not None
    )


def go_functions(image: "ElfImage") -> GoFunctions | None:
    """The table of a file; None for one that has none, or of a release that is not known.

    Sections tell where to look; a file without any, and one whose linker has merged the table
    into another section, is searched.
    """
    if image.bits != 64 or image.byteorder != "little":
        return None
    for name in _TABLES:
        section = image.section(name)
        if section is not None:
            return _read(image, section.offset, section.size)
    if image.sections and not any(image.section(name) is not None for name in _MARKS):
        return None
    for segment in image.load_segments:
        data = image.data(segment.offset, segment.filesz)
        for magic in _MAGICS:
            mark, at = magic.to_bytes(4, "little") + b"\0\0", -1
            while (at := data.find(mark, at + 1)) >= 0:
                aligned = not at % _ALIGNED
                found = _read(image, segment.offset + at, segment.filesz - at) if aligned else None
                if found is not None:
                    return found
    return None


def _read(image: "ElfImage", offset: int, size: int) -> GoFunctions | None:
    """The table at an offset of a file, None if there is none that is known."""
    head = image.data(offset, _HEAD.size + _WORDS.size)
    if len(head) < _HEAD.size + _WORDS.size:
        return None
    magic, zero, unit, pointer = _HEAD.unpack_from(head)
    if magic not in _MAGICS or zero or unit not in _UNITS or pointer != _POINTER:
        return None
    count, _, start, names, units, _, _, table = _WORDS.unpack_from(head, _HEAD.size)
    room = 8 * count + 4
    if not 0 < count < _MOST or not names <= units <= size or table + room > size:
        return None
    if not any(one.flags & PF_X and one.covers(start) for one in image.load_segments):
        return None
    data = image.data(offset + table, room)
    if len(data) < room:
        return None
    entries = struct.unpack(f"<{2 * count + 1}I", data)
    return GoFunctions(image, start, offset + names, units - names, entries, offset + table)


def _offset(names: bytes, name: str) -> int | None:
    """The offset of a name among names that end with a zero byte each."""
    text = name.encode() + b"\0"
    if names.startswith(text):
        return 0
    at = names.find(b"\0" + text)
    return None if at < 0 else at + 1
