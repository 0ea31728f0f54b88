"""Contents of files: what mappings are made from, and the private overlay's sparse data."""

import os
from collections.abc import Callable

from msgspec import Struct

from engine.linux.errno import LinuxError
from engine.linux.fs.host import HostHandle, translated

ENOSPC, EFBIG = 28, 27

CHUNK = 1 << 16
MAX_FILE_SIZE = 1 << 44
"""As ext4 with 4 KiB blocks: beyond it a write fails with EFBIG."""

DEFAULT_SPACE = 1 << 30
DEFAULT_INODES = 1 << 20


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
    """

    size: int
    host_fd: int | None
    read: Callable[[int, int], bytes]
    write: Callable[[int, bytes], int] | None
    identity: object
    original: Callable[[], bool] = lambda: False
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
    """The private overlay's caps on the host's memory, and its use.

    Attributes:
        space: cap on bytes of contents.
        inodes: cap on files, directories and links made by the guest.
        used: bytes in use.
        files: inodes in use.
    """

    __slots__ = ("files", "inodes", "space", "used")

    def __init__(self, space: int = DEFAULT_SPACE, inodes: int = DEFAULT_INODES) -> None:
        self.space = space
        self.inodes = inodes
        self.used = 0
        self.files = 0

    def charge(self, count: int) -> None:
        """Take bytes; ENOSPC when the cap would be passed."""
        if count > 0 and self.used + count > self.space:
            raise LinuxError(ENOSPC)
        self.used += count

    def charge_inode(self) -> None:
        """Take an inode; ENOSPC when there is none left."""
        if self.files >= self.inodes:
            raise LinuxError(ENOSPC)
        self.files += 1

    def release_inode(self) -> None:
        """Give an inode back."""
        self.files -= 1


class SparseData:
    """Bytes of a file in chunks; what was never written reads as zero or from `lower`.

    A chunk may be shorter than CHUNK: what is missing of it is zero.
    """

    __slots__ = ("_lower", "_lower_size", "budget", "chunks", "size")

    def __init__(self, budget: Budget, lower: HostHandle | None = None, size: int = 0) -> None:
        self.budget = budget
        self.chunks: dict[int, bytearray] = {}
        self.size = size
        self._lower = lower
        self._lower_size = size if lower is not None else 0

    def __del__(self) -> None:
        self.budget.used -= sum(map(len, self.chunks.values()))

    @property
    def allocated(self) -> int:
        """Bytes that take space, for st_blocks."""
        return sum(map(len, self.chunks.values())) + self._lower_size

    def read(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes; fewer only at the end of the file."""
        count = min(count, self.size - offset)
        if count <= 0:
            return b""
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

    def write(self, offset: int, data: bytes) -> int:
        """Store bytes; returns how many (fewer if the space ran out on the way)."""
        if offset + len(data) > MAX_FILE_SIZE:
            raise LinuxError(EFBIG)
        done = 0
        while done < len(data):
            index, start = divmod(offset + done, CHUNK)
            size = min(len(data) - done, CHUNK - start)
            try:
                chunk = self._own(index)
                self._grow(chunk, start + size)
            except LinuxError:
                if done:
                    break
                raise
            chunk[start : start + size] = data[done : done + size]
            done += size
        self.size = max(self.size, offset + done)
        return done

    def truncate(self, size: int) -> None:
        """Set the size; what is cut off reads as zero when the file grows again."""
        if size > MAX_FILE_SIZE:
            raise LinuxError(EFBIG)
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

    def punch(self, offset: int, count: int) -> None:
        """Make a range read as zero without changing the size."""
        end = min(offset + count, self.size)
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

    def _own(self, index: int) -> bytearray:
        chunk = self.chunks.get(index)
        if chunk is None:
            loaded = b""
            if self._lower is not None and index * CHUNK < self._lower_size:
                loaded = self._piece(index, 0, min(CHUNK, self._lower_size - index * CHUNK))
                self.budget.charge(len(loaded))
            chunk = self.chunks[index] = bytearray(loaded)
        return chunk

    def _grow(self, chunk: bytearray, size: int) -> None:
        if size > len(chunk):
            self.budget.charge(size - len(chunk))
            chunk.extend(bytes(size - len(chunk)))
