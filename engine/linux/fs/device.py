"""/dev: the few devices programs use, all made here."""

from collections.abc import Callable

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.data import MmapSource
from engine.linux.fs.devicenode import DeviceNode
from engine.linux.fs.devpts import PtyDirectory
from engine.linux.fs.procsource import ProcSource
from engine.linux.fs.pseudo import PseudoDirectory, StaticLink
from engine.linux.fs.vfs import Directory, Node, OpenFile, Volume

ENXIO, ENOSPC = 6, 28

_LARGEST = 1 << 20


class NullFile(OpenFile):
    """/dev/null."""

    def __init__(self, node: Node, flags: int) -> None:
        super().__init__(flags, node)

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        return b""

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
        return len(data)

    def pread(self, count: int, offset: int) -> bytes:
        """Read at an offset."""
        return self.read(count) or b""

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at an offset."""
        return self.write(data) or 0

    def seek(self, offset: int, whence: int) -> int:
        """Move the file position."""
        return 0


class ZeroFile(NullFile):
    """/dev/zero."""

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        return bytes(min(count, _LARGEST))

    def mmap_source(self) -> MmapSource:
        """The source of a mapping; ENODEV if it cannot be mapped."""
        return MmapSource(1 << 47, None, lambda _, size: bytes(size), None, object())


class FullFile(ZeroFile):
    """/dev/full."""

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
        raise LinuxError(ENOSPC)


class RandomFile(NullFile):
    """/dev/random and /dev/urandom: the guest's seeded random bytes."""

    def __init__(self, node: Node, flags: int, source: Callable[[int], bytes]) -> None:
        super().__init__(node, flags)
        self._source = source

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        return self._source(min(count, _LARGEST))


def make_dev(
    volume: Volume, terminals: Volume, proc: ProcSource, random_bytes: Callable[[int], bytes]
) -> Directory:
    """The directory /dev; names of standard streams lead to the calling process's.

    Args:
        volume: of the devices.
        terminals: of /dev/pts.
        proc: the processes.
        random_bytes: of /dev/random.
    """

    def random(node: Node, flags: int) -> OpenFile:
        return RandomFile(node, flags, random_bytes)

    def terminal(node: Node, flags: int) -> OpenFile:
        process = proc.process(proc.current_pid())
        if process is not None and process.terminal is not None:
            return process.terminal.opened(flags & ~fl.O_TRUNC)
        for fd in (0, 1, 2):  # one of a front end's has no job control
            file = process.files.peek(fd) if process is not None else None
            if file is not None and file.is_terminal and file.terminal is None:
                return file.reopen(flags & ~fl.O_TRUNC)
        raise LinuxError(ENXIO)

    dev = PseudoDirectory(volume)
    for name, minor, make in (
        (b"null", 3, NullFile),
        (b"zero", 5, ZeroFile),
        (b"full", 7, FullFile),
        (b"random", 8, random),
        (b"urandom", 9, random),
    ):
        dev.mount(name, DeviceNode(volume, 1, minor, make))
    dev.mount(b"tty", DeviceNode(volume, 5, 0, terminal))
    for link, target in (
        (b"fd", b"/proc/self/fd"),
        (b"stdin", b"/proc/self/fd/0"),
        (b"stdout", b"/proc/self/fd/1"),
        (b"stderr", b"/proc/self/fd/2"),
    ):
        dev.mount(link, StaticLink(volume, target))
    ptys = PtyDirectory(terminals, proc)
    dev.mount(b"pts", ptys)
    dev.mount(b"ptmx", DeviceNode(volume, 5, 2, ptys.new))
    return dev
