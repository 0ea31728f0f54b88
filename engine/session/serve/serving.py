"""Serves a guest to gdb: to one client after another until the guest's end, or to one by pipes."""

import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from engine.errors import CommandError, CutOff
from engine.session.protocol.config import GuestConfig, Mode
from engine.session.serve.address import listening
from engine.session.serve.answering import PacketServer
from engine.session.serve.connection import GdbConnection
from engine.session.serve.gdbserver import GdbServer
from engine.session.serve.packet_streams import PipedLink, SocketLink
from engine.session.serve.peers import peer_user, user_name

STDIO: Final = "stdio"
"""The address that is this command's own standard input and output."""

Tell = Callable[[str], object]


def serve_gdb(config: GuestConfig, address: str, mode: Mode, tell: Tell) -> int:
    """Serve a guest to gdb; the exit code.

    Args:
        config: the guest.
        address: `STDIO`, or see `listening`.
        mode: strictness of breakpoints.
        tell: takes what the user should know.

    Raises:
        KprobeTuiError: the guest cannot be loaded, or nobody could reach the address.
    """
    if address == STDIO:
        return serve_here(lambda: GdbServer(config, mode, tell, sends_output=True), tell)
    return serve_at(address, lambda: GdbServer(config, mode, tell), tell)


def serve_at(address: str, make: Callable[[], PacketServer], tell: Tell) -> int:
    """Serve one client after another at an address; the exit code.

    Args:
        address: see `listening`.
        make: loads what is served, once the address is ours.
        tell: takes what the user should know.

    Raises:
        KprobeTuiError: it cannot be loaded, or nobody could reach the address.
    """
    made, where = listening(address)
    server = None
    try:
        server = make()
        tell(f"listening on {where}: (gdb) target remote {where.removeprefix('unix:')}")
        refused: set[int | None] = set()
        while True:
            link, _ = made.accept()
            if not _is_own(link, refused, tell):
                continue
            connection = GdbConnection(SocketLink(link), server, tell)
            left = connection.serve()
            if server.ended:
                return server.exit_code
            if left is not None:
                return server.run_to_end() if left.goes_on else 0
            if connection.begun:
                tell("gdb has vanished; waiting for another one")
    except KeyboardInterrupt as error:
        raise CutOff(130) from error
    finally:
        if server is not None:
            server.close()
        made.close()
        if address.startswith("unix:"):
            with suppress(OSError):
                os.unlink(address.removeprefix("unix:"))


def _is_own(link: socket.socket, refused: set[int | None], tell: Tell) -> bool:
    """Close a connection of another user's, of which is told once a user; False for those."""
    peer = peer_user(link)
    if peer == os.geteuid():
        return True
    link.close()
    if peer not in refused:
        refused.add(peer)
        tell(
            f"a client of {user_name(peer)} was sent away: this server is for"
            f" {user_name(os.geteuid())} alone"
        )
    return False


def serve_here(make: Callable[[], PacketServer], tell: Tell) -> int:
    """Serve the gdb that has started this program: `target remote | kprobe-tui serve --gdb stdio`.

    Standard output is for packets alone: what anything else writes there goes to standard error.

    Args:
        make: loads what is served.
        tell: takes what the user should know.

    Raises:
        KprobeTuiError: it cannot be loaded, or gdb has not started this program.
    """
    if os.isatty(0):
        raise CommandError(
            "--gdb stdio: gdb starts this itself: (gdb) target remote | kprobe-tui serve --gdb"
            " stdio GUEST"
        )
    # Ctrl-C is for gdb, which sends an interrupt; the terminal's signal reaches its children, too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        source, sink = os.dup(0), os.dup(1)
        with open(os.devnull, "r+b") as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(2 if _is_open(2) else nothing.fileno(), 1)
    except OSError as error:
        raise CommandError(f"--gdb stdio: standard input and output: {error.strerror}") from None
    link = PipedLink(source, sink)
    server = make()
    try:
        left = GdbConnection(link, server, tell).serve()
        if left is not None and left.goes_on and not server.ended:
            return server.run_to_end()
        return server.exit_code if server.ended else 0
    finally:
        server.close()


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
