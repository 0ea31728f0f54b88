"""Addresses of places and symbols of a program's files in one address space."""

from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping as Map
from typing import TYPE_CHECKING

from engine.cpu.ram import EXECUTE, PAGE
from engine.guest.memory import Mapping, Memory
from engine.linux.space import AddressSpace
from engine.session.program.places import Place, Places, guest_address, shows_file

if TYPE_CHECKING:
    from engine.session.guest.user_files import UserFiles  # of few guests

Mapped = tuple[Mapping, ...]


class SpaceAddresses:
    """Says where in one address space a place of a file is, as its mappings are now."""

    def __init__(self, space: AddressSpace, places: Places, users: "UserFiles | None") -> None:
        """Start with no symbol looked up.

        Args:
            space: the address space.
            places: finds symbols in the program's files.
            users: files of the user programs of a kernel; None for other guests.
        """
        self._space = space
        self._places = places
        self._users = users
        self._symbols: dict[str, int | None] = {}

    @property
    def has_users(self) -> bool:
        """True of a kernel that runs user programs, and of these."""
        return self._users is not None

    def moved(self) -> None:
        """Mappings have changed."""
        self._symbols.clear()

    def where(self, name: str) -> int | None:
        """Address of a symbol of the program; None while its file is not mapped."""
        if name not in self._symbols:
            self._symbols[name] = self._find_symbol(name)
        return self._symbols[name]

    def _find_symbol(self, name: str) -> int | None:
        found = self._places.symbol(name)
        if found is None:
            return None
        file, link = found
        main = self._space.modules.main
        if main is not None and main.image is file.image:
            return link + main.bias
        for mapping in self._space.memory.mappings:
            if shows_file(mapping, file.inode, file.paths):
                first = file.image.vaddr_of(mapping.offset)
                return None if first is None else mapping.start + link - first
        return None

    def of(self, place: Place) -> int | None:
        """The address of a place here; None while its file is not mapped executable."""
        if self.is_users(place):
            return users_address(place, self.users_pages(0, 1 << 64))
        return guest_address(place, self._space.modules, self._space.memory)

    def waits(self, place: Place) -> bool:
        """True if nothing of a place's file is mapped here, and no kernel runs it."""
        main = self._space.modules.main
        if self._users is not None or (main is not None and main.image is place.image):
            return False
        return not any(map(place.is_in, self._space.memory.mappings))

    # -- files of the user programs of a kernel -------------------------------------------

    def is_users(self, place: Place) -> bool:
        """True of a place that no mapping's name can tell of."""
        main = self._space.modules.main
        if self._users is None or (main is not None and main.image is place.image):
            return False
        runs = self._space.modules.contents is not None  # a user program does
        return runs or self._users.has(place.path, place.image)

    def users_pages(self, start: int, size: int) -> dict[tuple[str, int], int]:
        """Addresses of pages of files that a user program runs, by identity and offset."""
        found: dict[tuple[str, int], int] = {}
        users, memory = self._users, self._space.memory
        if users is None or self._space.modules.contents is None:
            return found
        for mapping in memory.overlapping(start, start + size):
            if not mapping.perms & EXECUTE or mapping.reserved:
                continue
            low, high = max(start & -PAGE, mapping.start), min(start + size, mapping.end)
            for at in range(low, high, PAGE):
                page = users.page(memory, mapping, at)
                if page is not None:
                    found[page.image.identity, page.offset] = at
        return found

    def own_page(self, at: int) -> bool:
        """A page of a kernel's memory is about to have a breakpoint for one program.

        The kernel must not see it, nor its other programs: it goes into a page of its own, as the
        kernel's uprobes do (uprobe_write_opcode).
        """
        mapping = self._space.memory.find(at)
        if mapping is None or mapping.extent is None or self._users is None:
            return False
        page = self._users.page(self._space.memory, mapping, at)
        if page is None:
            return False
        self._space.memory.own_page(at, page.path, page.offset)
        return True


def users_address(place: Place, pages: Map[tuple[str, int], int]) -> int | None:
    """The address of a place in a file of which pages are known, by identity and offset."""
    offset = place.file_offset or 0
    page = pages.get((place.image.identity, offset & -PAGE))
    return None if page is None else page + offset % PAGE


def mapped_again(memory: Memory, start: int, size: int) -> Mapped:
    """Executable mappings in a range of files that are mapped executable elsewhere, too."""
    found = [m for m in memory.overlapping(start, start + size) if _is_code(m)]
    if not found:
        return ()
    times = Counter((m.inode, m.name) for m in memory.mappings if _is_code(m))
    return tuple(m for m in found if times[m.inode, m.name] > 1)


def addresses_in(place: Place, mappings: Mapped) -> Iterator[int]:
    """Guest addresses of a place in mappings."""
    offset = place.file_offset
    if offset is None:
        return
    for mapping in mappings:
        if mapping.offset <= offset < mapping.offset + mapping.size and place.is_in(mapping):
            yield mapping.start + offset - mapping.offset


def _is_code(mapping: Mapping) -> bool:
    return bool(mapping.perms & EXECUTE) and mapping.name.startswith("/")
