"""The memory that a called function has left in its copy, and how it comes to the program's own.

A call runs on a copy of the address space (`engine.session.guest.calling`). Bytes of private
memory are compared page by page; of mappings only those of private memory without a file can be
made again. What else a function does to the address space cannot be carried over.
"""

from itertools import pairwise
from typing import Final

from msgspec import Struct

from engine.cpu.ram import PAGE, WRITE
from engine.errors import GuestFaultError
from engine.guest.mapping import Mapping
from engine.guest.memory import Memory
from engine.linux.space import AddressSpace

_LARGEST: Final = 1 << 30
"""Bytes of a mapping that is compared with what it was."""
_PIECE: Final = 64 << 10
"""Bytes that are compared at once."""


class MappedPiece(Struct, frozen=True):
    """A range of the address space that a function has mapped, unmapped or protected.

    Attributes:
        start: first byte.
        size: of the range.
        perms: permissions from now on; None where nothing is mapped any more.
        name: of the mapping.
        is_there: the range was mapped before.
    """

    start: int
    size: int
    perms: int | None
    name: str
    is_there: bool


class CallEffects(Struct, frozen=True):
    """Differences between the copy that a function has run in and the program's own memory.

    Attributes:
        pages: private pages that are other than before, by address.
        mapped: ranges that are mapped otherwise, by address.
        heap: first byte and end of what brk gives.
        trouble: the reason why the memory cannot be carried over; "" for none.
    """

    pages: dict[int, bytes] = {}
    mapped: tuple[MappedPiece, ...] = ()
    heap: tuple[int, int] = (0, 0)
    trouble: str = ""

    def map_in(self, space: AddressSpace) -> None:
        """Map in an address space what the function has mapped."""
        memory = space.memory
        for one in self.mapped:
            if one.perms is None:
                memory.unmap(one.start, one.size)
            elif one.is_there:
                memory.protect(one.start, one.size, one.perms)
            else:
                memory.map(one.start, one.size, one.perms, name=one.name)
        space.heap = self.heap

    def stretches(self) -> list[tuple[int, bytes]]:
        """The changed pages as few stretches of bytes, by address."""
        found: list[tuple[int, bytes]] = []
        for at, data in sorted(self.pages.items()):
            if found and found[-1][0] + len(found[-1][1]) == at:
                found[-1] = found[-1][0], found[-1][1] + data
            else:
                found.append((at, data))
        return found


def call_effects(before: AddressSpace, after: AddressSpace) -> CallEffects:
    """Compare a copy that a function has run in with the address space that it is a copy of."""
    mapped: list[MappedPiece] = []
    trouble = ""
    bounds = sorted(
        {
            edge
            for space in (before, after)
            for one in space.memory.mappings
            if not one.reserved
            for edge in (one.start, one.end)
        }
    )
    for low, high in pairwise(bounds):
        old, new = before.memory.find(low), after.memory.find(low)
        if _kind(old) == _kind(new):
            continue
        if not (_is_plain(old) and _is_plain(new)):
            trouble = "the function has mapped a file or shared memory"
        perms, name = (None, "") if new is None else (new.perms, new.name)
        mapped.append(MappedPiece(low, high - low, perms, name, old is not None))
    pages, too_large = _changed(before.memory, after.memory)
    return CallEffects(pages, tuple(mapped), after.heap, trouble or too_large)


def _kind(mapping: Mapping | None) -> object:
    """Equal for mappings of the same memory with the same permissions."""
    if mapping is None or mapping.reserved:
        return None
    file = None if mapping.backing is None else (mapping.backing.identity, mapping.inode)
    return mapping.perms, mapping.name, mapping.shared, file


def _is_plain(mapping: Mapping | None) -> bool:
    """True for private memory without a file, and for none."""
    return mapping is None or (
        mapping.backing is None and not mapping.shared and not mapping.reserved
    )


def _changed(before: Memory, after: Memory) -> tuple[dict[int, bytes], str]:
    """Private pages that are other than before, by address; why not all of them are known."""
    found: dict[int, bytes] = {}
    trouble = ""
    for mapping in after.mappings:
        if mapping.shared or mapping.reserved or not mapping.perms & WRITE:
            continue
        if mapping.awaits_pages:
            continue  # nobody has touched it
        if mapping.size > _LARGEST:
            trouble = f"the mapping at {mapping.start:#x} is too large to be compared"
            continue
        for start in range(mapping.start, mapping.end, _PIECE):
            size = min(_PIECE, mapping.end - start)
            try:
                new = after.peek(start, size)
            except GuestFaultError:
                continue
            try:
                old = before.peek(start, size)
            except GuestFaultError:  # the function has mapped it
                old = bytes(size)
            if new != old:
                for at in range(0, size, PAGE):
                    if new[at : at + PAGE] != old[at : at + PAGE]:
                        found[start + at] = new[at : at + PAGE]
    return found, trouble
