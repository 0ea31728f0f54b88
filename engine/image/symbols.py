"""Names of a program: which symbol an address belongs to, and where a name is.

Nothing is read before it is asked for. A name is searched as bytes in the string table,
which finds it among 250,000 without an index; addresses need the index, which is built
once, on first use. A stripped program still has functions: those of its unwind tables,
called func_0x401000 after their address.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import Final

from engine.errors import ImageError
from engine.image import cfi, debugfiles, headers, plt, symtab
from engine.image.elf import ElfImage
from engine.image.index import SymbolIndex, has_mapping_symbols
from engine.image.mangling import identifier, spellings
from engine.image.symtab import LazySymbols, Symbol, SymbolSection

_MADE_UP: Final = "func_"
_AT: Final = _MADE_UP + "0x"
_MANGLED: Final = re.compile(rb"(?:_+Z|_R|_?\$[sS])[^\0]*")
_PLT: Final = "@plt"
_BY_BINDING: Final = {"global": 0, "local": 1, "weak": 2}
_LINK_ORDER: Final = {"global": 0, "weak": 1, "local": 2}


class SymbolTable:
    """The symbols of one image: all its tables merged, linkage stubs, unwind ranges.

    The tables are .symtab, that of the separate debug file or of .gnu_debugdata, and .dynsym;
    of a stripped kernel that runs as a program, the names that it has of itself.

    Section and file symbols, undefined ones and the mapping symbols of ARM and RISC-V
    ($x, $d, ...) are left out.

    Attributes:
        image: the program or library.
    """

    def __init__(self, image: ElfImage, debug_dirs: Sequence[str] | None = None) -> None:
        """Open the tables lazily.

        Args:
            image: whose symbols these are.
            debug_dirs: folders to search for a separate debug file; None = the usual ones.
        """
        self.image = image
        self._debug_dirs = debug_dirs
        self._in_order = False
        self._has_mapping_symbols = has_mapping_symbols(image)

    # -- by name -----------------------------------------------------------------

    def find(self, name: str) -> Symbol | None:
        """The symbol a user means by `name`: the first of `find_all`."""
        found = self.find_all(name)
        return found[0] if found else None

    def find_all(self, name: str) -> list[Symbol]:
        """All symbols of that name, the most likely first.

        Order: functions, then untyped, then data; default versions before old ones;
        global, weak, local; lower address. `name` is the linker's name, NAME@VERSION or
        NAME@@VERSION (the default one) as nm writes them, NAME@plt for a linkage stub,
        func_0xADDRESS for a function of a stripped program. Only if there
        is none, it is compared with the demangled names: whole, or without parameters,
        return type and template arguments.
        """
        if not name or "\0" in name:
            return []
        found = self._stored(name)
        if not found and name.endswith(_PLT) and self._may_have(name.removesuffix(_PLT)):
            found = [symbol for symbol in self._stubs if symbol.name == name]
        if not found and "@" in name:
            found = self._versioned(*name.split("@", 1))
        if not found and name.startswith(_AT):
            made_up = self._made_up_at(_address(name[len(_MADE_UP) :]))
            found = [made_up] if made_up and made_up.name == name else []
        if not found:
            found = self._demangled(name)
        return sorted(found, key=_link_key)

    def version_behind(self, symbol: Symbol) -> str:
        """The version that the static table has behind a variable's name: "@GLIBC_2.2.5".

        Programs have it behind the variables of libraries that they hold a copy of; "" for none.
        """
        if symbol.kind != "object":
            return ""
        for table in self._tables:
            for index in () if table.dynamic else table.named(symbol.name.encode()):
                if table.symbol(index).address == symbol.address:
                    _, at, version = table.written_name(index).partition("@")
                    return f"@{version}" if at and version[:1] != "@" else ""
        return ""

    def _may_have(self, name: str) -> bool:
        """False if a symbol of the name is in no table, by a glance at the strings."""
        raw = name.encode("utf-8", "replace")
        return name.startswith(_AT) or any(raw in table.strings for table in self._tables)

    def complete(self, prefix: str, limit: int) -> list[str]:
        """Up to `limit` names that start with `prefix`, in alphabetical order."""
        at = bisect_left(self._names, prefix)
        found = self._names[at : at + max(limit, 0)]
        return [name for name in found if name.startswith(prefix)]

    def _stored(self, name: str) -> list[Symbol]:
        raw = name.encode("utf-8", "replace")
        found: dict[tuple[int, str], Symbol] = {}
        for table in self._tables:
            for index in table.named(raw):
                symbol = table.symbol(index)
                if self._is_wanted(symbol) and symbol.name == name:
                    known = found.setdefault((symbol.address, symbol.kind), symbol)
                    if symbol.default and not known.default:  # name@OLD and name@@NEW share code
                        found[symbol.address, symbol.kind] = symbol
        return list(found.values())

    def _versioned(self, stem: str, version: str) -> list[Symbol]:
        """Symbols of one version, "@VERSION" where it has to be the default one."""
        wanted = version.removeprefix("@")
        if not stem or not wanted:
            return []
        found: dict[tuple[int, str], Symbol] = {}
        for table in self._tables:
            for index in table.named(stem.encode("utf-8", "replace")):
                if table.version(index) != wanted:
                    continue
                symbol = table.symbol(index)
                fits = symbol.default or wanted == version
                if fits and symbol.name == stem and self._is_wanted(symbol):
                    found.setdefault((symbol.address, symbol.kind), symbol)
        return list(found.values())

    def _is_wanted(self, symbol: Symbol) -> bool:
        if symbol.section == 0 or symbol.kind == "other":
            return False
        return not self._has_mapping_symbols or symbol.kind != "notype" or symbol.name[:1] != "$"

    def _demangled(self, name: str) -> list[Symbol]:
        found: list[Symbol] = []
        for mangled in {raw for table in self._tables for raw in _mangled(table.strings, name)}:
            text = headers.text(mangled)
            if name in spellings(symtab.demangle(text)):
                found += self._stored(text.partition("@")[0])
        return found

    # -- by address --------------------------------------------------------------

    def at(self, address: int) -> Symbol | None:
        """The symbol that covers a link address.

        The innermost wins: of those whose [address, address + size) holds it, the one
        that starts last. A symbol without a size reaches to the next symbol in its
        section and counts only where no sized one covers. Among symbols of one start:
        functions, then untyped, then data; global, local, weak (perf's order: a strong
        name says more); fewer leading underscores; shorter size; alphabetical. A kernel has put
        its own names in such an order itself (compare_symbols() of scripts/kallsyms.c). Where no
        symbol covers, linkage stubs (NAME@plt) and then the unwind ranges of a stripped
        program answer.
        """
        sized, unsized = self._index.covering(address)
        if sized and (self._in_order or len(sized) == 1):
            return self._index.symbol(min(sized))
        if sized:
            return min(map(self._index.symbol, sized), key=_cover_key)
        found = [s for s in map(self._index.symbol, unsized) if self._reaches(s, address)]
        if found:
            return min(found, key=_cover_key)
        return self._stub_at(address) or self._made_up_at(address)

    def covering(self, address: int) -> list[Symbol]:
        """All symbols with a size that cover a link address, the one that `at` gives first."""
        sized, _ = self._index.covering(address)
        if self._in_order:
            return list(map(self._index.symbol, sorted(sized)))
        return sorted(map(self._index.symbol, sized), key=_cover_key)

    def span(self, address: int) -> tuple[Symbol | None, int, int]:
        """The symbol that covers a link address, and the [low, high) around it with that answer.

        Borders of sections and segments end it, too.
        """
        low, high = self._index.span(address)
        ends, at = self._borders, bisect_right(self._borders, address)
        borders = [(ends[max(at - 1, 0)], ends[min(at, len(ends) - 1)])] if ends else []
        at = bisect_right(self._stubs, address, key=lambda stub: stub.address)
        borders += [(s.address, s.address + s.size) for s in self._stubs[max(at - 1, 0) : at + 1]]
        if not self._index.has_static_functions:
            borders.append(cfi.span_at(self.image, address))
        for border in chain.from_iterable(borders):
            if border > address:
                high = min(high, border)
            else:
                low = max(low, border)
        return self.at(address), low, high

    @cached_property
    def _borders(self) -> list[int]:
        """Addresses at which sections and segments begin or end."""
        image = self.image
        found = {at for s in image.sections for at in (s.addr, s.addr + s.size)}
        found |= {at for s in image.load_segments for at in (s.vaddr, s.vaddr + s.memsz)}
        return sorted(found)

    def functions(self) -> Sequence[Symbol]:
        """The program's own functions, sorted by address; aliases are all in it.

        Typed functions, global untyped symbols in executable sections that no typed one
        covers (assembly), and in a stripped program the ranges of the unwind tables.
        Linkage stubs are not the program's own and are left out.
        """
        return self._functions

    def function_addresses(self) -> set[int]:
        """The addresses of the functions; none of them is made for that."""
        stored = map(self._index.address, self._function_refs)
        return {*stored, *(symbol.address for symbol in self._made_up)}

    def starts(self, low: int, high: int) -> tuple[list[int], list[int]]:
        """Addresses in [low, high) where symbols begin, each once and sorted.

        Returns:
            All of them, and those without names made up after an address (func_0x401000).
        """
        index = self._index
        refs = index.between(low, high)
        every = {index.address(ref) for ref in refs}
        if any(_AT.encode() in table.strings for table in self._tables):
            refs = [ref for ref in refs if not index.symbol(ref).name.startswith(_AT)]
        stored = {index.address(ref) for ref in refs}
        if not index.has_static_functions:
            unnamed = cfi.starts_between(self.image, low, high)
            every.update(at for at in unnamed if not any(s.holds(at) for s in self._plt))
        stubs = [stub for stub in self._stubs if low <= stub.address < high]
        every.update(stub.address for stub in stubs)
        stored.update(stub.address for stub in stubs if not stub.name.startswith(_AT))
        return sorted(every), sorted(stored)

    def __len__(self) -> int:
        """Number of distinct symbols, stubs and made-up names included."""
        index = self._index
        return len(index.refs) + len(index.elsewhere) + len(self._stubs) + len(self._made_up)

    def __iter__(self) -> Iterator[Symbol]:
        """All symbols: stored ones by address, constants and TLS, stubs, made-up ones."""
        yield from map(self._index.symbol, self._index.refs)
        yield from map(self._index.symbol, self._index.elsewhere)
        yield from self._stubs
        yield from self._made_up

    # -- the index ---------------------------------------------------------------

    @cached_property
    def _tables(self) -> tuple[SymbolSection, ...]:
        note: Callable[[str], None] = self._note
        found = [symtab.static_symbols(self.image, note)]
        debug = self._debug_file() or (self._kernel_file() if found == [None] else None)
        if debug is not None:
            moved = debugfiles.moved_sections(self.image, debug)
            found.append(symtab.static_symbols(debug, note, moved))
        found.append(self._dynamic)
        return tuple(table for table in found if table is not None)

    def _debug_file(self) -> ElfImage | None:
        """The file with the symbols that were stripped; a part of them may be left here."""
        if any(self.image.section(name) for name in (".debug_info", ".zdebug_info")):
            return None
        found = debugfiles.find_debug_file(self.image, self._debug_dirs)
        try:
            return found or debugfiles.embedded_debug_file(self.image)
        except ImageError as error:
            self.image.damage.note(str(error))
            return None

    def _kernel_file(self) -> ElfImage | None:
        """The symbols that a kernel has of itself, where it is a program that was stripped."""
        from engine.image.kernel.recognition import is_kernel  # few files are stripped

        if not is_kernel(self.image):
            return None
        from engine.image.kernel.opening import program_names  # fewer are kernels

        try:
            found = program_names(self.image)
            self._in_order = True
            return found
        except ImageError as error:
            self._note(str(error))
            return None

    @cached_property
    def _dynamic(self) -> SymbolSection | None:
        return symtab.dynamic_symbols(self.image, self._note)

    def _note(self, reason: str) -> None:
        self.image.damage.note(f"{self.image.name}: {reason}")

    @cached_property
    def _index(self) -> SymbolIndex:
        return SymbolIndex(self.image, self._tables)

    def _reaches(self, symbol: Symbol, address: int) -> bool:
        """True if nothing but distance separates a symbol without a size from an address."""
        sections = self.image.sections
        if 0 < symbol.section < len(sections):
            section = sections[symbol.section]
            return section.holds(symbol.address) and section.holds(address)
        loads = self.image.load_segments
        return any(s.covers(symbol.address) and s.covers(address) for s in loads)

    # -- functions, stubs and made-up names --------------------------------------

    @cached_property
    def _function_refs(self) -> list[int]:
        return self._index.functions(self.image)

    @cached_property
    def _functions(self) -> Sequence[Symbol]:
        refs = self._function_refs
        if not self._made_up:
            return LazySymbols(refs, self._index.symbol)
        stored = map(self._index.symbol, refs)
        return sorted([*stored, *self._made_up], key=lambda symbol: symbol.address)

    @cached_property
    def _stubs(self) -> list[Symbol]:
        dynamic = self._dynamic
        found: list[Symbol] = []
        for address, size, number, resolver in plt.stubs(self.image):
            if resolver:
                targets = map(self._index.symbol, self._index.starting(resolver))
                target = min(filter(_is_function, targets), key=_cover_key, default=None)
                name = target.name if target else f"{_MADE_UP}{resolver:#x}"
            else:
                name = dynamic.symbol(number).name if dynamic and number < dynamic.count else ""
            if name:
                found.append(Symbol(f"{name}@plt", address, size, "func", "local", 0))
        found.sort(key=lambda symbol: symbol.address)
        return found

    def jump_slot(self, name: str) -> int | None:
        """The link address through which calls of another file's function jump."""
        return self._jump_slots.get(name)

    @cached_property
    def _jump_slots(self) -> dict[str, int]:
        dynamic = self._dynamic
        if dynamic is None:
            return {}
        slots = plt.jump_slots(self.image).items()
        return {dynamic.symbol(at).name: slot for slot, at in slots if at < dynamic.count}

    def _stub_at(self, address: int) -> Symbol | None:
        at = bisect_right(self._stubs, address, key=lambda stub: stub.address) - 1
        if at >= 0 and address < self._stubs[at].address + self._stubs[at].size:
            return self._stubs[at]
        return None

    @cached_property
    def _made_up(self) -> list[Symbol]:
        if self._index.has_static_functions:
            return []
        index = self._index
        known = {index.address(ref) for ref in index.refs if index.is_function(ref)}
        return [
            _make_up(start, size)
            for start, size in cfi.function_ranges(self.image)
            if start not in known and not any(section.holds(start) for section in self._plt)
        ]

    @cached_property
    def _plt(self) -> list[headers.Section]:
        return list(plt.plt_sections(self.image))

    def _made_up_at(self, address: int) -> Symbol | None:
        """As `_made_up`, for one address and without reading all unwind records."""
        if self._index.has_static_functions:
            return None
        found = cfi.range_at(self.image, address)
        if found is None or any(section.holds(found[0]) for section in self._plt):
            return None
        return _make_up(*found)

    @cached_property
    def _names(self) -> list[str]:
        return sorted({symbol.name for symbol in self})


@lru_cache(maxsize=1024)
def _make_up(start: int, size: int) -> Symbol:
    """The symbol of a function that has none; all its places show the same."""
    return Symbol(f"{_MADE_UP}{start:#x}", start, size, "func", "local", 0)


def _mangled(strings: bytes, name: str) -> Iterator[bytes]:
    """Yield the names in a string table that may demangle to `name`.

    Itanium, Rust and Swift mangling write an identifier as its length and its letters.
    """
    word = identifier(name).encode("utf-8", "replace")
    if not word:
        for match in _MANGLED.finditer(strings):
            yield match[0]
        return
    for part in (b"%d%b" % (len(word), word), b"%d_%b" % (len(word), word)):
        at = strings.find(part)
        while at >= 0:
            start = strings.rfind(b"\0", 0, at) + 1
            stop = strings.find(b"\0", at)
            if stop < 0:
                return
            if _MANGLED.match(strings, start):
                yield strings[start:stop]
            at = strings.find(part, stop)


def _address(digits: str) -> int:
    try:
        return int(digits, 16)
    except ValueError:
        return -1


def _is_function(symbol: Symbol) -> bool:
    return symbol.is_function


def _kind_rank(symbol: Symbol) -> int:
    return 0 if symbol.is_function else 1 if symbol.kind == "notype" else 2


def _cover_key(symbol: Symbol) -> tuple[int, int, int, int, str]:
    underscores = len(symbol.name) - len(symbol.name.lstrip("_"))
    rank = _BY_BINDING[symbol.binding]
    return _kind_rank(symbol), rank, underscores, symbol.size, symbol.name


def _link_key(symbol: Symbol) -> tuple[int, bool, int, int]:
    rank = _LINK_ORDER[symbol.binding]
    return _kind_rank(symbol), not symbol.default, rank, symbol.address
