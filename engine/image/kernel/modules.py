"""Kernel modules laid out: sections at addresses, relocated against a kernel, with names.

Source: kernel/module/main.c (layout_sections, simplify_symbols) and kallsyms.c. A module is an
object file; what the kernel's loader makes of it becomes an ELF file of its own here, so that it
is read as any image.
"""

import struct
from array import array
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine import arch as architectures
from engine.arch.kernelmodules import ModuleLinker
from engine.errors import ImageError
from engine.image.headers import PF_R, PF_W, PF_X, Buffer
from engine.image.kernel.kallsyms import KernelSymbols
from engine.image.kernel.kernelelf import (
    MadeSection,
    MadeSegment,
    elf_of,
    sections_of,
    with_symbols,
)
from engine.image.kernel.kernelimage import KernelImage

STUBS: Final = ".kprobe_tui.stubs"
"""Section of functions that return 0, each named as what it stands for."""

_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELA: Final = struct.Struct("<QQQ")
_NOBITS, _SYMTAB, _RELA_TYPE, _PROGBITS = 8, 2, 4, 1
_WRITE, _ALLOC, _EXEC = 1, 2, 4
_PAGE: Final = 4096
_COMMON, _ABS, _UNDEFINED = 0xFFF2, 0xFFF1, 0
_MASK: Final = (1 << 64) - 1
_SIZE_MAX: Final = 256 << 20
_INIT: Final = (".init", ".exit")
_LOCAL_NAMES: Final = ("$", ".L")


class _ModuleSymbol(Struct, frozen=True):
    name: str
    info: int
    section: int
    value: int


class ModuleFile:
    """An object file that is a kernel module.

    Attributes:
        name: of the file, for messages.
        unresolved: names that it imports and nobody exports, sorted.
    """

    def __init__(
        self,
        data: Buffer,
        name: str,
        kernel: KernelImage | None,
        loaded: Sequence[KernelImage] = (),
    ) -> None:
        """Read its tables.

        Args:
            data: the unpacked file.
            name: of it.
            kernel: whose names it imports; None = every import is a stub.
            loaded: modules that were loaded before, whose names it may import, too.

        Raises:
            ImageError: it is damaged, or no module for a machine that is supported.
        """
        self.name = name
        self.unresolved: list[str] = []
        self._data = data
        self._kernel = kernel
        self._loaded = loaded
        self._sections = [MadeSection("", 0, 0, 0, 0, 0), *sections_of(data, name)]
        for section in self._sections:
            stored = 0 if section.kind == _NOBITS else section.size
            if section.offset + stored > len(data) or section.size > _SIZE_MAX:
                raise ImageError(
                    f"{name}: section {section.name}: {section.size} bytes at"
                    f" {section.offset:#x} do not fit the file: is it cut short?"
                )
        (self._machine,) = struct.unpack_from("<H", data, 18)
        arch = architectures.for_elf(self._machine, 64, "little")
        if arch is None or arch.kernel_modules is None:
            raise ImageError(f"{name}: modules for machine {self._machine} are not supported")
        self._linker: ModuleLinker = arch.kernel_modules()
        self._symbols = self._read_symbols()

    def laid_out(self) -> bytes:
        """The module as an ELF file: placed, relocated, with names.

        Raises:
            ImageError: a relocation is damaged or of a kind that is not known.
        """
        kernel = self._kernel.symbol("_stext") if self._kernel is not None else None
        first = self._linker.base(kernel or 1 << 63)
        for module in self._loaded:
            first = max(first, -(-module.elf.high // _PAGE) * _PAGE + _PAGE)
        addresses, size = self._placed(first)
        base = min(addresses.values(), default=0)
        stubs_at = base + size
        imports, stubs = self._imports(stubs_at)
        memory = self._contents(addresses)
        values = [self._value(symbol, addresses, imports) for symbol in self._symbols]
        self._relocate(memory, addresses, values)
        return self._made(addresses, memory, base, stubs_at, stubs, values)

    # -- reading -----------------------------------------------------------------------

    def _bytes(self, section: MadeSection) -> bytes:
        return self._data[section.offset : section.offset + section.size]

    def _read_symbols(self) -> list[_ModuleSymbol]:
        table = next((s for s in self._sections if s.kind == _SYMTAB), None)
        if table is None or not 0 < table.link < len(self._sections):
            raise ImageError(f"{self.name}: no symbol table: a module without one cannot load")
        strings = self._bytes(self._sections[table.link])
        rows = _SYMBOL.iter_unpack(self._bytes(table)[: table.size // _SYMBOL.size * _SYMBOL.size])
        found = []
        for title, info, _, section, value, _ in rows:
            end = strings.find(b"\0", title)
            if end < 0:
                raise ImageError(f"{self.name}: .symtab: a name at {title:#x} has no end")
            text = strings[title:end].decode("utf-8", "replace")
            found.append(_ModuleSymbol(text, info, section, value))
        return found

    # -- layout ------------------------------------------------------------------------

    def _placed(self, base: int) -> tuple[dict[int, int], int]:
        """Addresses of sections by number, and bytes of all: text, then read-only, then data."""
        groups = (_EXEC, 0, _WRITE)
        addresses: dict[int, int] = {}
        at = base
        for init in (False, True):
            for kind in groups:
                for number, section in enumerate(self._sections):
                    flags = section.flags
                    if not flags & _ALLOC or section.name.startswith(_INIT) is not init:
                        continue
                    if (_EXEC if flags & _EXEC else flags & _WRITE) != kind:
                        continue
                    at = -(-at // 64) * 64
                    addresses[number] = at
                    at += section.size
                at = -(-at // _PAGE) * _PAGE
        if at - base > _SIZE_MAX:
            raise ImageError(f"{self.name}: its sections take {at - base} bytes")
        return addresses, at - base

    def _imports(self, stubs_at: int) -> tuple[dict[str, int], list[str]]:
        """Addresses of imported names, and those that are stubs."""
        found: dict[str, int] = {}
        stubs: list[str] = []
        exporting = [] if self._kernel is None else [self._kernel, *self._loaded]
        for symbol in self._symbols:
            if symbol.section != _UNDEFINED or not symbol.name or symbol.name in found:
                continue
            known = (image.names.find(symbol.name) for image in exporting)
            address = next((each for each in known if each is not None), None)
            if address is None and symbol.info >> 4 == 2:  # weak
                address = 0
            if address is None:
                address = stubs_at + 16 * len(stubs)
                stubs.append(symbol.name)
            found[symbol.name] = address
        self.unresolved = sorted(stubs)
        return found, stubs

    def _value(
        self, symbol: _ModuleSymbol, addresses: dict[int, int], imports: dict[str, int]
    ) -> int:
        if symbol.section == _UNDEFINED:
            return imports.get(symbol.name, 0)
        if symbol.section == _ABS:
            return symbol.value
        return addresses.get(symbol.section, 0) + symbol.value & _MASK

    def _contents(self, addresses: dict[int, int]) -> dict[int, bytearray]:
        return {
            number: bytearray(section.size)
            if section.kind == _NOBITS
            else bytearray(self._bytes(section))
            for number, section in enumerate(self._sections)
            if number in addresses
        }

    def _relocate(
        self, memory: dict[int, bytearray], addresses: dict[int, int], values: list[int]
    ) -> None:
        relocate = self._linker.relocate
        for section in self._sections:
            if section.kind != _RELA_TYPE or section.target not in memory:
                continue
            target, base = memory[section.target], addresses[section.target]
            rows = self._bytes(section)
            for at, info, addend in _RELA.iter_unpack(rows[: len(rows) // 24 * 24]):
                number, kind = info >> 32, info & 0xFFFFFFFF
                if number >= len(values) or at + 4 > len(target):
                    raise ImageError(
                        f"{self.name}: {section.name}: a relocation of symbol {number} at"
                        f" {at:#x} is outside of the module"
                    )
                if not relocate(kind, target, at, base + at, values[number] + addend):
                    raise ImageError(
                        f"{self.name}: {section.name}: relocation {kind} at {at:#x} is of no"
                        " kind that the kernel's loader knows"
                    )

    # -- the file ----------------------------------------------------------------------

    def _made(
        self,
        addresses: dict[int, int],
        memory: dict[int, bytearray],
        base: int,
        stubs_at: int,
        stubs: list[str],
        values: list[int],
    ) -> bytes:
        order = sorted(addresses, key=addresses.__getitem__)
        body = bytearray(stubs_at - base)
        sections, spans = [], []
        for number in order:
            section, at = self._sections[number], addresses[number] - base
            body[at : at + section.size] = memory[number]
            kind = _PROGBITS if section.kind == _NOBITS else section.kind
            sections.append(
                MadeSection(section.name, kind, section.flags, at + base, at, section.size)
            )
            spans.append((at, at + section.size, section.flags))
        code = self._linker.stub.ljust(16, b"\0") * len(stubs)
        if stubs:
            flags = _ALLOC | _EXEC
            sections.append(MadeSection(STUBS, _PROGBITS, flags, stubs_at, len(body), len(code)))
            spans.append((len(body), len(body) + len(code), flags))
            body += code
        for number, section in enumerate(self._sections):
            if number and number not in addresses and section.kind == _PROGBITS:
                body += bytes(-len(body) % 8)
                sections.append(
                    MadeSection(section.name, _PROGBITS, 0, 0, len(body), section.size)
                )
                body += self._bytes(section)
        front, placed = elf_of(self._machine, _segments(spans, base), sections)
        symbols = self._kallsyms(addresses, values, stubs_at, stubs)
        return b"".join(with_symbols([front, bytes(body)], placed, symbols))

    def _kallsyms(
        self, addresses: dict[int, int], values: list[int], stubs_at: int, stubs: list[str]
    ) -> KernelSymbols:
        """The names that the loader keeps: of functions and data, not of sections."""
        rows = [(stubs_at + 16 * number, "T", name) for number, name in enumerate(stubs)]
        for symbol, value in zip(self._symbols, values, strict=True):
            named = symbol.name and not symbol.name.startswith(_LOCAL_NAMES)
            if not named or symbol.info & 15 in (3, 4) or symbol.section not in addresses:
                continue
            section = self._sections[symbol.section]
            letter = "r"
            if section.flags & _EXEC:
                letter = "t"
            elif section.flags & _WRITE:
                letter = "b" if section.kind == _NOBITS else "d"
            if symbol.info >> 4:
                letter = letter.upper() if symbol.info >> 4 == 1 else "w"
            rows.append((value, letter, symbol.name))
        rows.sort(key=lambda row: row[0])
        letters = "".join(letter for _, letter, _ in rows).encode()
        return KernelSymbols(
            array("Q", [row[0] for row in rows]), letters, [row[2] for row in rows]
        )


def _segments(spans: list[tuple[int, int, int]], base: int) -> list[MadeSegment]:
    """Segments of whole pages, each with the rights of the sections in it."""
    found: list[tuple[int, int, int]] = []
    for low, high, flags in spans:
        rights = PF_R | (PF_X if flags & _EXEC else 0) | (PF_W if flags & _WRITE else 0)
        start, end = low // _PAGE * _PAGE, high
        if found and (start < found[-1][1] or found[-1][2] == rights):
            found[-1] = found[-1][0], max(found[-1][1], end), found[-1][2] | rights
        else:
            found.append((start, end, rights))
    return [
        MadeSegment(rights, low, base + low, high - low, high - low) for low, high, rights in found
    ]
