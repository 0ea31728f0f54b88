"""A session of the Debug Adapter Protocol over two descriptors: requests in, answers out."""

import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Final

from engine.session.serve.dap.dapserver import DapServer
from engine.session.serve.dap.framing import (
    EditorGoneError,
    FramingError,
    MessageReader,
    MessageWriter,
)
from engine.session.serve.dap.launching import Configure

_PIECE: Final = 1 << 16

Tell = Callable[[str], object]


class DapConnection:
    """One front end."""

    def __init__(self, source: int, server: DapServer) -> None:
        """`server` answers what comes by a descriptor."""
        self._source, self._server = source, server
        self._news: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.damage: FramingError | None = None

    def serve(self) -> None:
        """Answer until the connection is over.

        Raises:
            FramingError: what comes are no messages.
        """
        listener = threading.Thread(target=self._listen, name="dap", daemon=True)
        listener.start()
        server = self._server
        try:
            while not server.over:
                self._news.get()
                server.work()
        except EditorGoneError:
            return
        if self.damage is not None:
            raise self.damage

    def _listen(self) -> None:
        reader = MessageReader()
        try:
            while data := os.read(self._source, _PIECE):
                for body in reader.take(data):
                    self._server.arrived(body)
                    self._news.put(None)
        except FramingError as error:
            self.damage = error
            self._server.damaged(error)
        except OSError:
            pass
        self._server.vanished()
        self._news.put(None)


def serve_dap(
    source: int,
    sink: int,
    configure: Configure,
    options: Sequence[str] = (),
    guest: Sequence[str] = (),
) -> int:
    """Serve one front end; the exit code.

    Args:
        source: descriptor that requests come by.
        sink: descriptor for answers.
        configure: gives the guest that words of the command line stand for.
        options: words that stand in front of those of `launch`.
        guest: GUEST ARGS for a `launch` that names none.

    Raises:
        FramingError: what comes are no messages.
    """
    server = DapServer(MessageWriter(sink), configure, options, guest)
    try:
        DapConnection(source, server).serve()
    finally:
        server.close()
    return 0


def serve_dap_here(
    configure: Configure, options: Sequence[str], guest: Sequence[str], tell: Tell
) -> int:
    """Serve the front end that has started this program; see `serve_dap`.

    Standard output is for messages alone: what anything else writes there goes to standard error.

    Args:
        configure: see there.
        options: likewise.
        guest: likewise.
        tell: takes what a user should know who has no editor.
    """
    if os.isatty(0):
        tell("an editor starts this, and speaks the Debug Adapter Protocol on standard input")
    source, sink = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return serve_dap(source, sink, configure, options, guest)
