"""/proc/PID/mem: the memory of a process as a file whose positions are addresses."""

from typing import Protocol

from engine.linux.errno import LinuxError
from engine.linux.fs.attributes import Stat
from engine.linux.fs.openfile import SeekableFile
from engine.linux.fs.pseudo import PseudoFile
from engine.linux.fs.vfs import OpenFile, Volume

EIO, EINVAL, EACCES = 5, 22, 13


class ProcMemory(Protocol):
    """The memory of a process, as its program was when the file was opened."""

    def read(self, address: int, size: int) -> bytes | None:
        """As many bytes as there are, whatever their protection; None once it has gone."""

    def write(self, address: int, data: bytes) -> int | None:
        """Change bytes: how many could be; None once it has gone."""


class ProcMemorySource(Protocol):
    """Gives the memory of a process for a file that is opened."""

    def __call__(self) -> ProcMemory:
        """The memory; LinuxError where nobody may have it."""


class MemoryFile(PseudoFile):
    """The file in /proc/PID."""

    __slots__ = ("_memory",)

    def __init__(self, volume: Volume, memory: ProcMemorySource) -> None:
        super().__init__(volume, lambda: b"", None, 0o600)
        self._memory = memory

    def stat(self) -> Stat:
        """The file's attributes."""
        identity = self.volume.identity
        return super().stat()._replace(uid=identity.uid, gid=identity.gid)

    def open(self, flags: int) -> OpenFile:
        """A new open file description; permissions were checked."""
        return OpenMemoryFile(self, flags, self._memory())


class OpenMemoryFile(SeekableFile):
    """The memory, opened."""

    def __init__(self, node: MemoryFile, flags: int, memory: ProcMemory) -> None:
        super().__init__(flags, node)
        self._of = memory

    def seek(self, offset: int, whence: int) -> int:
        """Move the file position; it has no end to count from."""
        if whence not in (0, 1):
            raise LinuxError(EINVAL)
        self.offset = (offset + (self.offset if whence else 0)) & (1 << 64) - 1
        return self.offset

    def pread(self, count: int, offset: int) -> bytes:
        """Read at an address."""
        data = self._of.read(offset, count)
        if count and data == b"":
            raise LinuxError(EIO)
        return data or b""

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at an address."""
        done = self._of.write(offset, data)
        if data and done == 0:
            raise LinuxError(EIO)
        return done or 0
