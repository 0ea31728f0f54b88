"""The files that a kernel's programs have mapped, read from its memory: user-mode Linux.

The kernel is hostile as any guest: what it has in its memory may lead anywhere, and nowhere.
"""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from engine.errors import GuestFaultError
from engine.image.kernel.filelayout import FileLayout

_PAGE: Final = 4096
_WORD: Final = 8
_DEEP: Final = 16
"""Levels of a tree; those of real ones are fewer."""
_LONG: Final = 256
"""Parts of a path, and mounts in it."""
_NAME_MAX: Final = 255
_KIND_SHIFT, _KINDS, _NODE = 3, 15, 255
"""Of a pointer to a node of areas: its alignment leaves bits for the kind (mte_node_type)."""
_MAXIMUM: Final = (1 << 64) - 1

Peek = Callable[[int, int], bytes]
"""Bytes of the kernel's memory; raises `GuestFaultError`."""


class MappedArea(Struct, frozen=True):
    """An area of a program's memory that shows a file.

    Attributes:
        start: its first address.
        end: the one behind it.
        offset: in the file, of what it begins with.
        file: address of the kernel's description of the open file.
        inode: of that of the file itself.
        size: bytes of the file.
    """

    start: int
    end: int
    offset: int
    file: int
    inode: int
    size: int


class KernelFiles:
    """The files in a kernel's memory."""

    def __init__(self, layout: FileLayout, peek: Peek, physical: int, bias: int) -> None:
        """Nothing is read yet.

        Args:
            layout: where the kernel has them.
            peek: reads its memory.
            physical: link address of a word, the address that it has physical memory at.
            bias: what its addresses are off those of its file.
        """
        self._layout = layout
        self._peek = peek
        self._physical = physical + bias
        self._described = layout.content.descriptions + bias

    def area(self, mm: int, address: int) -> MappedArea | None:
        """The area of an mm around an address; None where that is no file's."""
        where = self._layout.areas
        try:
            area = self._find(self._word(mm + where.root), address)
            if not area or self._word(area + where.mm) != mm:
                return None
            start, end = self._word(area + where.start), self._word(area + where.end)
            file = self._word(area + where.file)
            if not start <= address < end or not file:
                return None
            mapping = self._word(file + self._layout.content.mapping)
            inode = self._word(mapping + self._layout.content.inode)
            size = self._word(inode + self._layout.content.length)
            offset = self._word(area + where.page) * _PAGE
        except GuestFaultError:
            return None
        return MappedArea(start, end, offset & _MAXIMUM, file, inode, size)

    def _find(self, found: int, address: int) -> int:
        """The address of the area in a tree, by its root; 0 for none (mtree_range_walk)."""
        where = self._layout.areas
        for _ in range(_DEEP):
            node, kind = found & ~_NODE, found >> _KIND_SHIFT & _KINDS
            if found & 3 != 2 or not 1 <= kind <= len(where.slots):
                return 0
            slots = where.slots[kind - 1]
            count = (slots - where.pivots) // _WORD
            data = self._peek(node, slots + _WORD * (count + 1))
            index = 0
            while index < count:
                last = _number(data, where.pivots + _WORD * index)
                if address <= last or (index and not last):  # behind the last one there is none
                    break
                index += 1
            found = _number(data, slots + _WORD * index)
            if kind == 1:
                return found
        return 0

    def path(self, file: int) -> str:
        """The path of an open file in the tree of all mounts; "" where there is none.

        Source: fs/d_path.c, prepend_path().
        """
        where = self._layout.paths
        parts: list[bytes] = []
        try:
            mount = self._word(file + where.mount) - where.inside
            entry = self._word(file + where.entry)
            for _ in range(_LONG):
                parent = self._word(entry + where.parent)
                if entry == self._word(mount + where.root):
                    above = self._word(mount + where.above)
                    if above == mount:
                        text = b"/" + b"/".join(reversed(parts))
                        return text.decode(errors="surrogateescape") if parts else ""
                    entry, mount = self._word(mount + where.point), above
                    continue
                if entry == parent:
                    return ""  # not in the tree: a file without a name
                size = int.from_bytes(self._peek(entry + where.size, 4), "little")
                parts.append(self._peek(self._word(entry + where.name), min(size, _NAME_MAX)))
                entry = parent
        except GuestFaultError:
            pass
        return ""

    def content(self, area: MappedArea, limit: int) -> bytes:
        """The content of an area's file, as far as it is in memory: zeros for what is not.

        Args:
            area: the mapped area.
            limit: of its bytes; a larger file has none.
        """
        if not 0 < area.size <= limit:
            return b""
        made = bytearray(area.size)
        try:
            mapping = self._word(area.file + self._layout.content.mapping)
            root = self._word(mapping + self._layout.content.pages)
            for index, page in self._pages(root, -(-area.size // _PAGE)):
                at = index * _PAGE
                piece = self._peek(page, min(_PAGE, area.size - at))
                made[at : at + len(piece)] = piece
        except GuestFaultError:
            pass
        return bytes(made)

    def _pages(self, root: int, count: int) -> Iterator[tuple[int, int]]:
        """Indices and addresses of the first pages in a tree of them (xas_load)."""
        where = self._layout.content
        bits = where.mask.bit_length()
        first, memory = self._word(self._described), self._word(self._physical)

        def address(entry: int, by: int) -> int:
            return memory + ((entry - first >> where.shift) + by) * _PAGE

        if root & 3 == 0 and root:
            yield 0, address(root, 0)
            return
        todo = [(root, 0, 64)]
        while todo:
            found, base, above = todo.pop()
            node = found - 2
            shift = self._peek(node, 1)[0] if found & 3 == 2 and found > _PAGE else above
            if shift + bits > above:
                continue
            data = self._peek(node + where.slots, _WORD * (where.mask + 1))
            head = at = 0  # of a page that is several, which is told once
            for slot in range(where.mask + 1):
                entry, index = _number(data, _WORD * slot), base + (slot << shift)
                if index >= count:
                    break
                if entry & 3 == 2 and shift and entry > _PAGE:
                    todo.append((entry, index, shift))
                    continue
                if entry & 3 == 0 and entry:
                    head, at = entry, index
                elif entry & 3 != 2 or not head:  # nothing, or it is on a disk
                    head = 0
                    continue
                for by in range(min(1 << shift, count - index)):
                    yield index + by, address(head, index + by - at)

    def _word(self, address: int) -> int:
        return int.from_bytes(self._peek(address, _WORD), "little")


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + _WORD], "little")
