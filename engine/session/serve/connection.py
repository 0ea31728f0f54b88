"""A connection to gdb: bytes in, packets out, an ear for interrupts while the guest runs."""

import queue
import socket
import threading
from contextlib import suppress
from typing import Final

from engine.session.serve.gdbserver import GdbServer, LeaveError
from engine.session.serve.packets import INTERRUPT, PacketReader, packet

_PIECE: Final = 1 << 16
_GONE: Final = b""


class GdbConnection:
    """One gdb at the other end of a socket."""

    def __init__(self, link: socket.socket, server: GdbServer) -> None:
        """`server` answers what comes by `link`."""
        self._link = link
        self._server = server
        self._reader = PacketReader()
        self._busy = False
        self._packets: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def serve(self) -> LeaveError | None:
        """Answer until the connection is over: how gdb has left, None where it has vanished."""
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
            with suppress(OSError):
                self._link.shutdown(socket.SHUT_RDWR)
            listener.join()
            self._link.close()

    def _send(self, body: bytes) -> None:
        self._link.sendall(packet(body))

    def _listen(self) -> None:
        """Take what comes; an interrupt, or the connection's end, stops a guest that runs."""
        try:
            while data := self._link.recv(_PIECE):
                for body in self._reader.take(data):
                    self._acknowledge()  # gdb drops an answer that comes before
                    if body == INTERRUPT:
                        if self._busy or not self._packets.empty():
                            self._server.interrupt()
                    elif body:
                        self._packets.put(body)
                    else:
                        self._send(b"")
                self._acknowledge()
        except OSError:
            pass
        self._packets.put(_GONE)
        if self._busy:
            self._server.interrupt()

    def _acknowledge(self) -> None:
        while self._reader.answers:
            self._link.sendall(self._reader.answers.popleft())
