"""Regular files of the private overlay: the host's until the first change."""

import os
import stat
from weakref import ref

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import InodeNumber, LowerRef, Meta
from engine.linux.fs.data import MmapSource, SparseData
from engine.linux.fs.host import HostHandle, translated
from engine.linux.fs.openfile import SeekableFile
from engine.linux.fs.vfs import OpenFile, OverlayNode, Volume

EPERM, EOPNOTSUPP, ENOSPC = 1, 95, 28

_COPY_WHOLE = 1 << 18
"""Files up to this size are copied when changed; of larger ones only the changed chunks."""

KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 0x10

F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE, F_SEAL_FUTURE_WRITE = 1, 2, 4, 8, 16
UNWRITABLE = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE
"""With one of these seals nobody can begin to write."""


class FileNode(OverlayNode):
    """A regular file; `data` is None as long as the host's contents hold."""

    __slots__ = ("_opened", "data", "seals")

    kind = stat.S_IFREG

    def __init__(
        self,
        volume: Volume,
        *,
        meta: Meta | None = None,
        lower: LowerRef | None = None,
        number: InodeNumber | None = None,
    ) -> None:
        super().__init__(volume, meta=meta, lower=lower, number=number)
        self.data = None if lower is not None else SparseData(volume.budget)
        self.seals = F_SEAL_SEAL
        self._opened: ref[HostHandle] | None = None

    def extent(self) -> tuple[int, int]:
        """Size and 512-byte blocks of a node with attributes of its own."""
        if self.data is not None:
            return self.data.size, (self.data.allocated + 511) >> 9
        host = self.host_stat()
        return host.st_size, host.st_blocks

    def open_lower(self) -> HostHandle:
        """The host's file, opened for reading: once, however many have it open."""
        assert self.lower is not None, "only asked for files of the host"
        kept = self._opened() if self._opened is not None else None
        if kept is None or not kept.leads_to(self.lower.stat()):
            kept = self.lower.directory.open_file(self.lower.name)
            self._opened = ref(kept)
        return kept

    def own_data(self, *, discard: bool = False) -> SparseData:
        """Contents to change: taken over from the host's file the first time."""
        data = self.data
        if data is None:
            self.own_meta()
            if discard:
                data = SparseData(self.volume.budget)
            else:
                handle = self.open_lower()
                with translated():
                    size = os.fstat(handle.fd).st_size
                    if size <= _COPY_WHOLE:
                        data = SparseData(self.volume.budget)
                        data.write(0, os.pread(handle.fd, size, 0))
                    else:
                        data = SparseData(self.volume.budget, handle, size)
            self.data = data
        return data

    def truncate(self, size: int) -> None:
        """Set the size of a regular file."""
        if self.seals & (F_SEAL_SHRINK | F_SEAL_GROW):
            now = self.extent()[0]
            if (size < now and self.seals & F_SEAL_SHRINK) or (
                size > now and self.seals & F_SEAL_GROW
            ):
                raise LinuxError(EPERM)
        self.own_data(discard=size == 0).truncate(size)
        self.touch()

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at an offset."""
        if not data:
            return 0
        if self.seals & (UNWRITABLE | F_SEAL_GROW) and (
            self.seals & UNWRITABLE or offset + len(data) > self.extent()[0]
        ):
            raise LinuxError(EPERM)
        count = self.own_data().write(offset, data)
        self.touch()
        return count

    def store(self, data: bytes, offset: int) -> int:
        """Take what was written through a mapping.

        Neither seals that came later stop it nor memory that is used up: the mapping's pages
        had theirs, and nobody is there to be told.
        """
        count = self.own_data().write(offset, data, forced=True)
        self.touch()
        return count

    def open(self, flags: int) -> OpenFile:
        """A new open file description; permissions were checked."""
        return RegularFile(self, flags)


class RegularFile(SeekableFile):
    """An open regular file of the private overlay."""

    is_regular = True

    def __init__(self, node: FileNode, flags: int) -> None:
        super().__init__(flags, node)
        self.file = node
        self._handle = node.open_lower() if node.data is None else None

    def on_close(self) -> None:
        """The last descriptor is gone."""
        self._handle = None

    def _lower(self) -> HostHandle:
        if self._handle is None:
            self._handle = self.file.open_lower()
        return self._handle

    def size(self) -> int:
        """Current size in bytes."""
        data = self.file.data
        if data is not None:
            return data.size
        with translated():
            return os.fstat(self._lower().fd).st_size

    def pread(self, count: int, offset: int) -> bytes:
        """Read at an offset."""
        data = self.file.data
        if data is not None:
            return data.read(offset, count)
        with translated():
            return os.pread(self._lower().fd, count, offset)

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at an offset."""
        return self.file.pwrite(data, offset)

    def truncate(self, size: int) -> None:
        """Set the size."""
        self.file.truncate(size)

    def allocate(self, mode: int, offset: int, length: int) -> None:
        """Reserve, extend or punch as fallocate says."""
        if mode & ~(KEEP_SIZE | PUNCH_HOLE | ZERO_RANGE):
            raise LinuxError(EOPNOTSUPP)
        data = self.file.own_data()
        end = offset + length
        if mode & (PUNCH_HOLE | ZERO_RANGE):
            data.punch(offset, length)
        else:
            data.reserve(offset, end)
        if not mode & KEEP_SIZE and end > data.size:
            data.truncate(end)
        self.file.touch()

    def host_fd(self) -> int | None:
        """The host descriptor behind it, if there is exactly one."""
        return self._lower().fd if self.file.data is None else None

    def mmap_source(self) -> MmapSource:
        """The source of a mapping; ENODEV if it cannot be mapped."""
        node = self.file
        handle = self._lower() if node.data is None else None

        def read(offset: int, size: int) -> bytes:
            if node.data is not None:
                return node.data.read(offset, size)
            assert handle is not None, "contents never go back to the host's"
            with translated():
                return os.pread(handle.fd, size, offset)

        writable = self.flags & fl.O_ACCMODE == fl.O_RDWR and not node.seals & UNWRITABLE
        return MmapSource(
            size=self.size(),
            host_fd=handle.fd if handle is not None else None,
            read=read,
            write=(lambda offset, data: node.store(data, offset)) if writable else None,
            identity=node,
            original=lambda: node.data is None,
            contents=lambda: node.data,
            keep=handle,
        )
