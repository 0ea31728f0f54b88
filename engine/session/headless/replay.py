"""The host's side of a run, recorded and given again: two runs see the same world.

Standard streams are the only way in from the host in a run on the guest's own clock. What a
second run writes is compared with the first one's and goes nowhere.
"""

import os
from collections import deque
from collections.abc import Callable
from typing import Any

from engine.linux.fs.stdio import HostIO, StreamStat


class RecordedIO(HostIO):
    """Passes everything through and remembers it."""

    def __init__(self) -> None:
        self.calls: deque[tuple[tuple[Any, ...], Any]] = deque()
        self.polls: dict[tuple[int, int, int], int] = {}
        self.now: Callable[[], int] = lambda: 0

    def _keep(self, key: tuple[Any, ...], call: Callable[[], Any]) -> Any:
        try:
            result = call()
        except OSError as error:
            self.calls.append((key, error))
            raise
        self.calls.append((key, result))
        return result

    def read(self, fd: int, count: int) -> bytes:
        """Read and remember."""
        return bytes(self._keep(("read", fd, count), lambda: os.read(fd, count)))

    def write(self, fd: int, data: bytes) -> int:
        """Write and remember."""
        return int(self._keep(("write", fd, data), lambda: os.write(fd, data)))

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        """Read and remember."""
        key = ("pread", fd, count, offset)
        return bytes(self._keep(key, lambda: os.pread(fd, count, offset)))

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """Write and remember."""
        key = ("pwrite", fd, data, offset)
        return int(self._keep(key, lambda: os.pwrite(fd, data, offset)))

    def seek(self, fd: int, offset: int, whence: int) -> int:
        """Move and remember."""
        key = ("seek", fd, offset, whence)
        return int(self._keep(key, lambda: os.lseek(fd, offset, whence)))

    def truncate(self, fd: int, size: int) -> None:
        """Cut and remember."""
        self._keep(("truncate", fd, size), lambda: os.ftruncate(fd, size))

    def poll(self, fd: int, events: int) -> int:
        """Ask; how often a wait asks is the host's business, its last answer counts."""
        result = super().poll(fd, events)
        self.polls[self.now(), fd, events] = result
        return result

    def stat(self, fd: int) -> StreamStat:
        """Ask and remember."""
        result = super().stat(fd)
        self.calls.append((("stat", fd), result))
        return result

    def ioctl(self, fd: int, request: int, argument: bytes) -> bytes:
        """Ask and remember."""
        key = ("ioctl", fd, request, argument)
        return bytes(self._keep(key, lambda: HostIO.ioctl(self, fd, request, argument)))


class ReplayedIO(HostIO):
    """Gives the same answers again.

    Attributes:
        difference: the first call that was not the recorded one, in words; "" if none.
    """

    def __init__(self, recorded: RecordedIO) -> None:
        self._calls = recorded.calls
        self._polls = recorded.polls
        self.now: Callable[[], int] = lambda: 0
        self.difference = ""

    def skip(self, count: int, difference: str) -> None:
        """Be as after so many answers, and with this difference."""
        for _ in range(count):
            self._calls.popleft()
        self.difference = difference

    def _give(self, key: tuple[Any, ...], otherwise: Any) -> Any:
        if self._calls and not self.difference:
            known, result = self._calls[0]
            if known == key:
                self._calls.popleft()
                if isinstance(result, OSError):
                    raise result
                return result
            self.difference = f"{_show(key)} where the plain run did {_show(known)}"
        elif not self.difference:
            self.difference = f"{_show(key)} where the plain run did nothing more"
        return otherwise

    def left(self) -> str:
        """The first output of the plain run that this one lacks, in words; "" if none."""
        rest = [key for key, _ in self._calls if key[0] in ("write", "pwrite")]
        return f"the plain run did {_show(rest[0])} besides" if rest else ""

    def read(self, fd: int, count: int) -> bytes:
        """The recorded bytes."""
        return bytes(self._give(("read", fd, count), b""))

    def write(self, fd: int, data: bytes) -> int:
        """Compare; nothing is written."""
        return int(self._give(("write", fd, data), len(data)))

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        """The recorded bytes."""
        return bytes(self._give(("pread", fd, count, offset), b""))

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """Compare; nothing is written."""
        return int(self._give(("pwrite", fd, data, offset), len(data)))

    def seek(self, fd: int, offset: int, whence: int) -> int:
        """The recorded position."""
        return int(self._give(("seek", fd, offset, whence), 0))

    def truncate(self, fd: int, size: int) -> None:
        """Compare; nothing is cut."""
        self._give(("truncate", fd, size), None)

    def poll(self, fd: int, events: int) -> int:
        """The recorded answer of the same system call."""
        return self._polls.get((self.now(), fd, events), events)

    def stat(self, fd: int) -> StreamStat:
        """The recorded attributes."""
        result = self._give(("stat", fd), None)
        return result if isinstance(result, StreamStat) else super().stat(fd)

    def ioctl(self, fd: int, request: int, argument: bytes) -> bytes:
        """The recorded answer."""
        return bytes(self._give(("ioctl", fd, request, argument), argument))


def _show(key: tuple[Any, ...]) -> str:
    parts = []
    for part in key[1:]:
        if isinstance(part, bytes):
            cut = part[:60]
            parts.append(repr(cut)[1:] + ("..." if len(part) > len(cut) else ""))
        else:
            parts.append(f"{part:#x}" if isinstance(part, int) and part > 999 else str(part))
    return f"{key[0]}({', '.join(parts)})"
