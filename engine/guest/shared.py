"""Pages that several mappings show: MAP_SHARED of files and of anonymous memory.

All shared mappings of one object have their pages in one extent of the arena, so a store
through one is seen through the others at once. Contents pass between an extent and its file
when the guest's kernel looks: `flush` before a call reads the file, `file_changes` around one
that writes it.
"""

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.cpu.ram import PAGE, WRITE, Ram
from engine.guest.mapping import Backing, Mapping, MappingError, SharedExtent, page_up

if TYPE_CHECKING:
    from engine.guest.memory import Memory

_PIECE = 1 << 16
_ZERO = bytes(_PIECE)


def copy_pages(ram: Ram, source: int, target: int, size: int) -> None:
    """Copy between two places of the arena; pages of zeros stay untouched.

    Raises:
        MappingError: ENOMEM beyond the budget.
    """
    for done in range(0, size, _PIECE):
        data = ram.read(source + done, min(_PIECE, size - done))
        if data == _ZERO[: len(data)]:
            continue
        if not ram.touch(target + done, len(data)):
            raise MappingError(errno.ENOMEM)
        ram.put(target + done, data)


def fill(ram: Ram, physical: int, backing: Backing, offset: int, size: int) -> None:
    """Copy from a file into pages.

    Raises:
        MappingError: ENOMEM beyond the budget.
    """
    available = max(min(size, backing.size - offset), 0)
    done = 0
    while done < available:
        data = backing.read_at(offset + done, min(1 << 20, available - done))
        if not data:
            break
        if not ram.touch(physical + done, len(data)):
            raise MappingError(errno.ENOMEM)
        ram.put(physical + done, data)
        done += len(data)


class ExtentPages:
    """The pages of an extent, as the file knows them whose content they hold in its place."""

    def __init__(self, ram: Ram, extent: SharedExtent) -> None:
        self._ram = ram
        self._extent = extent

    @property
    def low(self) -> int:
        """The first byte of the file that they hold."""
        return self._extent.low

    @property
    def high(self) -> int:
        """One past the last."""
        return self._extent.high

    def _place(self, offset: int) -> int:
        return self._extent.physical + offset - self._extent.low

    def load(self, offset: int, size: int) -> bytes:
        """Bytes of the file."""
        return self._ram.read(self._place(offset), size)

    def store(self, offset: int, data: bytes) -> bool:
        """Change them; False, and nothing is changed, beyond the guest's memory."""
        place = self._place(offset)
        if not self._ram.touch(place, len(data)):
            return False
        self._ram.put(place, data)
        return True

    def clear(self, offset: int, size: int) -> None:
        """Make them zeros: whole pages take no memory any more."""
        place = self._place(offset)
        first, last = min(page_up(place), place + size), max((place + size) & -PAGE, place)
        for start, end in ((place, first), (max(first, last), place + size)):
            if start < end and self._ram.touched(start & -PAGE, PAGE):
                self._ram.put(start, bytes(end - start))
        if first < last:
            self._ram.discard(first, last - first)

    def taken(self, offset: int, size: int) -> list[tuple[int, int]]:
        """(first, one past the last) of bytes that take memory; all others are zeros."""
        place, end = self._place(offset), self._place(offset + size)
        delta = offset - place
        start, stop = place & -PAGE, page_up(end)
        return [
            (max(first, place) + delta, min(last, end) + delta)
            for first, last in self._ram.touched_runs(start, stop - start)
        ]


class SharedPages:
    """The extents of all address spaces.

    Attributes:
        moved: told of an extent that has new pages: add this to physical offsets.
        spaces: the address spaces.
    """

    def __init__(self, ram: Ram) -> None:
        self._ram = ram
        self.moved: list[Callable[[SharedExtent, int], None]] = []
        self.spaces: list[Memory] = []
        self._of_files: dict[object, SharedExtent] = {}

    def __contains__(self, identity: object) -> bool:
        """True if shared mappings show this file."""
        return identity in self._of_files

    def __bool__(self) -> bool:
        """True if any file is mapped shared."""
        return bool(self._of_files)

    def shows(self, identity: object) -> int:
        """The number of mappings of all address spaces that show this file."""
        return sum(space.shows(identity) for space in self.spaces)

    def may_be_written(self, identity: object) -> bool:
        """True if this file is mapped shared by somebody who may write to it."""
        extent = self._of_files.get(identity)
        return extent is not None and extent.backing is not None and extent.backing.writable

    def file_changes(self, identity: object, low: int, high: int) -> Callable[[bool], None]:
        """A call is about to write to a file that mappings show, or to cut it.

        Args:
            identity: the file.
            low: the first byte that may change.
            high: one past the last.

        Returns:
            To be called afterwards, with True if the file has become shorter.
        """
        views = self._views(identity, low, high)

        def finish(cut: bool) -> None:
            self._refresh(identity)
            for changed in views:
                changed(cut)

        return finish

    def _views(self, identity: object, low: int, high: int) -> list[Callable[[bool], None]]:
        """The same for what address spaces show beside the pages that they share."""
        viewers = [space for space in self.spaces if space.shows(identity)]
        return [space.file_changes(identity, low, high) for space in viewers]

    def attach(self, mapping: Mapping) -> Mapping:
        """Give a shared mapping its pages; one with an extent stays with that object."""
        backing = mapping.backing
        low, high = mapping.offset, mapping.offset + mapping.size
        extent = mapping.extent
        if extent is None and backing is not None:
            extent = self._of_files.get(backing.identity)
        if extent is None:
            extent = SharedExtent(backing, low, high, self._allocate(high - low))
            if backing is not None:
                try:
                    self._begin(extent, backing)
                except MappingError:
                    self._ram.release(extent.physical, high - low)
                    raise
                self._of_files[backing.identity] = extent
        elif low < extent.low or high > extent.high:
            self._grow(extent, min(low, extent.low), max(high, extent.high))
        if backing is not None and mapping.perms & WRITE:
            extent.written = True
            extent.backing = backing
        extent.mapped += mapping.size
        physical = extent.physical + low - extent.low
        return mapping._replace(physical=physical, extent=extent)

    def _begin(self, extent: SharedExtent, backing: Backing) -> None:
        """Give fresh pages the content of a file: in its place, where it lends that.

        Private pages that show the same file need its content apart from the shared ones.
        """
        contents = backing.contents()
        if contents is None or self.shows(backing.identity):
            fill(self._ram, extent.physical, backing, extent.low, extent.high - extent.low)
        else:
            if not contents.lend(ExtentPages(self._ram, extent), [(extent.low, extent.high)]):
                raise MappingError(errno.ENOMEM)
            extent.lent = contents

    def keep_apart(self, identity: object) -> None:
        """Private pages are about to show a file: its content is its own from now on."""
        extent = self._of_files.get(identity)
        if extent is not None and extent.lent is not None:
            extent.lent.reclaim(keep=True)
            extent.lent, extent.written = None, True

    def _allocate(self, size: int) -> int:
        physical = self._ram.allocate(size)
        if physical is None:
            raise MappingError(errno.ENOMEM)
        return physical

    def _grow(self, extent: SharedExtent, low: int, high: int) -> None:
        physical = self._allocate(high - low)
        old, size = extent.physical, extent.high - extent.low
        skip = extent.low - low
        try:
            copy_pages(self._ram, old, physical + skip, size)
            self._begin_rest(extent, low, high, physical)
        except MappingError:
            self._ram.release(physical, high - low)
            raise
        for moved in self.moved:
            moved(extent, physical + skip - old)
        extent.physical, extent.low, extent.high = physical, low, high
        self._ram.release(old, size)

    def _begin_rest(self, extent: SharedExtent, low: int, high: int, physical: int) -> None:
        """Give an extent's pages in another place the content that it did not have so far."""
        backing = extent.backing
        rest = [(low, extent.low), (extent.high, high)]
        if extent.lent is not None:
            grown = SharedExtent(backing, low, high, physical)
            if not extent.lent.lend(ExtentPages(self._ram, grown), rest):
                raise MappingError(errno.ENOMEM)
        elif backing is not None:
            for start, end in rest:
                fill(self._ram, physical + start - low, backing, start, end - start)

    def detach(self, extent: SharedExtent, size: int) -> None:
        """A mapping of so many bytes is gone; the last one takes the pages with it."""
        extent.mapped -= size
        if extent.mapped > 0:
            return
        if extent.lent is not None:
            extent.lent.reclaim(keep=False)
        else:
            self._flush(extent, extent.low, extent.high)
        if extent.backing is not None:
            self._of_files.pop(extent.backing.identity, None)
        self._ram.release(extent.physical, extent.high - extent.low)

    def load(self, identity: object, offset: int, size: int) -> bytes | None:
        """Bytes of a file as its shared mappings have them; None where these do not have all."""
        extent = self._of_files.get(identity)
        if extent is None or offset < extent.low or offset + size > extent.high:
            return None
        return self._ram.read(extent.physical + offset - extent.low, size)

    def store(self, identity: object, offset: int, data: bytes) -> bool:
        """Change them there, as a store through a mapping would; False likewise.

        Raises:
            MappingError: ENOMEM beyond the budget.
        """
        extent = self._of_files.get(identity)
        if extent is None or offset < extent.low or offset + len(data) > extent.high:
            return False
        physical = extent.physical + offset - extent.low
        if not self._ram.touch(physical, len(data)):
            raise MappingError(errno.ENOMEM)
        self._ram.put(physical, data)
        extent.written = True
        return True

    def flush(self, identity: object, low: int = 0, high: int | None = None) -> None:
        """Bring stores through mappings to a file, before some of its bytes are looked at."""
        extent = self._of_files.get(identity)
        if extent is not None:
            end = extent.high if high is None else min(high, extent.high)
            self._flush(extent, max(low & -PAGE, extent.low), end)

    def flush_all(self) -> None:
        """Bring all stores to their files."""
        for extent in list(self._of_files.values()):
            self._flush(extent, extent.low, extent.high)

    def _flush(self, extent: SharedExtent, low: int, high: int) -> None:
        backing = extent.backing
        if backing is None or extent.lent is not None or not extent.written:
            return
        high = min(high, backing.size)
        for at in range(low, high, _PIECE):
            size = min(_PIECE, high - at)
            data = self._ram.read(extent.physical + at - extent.low, size)
            if data != backing.read_at(at, size):
                views = self._views(backing.identity, at, at + size)
                backing.write_back(at, data)
                for changed in views:
                    changed(False)

    def punch(self, extent: SharedExtent, offset: int, size: int) -> None:
        """Make pages of an object zeros; a file keeps its size."""
        self._ram.discard(extent.physical + offset - extent.low, size)
        backing = extent.backing
        if backing is None or extent.lent is not None:
            return
        for at in range(offset, min(offset + size, backing.size), _PIECE):
            backing.write_back(at, _ZERO[: min(_PIECE, offset + size - at, backing.size - at)])

    def _refresh(self, identity: object) -> None:
        """Bring a file's content to its mappings, after it has changed or has another size."""
        extent = self._of_files.get(identity)
        if extent is None or extent.backing is None or extent.lent is not None:
            return
        fill(self._ram, extent.physical, extent.backing, extent.low, extent.high - extent.low)
        end = max(extent.backing.size, extent.low)
        if end < extent.high:
            at = extent.physical + end - extent.low
            inside = min(page_up(at) - at, extent.high - end)
            if inside and self._ram.touch(at, inside):
                self._ram.put(at, bytes(inside))
            rest = (extent.high - end - inside) & -PAGE
            if rest:
                self._ram.discard(page_up(at), rest)
