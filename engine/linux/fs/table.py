"""A process's descriptors; it is they that own the process's locks of records."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from engine.linux.errno import LinuxError
from engine.linux.fs.vfs import OpenFile
from engine.linux.memorylimit import MemoryLimit

EBADF, ENOMEM, ENFILE, EMFILE = 9, 12, 23, 24

MOST_IN_ALL: Final = 1 << 20
"""Cap on the descriptors of all processes together, whatever their resource limits say."""


_DESCRIPTOR: Final = 1 << 10
"""Bytes that a descriptor takes, with an open file of its own."""
_LENT: Final = (1 << 31) - 1
"""No descriptor is as high."""


class DescriptorUse:
    """The descriptors that all processes of a machine have, counted.

    Attributes:
        count: how many there are.
        memory: the limit that they count against.
    """

    __slots__ = ("count", "memory")

    def __init__(self, memory: MemoryLimit | None = None) -> None:
        self.count = 0
        self.memory = MemoryLimit() if memory is None else memory

    def add(self, count: int, full: int = ENFILE) -> None:
        """So many descriptors more.

        Raises:
            LinuxError: of code `full` if there are too many, ENOMEM beyond the limit.
        """
        if self.count + count > MOST_IN_ALL:
            raise LinuxError(full)
        self.memory.take(count * _DESCRIPTOR)
        self.count += count

    def drop(self) -> None:
        """One descriptor less."""
        self.count -= 1
        self.memory.change(-_DESCRIPTOR)


class FileTable:
    """Descriptors and what they refer to.

    Attributes:
        nofile: gives the soft limit of descriptors.
        users: threads that use it; the last one that leaves closes all.
    """

    def __init__(
        self,
        stdio: Sequence[OpenFile | None] = (),
        nofile: Callable[[], int] = lambda: 1024,
        use: DescriptorUse | None = None,
    ) -> None:
        """Make a table.

        Args:
            stdio: what the first descriptors refer to.
            nofile: gives the soft limit of descriptors.
            use: of the machine; None for one of its own.
        """
        self.nofile = nofile
        self.users = 0
        self._use = use or DescriptorUse()
        self._files: dict[int, OpenFile] = {}
        self._cloexec: set[int] = set()
        self._taken = bytearray()  # 1 for each descriptor that is in use
        for fd, file in enumerate(stdio):
            if file is not None:
                self._take(fd, file)

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
        fd = self._taken.find(0, minimum)
        if fd < 0:
            fd = max(minimum, len(self._taken))
        full = fd >= self.nofile()
        try:
            if full:
                raise LinuxError(EMFILE)
            self._take(fd, file)
        except LinuxError:
            if file.references == 0:
                # Nothing else refers to it: it was opened for this descriptor.
                file.acquire().release()
            raise
        self.set_cloexec(fd, cloexec)
        return fd

    def _take(self, fd: int, file: OpenFile) -> None:
        """Use a free descriptor."""
        self._use.add(1)
        taken = self._taken
        if fd >= len(taken):
            taken.extend(bytes(fd + 1 - len(taken)))
        taken[fd] = 1
        self._files[fd] = file.acquire()

    def put(self, fd: int, file: OpenFile, *, cloexec: bool = False) -> None:
        """Make a descriptor refer to an open file, closing what it referred to."""
        if not 0 <= fd < self.nofile():
            raise LinuxError(EBADF)
        before = self._files.get(fd)
        if before is not None:
            self._files[fd] = file.acquire()
        else:
            self._take(fd, file)
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
        self._taken[fd] = 0
        self._use.drop()
        file.unlock(self)
        file.release()

    @contextmanager
    def lent(self, file: OpenFile) -> Iterator[int]:
        """A number by which one call finds an open file that needs no descriptor."""
        self._files[_LENT] = file
        try:
            yield _LENT
        finally:
            del self._files[_LENT]

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
        """Descriptors of one's own: they refer to the same open files.

        Raises:
            LinuxError: ENOMEM, if the machine has as many as it may.
        """
        self._use.add(len(self._files), ENOMEM)
        other = FileTable(nofile=nofile, use=self._use)
        other._files = {fd: file.acquire() for fd, file in self._files.items()}
        other._cloexec = set(self._cloexec)
        other._taken = self._taken[: max(self._files, default=-1) + 1]
        return other

    def join(self) -> "FileTable":
        """One more thread uses it."""
        self.users += 1
        return self

    def leave(self) -> None:
        """A thread uses it no longer; the last one closes all."""
        self.users -= 1
        if not self.users:
            self.close_all()

    def close_on_exec(self) -> None:
        """Close what another program is not to have."""
        for fd in sorted(self._cloexec):
            self.close(fd)

    def close_all(self) -> None:
        """Close everything (the process ends)."""
        for fd in list(self._files):
            self.close(fd)
