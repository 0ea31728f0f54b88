"""The user at the other end of a connection that was made on this machine.

A port of 127.0.0.1 is open to everybody on the machine. The kernel knows who owns the other end:
net/ipv4/tcp_ipv4.c (`/proc/net/tcp`) lists both ends of a local connection, and SO_PEERCRED of
unix(7) tells of socket files.
"""

import pwd
import socket
import struct
from typing import Final

_UCRED: Final = struct.Struct("=iII")
_TABLES: Final = {socket.AF_INET: "/proc/self/net/tcp", socket.AF_INET6: "/proc/self/net/tcp6"}
_ESTABLISHED: Final = "01"
_LOCAL, _REMOTE, _STATE, _UID, _INODE = 1, 2, 3, 7, 9


def peer_user(link: socket.socket) -> int | None:
    """Return the user id that owns the other end; None where the kernel does not tell.

    An end that is closed already belongs to nobody: the kernel lists such ends as user 0.
    """
    if link.family == socket.AF_UNIX:
        data = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        return int(_UCRED.unpack(data)[1])
    try:
        wanted = [_listed(link.family, name) for name in (link.getpeername(), link.getsockname())]
        with open(_TABLES[link.family], encoding="ascii") as table:
            for line in table:
                row = line.split()
                if row[_LOCAL : _REMOTE + 1] != wanted:
                    continue
                held = row[_STATE] == _ESTABLISHED and row[_INODE] != "0"
                return int(row[_UID]) if held else None
    except (OSError, ValueError, IndexError):
        pass
    return None


def user_name(uid: int | None) -> str:
    """Return a user in words."""
    if uid is None:
        return "an unknown user"
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _listed(family: int, name: tuple[str, int]) -> str:
    """Return an address and a port as the table writes them: 32-bit words in the host's order."""
    raw = socket.inet_pton(family, name[0].partition("%")[0])
    words = struct.unpack(f"={len(raw) // 4}I", raw)
    return "".join(f"{word:08X}" for word in words) + f":{name[1]:04X}"
