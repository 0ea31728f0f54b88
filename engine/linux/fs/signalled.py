"""Files that send a signal when something comes (O_ASYNC; send_sigio in fs/fcntl.c)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.linux.fs import flags as fl

if TYPE_CHECKING:
    from engine.linux.fs.vfs import OpenFile

TO_THREAD, TO_PROCESS, TO_GROUP = 0, 1, 2
"""Kinds of owners (F_OWNER_*)."""
POLL_IN: Final = 1
POLL_OUT: Final = 2
BANDS: Final = {POLL_IN: fl.POLLIN | fl.POLLRDNORM, POLL_OUT: 0x304}
"""The value of si_band for each si_code."""


class FileOwner(Struct):
    """Who gets the signals of an open file, and which (an fown_struct).

    Attributes:
        kind: of owner, TO_*.
        number: its id, 0 for nobody.
        signal: the signal with a siginfo, 0 for SIGIO without.
        fd: the descriptor that O_ASYNC was set by.
    """

    kind: int = TO_THREAD
    number: int = 0
    signal: int = 0
    fd: int = -1


class SignalledFiles:
    """All open files with O_ASYNC that can say when something comes.

    Attributes:
        seen: what has come to each of them so far, to read and to write.
    """

    def __init__(self) -> None:
        """There are none."""
        self.seen: dict[OpenFile, tuple[int, int]] = {}

    @staticmethod
    def owner(file: "OpenFile") -> FileOwner:
        """The owner of an open file; nobody at first."""
        if file.listener is None:
            file.listener = FileOwner()
        return file.listener

    def set(self, file: "OpenFile", fd: int, *, on: bool) -> None:
        """O_ASYNC is set or cleared by a descriptor."""
        came = file.came()
        if not on:
            self.seen.pop(file, None)
        elif came is not None:
            self.seen.setdefault(file, came)
            self.owner(file).fd = fd

    def news(self) -> Iterator[tuple[FileOwner, int]]:
        """(owner, POLL_IN or POLL_OUT) for what has come since this was last asked."""
        for file, before in list(self.seen.items()):
            came = file.came()
            if not file.references or came is None:
                del self.seen[file]
                continue
            if came == before:
                continue
            self.seen[file] = came
            for code, was, now in zip((POLL_IN, POLL_OUT), before, came, strict=True):
                if was != now:
                    yield self.owner(file), code
