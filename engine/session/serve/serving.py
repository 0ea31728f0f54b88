"""Serves a guest to one front end after another, until one ends it."""

import os
from collections.abc import Callable
from contextlib import suppress

from engine.errors import CutOff
from engine.session.protocol.config import GuestConfig, Mode
from engine.session.serve.address import listening
from engine.session.serve.connection import GdbConnection
from engine.session.serve.gdbserver import GdbServer


def serve_gdb(config: GuestConfig, address: str, mode: Mode, tell: Callable[[str], object]) -> int:
    """Serve a guest to gdb; the exit code.

    Args:
        config: the guest.
        address: see `listening`.
        mode: strictness of breakpoints.
        tell: takes what the user should know.

    Raises:
        KprobeTuiError: the guest cannot be loaded, or nobody could reach the address.
    """
    socket, where = listening(address)
    server = None
    try:
        server = GdbServer(config, mode, tell)
        tell(f"listening on {where}: (gdb) target remote {where.removeprefix('unix:')}")
        while True:
            link, _ = socket.accept()
            left = GdbConnection(link, server).serve()
            if server.ended:
                return server.exit_code
            if left is None:
                tell("gdb has vanished; waiting for another one")
                continue
            return server.run_to_end() if left.goes_on else 0
    except KeyboardInterrupt as error:
        raise CutOff(130) from error
    finally:
        if server is not None:
            server.close()
        socket.close()
        if address.startswith("unix:"):
            with suppress(OSError):
                os.unlink(address.removeprefix("unix:"))
