"""The guest's address space: what Linux calls the mappings of a process.

A sorted table of mappings, each with permissions and backing; the emulator's page table is
rebuilt from it after every change. Mappings that nobody may access take no physical memory,
so a program may reserve terabytes.
"""

import errno
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from engine.arch.base import AddressPlan
from engine.cpu.base import Cpu
from engine.cpu.pagetable import NOWHERE, Region, RegionTable
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE, Ram
from engine.guest.bytes import MappedBytes
from engine.guest.firsttouch import FirstTouch
from engine.guest.mapping import COPIED, OMITTED, Backing, Mapping, MappingError, page_up
from engine.guest.mappingtable import MappingTable
from engine.guest.pager import Pager
from engine.guest.pages import MixedViews
from engine.guest.pages import regions as regions_of
from engine.guest.shared import SharedPages
from engine.guest.translations import Translations

HEAP: Final = "[heap]"
"""Name of the mapping that brk moves the end of."""
_MANY: Final = 64
"""Ranges beyond which the emulator's page table is made anew."""

__all__ = ["Backing", "Mapping", "MappingError", "Memory", "page_up"]


_ALL: Final = READ | WRITE | EXECUTE
_OPEN: Final = nullcontext()
_LARGE = 1 << 20
"""Before so much is given back it is looked at how much is resident."""
_NOTHING: Final = Mapping(-1, -1, 0)
"""Stands for a neighbour that is not there."""
_PLAIN: Final = (0, None, False, (0, 0), False, None, COPIED)
"""Private anonymous memory of the program's own, from `Mapping.offset` on."""


def _region(mapping: Mapping) -> Region:
    """The entry of the emulator's page table for memory without a file."""
    start, end, perms, physical = mapping[:4]
    perms |= READ if perms & WRITE else 0
    return tuple.__new__(Region, (start, end, physical, perms, 0))


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same ranges, those that meet as one."""
    if len(ranges) == 1:
        return ranges.copy()
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


class Memory:
    """The address space of one guest process.

    It puts together the table of mappings, the pages behind them and the copying of bytes;
    what those do is theirs, and the most used of it stands here under the same name.

    Attributes:
        plan: where things are put.
        ram: the pages of all address spaces.
        table: the mappings by address.
        pager: the pages behind them.
        code: what the emulator has translated of it.
        views: shared pages that one mapping may write and another execute.
        first_touch: gives pages to vast mappings where they are touched.
        bytes: copies in and out.
        mappings: all mappings, sorted by address.
        shared: the pages that shared mappings have in common.
        traps: breakpoints in it that are dealt with inside the processor.
        peak: bytes that were resident at most, as far as it has been looked.
        closed: pages that keep only some of their permissions, and which; see `close_pages`.
        watched: the same of pages in which accesses are watched; see `watch_pages`.
        on_change: told (what, start, size) of a range: "map", "unmap", "protect" or "discard";
            "data" is a mapping of what cannot be executed.
        before_move: told (start, size) of pages that are about to go to other addresses.
        recorded: told as `on_change`, before it, of "map" for "data", and of "provide" where
            memory gets pages as it is touched first; None for nobody.
    """

    def __init__(
        self,
        plan: AddressPlan,
        ram: Ram,
        cpu: Cpu,
        regions: RegionTable | None = None,
        shared: SharedPages | None = None,
    ) -> None:
        """Map nothing.

        Args:
            plan: where things are put.
            ram: the pages.
            cpu: the processor.
            regions: the page table; that of the processor if not given.
            shared: what all address spaces share; of its own if not given.
        """
        self.plan = plan
        self.ram = self._ram = ram
        self._cpu = cpu
        self._code = code = Translations(cpu, regions)
        self.traps = code.traps
        self.forget, self.invalidate_all = code.invalidate, code.invalidate_all
        self.changing_code = code.together
        self.table = MappingTable(ram)
        self.pager = Pager(self.table, ram, code, shared)
        self.code = code
        self.closed: dict[int, int] = {}
        self.watched: dict[int, int] = {}
        self._behind: RegionTable | None = None
        self._watched_bytes: tuple[Sequence[tuple[int, int]], ...] = ((), ())
        self._sifts = False
        self.peak = 0
        self.bytes = MappedBytes(self.table, ram, code, self.closed)
        self.first_touch = FirstTouch(self.table, self.pager, self.sync, self._provided)
        self.bytes.provide = self.first_touch.provide
        self.mappings = self.table.mappings
        self.shared = self.pager.shared
        self.shared.spaces.append(self)
        self.views = MixedViews(self.table, self.shared.spaces)
        self.on_change: Callable[[str, int, int], None] = lambda what, start, size: None
        self.before_move: Callable[[int, int], None] = lambda start, size: None
        self.recorded: Callable[[str, int, int], None] | None = None
        self.find = self.table.find
        self.overlapping = self.table.overlapping
        self.read = self.bytes.read
        self.write = self.bytes.write
        self.peek, self.poke, self.patch = self.bytes.peek, self.bytes.poke, self.bytes.patch
        self.read_cstring = self.bytes.read_cstring
        self.accessible = self.bytes.accessible
        self.words = self.bytes.words
        self.reader = self.bytes.reader
        self.text_reader = self.bytes.text_reader

    def free_range(self, size: int, top: int | None = None) -> int | None:
        """The highest free place of `size` bytes below the mapping area's top, as Linux picks."""
        plan = self.plan
        return self.table.free_range(size, plan.mmap_min, plan.mmap_top if top is None else top)

    def is_free(self, start: int, end: int) -> bool:
        """Tell whether nothing is mapped there."""
        return not self.overlapping(start, end)

    def map(
        self,
        start: int,
        size: int,
        perms: int,
        *,
        name: str = "",
        backing: Backing | None = None,
        offset: int = 0,
        shared: bool = False,
        inode: tuple[int, int] = (0, 0),
        reserved: bool = False,
    ) -> None:
        """Map `size` bytes at `start`, replacing what is there (MAP_FIXED).

        Raises:
            MappingError: ENOMEM without room, EPERM over an engine window.
        """
        end = start + page_up(size)
        self.table.need_room(1)
        usual = perms and backing is None and not shared and not reserved
        if usual and self._map_at_once(start, end, perms, name):
            if self.recorded is not None:
                self.recorded("map", start, end - start)
            self.on_change("data", start, end - start)
            return
        if end - start >= _LARGE or self.overlapping(start, end):
            self.unmap(start, end - start)
        mapping = Mapping(start, end, perms, None, name, offset, backing, shared, inode, reserved)
        if backing is not None and not shared:
            self.shared.keep_apart(backing.identity)
        if perms or backing is not None or shared:
            mapping = self.pager.back(mapping, grows=name == HEAP)
        if backing is None and not shared and not reserved:
            self.table.join(mapping)
        else:
            self.table.insert(mapping)
        self.changed("map", start, end - start)

    def _map_at_once(self, start: int, end: int, perms: int, name: str) -> bool:
        """Map private memory and show it to the emulator; False where that is not so simple."""
        table, size = self.table, end - start
        if size >= _LARGE or perms & EXECUTE or not self._shows_all():
            return False
        mappings = table.mappings
        index = bisect_right(table.starts, start)
        left = mappings[index - 1] if index else _NOTHING
        right = mappings[index] if index < len(mappings) else _NOTHING
        if left.end > start or (right.start < end and right is not _NOTHING):
            return False
        alike = (name, *_PLAIN)
        joins_left = left.end == start and left.perms == perms and left[4:] == alike
        joins_right = right.start == end and right.perms == perms and right[4:] == alike
        if joins_left or joins_right:
            beside = left if joins_left else right
            if (joins_left and joins_right) or beside.physical is None or beside.size >= _LARGE:
                return False
            physical = beside.physical + (beside.end - beside.start if joins_left else -size)
            if not self.ram.allocate_at(physical, size):
                return False
            if joins_left:
                mapping = table.resize(index - 1, left.start, end, shown=True)
            else:
                mapping = table.resize(index, start, right.end, shown=True)
            self._code.regions.change(beside.start, _region(mapping))
            return True
        mapping = Mapping(start, end, perms, None, name)
        mapping = self.pager.back(mapping, grows=name == HEAP, alone=True)
        table.insert(mapping, shown=True)
        if self._code.regions.add(_region(mapping)):
            self._code.refresh()
        return True

    def _shows_all(self) -> bool:
        """True if the emulator's page table has a region for each mapping, just as that is."""
        table = self.table
        return not (table.dirty or table.stale or self.closed) and self._behind is None

    def changed(self, what: str, start: int, size: int) -> None:
        """Tell those who listen of a change that has been made; see `on_change`."""
        if self.recorded is not None:
            self.recorded(what, start, size)
        self.on_change(what, start, size)

    def unmap(self, start: int, size: int, *, around: bool = False) -> None:
        """Unmap a range; holes in it are no error.

        Args:
            start: first byte, page aligned.
            size: bytes.
            around: engine windows inside of it stay, if there is more than them.

        Raises:
            MappingError: EPERM if it touches an engine window.
        """
        table = self.table
        end = start + page_up(size)
        touched = self.overlapping(start, end)
        if len(touched) == 1 and not touched[0].reserved and end - start < _LARGE:
            (mapping,) = touched  # the usual case
            if mapping.start < start and end < mapping.end:
                table.need_room(1)
            low, high = max(start, mapping.start), min(end, mapping.end)
            if not self._unmap_at_once(mapping, low, high):
                self.pager.drop(table.split(mapping, low, high))
            self.changed("unmap", start, end - start)
            return
        windows = [mapping for mapping in touched if mapping.reserved]
        if windows:
            inside = start <= windows[0].start and windows[-1].end <= end
            more = sum(mapping.size for mapping in windows) < end - start
            if not (around and inside and more):
                raise MappingError(errno.EPERM)
            touched = [mapping for mapping in touched if not mapping.reserved]
        if len(touched) == 1 and touched[0].start < start and end < touched[0].end:
            table.need_room(1)
        if end - start >= _LARGE:
            self.resident()
        for mapping in touched:
            low, high = max(start, mapping.start), min(end, mapping.end)
            self.pager.drop(table.split(mapping, low, high))
        if touched:
            self.changed("unmap", start, end - start)

    def _unmap_at_once(self, mapping: Mapping, low: int, high: int) -> bool:
        """Take private memory away, and from the emulator; False where that is not so simple."""
        start, end, perms, physical = mapping[:4]
        if (
            physical is None
            or not perms
            or perms & EXECUTE
            or mapping.backing is not None
            or mapping.extent is not None
            or (start < low and high < end)
            or not self._shows_all()
        ):
            return False
        table, rest = self.table, None
        if start < low:
            rest = table.resize(bisect_left(table.starts, start), start, low, shown=True)
        elif high < end:
            rest = table.resize(bisect_left(table.starts, start), high, end, shown=True)
        else:
            table.remove(mapping, shown=True)
        if self._code.regions.change(start, None if rest is None else _region(rest)):
            self._code.refresh()
        if self.ram.release(physical + low - start, high - low) and self._code.shown:
            self._cpu.flush_pages(low, high - low)
        return True

    def protect(self, start: int, size: int, perms: int) -> None:
        """Change permissions.

        Raises:
            MappingError: ENOMEM where a part is not mapped, EPERM over an engine window.
        """
        end = start + page_up(size)
        at = start
        pieces = self.overlapping(start, end)
        if any(mapping.reserved for mapping in pieces):
            raise MappingError(errno.EPERM)
        changed = [mapping for mapping in pieces if mapping.perms != perms]
        self.table.need_room(
            sum((mapping.start < start) + (end < mapping.end) for mapping in changed)
        )
        for mapping in pieces:
            if mapping.start > at:
                break
            at = mapping.end
            if mapping.perms != perms:
                self._protect(mapping, max(start, mapping.start), min(end, mapping.end), perms)
        self.table.merge(start, end)
        self.changed("protect", start, min(at, end) - start)
        if at < end:  # as far as the first hole
            raise MappingError(errno.ENOMEM)

    def _protect(self, mapping: Mapping, low: int, high: int, perms: int) -> None:
        if mapping.perms & EXECUTE and mapping.physical is not None:
            # While it is still executable: the emulator finds blocks by fetching.
            self._code.invalidate(low, high - low)
        piece = mapping.part(low, high)._replace(perms=perms)
        if perms and piece.physical is None:
            piece = self.pager.back(piece, grows=True)
        elif piece.extent is not None and perms & WRITE:
            piece.extent.written = True
        self.table.split(mapping, low, high)
        self.table.insert(piece)

    def _provided(self, start: int, size: int) -> None:
        if self.recorded is not None:
            self.recorded("provide", start, size)

    def own_page(self, page: int, name: str, offset: int) -> None:
        """Show a page of this address space's own in place of a shared one, with the same bytes.

        It goes as the shared one would. Nobody who listens is told: the program sees no change.

        Args:
            page: its address.
            name: what it is of.
            offset: of that.

        Raises:
            MappingError: ENOMEM without room.
        """
        mapping = self.find(page)
        if mapping is None or mapping.extent is None:
            return
        data = self.peek(page, PAGE)
        self.table.need_room((mapping.start < page) + (page + PAGE < mapping.end))
        own = Mapping(page, page + PAGE, mapping.perms, None, name, offset)
        own = self.pager.back(own)
        self.pager.drop(self.table.split(mapping, page, page + PAGE))
        self.table.insert(own)
        self.patch(page, data)

    def set_at_fork(self, start: int, size: int, on: int, off: int) -> None:
        """Change what a copy of the address space has of a range; holes in it are no error.

        Args:
            start: first byte, page aligned.
            size: bytes.
            on: WIPED or OMITTED bits to set.
            off: bits to clear.

        Raises:
            MappingError: ENOMEM for too many mappings.
        """
        end = start + page_up(size)
        changed = [
            mapping
            for mapping in self.overlapping(start, end)
            if mapping.at_fork & ~off | on != mapping.at_fork and not mapping.reserved
        ]
        self.table.need_room(
            sum((mapping.start < start) + (end < mapping.end) for mapping in changed)
        )
        for mapping in changed:
            piece = self.table.split(mapping, max(start, mapping.start), min(end, mapping.end))
            self.table.insert(piece._replace(at_fork=piece.at_fork & ~off | on))
        self.table.merge(start, end)

    def discard(self, start: int, size: int) -> None:
        """MADV_DONTNEED: private pages go back to their file's content or to zero."""
        end = start + page_up(size)
        if end - start >= _LARGE:
            self.resident()
        for mapping in self.overlapping(start, end):
            if mapping.reserved or mapping.shared or mapping.physical is None:
                continue
            piece = mapping.part(max(start, mapping.start), min(end, mapping.end))
            if self.pager.discard(piece):  # the emulator does not tell of pages it remembers
                self._cpu.flush_pages(piece.start, piece.size)
            self.changed("discard", piece.start, piece.size)

    def punch(self, start: int, size: int) -> None:
        """MADV_REMOVE: shared pages become zeros, in their files too."""
        end = start + page_up(size)
        for mapping in self.overlapping(start, end):
            piece = mapping.part(max(start, mapping.start), min(end, mapping.end))
            if mapping.extent is not None:
                self.shared.punch(mapping.extent, piece.offset, piece.size)
                self._cpu.flush_tlb()
                self.changed("map", piece.start, piece.size)

    def shows(self, identity: object) -> int:
        """The number of mappings that show this file."""
        return self.table.files.get(identity, 0)

    def file_changes(self, identity: object, low: int, high: int) -> Callable[[bool], None]:
        """A call is about to write to a file that mappings show, or to cut it.

        Private pages that nobody has written to are the file's until then.

        Args:
            identity: the file.
            low: the first byte that may change.
            high: one past the last.

        Returns:
            To be called afterwards, with True if the file has become shorter.
        """
        shown = [
            mapping
            for mapping in self.mappings
            if mapping.backing is not None and mapping.backing.identity is identity
        ]
        private = [m for m in shown if not m.shared and m.physical is not None]
        pages = self.pager.unwritten(private, low, high)

        def changed(cut: bool) -> None:
            self.pager.refill(pages)
            for mapping in private if cut else ():
                self.pager.drop_behind_end(mapping)
            for mapping in shown:
                self.table.touch(mapping.start, mapping.end)
                if mapping.perms & EXECUTE:
                    self._code.invalidate(mapping.start, mapping.size)

        return changed

    def sync(self) -> None:
        """Bring the emulator's page table up to date; before the guest runs on."""
        table = self.table
        if not table.changed:
            return
        self.views.mix()
        changed = table.renewed or table.stale or self._behind is not None
        if table.stale or len(table.dirty) > _MANY:
            self._set_regions(0, NOWHERE, self.mappings)
        else:
            for start, end in _joined(table.dirty):
                self._show(start, end)
        table.stale = False
        table.dirty.clear()
        self._code.refresh()
        if changed and self._code.shown:  # the emulator remembers no address that leads nowhere
            self._cpu.flush_tlb()
        table.renewed = False

    def _set_regions(self, start: int, end: int, mappings: Sequence[Mapping]) -> None:
        """Let a range of the emulator's page table be what these mappings say."""
        closed = self.closed
        if self._behind is not None:
            self._behind.replace(start, end, list(regions_of(mappings, closed)))
            closed = self.watched | {
                page: kept & self.watched.get(page, kept) for page, kept in closed.items()
            }
            sifted = {page: self.closed.get(page, _ALL) for page in self.watched}
            regions = regions_of(mappings, closed, sifted if self._sifts else None)
            self._code.regions.replace(start, end, list(regions))
            return
        self._code.regions.replace(start, end, list(regions_of(mappings, closed)))

    def activate(self) -> None:
        """Let the processor be in this address space."""
        self._show_watched()
        self.sync()
        self._code.show()

    def _show(self, start: int, end: int) -> None:
        """Bring a range of the emulator's page table up to date.

        A region that reaches into the range is of a mapping that does, now or before.
        """
        pieces = self.overlapping(start, end)
        if pieces:
            start, end = min(start, pieces[0].start), max(end, pieces[-1].end)
        self._set_regions(start, end, pieces)

    def close_pages(self, pages: dict[int, int]) -> None:
        """Take permissions from single pages (address to the bits that stay), nobody else's.

        The mappings keep theirs: an access that is refused only for this is the business of
        the one who closed the page.
        """
        for page in pages.keys() | self.closed.keys():
            if pages.get(page) != self.closed.get(page):
                self.table.touch(page, page + PAGE)
        self.closed.clear()
        self.closed.update(pages)

    def watch_pages(
        self,
        pages: dict[int, int],
        reads: Sequence[tuple[int, int]] = (),
        writes: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Take permissions from pages in which accesses are watched, as `close_pages` does.

        The processor reports accesses to them by the page alone, or tells those to the watched
        bytes from the others itself; `opened` lets all pass.

        Args:
            pages: with the bits that stay.
            reads: (start, end) of bytes of which loads are of interest.
            writes: the same for stores.
        """
        self._watched_bytes = reads, writes
        if bool(pages) != (self._behind is not None):
            self._behind = RegionTable() if pages else None
            self.table.stale = True
        for page in pages.keys() | self.watched.keys():
            if pages.get(page) != self.watched.get(page):
                self.table.touch(page, page + PAGE)
        self.watched.clear()
        self.watched.update(pages)
        if self._code.shown:
            self._show_watched()
            self._cpu.flush_tlb()

    def _show_watched(self) -> None:
        """Let the processor, which is in this address space, know what is watched there."""
        cpu, before = self._cpu, self._sifts
        cpu.page_table.behind = self._behind
        reads, writes = self._watched_bytes
        self._sifts = cpu.sift(reads, writes)
        cpu.coarse = () if self._sifts else self.watched
        self.table.stale = self.table.stale or self._sifts != before

    def opened(self) -> AbstractContextManager[None]:
        """Let what the processor executes meanwhile pass where accesses are watched."""
        return _OPEN if self._behind is None else self._opened()

    @contextmanager
    def _opened(self) -> Iterator[None]:
        with self._cpu.page_table.opened():
            self._cpu.flush_tlb()
            yield
        self._cpu.flush_tlb()

    def fresh(self) -> "Memory":
        """Make another address space, in which nothing is mapped."""
        return Memory(self.plan, self._ram, self._cpu, RegionTable(), self.shared)

    def copy(self) -> "Memory":
        """An address space with the same mappings and copies of private pages (dup_mmap).

        Raises:
            MappingError: ENOMEM without room.
        """
        other = self.fresh()
        try:
            other.table.need_room(len(self.mappings))
            for mapping in self.mappings:
                if not mapping.at_fork & OMITTED:
                    other.table.insert(other.pager.adopt(mapping))
        except MappingError:
            other.close()
            raise
        finally:
            self._cpu.flush_tlb()  # see `Ram.copy`
        return other

    def retire(self) -> None:
        """End the process's use of the memory, which can only be looked at from now on."""
        if self in self.shared.spaces:
            self.shared.spaces.remove(self)

    def close(self) -> None:
        """Give all pages back; the address space is not used any more."""
        self.retire()
        with self._code.elsewhere():
            self.pager.close()
        self.table.close()

    def commit(self, start: int, size: int) -> None:
        """Make a part of an engine window readable and executable, for the engine's code.

        Raises:
            MappingError: ENOMEM without room, EINVAL outside of the window.
        """
        mapping = self.find(start)
        end = start + page_up(size)
        if mapping is None or not mapping.reserved or end > mapping.end:
            raise MappingError(errno.EINVAL)
        self.table.need_room(2)
        self._protect(mapping, start, end, READ | EXECUTE)
        self.table.merge(start, end)

    def attach(self, start: int, size: int, perms: int, host: int = 0) -> None:
        """Open a part of an engine window for data of the engine's code.

        Args:
            start: first byte, page aligned.
            size: bytes.
            perms: what the engine's code may do there; so may the program.
            host: address of a shared mapping of the host's to show; 0 = fresh memory.

        Raises:
            MappingError: ENOMEM without room, EINVAL outside of the window.
        """
        mapping = self.find(start)
        end = start + page_up(size)
        if mapping is None or not mapping.reserved or mapping.perms or end > mapping.end:
            raise MappingError(errno.EINVAL)
        self.table.need_room(2)
        physical = (
            self._ram.show(host, end - start)
            if host
            else self._ram.allocate(end - start, own=True)
        )
        if physical is None or not self._ram.touch(physical, end - start):
            raise MappingError(errno.ENOMEM)
        piece = self.table.split(mapping, start, end)
        self.table.insert(piece._replace(perms=perms, physical=physical))

    def resident_of(self, mapping: Mapping) -> int:
        """Bytes of one of its mappings that are in physical pages."""
        if mapping.reserved or mapping.physical is None:
            return 0
        return self._ram.touched(mapping.physical, mapping.size)

    def resident(self) -> int:
        """Bytes of the program's mappings that are in physical pages."""
        now = sum(map(self.resident_of, self.mappings))
        self.peak = max(self.peak, now)
        return now

    def used(self) -> int:
        """Bytes of physical pages in use by the guest: the engine's windows do not show."""
        return self._ram.used() - self._ram.own_pages() * PAGE
