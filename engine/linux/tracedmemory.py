"""Memory of another process, as its tracer has it: whatever its protection (access_process_vm).

A tracer sees the program's own bytes, and what it writes are such: probes stand over them or
give way, each as it would if the program had been made so.
"""

from engine.cpu.ram import PAGE, WRITE
from engine.errors import GuestFaultError
from engine.guest.pager import RETURN_CODE
from engine.linux.space import AddressSpace


def read(space: AddressSpace, address: int, size: int) -> bytes:
    """Bytes of a program's memory.

    Raises:
        GuestFaultError: not all of them are there.
    """
    memory, found = space.memory, []
    at, end = address, address + size
    while at < end:
        mapping = memory.find(at)
        if mapping is None or (mapping.reserved and mapping.name != RETURN_CODE):
            raise GuestFaultError(at, "read")
        part = min(end, mapping.end) - at
        if mapping.physical is None:
            found.append(bytes(part))  # nobody has touched it
        else:
            found.append(memory.peek(at, part))
        at += part
    data = found[0] if len(found) == 1 else b"".join(found)
    return space.hooks.original(address, data)


def write(space: AddressSpace, address: int, data: bytes) -> None:
    """Change bytes of a program's memory; what is private is written even if it is read-only.

    Raises:
        GuestFaultError: not all of them can be; nothing has changed then.
    """
    memory = space.memory
    at, end = address, address + len(data)
    while at < end:
        mapping = memory.find(at)
        if mapping is None or mapping.reserved:
            raise GuestFaultError(at, "write")
        if mapping.physical is None and not mapping.awaits_pages:
            raise GuestFaultError(at, "write")
        if mapping.shared and not mapping.perms & WRITE:
            raise GuestFaultError(at, "write")
        at = mapping.end
    change = space.hooks.rewrite or memory.poke
    change(address, data)


class SpaceMemory:
    """Implements `fs.procmem.ProcMemory` for an address space."""

    def __init__(self, space: AddressSpace) -> None:
        self._space = space

    def read(self, address: int, size: int) -> bytes | None:
        """As many bytes as there are; None once it has gone."""
        if not self._space.users:
            return None
        found = []
        for at, part in _pages(address, size):
            try:
                found.append(read(self._space, at, part))
            except GuestFaultError:
                break
        return b"".join(found)

    def write(self, address: int, data: bytes) -> int | None:
        """Change bytes: how many could be; None once it has gone."""
        if not self._space.users:
            return None
        done = 0
        for at, part in _pages(address, len(data)):
            try:
                write(self._space, at, data[done : done + part])
            except GuestFaultError:
                break
            done += part
        return done


def _pages(address: int, size: int) -> list[tuple[int, int]]:
    """(address, bytes) of the pieces of a range, one for each page."""
    pieces, end = [], address + size
    while address < end:
        part = min(end - address, PAGE - address % PAGE)
        pieces.append((address, part))
        address += part
    return pieces
