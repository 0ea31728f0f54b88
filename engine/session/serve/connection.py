"""A connection to gdb: bytes in, packets out, interrupts heard while the guest runs."""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final

from engine.session.serve.answering import LeaveError, PacketServer
from engine.session.serve.packet_streams import GdbLink
from engine.session.serve.packets import INTERRUPT, ForeignBytesError, PacketReader, packet

_PATIENCE: Final = 10.0
"""Seconds until the first packet has to be there: a silent client keeps gdb out no longer."""
_WAITING_MOST: Final = 1024
"""Packets that wait for an answer; gdb has one or two under way."""
_GONE: Final = b""
_TO_HTTP: Final = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"This is a server for gdb (target remote), not for browsers.\n"
)


class GdbConnection:
    """One gdb at the other end of a link."""

    def __init__(self, link: GdbLink, server: PacketServer, tell: Callable[[str], object]) -> None:
        """Connect gdb with what answers it.

        Args:
            link: to gdb; closed at the end.
            server: answers what comes.
            tell: takes why a client was refused.
        """
        self._link = link
        self._server = server
        self._tell = tell
        self._reader = PacketReader()
        self._busy = False
        self._packets: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    @property
    def begun(self) -> bool:
        """True once the client has spoken the protocol."""
        return self._reader.begun

    def serve(self) -> LeaveError | None:
        """Answer until the connection is over.

        Returns:
            How gdb has left; None where gdb has vanished, or a client was refused.
        """
        server = self._server
        server.put = self._send
        listener = threading.Thread(target=self._listen, name="gdb", daemon=True)
        listener.start()
        try:
            while True:
                self._busy = False
                body = self._packets.get()
                self._busy = True
                if body == _GONE:
                    return None
                answer = server.answer(body)
                # R has no answer, and none that is not known has another one.
                if body[:1] != b"R":
                    self._send(answer)
                if body == b"QStartNoAckMode":
                    self._reader.acknowledges = False
        except LeaveError as left:
            return left
        except OSError:
            return None
        finally:
            server.put = lambda body: None
            self._link.shut()
            listener.join()
            self._link.close()

    def _send(self, body: bytes) -> None:
        self._link.write(packet(body))

    def _listen(self) -> None:
        """Take what comes; an interrupt, or the connection's end, stops a guest that runs."""
        try:
            latest = monotonic() + _PATIENCE
            while data := self._link.read(None if self.begun else max(latest - monotonic(), 0)):
                self._take(data)
        except ForeignBytesError as error:
            self._refuse(error)
        except TimeoutError:
            self._tell(f"a client that said nothing for {_PATIENCE:g} s was sent away")
        except OSError:
            pass
        self._packets.put(_GONE)
        if self._busy:
            self._server.interrupt()

    def _take(self, data: bytes) -> None:
        for body in self._reader.take(data):
            self._acknowledge()  # gdb drops an answer that comes before
            if body == INTERRUPT:
                if self._busy or not self._packets.empty():
                    self._server.interrupt()
            elif not body:
                self._send(b"")
            elif self._packets.qsize() >= _WAITING_MOST:
                raise ForeignBytesError(f"more than {_WAITING_MOST} packets at once")
            else:
                self._packets.put(body)
        self._acknowledge()

    def _refuse(self, error: ForeignBytesError) -> None:
        self._tell(f"a client was sent away: it sent {error}, which is not gdb's protocol")
        if error.is_http:
            with suppress(OSError):
                self._link.write(_TO_HTTP)

    def _acknowledge(self) -> None:
        while self._reader.answers:
            self._link.write(self._reader.answers.popleft())
