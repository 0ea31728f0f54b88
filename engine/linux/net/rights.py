"""Descriptors on their way between UNIX sockets (net/unix/garbage.c).

A file that is sent stays open until it is received or its message is dropped. Sockets may be sent
over themselves, and then nobody can receive them any more: those are found and dropped.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from engine.linux.errno import LinuxError
from engine.linux.fs.vfs import OpenFile

if TYPE_CHECKING:
    from engine.linux.net.socket import Socket

ETOOMANYREFS = 109

_MOST: Final = 1 << 15
"""Files on their way at once, whatever the resource limit says."""


class Rights:
    """All files on their way.

    Attributes:
        count: how many there are.
    """

    def __init__(self, sockets: "Mapping[Socket, None]") -> None:
        """Of these sockets."""
        self.count = 0
        self._sockets = sockets
        self._flying: dict[OpenFile, int] = {}
        self._dropped: list[OpenFile] = []
        self._dropping = False

    def send(self, files: Iterable[OpenFile], limit: int) -> list[OpenFile]:
        """Put files on their way; ETOOMANYREFS if more than `limit` are already."""
        files = list(files)
        if files and self.count > min(limit, _MOST):
            self.collect()
            if self.count > min(limit, _MOST):
                raise LinuxError(ETOOMANYREFS)
        for file in files:
            self._flying[file] = self._flying.get(file, 0) + 1
            file.acquire()
        self.count += len(files)
        return files

    def drop(self, files: Iterable[OpenFile]) -> None:
        """Files have arrived, or never will: they are not on their way any more.

        One may be a socket with more of them in its queue, to any depth.
        """
        self._dropped += files
        if self._dropping:
            return
        self._dropping = True
        try:
            while self._dropped:
                file = self._dropped.pop()
                self.count -= 1
                left = self._flying[file] - 1
                if left:
                    self._flying[file] = left
                else:
                    del self._flying[file]
                file.release()
        finally:
            self._dropping = False

    def collect(self) -> None:
        """Drop what only messages refer to that nobody can receive."""
        if not self.count or self._dropping:
            return
        lost = {
            file
            for file, count in self._flying.items()
            if file.references == count and file in self._sockets
        }
        if not lost:
            return
        reached = [each for each in self._sockets if each.references and each not in lost]
        sockets: dict[OpenFile, Socket] = {each: each for each in self._sockets}
        while reached and lost:
            for file in reached.pop().files_on_their_way():
                if file in lost:
                    lost.discard(file)
                    reached.append(sockets[file])
        for each in [each for each in self._sockets if each in lost]:
            each.drop_queue()
