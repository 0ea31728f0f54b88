"""Structures of a machine's kernel, read by the offsets that its BTF has."""

import struct
from typing import Final

from engine.errors import GuestFaultError
from engine.image.kernel.kernelimage import KernelImage
from engine.machine.addresses import KernelAddresses

_WORD: Final = struct.Struct("<Q")
_HALF: Final = struct.Struct("<I")


class KernelRecords:
    """The structures of one kernel; one without BTF has none."""

    def __init__(self, image: KernelImage, addresses: KernelAddresses) -> None:
        """Read nothing yet.

        Args:
            image: the kernel.
            addresses: the memory as it sees it.
        """
        self._image = image
        self.word = addresses.reader(_WORD)
        self._half = addresses.reader(_HALF)
        self._offsets: dict[tuple[str, str], int | None] = {}

    def offset(self, record: str, member: str) -> int:
        """The offset of a member, or the size of a structure, by "" in place of one.

        Raises:
            GuestFaultError: the kernel has none.
        """
        key = record, member
        if key not in self._offsets:
            found = (self._image.layout(record) or {}).get(member)
            # The size of the whole record stands under "".
            self._offsets[key] = None if found is None else found[0] or found[1] * (not member)
        at = self._offsets[key]
        if at is None:
            raise GuestFaultError(0, "read")
        return at

    def has(self, record: str, member: str) -> bool:
        """True if the kernel has a member."""
        try:
            self.offset(record, member)
        except GuestFaultError:
            return False
        return True

    def pointer(self, record: str, member: str, address: int) -> int:
        """A member of 64 bits of the structure at an address; raises `GuestFaultError`."""
        return int(self.word(address + self.offset(record, member))[0])

    def number(self, record: str, member: str, address: int) -> int:
        """A member of 32 bits likewise."""
        return int(self._half(address + self.offset(record, member))[0])
