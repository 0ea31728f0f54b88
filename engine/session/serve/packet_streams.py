"""Ways that packets come and go: a socket that was accepted, or the streams that gdb has piped."""

import os
import select
import socket
from contextlib import suppress
from typing import Final, Protocol

_PIECE: Final = 1 << 16


class GdbLink(Protocol):
    """Bytes in both directions; `read` and the other calls belong to two threads."""

    def read(self, seconds: float | None = None) -> bytes:
        """Wait for bytes, b"" at the end.

        Args:
            seconds: to wait at the most; None for ever.

        Raises:
            OSError: the connection is broken; TimeoutError where nothing came in time.
        """

    def write(self, data: bytes) -> None:
        """Send all of it; OSError where nobody takes it."""

    def shut(self) -> None:
        """Have `read` end, now and from now on."""

    def close(self) -> None:
        """Give the descriptors back; `shut` comes first."""


class SocketLink:
    """A socket."""

    def __init__(self, made: socket.socket) -> None:
        """Take a socket that was accepted."""
        self._socket = made

    def read(self, seconds: float | None = None) -> bytes:
        """See `GdbLink`."""
        if seconds is not None:
            _ready(seconds, self._socket.fileno())
        return self._socket.recv(_PIECE)

    def write(self, data: bytes) -> None:
        """See `GdbLink`."""
        self._socket.sendall(data)

    def shut(self) -> None:
        """See `GdbLink`."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """See `GdbLink`."""
        self._socket.close()


class PipedLink:
    """Two descriptors: gdb's `target remote | COMMAND` holds the other ends."""

    def __init__(self, source: int, sink: int) -> None:
        """Read from one and write to the other."""
        self._source, self._sink = source, sink
        self._over, self._end = os.pipe()

    def read(self, seconds: float | None = None) -> bytes:
        """See `GdbLink`."""
        ready = _ready(seconds, self._source, self._over)
        return b"" if self._over in ready else os.read(self._source, _PIECE)

    def write(self, data: bytes) -> None:
        """See `GdbLink`."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._sink, view) :]

    def shut(self) -> None:
        """See `GdbLink`."""
        os.write(self._end, b"x")

    def close(self) -> None:
        """See `GdbLink`."""
        for descriptor in (self._source, self._sink, self._over, self._end):
            os.close(descriptor)


def _ready(seconds: float | None, *descriptors: int) -> list[int]:
    """Wait for one of the descriptors to be readable; TimeoutError where none is."""
    poller = select.poll()
    for each in descriptors:
        poller.register(each, select.POLLIN)
    found = poller.poll(None if seconds is None else seconds * 1000)
    if not found:
        raise TimeoutError
    return [descriptor for descriptor, _ in found]
