"""One symbol section as stored: rows by number, names by offset, nothing kept.

`SymbolTable` decides what the rows mean. Where section headers are gone, the dynamic
section still leads to .dynsym, as the dynamic loader finds it.
"""

import re
import struct
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, overload

from msgspec import Struct
from msgspec.structs import replace

from engine.image import headers
from engine.image.elf import ElfImage
from engine.image.headers import Section
from engine.image.reader import DamagedError, Reader
from engine.message_text import bare_name

KINDS: Final = {0: "notype", 1: "object", 2: "func", 5: "object", 6: "tls", 10: "ifunc"}
BINDINGS: Final = {0: "local", 1: "global", 2: "weak", 10: "global"}  # 10: STB_GNU_UNIQUE
FUNCTIONS: Final = (2, 10)
SHN_ABS: Final = 0xFFF1
_TLS: Final = 6
_SHT_PROGBITS: Final = 1
_NAMELESS: Final = (".debug_", ".zdebug_", ".gnu_debug", ".comment")
"""Sections beside a program that no symbol is in."""
_HIDDEN_VERSION: Final = 0x8000
_DT_VERSYM: Final = 0x6FFFFFF0
_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_GNU_HASH = 4, 5, 6, 10, 0x6FFFFEF5
_MANGLED: Final = ("_Z", "__Z", "___Z", "_R", "$s", "_$s", "$S", "_T0", "_D")
# A back reference repeats what was said, so a few hundred bytes can demand gigabytes of
# text; of 250,000 names of LLVM one in a thousand has more than 36 of them.
_RUST_HASH: Final = re.compile(r"::h[0-9a-f]{16}$")
_RUST_NUMBER: Final = re.compile(r" \(\.(\d+|llvm\.\d+)\)$")
_MAX_REFERENCES: Final = 40
_MAX_MANGLED: Final = 8192
_REFERENCE: Final = re.compile(r"[STB][0-9A-Za-z]*_")


class Symbol(Struct, frozen=True):
    """A name for an address.

    Attributes:
        name: as in the string table, without a version suffix ("@VER", "@@VER").
        address: link address; for kind "tls" the offset in the TLS block.
        size: bytes, 0 = unknown.
        kind: "func", "ifunc" (its address is the resolver), "object", "tls", "notype", "other".
        binding: "global", "weak" or "local".
        section: index of its section header, SHN_ABS for constants, 0 for made-up names.
        default: False for an old version (name@VER) that new programs do not link to.
    """

    name: str
    address: int
    size: int
    kind: str
    binding: str
    section: int
    default: bool = True

    @property
    def demangled(self) -> str:
        """The name as the source spells it (C++, Rust, Swift, D), else `name`."""
        return demangle(self.name)

    @property
    def is_function(self) -> bool:
        """True if it is typed as code."""
        return self.kind in ("func", "ifunc")


_CLOSED: Final = re.compile(r"(?<!operator)>(?=>)")
"""A bracket that another one follows: GNU's demangler leaves a space between them."""
_OLD_RUST: Final = re.compile(r"17h[0-9a-f]{16}E")
"""Of a name of Rust's that is mangled as one of C++'s."""
_LAMBDA: Final = re.compile(r"'lambda(\d*)'(\((?:[^()]|\([^()]*\))*\))")


@lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """Demangle C++, Rust, Swift and D names; others come back unchanged."""
    if not name.startswith(_MANGLED) or len(name) > _MAX_MANGLED:
        return name
    if sum(1 for _ in _REFERENCE.finditer(name)) > _MAX_REFERENCES:
        return name
    from pydemumble import demangle as demumble  # costs 20 ms that many sessions never need

    stem, at, suffix = name.partition("@")
    plain: str = demumble(stem)
    # Old Rust names end with a hash of their crate, which some versions of the library keep; of
    # new ones those keep the number of a part. rustc's own demangler shows neither.
    plain = _RUST_HASH.sub("", plain)
    if stem.startswith("_R"):
        plain = _RUST_NUMBER.sub("", plain)
    if "'lambda" in plain:
        plain = _LAMBDA.sub(_lambda, plain)
    if ">>" in plain and not stem.startswith("_R") and not _OLD_RUST.search(stem):
        plain = _CLOSED.sub("> ", plain)
    return plain + at + suffix if plain else name


def _lambda(match: re.Match[str]) -> str:
    """A lambda as GNU's demangler writes it: "{lambda(int)#1}"."""
    number = int(match[1]) + 2 if match[1] else 1
    return f"{{lambda{match[2]}#{number}}}"


def shown_place(place: str) -> str:
    """SYMBOL+OFF as people know the place: of a C++ function its name in the source alone."""
    name, plus, offset = place.partition("+")
    plain = demangle(name)
    return place if plain == name else f"{bare_name(plain)}{plus}{offset}"


class Columns(Struct, frozen=True):
    """The fields of all rows: st_name, st_info, st_shndx, st_value, st_size."""

    names: "array[int]"
    infos: bytes
    sections: "array[int]"
    values: Sequence[int]
    sizes: Sequence[int]


def _is_apart(section: Section) -> bool:
    """True for data beside the program, such as the linker's warnings: it has no addresses."""
    beside = section.type == _SHT_PROGBITS and not section.flags & headers.SHF_ALLOC
    return beside and not section.name.startswith(_NAMELESS)


class SymbolSection:
    """A .symtab or .dynsym that lies inside the file.

    Attributes:
        count: rows, the null symbol included.
        dynamic: whether it is .dynsym.
        strings: all names, NUL-terminated.
    """

    def __init__(
        self,
        image: ElfImage,
        place: tuple[int, int],
        strings: tuple[int, int],
        versions: int | None = None,
        *,
        dynamic: bool,
        moved: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """Use the given areas of the file.

        Args:
            image: the file.
            place: offset and size of the rows.
            strings: offset and size of the names.
            versions: offset of the .gnu.version array; None without.
            dynamic: whether it is .dynsym.
            moved: of a separate debug file, see `debugfiles.moved_sections`: rows are those of
                the program then.
        """
        self._moved = moved
        self._apart = frozenset(
            number for number, section in enumerate(image.sections) if _is_apart(section)
        )
        self.dynamic = dynamic
        self._is_arm = image.machine == headers.EM_ARM
        self._form = image.layout.symbol
        self._wide = image.bits == 64
        self._order = image.layout.order
        self.rows = image.data(place[0], place[1] // self._form.size * self._form.size)
        self.rows = self.rows[: len(self.rows) // self._form.size * self._form.size]
        self.count = len(self.rows) // self._form.size
        self.strings = image.data(*strings)
        self._versions = b"" if versions is None else image.data(versions, 2 * self.count)
        self._image = image

    def columns(self) -> Columns:
        """All rows by field; slices of arrays, so that no row becomes an object."""
        raw = self.rows
        halves, words, longs = array("H"), array("I"), array("Q")
        halves.frombytes(raw)
        words.frombytes(raw)
        if self._wide:
            longs.frombytes(raw)
        if (self._order == ">") != (sys.byteorder == "big"):
            for column in (halves, words, longs):
                column.byteswap()
        if self._wide:  # name 4, info 1, other 1, section 2, value 8, size 8
            found = Columns(words[0::6], raw[4::24], halves[3::12], longs[1::3], longs[2::3])
        else:  # name 4, value 4, size 4, info 1, other 1, section 2
            found = Columns(words[0::4], raw[12::16], halves[7::8], words[1::4], words[2::4])
        if self._apart:
            apart = self._apart
            kept = array("H", (0 if number in apart else number for number in found.sections))
            found = replace(found, sections=kept)
        return found if self._moved is None else self._in_program(found, self._moved)

    def _in_program(self, rows: Columns, moved: Sequence[tuple[int, int]]) -> Columns:
        end = len(moved)
        sections = array("H", (moved[n][0] if 0 < n < end else n for n in rows.sections))
        values = rows.values
        if any(shift for _, shift in moved):
            shifts = [
                moved[number][1] if 0 < number < end and info & 15 != _TLS else 0
                for number, info in zip(rows.sections, rows.infos, strict=True)
            ]
            values = [value + shift for value, shift in zip(values, shifts, strict=True)]
        return Columns(rows.names, rows.infos, sections, values, rows.sizes)

    def raw_name(self, offset: int) -> bytes:
        """The bytes of the name at an offset; b"" outside the table."""
        stop = self.strings.find(b"\0", offset)
        return self.strings[offset:stop] if stop >= 0 else b""

    def symbol(self, index: int) -> Symbol:
        """Build the symbol of one row."""
        fields = self._form.unpack_from(self.rows, index * self._form.size)
        if self._wide:
            name, info, _, shndx, value, size = fields
        else:
            name, value, size, info, _, shndx = fields
        text = headers.text(self.raw_name(name))
        stem, at, version = text.partition("@")
        default = not at or version.startswith("@")
        if len(self._versions) >= 2 * index + 2:
            word = struct.unpack_from(self._order + "H", self._versions, 2 * index)[0]
            default = default and not word & _HIDDEN_VERSION
        kind = KINDS.get(info & 15, "other")
        if self._is_arm and info & 15 in FUNCTIONS:  # bit 0 says Thumb, not where
            value &= ~1
        binding = BINDINGS.get(info >> 4, "local")
        shndx = 0 if shndx in self._apart else shndx
        if self._moved is not None and 0 < shndx < len(self._moved):
            shndx, shift = self._moved[shndx]
            value += shift if kind != "tls" else 0
        return Symbol(stem or text, value, size, kind, binding, shndx, default)

    def written_name(self, index: int) -> str:
        """The name of one row with all that stands behind it."""
        return headers.text(
            self.raw_name(self._form.unpack_from(self.rows, index * self._form.size)[0])
        )

    def version(self, index: int) -> str:
        """The version of one row: of NAME@VER in a static table, of .gnu.version in .dynsym."""
        _, at, written = self.written_name(index).partition("@")
        if at:
            return written.removeprefix("@")
        if len(self._versions) < 2 * index + 2:
            return ""
        word: int = struct.unpack_from(self._order + "H", self._versions, 2 * index)[0]
        from engine.image.versions import version_names  # few names have one

        return self._image.once(version_names).get(word & ~_HIDDEN_VERSION, "")

    def named(self, name: bytes) -> list[int]:
        """Rows whose name is `name`, with or without a version, without reading all rows.

        Names may be the tail of longer ones (linkers merge "read" into "__read"), so every
        occurrence in the string table is a candidate offset.
        """
        offsets = {o for end in (b"\0", b"@") for o in self._occurrences(name + end)}
        if not offsets:
            return []
        if len(offsets) <= 4:
            found: list[int] = []
            step = self._form.size
            for offset in offsets:
                pattern = struct.pack(self._order + "I", offset)
                at, misses = self.rows.find(pattern), 0
                while at >= 0 and misses < 256:
                    misses += at % step != 0
                    if at % step == 0:
                        found.append(at // step)
                    at = self.rows.find(pattern, at + 1)
                if at >= 0:
                    break  # a small offset is everywhere in the rows: read them instead
            else:
                return sorted(found)
        return [row for row, offset in enumerate(self.columns().names) if offset in offsets]

    def _occurrences(self, name: bytes) -> Iterator[int]:
        at = self.strings.find(name)
        while at >= 0:
            yield at
            at = self.strings.find(name, at + 1)


class LazySymbols(Sequence[Symbol]):
    """A list of symbols that are built when they are looked at."""

    def __init__(self, refs: list[int], build: Callable[[int], Symbol]) -> None:
        """Hold what `build` turns into a symbol."""
        self._refs = refs
        self._build = build

    def __len__(self) -> int:
        return len(self._refs)

    @overload
    def __getitem__(self, index: int) -> Symbol: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Symbol]: ...
    def __getitem__(self, index: int | slice) -> Symbol | Sequence[Symbol]:
        if isinstance(index, slice):
            return LazySymbols(self._refs[index], self._build)
        return self._build(self._refs[index])


def static_symbols(
    image: ElfImage,
    problem: Callable[[str], None],
    moved: Sequence[tuple[int, int]] | None = None,
) -> SymbolSection | None:
    """The .symtab of an image, if it has one that can be read.

    Args:
        image: the program, or its separate debug file.
        problem: is told what cannot be read.
        moved: where the sections of a separate debug file are in the program.
    """
    return _from_section(image, headers.SHT_SYMTAB, problem, moved)


def dynamic_symbols(image: ElfImage, problem: Callable[[str], None]) -> SymbolSection | None:
    """The .dynsym of an image, by its section or else by its dynamic section."""
    found = _from_section(image, headers.SHT_DYNSYM, problem)
    if found is not None or image.sections:
        return found
    try:
        return _from_dynamic(image)
    except DamagedError as error:
        problem(f"dynamic symbols: {error}")
        return None


def _from_section(
    image: ElfImage,
    kind: int,
    problem: Callable[[str], None],
    moved: Sequence[tuple[int, int]] | None = None,
) -> SymbolSection | None:
    table = next((s for s in image.sections if s.type == kind and s.size), None)
    if table is None:
        return None
    expected = image.layout.symbol.size
    if table.entsize != expected:
        problem(f"section {table.name}: entries of {table.entsize} bytes, must be {expected}")
        return None
    if table.offset + table.size > image.size or not 0 < table.link < len(image.sections):
        problem(f"section {table.name}: outside the file or without names")
        return None
    strings = image.sections[table.link]
    versions: Section | None = None
    if kind == headers.SHT_DYNSYM:
        versions = next((s for s in image.sections if s.type == headers.SHT_GNU_VERSYM), None)
    return SymbolSection(
        image,
        (table.offset, table.size),
        (strings.offset, strings.size),
        versions.offset if versions else None,
        dynamic=kind == headers.SHT_DYNSYM,
        moved=moved,
    )


def _from_dynamic(image: ElfImage) -> SymbolSection | None:
    table = image.file_offset(image.dynamic_value(_DT_SYMTAB) or 0)
    strings = image.file_offset(image.dynamic_value(_DT_STRTAB) or 0)
    if table is None or strings is None:
        return None
    order = image.layout.order
    count = 0
    if (place := image.file_offset(image.dynamic_value(_DT_HASH) or 0)) is not None:
        count = Reader(image.buffer, place + 4, image.size, order).uint(4)
    elif (place := image.file_offset(image.dynamic_value(_DT_GNU_HASH) or 0)) is not None:
        count = _count_gnu_hash(Reader(image.buffer, place, image.size, order), image.bits // 8)
    size = min(count * image.layout.symbol.size, image.size)
    names = (strings, image.dynamic_value(_DT_STRSZ) or 0)
    versions = image.file_offset(image.dynamic_value(_DT_VERSYM) or 0)
    return SymbolSection(image, (table, size), names, versions, dynamic=True)


def _count_gnu_hash(reader: Reader, word: int) -> int:
    """Number of symbols: the chain of the last bucket ends with the last symbol."""
    buckets, first, bloom, _ = (reader.uint(4) for _ in range(4))
    reader.take(bloom * word)
    table = reader.block(4 * buckets)
    last = max(struct.unpack(f"{reader.order}{buckets}I", table), default=0)
    if last < first:
        return first
    reader.take(4 * (last - first))
    while not reader.uint(4) & 1:
        last += 1
    return last + 1
