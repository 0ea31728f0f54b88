"""A process's descriptors; it is they that own the process's locks of records."""

from collections.abc import Callable, Iterator, Sequence

from engine.linux.errno import LinuxError
from engine.linux.fs.vfs import OpenFile

EBADF, EMFILE = 9, 24

MAX_FILES = 1 << 16
"""Cap on descriptors of one process, whatever its resource limit says."""


class FileTable:
    """Descriptors and what they refer to.

    Attributes:
        nofile: gives the soft limit of descriptors.
        shared: processes that use it besides the first one (CLONE_FILES).
    """

    def __init__(
        self,
        stdio: Sequence[OpenFile | None] = (),
        nofile: Callable[[], int] = lambda: 1024,
    ) -> None:
        self.nofile = nofile
        self.shared = 0
        self._files: dict[int, OpenFile] = {}
        self._cloexec: set[int] = set()
        self._lowest = 0
        for fd, file in enumerate(stdio):
            if file is not None:
                self._files[fd] = file.acquire()

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._files))

    def get(self, fd: int) -> OpenFile:
        """The open file of a descriptor; EBADF if there is none."""
        file = self._files.get(fd & 0xFFFFFFFF)
        if file is None:
            raise LinuxError(EBADF)
        return file

    def peek(self, fd: int) -> OpenFile | None:
        """The open file of a descriptor, if there is one."""
        return self._files.get(fd)

    def add(self, file: OpenFile, *, cloexec: bool = False, minimum: int = 0) -> int:
        """Give an open file the lowest free descriptor."""
        limit = self._limit()
        fd = max(minimum, self._lowest)
        while fd in self._files:
            fd += 1
        if fd >= limit:
            if file.references == 0:
                # Nothing else refers to it: it was opened for this descriptor.
                file.acquire().release()
            raise LinuxError(EMFILE)
        if minimum <= self._lowest:
            self._lowest = fd + 1
        self._files[fd] = file.acquire()
        self.set_cloexec(fd, cloexec)
        return fd

    def put(self, fd: int, file: OpenFile, *, cloexec: bool = False) -> None:
        """Make a descriptor refer to an open file, closing what it referred to."""
        if not 0 <= fd < self._limit():
            raise LinuxError(EBADF)
        before = self._files.get(fd)
        self._files[fd] = file.acquire()
        self.set_cloexec(fd, cloexec)
        if before is not None:
            before.unlock(self)
            before.release()

    def close(self, fd: int) -> None:
        """Free a descriptor; EBADF if it is free."""
        file = self._files.pop(fd, None)
        if file is None:
            raise LinuxError(EBADF)
        self._cloexec.discard(fd)
        self._lowest = min(self._lowest, fd)
        file.unlock(self)
        file.release()

    def is_cloexec(self, fd: int) -> bool:
        """True if an exec closes it."""
        return fd in self._cloexec

    def set_cloexec(self, fd: int, on: bool) -> None:
        """Set or clear FD_CLOEXEC."""
        if on:
            self._cloexec.add(fd)
        else:
            self._cloexec.discard(fd)

    def copy(self, nofile: Callable[[], int]) -> "FileTable":
        """Descriptors of a new process: they refer to the same open files."""
        other = FileTable(nofile=nofile)
        other._files = {fd: file.acquire() for fd, file in self._files.items()}
        other._cloexec = set(self._cloexec)
        other._lowest = self._lowest
        return other

    def close_on_exec(self) -> None:
        """Close what another program is not to have."""
        for fd in sorted(self._cloexec):
            self.close(fd)

    def close_all(self) -> None:
        """Close everything (the process ends)."""
        for fd in list(self._files):
            self.close(fd)

    def _limit(self) -> int:
        return min(self.nofile(), MAX_FILES)
