"""The memory of a frame's program: without what is planted, or as a called function left it."""

from collections.abc import Callable, Mapping

from engine.cpu.ram import PAGE
from engine.language.values import MemoryPlace, Order
from engine.linux.space import AddressSpace
from engine.session.guest.session import Session
from engine.session.inspect.stored_program import StoredProgram


class FrameMemory:
    """Reads the memory of one program."""

    def __init__(self, session: Session, elsewhere: AddressSpace | StoredProgram | None) -> None:
        """Take a program.

        Args:
            session: the guest.
            elsewhere: its address space, where it is not that of the thread that runs; or its
                files.
        """
        self._session, self._elsewhere = session, elsewhere

    def read(self, address: int, size: int, pages: Mapping[int, bytes]) -> bytes:
        """Bytes of the program.

        Args:
            address: of the first one.
            size: how many.
            pages: contents of pages that are read in place of the program's, by address.

        Raises:
            GuestFaultError: not all of it is there.
        """
        if not pages:
            return self._of_program(address, size)
        found = b""
        while len(found) < size:
            at = address + len(found)
            page, offset = at & -PAGE, at & PAGE - 1
            length = min(size - len(found), PAGE - offset)
            held = pages.get(page)
            found += (
                self._of_program(at, length) if held is None else held[offset : offset + length]
            )
        return found

    def _of_program(self, address: int, size: int) -> bytes:
        space, users = self._elsewhere, self._session.user_programs
        if isinstance(space, StoredProgram):
            return space.memory.read(address, size)
        if space is None or users is None:
            space = self._session.seen
            return space.hooks.original(address, space.memory.peek(address, size))
        return space.hooks.original(address, users.read(space, address, size))


def with_bits(
    place: MemoryPlace, data: bytes, order: Order, read: Callable[[int, int], bytes]
) -> bytes:
    """The bytes to write at a place, those around a bitfield as they are.

    Args:
        place: where.
        data: the value.
        order: of its bytes.
        read: reads memory.
    """
    if not place.bits:
        return data
    size = -(-(place.bit + place.bits) // 8)
    old = int.from_bytes(read(place.address, size), "little")
    mask = ((1 << place.bits) - 1) << place.bit
    value = int.from_bytes(data, order) << place.bit & mask
    return (old & ~mask | value).to_bytes(size, "little")
