"""Contents of files: what mappings are made from, and the private overlay's sparse data."""

import os
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from engine.guest.mapping import Contents, ShownPages
from engine.linux.errno import LinuxError
from engine.linux.fs.host import HostHandle, translated
from engine.linux.memorylimit import DEFAULT_SPACE, MemoryLimit

ENOSPC, EFBIG = 28, 27

CHUNK = 1 << 16
_PAGE = 4096
MAX_FILE_SIZE = 1 << 44
"""As ext4 with 4 KiB blocks: beyond it a write fails with EFBIG."""

INODE = 1 << 10
"""Bytes that an inode takes, beside its name and contents."""


class MmapSource(Struct, frozen=True):
    """The source of a file's mapping.

    Attributes:
        size: bytes in the file now.
        host_fd: descriptor of a read-only host file that may be mapped privately, else None.
            It stays open as long as this record lives.
        read: (offset, size) -> bytes, short at the end of the file.
        write: (offset, data) -> count for MAP_SHARED; None where writing is not possible.
        identity: equal for two mappings of one file (MAP_SHARED, futexes).
        original: tells whether the contents are still those of `host_fd`.
        contents: gives what pages can hold in its place; None where they cannot.
    """

    size: int
    host_fd: int | None
    read: Callable[[int, int], bytes]
    write: Callable[[int, bytes], int] | None
    identity: object
    original: Callable[[], bool] = lambda: False
    contents: Callable[[], Contents | None] = lambda: None
    keep: HostHandle | None = None

    @property
    def can_map(self) -> bool:
        """True if `host_fd` can stand for the contents at this moment."""
        return self.host_fd is not None and self.original()

    @property
    def host_path(self) -> str | None:
        """Path of the host's file; None for a file that is the guest's alone."""
        return None if self.host_fd is None else os.readlink(f"/proc/self/fd/{self.host_fd}")


class Budget:
    """The private overlay's part of the guest's memory.

    Attributes:
        memory: the limit that it counts against, with all else that the guest has.
        space: bytes of contents that there may be, if nothing else takes memory.
        inodes: files, directories and links that the guest may make.
        used: bytes of contents in use.
        files: inodes in use.
    """

    __slots__ = ("files", "inodes", "memory", "space", "used")

    def __init__(
        self,
        space: int = DEFAULT_SPACE,
        inodes: int | None = None,
        memory: MemoryLimit | None = None,
    ) -> None:
        """Use nothing yet.

        Args:
            space: bytes of contents at the most.
            inodes: at the most; None for as many as fit.
            memory: the limit that they count against; None for one of their own.
        """
        self.space = space
        self.inodes = space // INODE if inodes is None else inodes
        self.memory = MemoryLimit(space) if memory is None else memory
        self.used = self.files = 0

    @property
    def free(self) -> int:
        """Bytes that contents may still take, as the guest is told."""
        return self.memory.shown

    def charge(self, count: int) -> None:
        """Take bytes, or give them back; ENOSPC where they are not left."""
        if count > 0:
            self.memory.take(count, ENOSPC)
        else:
            self.memory.change(count)
        self.used += count

    def move(self, count: int) -> None:
        """Take bytes for what has given as many back before, or will at once."""
        self.memory.change(count)
        self.used += count

    def charge_inode(self) -> None:
        """Take an inode; ENOSPC when there is none left."""
        if self.files >= self.inodes:
            raise self.memory.refuse(ENOSPC)
        self.memory.take(INODE, ENOSPC)
        self.files += 1

    def release_inode(self) -> None:
        """Give an inode back."""
        self.memory.change(-INODE)
        self.files -= 1


class SparseData:
    """Bytes of a file in chunks; what was never written reads as zero or from `lower`.

    A chunk may be shorter than CHUNK: what is missing of it is zero. While shared mappings show
    a part of the file, that part may be in their pages instead of in chunks (`lend`).
    """

    __slots__ = ("_lower", "_lower_size", "_shown", "budget", "chunks", "size")

    def __init__(self, budget: Budget, lower: HostHandle | None = None, size: int = 0) -> None:
        self.budget = budget
        self.chunks: dict[int, bytearray] = {}
        self.size = size
        self._shown: ShownPages | None = None
        self._lower = lower
        self._lower_size = size if lower is not None else 0

    def __del__(self) -> None:
        self.budget.charge(-sum(map(len, self.chunks.values())))

    @property
    def allocated(self) -> int:
        """Bytes that take space, for st_blocks."""
        shown = self._shown
        lent = shown.taken(shown.low, shown.high - shown.low) if shown is not None else ()
        held = sum(high - low for low, high in lent)
        return sum(map(len, self.chunks.values())) + self._lower_size + held

    def read(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes; fewer only at the end of the file."""
        count = min(count, self.size - offset)
        if count <= 0:
            return b""
        if self._shown is not None:
            return b"".join(
                pages.load(at, size) if pages is not None else self._read(at, size)
                for pages, at, size in self._parts(offset, offset + count)
            )
        return self._read(offset, count)

    def _read(self, offset: int, count: int) -> bytes:
        index, start = divmod(offset, CHUNK)
        if start + count <= CHUNK:
            return self._piece(index, start, count)
        pieces = []
        while count > 0:
            size = min(count, CHUNK - start)
            pieces.append(self._piece(index, start, size))
            count -= size
            index, start = index + 1, 0
        return b"".join(pieces)

    def write(self, offset: int, data: bytes, *, forced: bool = False) -> int:
        """Store bytes; returns how many (fewer if the space ran out on the way).

        Forced ones are stored whether or not space is left.
        """
        if offset + len(data) > MAX_FILE_SIZE:
            raise LinuxError(EFBIG)
        if self._shown is None:  # most files are not mapped
            done = self._write(offset, data, forced=forced)
        else:
            done = self._write_parts(offset, data, forced=forced)
        if data and not done:
            raise LinuxError(ENOSPC)
        self.size = max(self.size, offset + done)
        return done

    def _write_parts(self, offset: int, data: bytes, *, forced: bool) -> int:
        """Store bytes where they belong, in pages or in chunks; how many there was room for."""
        done = 0
        for pages, at, size in self._parts(offset, offset + len(data)):
            piece = data[done : done + size] if size < len(data) else data
            if pages is None:
                stored = self._write(at, piece, forced=forced)
            else:
                stored = self._write_shown(pages, at, piece)
            done += stored
            if stored < size:
                break
        return done

    def _write_shown(self, pages: ShownPages, offset: int, data: bytes) -> int:
        """Store bytes page by page, as far as there is memory."""
        if pages.store(offset, data):
            return len(data)
        done = 0
        while done < len(data):
            size = min(len(data) - done, _PAGE - (offset + done) % _PAGE)
            if not pages.store(offset + done, data[done : done + size]):
                self.budget.memory.note()
                break
            done += size
        return done

    def _parts(self, start: int, end: int) -> Iterator[tuple[ShownPages | None, int, int]]:
        """(pages or None for chunks, first byte, size) of the parts of a stretch."""
        shown = self._shown
        low, high = (shown.low, shown.high) if shown is not None else (end, end)
        cuts = (start, min(max(low, start), end), min(max(high, start), end), end)
        for pages, first, last in zip((None, shown, None), cuts, cuts[1:], strict=False):
            if first < last:
                yield pages, first, last - first

    def _write(self, offset: int, data: bytes, *, forced: bool) -> int:
        done = 0
        while done < len(data):
            index, start = divmod(offset + done, CHUNK)
            size = min(len(data) - done, CHUNK - start)
            try:
                chunk = self._own(index, forced=forced)
                self._grow(chunk, start + size, forced=forced)
            except LinuxError:
                break
            chunk[start : start + size] = data[done : done + size]
            done += size
        return done

    def truncate(self, size: int) -> None:
        """Set the size; what is cut off reads as zero when the file grows again."""
        if size > MAX_FILE_SIZE:
            raise LinuxError(EFBIG)
        shown = self._shown
        if shown is not None:  # also what was stored behind the end, which counts for nothing
            edge = max(min(size, self.size), shown.low)
            shown.clear(edge, max(shown.high - edge, 0))
        if size < self.size:
            last, start = divmod(size, CHUNK)
            for index in [i for i in self.chunks if i > last]:
                self.budget.charge(-len(self.chunks.pop(index)))
            chunk = self.chunks.get(last)
            if chunk is not None and len(chunk) > start:
                self.budget.charge(start - len(chunk))
                del chunk[start:]
            self._lower_size = min(self._lower_size, size)
            if self._lower_size == 0:
                self._lower = None
        self.size = size

    def reserve(self, offset: int, end: int) -> None:
        """Let a range take the space that writing to it would; ENOSPC if that is not left."""
        # A range may be too long for each of its chunks to be looked at.
        if end - offset - self.allocated > self.budget.memory.left:
            raise self.budget.memory.refuse(ENOSPC)
        parts = list(self._parts(offset, end))
        need = sum(
            size - sum(last - first for first, last in pages.taken(at, size))
            if pages is not None
            else sum(stop - held for _, held, stop in self._missing(at, at + size))
            for pages, at, size in parts
        )
        self.budget.memory.require(need, ENOSPC)
        for pages, at, size in parts:
            if pages is not None:
                self._hold_shown(pages, at, at + size)
                continue
            for index, _, stop in list(self._missing(at, at + size)):
                self._grow(self._own(index), stop, forced=False)

    def _hold_shown(self, pages: ShownPages, start: int, end: int) -> None:
        """Let pages take memory that did not, with what they hold."""
        for at in range(start, end, CHUNK):
            size = min(CHUNK, end - at)
            if not pages.store(at, pages.load(at, size)):
                raise self.budget.memory.refuse(ENOSPC)

    def _missing(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(number, bytes of it, bytes of it that a range needs) of chunks with too few."""
        for index in range(start // CHUNK, (end + CHUNK - 1) // CHUNK):
            if index not in self.chunks and index * CHUNK < self._lower_size:
                continue  # the host has it
            held, stop = len(self.chunks.get(index, b"")), min(end - index * CHUNK, CHUNK)
            if held < stop:
                yield index, held, stop

    def punch(self, offset: int, count: int) -> None:
        """Make a range read as zero without changing the size."""
        end = min(offset + count, self.size)
        for pages, at, size in self._parts(offset, max(end, offset)):
            if pages is not None:
                pages.clear(at, size)
            else:
                self._punch(at, at + size)

    def _punch(self, offset: int, end: int) -> None:
        while offset < end:
            index, start = divmod(offset, CHUNK)
            size = min(end - offset, CHUNK - start)
            if index in self.chunks or index * CHUNK < self._lower_size:
                chunk = self._own(index)
                if start == 0 and size >= len(chunk):
                    self.budget.charge(-len(chunk))
                    chunk.clear()
                elif start < len(chunk):
                    stop = min(start + size, len(chunk))
                    chunk[start:stop] = bytes(stop - start)
            offset += size

    def _piece(self, index: int, start: int, count: int) -> bytes:
        chunk = self.chunks.get(index)
        if chunk is None:
            data = b""
            if self._lower is not None:
                at = index * CHUNK + start
                want = min(count, self._lower_size - at)
                if want > 0:
                    with translated():
                        data = os.pread(self._lower.fd, want, at)
        else:
            data = bytes(chunk[start : start + count])
        return data if len(data) == count else data.ljust(count, b"\0")

    def lend(self, pages: ShownPages, ranges: Sequence[tuple[int, int]]) -> bool:
        """Move bytes to pages, for as long as these show them; False beyond the guest's memory."""
        moved: list[tuple[int, int]] = []
        before, self._shown = self._shown, None
        for low, high in ranges:
            for index in self._stored(low, high):
                first, last = max(low, index * CHUNK), min(high, (index + 1) * CHUNK)
                data = self._piece(index, first % CHUNK, last - first).rstrip(b"\0")
                chunk = self._own(index, forced=True)  # nothing of `lower` is to be seen there
                if last - first == CHUNK:
                    self.budget.move(-len(chunk))
                    chunk.clear()
                moved.append((first, last))
                if data and not pages.store(first, data):
                    self._write(first, data, forced=True)
                    moved.pop()
                    for start, end in moved:
                        self._return(pages, start, end)
                    self._shown = before
                    return False
        self._shown = pages
        return True

    def _stored(self, low: int, high: int) -> list[int]:
        """Numbers of chunks of a stretch that may hold something but zeros."""
        first, last = low // CHUNK, (high + CHUNK - 1) // CHUNK
        numbers = {index for index in self.chunks if first <= index < last}
        if self._lower is not None:
            numbers.update(range(first, min(last, (self._lower_size + CHUNK - 1) // CHUNK)))
        return sorted(numbers)

    def reclaim(self, *, keep: bool) -> None:
        """Take all bytes back; the pages keep theirs if asked to, else they become zeros."""
        pages, self._shown = self._shown, None
        if pages is None:
            return
        low, high = pages.low, min(pages.high, self.size)
        for index in self._stored(low, high):  # what was there before the pages had it
            self._punch(max(index * CHUNK, low), min((index + 1) * CHUNK, high))
        for first, last in pages.taken(low, max(high - low, 0)):
            for at in range(first & -CHUNK, last, CHUNK):
                self._return(pages, max(at, first), min(at + CHUNK, last), keep=keep)

    def _return(self, pages: ShownPages, first: int, last: int, *, keep: bool = False) -> None:
        data = pages.load(first, last - first)
        if not keep:
            pages.clear(first, last - first)
        data = data.rstrip(b"\0")
        if data:
            self._write(first, data, forced=True)

    def _own(self, index: int, *, forced: bool = False) -> bytearray:
        chunk = self.chunks.get(index)
        if chunk is None:
            loaded = b""
            if self._lower is not None and index * CHUNK < self._lower_size:
                loaded = self._piece(index, 0, min(CHUNK, self._lower_size - index * CHUNK))
                self._charge(len(loaded), forced=forced)
            chunk = self.chunks[index] = bytearray(loaded)
        return chunk

    def _charge(self, count: int, *, forced: bool) -> None:
        if forced:
            self.budget.move(count)
        else:
            self.budget.charge(count)

    def _grow(self, chunk: bytearray, size: int, *, forced: bool) -> None:
        if size > len(chunk):
            self._charge(size - len(chunk), forced=forced)
            chunk.extend(bytes(size - len(chunk)))
