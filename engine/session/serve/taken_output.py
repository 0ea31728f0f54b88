"""Standard streams of a guest whose output a front end sends on."""

import os
from collections.abc import Callable

from engine.linux.fs import flags as fl
from engine.linux.fs.stdio import HostIO, HostStream


class TakenOutput(HostIO):
    """Hands what is written to a function instead of the host."""

    def __init__(self, take: Callable[[bytes], object]) -> None:
        """`take` gets the bytes of each write."""
        self._take = take

    def write(self, fd: int, data: bytes) -> int:
        """Take all of it."""
        self._take(data)
        return len(data)


class PipedStreams:
    """Streams of a guest without a terminal: no input, and a pipe for all output."""

    def __init__(self, take: Callable[[bytes], object]) -> None:
        """`take` gets what the guest writes to standard output and standard error."""
        self._take = take
        self._nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._source, self._sink = os.pipe()

    def streams(self) -> tuple[HostStream, ...]:
        """Return standard input, output and error."""
        return (
            HostStream(self._nothing, HostIO(), fl.O_RDONLY),
            HostStream(self._sink, TakenOutput(self._take), fl.O_WRONLY),
            HostStream(self._sink, TakenOutput(self._take), fl.O_WRONLY),
        )

    def write(self, data: bytes) -> None:
        """Do nothing: these streams have no user who types."""

    def resize(self, columns: int, rows: int) -> None:
        """The pipe has no size."""

    def close(self) -> None:
        """Give the descriptors back."""
        for descriptor in (self._nothing, self._source, self._sink):
            os.close(descriptor)
