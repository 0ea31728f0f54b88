"""A program that is not there: its files, as a debugger reads them before a run and after its end.

What a file holds of a section is the section's memory; what no file holds (.bss) is zeros, and
all else, as heap and stack, is not there. Before the first run the program stands at the
addresses of its file; after it where it last was (gdb/exec.c, section_table_xfer_memory).
"""

from bisect import bisect_right
from collections.abc import Iterable

from msgspec import Struct

from engine.errors import GuestFaultError
from engine.guest.hooks import SpaceHooks
from engine.guest.mapping import Mapping
from engine.guest.modules import Module, Modules
from engine.image import ElfImage, headers


class _StoredSection(Struct, frozen=True):
    """A section of a file at a guest address; `stored` bytes of it are in the file."""

    start: int
    end: int
    image: ElfImage
    offset: int
    stored: int

    def read(self, start: int, end: int) -> bytes:
        """Bytes of it, by guest addresses; zeros behind what the file holds."""
        low = start - self.start
        held = max(min(end - self.start, self.stored) - low, 0)
        data = self.image.data(self.offset + low, held) if held else b""
        return data + bytes(end - start - len(data))


class StoredMemory:
    """The sections of files as memory that nobody can change.

    Attributes:
        mappings: no mapping is there.
    """

    def __init__(self, modules: Iterable[Module]) -> None:
        """Read the sections of some files where the files stand."""
        self._pieces: list[_StoredSection] = []
        for module in modules:
            self._pieces += _pieces(module)
        self._pieces.sort(key=lambda one: one.start)
        self._starts = [one.start for one in self._pieces]
        self.mappings: list[Mapping] = []

    def find(self, address: int) -> Mapping | None:
        """No mapping."""
        return None

    def read(self, address: int, size: int) -> bytes:
        """Bytes of sections.

        Raises:
            GuestFaultError: a byte is in no section.
        """
        found, at, end = bytearray(), address, address + size
        while at < end:
            number = bisect_right(self._starts, at) - 1
            piece = self._pieces[number] if number >= 0 else None
            if piece is None or at >= piece.end:
                raise GuestFaultError(at, "read")
            upto = min(end, piece.end)
            found += piece.read(at, upto)
            at = upto
        return bytes(found)

    peek = read


class StoredProgram:
    """The files of a program that does not run, in place of its address space.

    Attributes:
        modules: its files.
        memory: their sections.
        hooks: nothing is planted there.
    """

    def __init__(self, modules: Iterable[Module]) -> None:
        """Take files, the program first."""
        found = list(modules)
        self.memory = StoredMemory(found)
        self.modules = Modules(self.memory, _nothing)
        for module in found:
            self.modules.add(module)
        self.hooks = SpaceHooks()

    def code_at(self, address: int, most: int) -> bytes:
        """At most so many bytes of code at an address; fewer where a section ends."""
        for size in range(most, 0, -1):
            try:
                return self.memory.read(address, size)
            except GuestFaultError:
                continue
        return b""


def _nothing(path: str) -> ElfImage | None:
    return None


def _pieces(module: Module) -> list[_StoredSection]:
    """The sections of a file; its segments where it has no sections."""
    image, bias = module.image, module.bias
    found: list[_StoredSection] = []
    for section in image.sections:
        bare = section.type == headers.SHT_NOBITS
        if not section.flags & headers.SHF_ALLOC or not section.size:
            continue
        if bare and section.flags & headers.SHF_TLS:
            continue  # a thread's; no address is its own
        start = section.addr + bias
        stored = 0 if bare else section.size
        found.append(_StoredSection(start, start + section.size, image, section.offset, stored))
    if found:
        return found
    return [
        _StoredSection(
            one.vaddr + bias, one.vaddr + bias + one.memsz, image, one.offset, one.filesz
        )
        for one in image.load_segments
    ]
