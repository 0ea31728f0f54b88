"""Addresses that a server listens on: of this machine alone, or a socket file."""

import ipaddress
import os
import socket
import stat
from contextlib import suppress
from typing import Final

from engine.errors import CommandError

_UNIX: Final = "unix:"


def listening(text: str) -> tuple[socket.socket, str]:
    """A socket that listens, and where, in words.

    Args:
        text: HOST:PORT of this machine (port 0: any that is free), or `unix:PATH`.

    Raises:
        CommandError: it is none of both, or cannot be had.
    """
    if text.startswith(_UNIX):
        return _file(text.removeprefix(_UNIX))
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 0xFFFF:
        raise CommandError(f"{text}: not of the form 127.0.0.1:PORT or unix:PATH")
    host = host.strip("[]") or "127.0.0.1"
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise CommandError(
            f"{text}: whoever reaches the server reads this user's files through the guest, so it"
            " listens on 127.0.0.1, [::1] or a socket file (unix:PATH) only"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, int(port)))
        made.listen(1)
    except OSError as error:
        made.close()
        raise CommandError(f"{text}: {error.strerror}") from error
    shown = f"[{host}]" if family == socket.AF_INET6 else host
    return made, f"{shown}:{made.getsockname()[1]}"


def _file(path: str) -> tuple[socket.socket, str]:
    """A socket file that only this user can open; one that nobody serves any more goes."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.lstat(path).st_mode) and _is_dead(path):
                os.unlink(path)
        before = os.umask(0o077)
        try:
            made.bind(path)
        finally:
            os.umask(before)
        made.listen(1)
    except OSError as error:
        made.close()
        raise CommandError(f"unix:{path}: {error.strerror or error}") from error
    return made, f"unix:{path}"


def _is_dead(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False
