"""Names of a kernel that come with it: from a System.map, or the symbol table of its vmlinux."""

import re
from array import array
from bisect import bisect_left
from typing import Final

from engine.errors import ImageError
from engine.image.elf import ElfImage
from engine.image.kernel.kallsyms import KernelSymbols
from engine.image.kernel.kernelelf import sections_of
from engine.image.kernel.recognition import mapped

_LINE: Final = re.compile(rb"([0-9a-f]{8,16}) ([A-Za-z?]) (\S{1,4096})\r?\n")
_SYMTAB: Final = 2
_ROW: Final = 24
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1
_NAMELESS: Final = (3, 4)  # sections and files
_LEAST: Final = 100
_SAMPLE: Final = 64
_FITTING: Final = 0.9


def read_system_map(path: str) -> KernelSymbols:
    """The names in a System.map, sorted by address.

    Raises:
        ImageError: it cannot be read, or has no names.
    """
    try:
        data, _ = mapped(path)
    except (OSError, ValueError) as error:
        raise ImageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    rows = [(int(a, 16), t, n) for a, t, n in _LINE.findall(data)]
    if len(rows) < _LEAST:
        raise ImageError(
            f"{path}: no System.map: {len(rows)} lines are ADDRESS TYPE NAME (distributions put"
            " the real one beside the debug file)"
        )
    return _symbols(rows)


def symbols_of_vmlinux(elf: ElfImage) -> KernelSymbols | None:
    """The names in a vmlinux's own symbol table; None where it has none.

    Raises:
        ImageError: its section headers are damaged.
    """
    if elf.bits != 64 or elf.byteorder != "little":
        return None
    sections = sections_of(elf.buffer, elf.name)
    table = next((s for s in sections if s.kind == _SYMTAB), None)
    if table is None or not 0 < table.link <= len(sections):
        return None
    held = sections[table.link - 1]
    strings = elf.data(held.offset, held.size)
    raw = elf.data(table.offset, table.size)
    words = memoryview(raw[: len(raw) // _ROW * _ROW]).cast("Q")
    rows = []
    for first, address in zip(words[0::3].tolist(), words[1::3].tolist(), strict=True):
        info, section = first >> 32 & 0xFF, first >> 48
        title = first & 0xFFFFFFFF
        if section == _UNDEFINED or info & 15 in _NAMELESS or title >= len(strings):
            continue
        name = strings[title : strings.find(b"\0", title)]
        if not name:
            continue
        flags = sections[section - 1].flags if section <= len(sections) else 0
        letter = b"t" if flags & 4 else b"d" if flags & 1 else b"r"
        letter = b"a" if section == _ABSOLUTE else letter
        rows.append((address, letter.upper() if info >> 4 == 1 else letter, name))
    return _symbols(rows) if len(rows) >= _LEAST else None


def _symbols(rows: list[tuple[int, bytes, bytes]]) -> KernelSymbols:
    rows.sort(key=lambda row: row[0])
    return KernelSymbols(
        array("Q", [row[0] for row in rows]),
        b"".join([row[1] for row in rows]),
        [row[2].decode("utf-8", "replace") for row in rows],
    )


class GivenNames:
    """Names beside those of kallsyms, which they agree with where both have them."""

    def __init__(self, symbols: KernelSymbols, source: str) -> None:
        """Take names.

        Args:
            symbols: sorted by address.
            source: file that they come from, for messages.
        """
        self.symbols = symbols
        self.source = source
        pairs = zip(reversed(symbols.names), reversed(symbols.addresses), strict=True)
        self._first = dict(pairs)

    def find(self, name: str) -> int | None:
        """The address of the first symbol of a name."""
        return self._first.get(name)

    def fit(self, addresses: memoryview, names: list[str]) -> bool:
        """True if most of a kernel's own names are where these say.

        Args:
            addresses: of the kernel's names, sorted.
            names: the names, in the order of the addresses.
        """
        step = max(1, len(names) // _SAMPLE)
        asked = [
            (address, name)
            for address, name in zip(addresses[::step], names[::step], strict=True)
            if name in self._first
        ]
        there = sum(self._is_at(name, address) for address, name in asked)
        return there >= _FITTING * max(1, len(asked))

    def _is_at(self, name: str, address: int) -> bool:
        at = bisect_left(self.symbols.addresses, address)
        while at < len(self.symbols.addresses) and self.symbols.addresses[at] == address:
            if self.symbols.names[at] == name:
                return True
            at += 1
        return False
