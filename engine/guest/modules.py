"""The files loaded into a guest, and names for addresses."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from engine.errors import ImageError
from engine.guest.memory import Mapping, Memory
from engine.image import ElfImage
from engine.image.headers import PF_X

if TYPE_CHECKING:
    from engine.image import Lines, Symbol, SymbolTable
    from engine.image.inlines import InlinedCall, Inlines


def _symbols(image: ElfImage) -> "SymbolTable":
    from engine.image.symbols import SymbolTable  # with what it needs 3 ms: see `engine.image`

    return image.once(SymbolTable)


def _lines(image: ElfImage) -> "Lines":
    from engine.image.lines import Lines

    return image.once(Lines)


def _inlines(image: ElfImage) -> "Inlines":
    from engine.image.inlines import Inlines

    return Inlines(image, _lines(image))


class Module(Struct, dict=True):
    """An ELF file in the guest's memory.

    Attributes:
        name: guest path.
        image: the file.
        bias: what is added to a link address to get a guest address.
    """

    name: str
    image: ElfImage
    bias: int

    @cached_property
    def symbols(self) -> "SymbolTable":
        """The file's symbols, indexed at first use."""
        return _symbols(self.image)

    def line_at(self, address: int) -> tuple[str, int] | None:
        """(source file, line) of a guest address, where there is debug information."""
        return self.lines.line_at(address - self.bias)

    @cached_property
    def lines(self) -> "Lines":
        """The file's line tables, opened at first use."""
        return _lines(self.image)

    def inlined_at(self, address: int) -> "tuple[InlinedCall, ...]":
        """The inlined calls that a guest address is in, the innermost first."""
        return self.image.once(_inlines).at(address - self.bias)

    def contains(self, address: int) -> bool:
        """True if a guest address lies in its span."""
        return self.image.low <= address - self.bias < self.image.high

    def covers(self, address: int) -> bool:
        """True if a guest address lies in a segment of code."""
        link = address - self.bias
        return any(one.flags & PF_X and one.covers(link) for one in self.image.load_segments)

    def shows(self, mapping: Mapping) -> bool:
        """True if a mapping of the file has bytes where they are to be by the bias."""
        start = mapping.start - self.bias
        return any(
            segment.vaddr - segment.offset == start - mapping.offset
            and segment.vaddr < start + mapping.size
            and start < segment.vaddr + segment.memsz
            for segment in self.image.load_segments
        )

    def symbol_at(self, address: int) -> "Symbol | None":
        """The symbol that covers a guest address."""
        return self.symbols.at(address - self.bias)


class Location(Struct, frozen=True):
    """A named address.

    Attributes:
        address: guest address.
        module: what it lies in, None outside all files.
        symbol: the symbol that covers it, if any.
        offset: distance from the symbol, or from the module's first byte.
        engine: name of a place in the engine's own windows, "" elsewhere.
    """

    address: int
    module: Module | None
    symbol: "Symbol | None"
    offset: int
    engine: str = ""

    def __str__(self) -> str:
        if self.engine:
            return self.engine
        if self.symbol is not None:
            return f"{self.symbol.demangled}+{self.offset:#x}"
        if self.module is not None:
            return f"{self.module.name.rsplit('/', 1)[-1]}+{self.offset:#x}"
        return "?"


class FilesByContent(Protocol):
    """Files that are found by what is in memory, or by who has put it there."""

    def tells(self, memory: Memory) -> bool:
        """True if of memory that is of no file that is said, and not just not known."""

    def module(self, memory: Memory, mapping: Mapping | None, address: int) -> Module | None:
        """The file at an address, in a mapping or none; None where it cannot be told."""


class _Mapped(Protocol):
    """Mappings by address."""

    @property
    def mappings(self) -> Sequence[Mapping]:
        """All of them, sorted."""

    def find(self, address: int) -> Mapping | None:
        """The one at an address."""


class _Kept:
    """The mappings of files of a memory that is no more."""

    def __init__(self, mappings: Iterable[Mapping]) -> None:
        self.mappings = [one for one in mappings if one.name.startswith("/")]

    def find(self, address: int) -> Mapping | None:
        """The one at an address."""
        return next((one for one in self.mappings if one.start <= address < one.end), None)


class Modules:
    """The files in a guest's memory; libraries are found by their mappings.

    Attributes:
        main: the program.
        known: what the engine has loaded.
        engine_name: names a place in the engine's own windows.
        contents: finds files in memory that is shared; None where names tell.
        copies: the same for copies of the memory.
    """

    def __init__(self, memory: _Mapped, load: Callable[[str], ElfImage | None]) -> None:
        """Names are looked up in `memory`; `load` opens a file of the guest's tree."""
        self._memory = memory
        self._load = load
        self._loaded: dict[tuple[str, int, int], Module | None] = {}
        self.engine_name: Callable[[int], str] = lambda address: ""
        self.main: Module | None = None
        self.known: list[Module] = []
        self.contents: FilesByContent | None = None
        self.copies: FilesByContent | None = None
        self._found: list[Module] = []  # by content

    def copy(self, memory: Memory) -> "Modules":
        """The files in a copy of the memory."""
        other = Modules(memory, self._load)
        other.main, other.known = self.main, list(self.known)
        other.contents = other.copies = self.copies
        other._found = list(self._found)
        return other

    def kept(self, mappings: Iterable[Mapping] | None = None) -> "Modules":
        """The same files by mappings that may be gone soon, or are; those of now if not given."""
        there = self._memory.mappings if mappings is None else mappings
        other = Modules(_Kept(there), self._load)
        other.main, other.known, other.engine_name = self.main, self.known, self.engine_name
        other._loaded = self._loaded
        return other

    def fresh(self, memory: Memory) -> "Modules":
        """No files yet, in another memory of the same guest."""
        return Modules(memory, self._load)

    def add(self, module: Module) -> None:
        """Register a file that the engine itself has loaded; the first is the program."""
        if self.main is None:
            self.main = module
        self.known.append(module)

    def at(self, address: int) -> Module | None:
        """The module whose mapping covers an address."""
        if self.contents is not None and isinstance(self._memory, Memory):
            mapping = self._memory.find(address)
            found = self.contents.module(self._memory, mapping, address)
            if found is not None and found not in self._found:
                self._found.append(found)
            # A page that is not there yet may be of a file that is.
            if mapping is None and not self.contents.tells(self._memory):
                found = found or next((one for one in self._found if one.covers(address)), None)
            if found is not None or (mapping is not None and mapping.shared):
                return found
        for module in self.known:
            if module.contains(address):
                return module
        mapping = self._memory.find(address)
        if mapping is None or not mapping.name.startswith("/"):
            return None
        # The lowest mapping of the same file below gives the bias.
        first = mapping
        for other in reversed(self._memory.mappings):
            if other.start <= mapping.start and other.name == mapping.name:
                first = other
        found = self._of(first)
        if found is None or found.shows(mapping):
            return found
        return self._of(mapping)  # a piece that was mapped, or moved, by itself

    def _of(self, first: Mapping) -> Module | None:
        """The file of a mapping that tells where all of it is."""
        key = (first.name, first.start, first.offset)
        if key not in self._loaded:
            self._loaded[key] = self._open(first.name, first.start, first.offset)
        return self._loaded[key]

    def _open(self, name: str, start: int, offset: int) -> Module | None:
        known = next((one.image for one in self.known if one.name == name), None)
        try:
            image = known or self._load(name)
        except ImageError:
            return None
        if image is None:
            return None
        link = image.vaddr_of(offset)
        return Module(name, image, start - (image.low & -4096 if link is None else link))

    def locate(self, address: int) -> Location:
        """Name an address as well as can be."""
        module = self.at(address)
        if module is None:
            return Location(address, None, None, 0, self.engine_name(address))
        return located(module, address)


def located(module: Module, address: int) -> Location:
    """An address of a file, named."""
    symbol = module.symbol_at(address)
    if symbol is None:
        return Location(address, module, None, address - module.bias)
    return Location(address, module, symbol, address - module.bias - symbol.address)
