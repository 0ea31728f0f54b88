"""Memory of a program that is not in its page tables yet: what the kernel would put there.

A mapping of a file gets the pages that the kernel keeps of it (its page cache); memory without a
file is zeros until it is written. What is on a disk alone stays unread. The mappings stand in a
maple tree from 6.1 on (lib/maple_tree.c), the pages in an xarray (lib/xarray.c). All that is read
is the guest's to write: walks are bounded, and where they lead is checked.
"""

import struct
from collections.abc import Callable
from typing import Final

from engine.cpu.unicorn_system import PAGE
from engine.errors import GuestFaultError
from engine.image.kernel.kernelimage import KernelImage
from engine.machine.addresses import KernelAddresses
from engine.machine.records import KernelRecords

_DEPTH_MOST: Final = 16
_READ: Final = 1
"""VM_READ."""
_TREE_NODE, _TREE_TYPE, _TREE_TYPES = ~0xFF, 3, 0xF
_DENSE, _LEAF, _RANGE, _ARRANGED = range(4)
"""Kinds of a maple tree's nodes, as a pointer to one has them."""
_TREE_SLOTS: Final = {_LEAF: 16, _RANGE: 16, _ARRANGED: 10}
_ARRAY_SLOTS: Final = 64
"""XA_CHUNK_SIZE."""
_INTERNAL, _KINDS = 2, 3
"""The mark of an xarray's own entries, and the bits of marks."""
_LOWEST: Final = PAGE
"""The lowest address of a node; smaller ones are other entries."""


class ProgramPages:
    """Reads the memory of the program that runs, as it would be if it read it."""

    def __init__(
        self,
        image: KernelImage,
        addresses: KernelAddresses,
        records: KernelRecords,
        task: Callable[[], int],
    ) -> None:
        """Read nothing yet.

        Args:
            image: the kernel.
            addresses: the memory as it sees it.
            records: its structures.
            task: address of the task that runs.
        """
        self._addresses, self._records, self._task = addresses, records, task
        self._pages = image.names.find("vmemmap_base")

    def read(self, address: int, size: int) -> bytes:
        """Some bytes.

        Raises:
            GuestFaultError: not all of them can be had.
        """
        found = b""
        while len(found) < size:
            at = address + len(found)
            left = min(size - len(found), PAGE - at % PAGE)
            try:
                found += self._addresses.read(at, left)
            except GuestFaultError:
                found += self._untouched(at, left)
        return found

    def read_cstring(self, address: int, limit: int) -> bytes:
        """Bytes up to a NUL, without it; cut at `limit` bytes if there is none.

        Raises:
            GuestFaultError: memory ends in front of it.
        """
        found = b""
        while len(found) < limit:
            at = address + len(found)
            piece = self.read(at, min(limit - len(found), PAGE - at % PAGE))
            text, end, _ = piece.partition(b"\0")
            found += text
            if end:
                break
        return found

    def _untouched(self, address: int, size: int) -> bytes:
        """Bytes of one page that the program has not touched."""
        if not self._addresses.is_empty(address):
            raise GuestFaultError(address, "read")
        pointer = self._records.pointer
        vma = self._mapping(pointer("task_struct", "mm", self._task()), address)
        start = pointer("vm_area_struct", "vm_start", vma)
        inside = start <= address < pointer("vm_area_struct", "vm_end", vma)
        if not inside or not pointer("vm_area_struct", "vm_flags", vma) & _READ:
            raise GuestFaultError(address, "read")
        file = pointer("vm_area_struct", "vm_file", vma)
        if not file:
            return bytes(size)
        page = pointer("vm_area_struct", "vm_pgoff", vma) + (address - start) // PAGE
        at = self._cached(pointer("file", "f_mapping", file), page)
        return self._addresses.read_physical(at + address % PAGE, size)

    def _mapping(self, space: int, address: int) -> int:
        """The address of the `struct vm_area_struct` at an address, which may be another's."""
        records = self._records
        tree = space + records.offset("mm_struct", "mm_mt")
        entry = records.pointer("maple_tree", "ma_root", tree)
        for _ in range(_DEPTH_MOST):
            kind = entry >> _TREE_TYPE & _TREE_TYPES
            slots = _TREE_SLOTS.get(kind)
            if entry < _LOWEST or slots is None:
                break
            # A node is the address of its parent, the last addresses of all slots but one, slots.
            node = struct.unpack(
                f"<{2 * slots}Q", self._addresses.read(entry & _TREE_NODE, 16 * slots)
            )
            ends = node[1:slots]
            number = next(
                (at for at, end in enumerate(ends) if end >= address or (at and not end)),
                slots - 1,
            )
            entry = node[slots + number]
            if kind == _LEAF:
                return int(entry)
        raise GuestFaultError(address, "read")

    def _cached(self, mapping: int, page: int) -> int:
        """The physical address of a page that the kernel keeps of a file."""
        records = self._records
        at = mapping + records.offset("address_space", "i_pages")
        entry = records.pointer("xarray", "xa_head", at)
        shift, slots = records.offset("xa_node", "shift"), records.offset("xa_node", "slots")
        for _ in range(_DEPTH_MOST):
            if entry & _KINDS != _INTERNAL or entry < _LOWEST:
                break
            node = entry - _INTERNAL
            number = page >> self._addresses.read(node + shift, 1)[0] & _ARRAY_SLOTS - 1
            (entry,) = records.word(node + slots + 8 * number)
            if entry & _KINDS == _INTERNAL and entry < _LOWEST:  # of a page that has several
                (entry,) = records.word(node + slots + 8 * (entry >> 2))
        if not entry or entry & _KINDS or self._pages is None:
            raise GuestFaultError(page * PAGE, "read")
        record = "folio" if records.has("folio", "index") else "page"
        behind = page - records.pointer(record, "index", entry)
        (base,) = records.word(self._pages)
        number, rest = divmod(entry - base, records.offset("page", ""))
        if rest or behind < 0:
            raise GuestFaultError(page * PAGE, "read")
        return int(number + behind) * PAGE
