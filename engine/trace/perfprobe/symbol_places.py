"""The symbols of a file as perf loads them: where functions without debug information are.

tools/perf/util/symbol-elf.c of Linux 6.1, dso__load_sym: functions, objects, and labels in
sections of text and data; names of C++ without their parameters. Linkage stubs are `NAME@plt`.
"""

import difflib
from functools import cached_property
from typing import Final

from msgspec import Struct

from engine.image.elf import ElfImage
from engine.image.functions import without_result
from engine.image.symbols import SymbolTable
from engine.image.symtab import Symbol, demangle
from engine.trace.perfprobe.name_patterns import Glob

_STUB: Final = "@plt"
_MOST_NEAR, _LONGEST_NEAR = 50_000, 256
_BEHIND: Final = frozenset(("", "const", "volatile", "const volatile", "&", "const &", "&&"))
"""Words behind the parameters of a function."""


class NamedPlace(Struct, frozen=True):
    """A symbol.

    Attributes:
        name: as perf shows it.
        address: link address.
        offset: in the file.
        size: bytes up to the end, or to the next symbol where none is told.
        is_function: it is typed as one.
    """

    name: str
    address: int
    offset: int
    size: int
    is_function: bool


class SymbolPlaces:
    """The symbols of one file."""

    def __init__(self, image: ElfImage) -> None:
        """Read nothing yet."""
        self._image = image

    @property
    def text_bias(self) -> int:
        """The distance from offsets to link addresses in `.text`; 0 without that section."""
        section = self._image.section(".text")
        return section.addr - section.offset if section is not None else 0

    def names(self) -> list[str]:
        """The names of all symbols, sorted."""
        return sorted(place.name for place in self._all)

    def named(self, name: str) -> int | None:
        """The link address of a symbol; None for none."""
        found = (place.address for place in self._all if place.name == name and place.address)
        return next(found, None)

    def similar(self, name: str) -> str:
        """Names that somebody may have meant, as the end of an error; "" for none."""
        if len(self._all) > _MOST_NEAR or len(name) > _LONGEST_NEAR:
            return ""
        known = {place.name for place in self._all if place.is_function}
        if name in known:
            return f"; check --lines {name} shows where probes may stand"
        close = difflib.get_close_matches(name, known, n=3)
        return f"; similar: {', '.join(close)}" if close else ""

    def matching(self, pattern: str) -> list[NamedPlace]:
        """The functions whose names match, each address once, in order."""
        glob, versions = Glob(pattern), "@" in pattern
        found: dict[int, NamedPlace] = {}
        for place in self._all:
            name = place.name if versions else place.name.partition("@")[0]
            if place.is_function and glob.matches(name):
                found.setdefault(place.address, place)
        return list(found.values())

    @cached_property
    def _all(self) -> list[NamedPlace]:
        image = self._image
        symbols = [one for one in image.once(SymbolTable) if self._counts(one)]
        symbols.sort(key=lambda symbol: symbol.address)
        found: list[NamedPlace] = []
        follower = 0
        for symbol in reversed(symbols):
            size = symbol.size or max(follower - symbol.address, 0)
            follower = symbol.address
            offset = image.file_offset(symbol.address)
            place = NamedPlace(
                _shown(symbol.name),
                symbol.address,
                symbol.address - self.text_bias if offset is None else offset,
                size,
                symbol.kind == "func",
            )
            found.append(place)
        return found[::-1]

    def _counts(self, symbol: Symbol) -> bool:
        if symbol.kind in ("func", "ifunc", "object"):
            return symbol.section != 0 or symbol.name.endswith(_STUB)  # no made-up names
        if symbol.kind != "notype" or not 0 < symbol.section < len(self._image.sections):
            return False
        name = self._image.sections[symbol.section].name
        return "text" in name or "data" in name


def _shown(name: str) -> str:
    """A name as the source spells it, without parameters and result."""
    stem, at, suffix = name.partition("@")
    plain = demangle(stem)
    if plain == stem:
        return name
    if " for " not in plain:  # vtable for X, typeinfo for X
        plain = without_result(plain)
    end = plain.rfind(")")
    if end >= 0 and plain[end + 1 :].strip() in _BEHIND:
        depth, start = 1, end
        while depth and start > 0:
            start -= 1
            depth += (plain[start] == ")") - (plain[start] == "(")
        if not depth and not plain[:start].endswith("operator"):
            plain = plain[:start]
    return f"{plain}{at}{suffix}"
