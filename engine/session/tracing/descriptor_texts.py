"""Descriptors with what they refer to, as strace's -y and -yy show them."""

import stat
from typing import Final

from engine.linux.errno import LinuxError
from engine.linux.fs.vfs import OpenFile
from engine.linux.thread import Thread
from engine.trace.strace.quoting import escaped_text, quoted

_AT_FDCWD: Final = -100
_AF_INET, _STREAM = 2, 1
_UNIX_KINDS: Final = {1: "UNIX-STREAM", 2: "UNIX", 5: "UNIX-SEQPACKET"}


def descriptor_text(thread: Thread, number: int, *, whole: bool) -> str:
    """The file of a descriptor; "" for none.

    Args:
        thread: whose it is.
        number: of the descriptor; AT_FDCWD for the working directory.
        whole: devices with their numbers, sockets with their addresses.
    """
    if number == _AT_FDCWD:
        return _escaped(thread.directory.path_of())
    file = thread.files.peek(number & 0xFFFFFFFF)
    if file is None:
        return ""
    text = _escaped(file.describe())
    if not whole:
        return text
    if text.startswith("socket:["):
        return _socket_text(file) or text
    try:
        found = file.stat()
    except (LinuxError, OSError):
        return text
    kind = stat.S_IFMT(found.mode)
    if kind in (stat.S_IFCHR, stat.S_IFBLK):
        major = found.rdev >> 8 & 0xFFF | found.rdev >> 32 & 0xFFFFF000
        minor = found.rdev & 0xFF | found.rdev >> 12 & 0xFFFFFF00
        return f"{text}<{'char' if kind == stat.S_IFCHR else 'block'} {major}:{minor}>"
    return text


def netlink_protocol(thread: Thread, number: int) -> int:
    """The protocol of a descriptor that is a netlink socket; -1 for any other."""
    from engine.linux.net.netlink import NetlinkSocket  # loads what few guests use

    file = thread.files.peek(number & 0xFFFFFFFF)
    return file.protocol if isinstance(file, NetlinkSocket) else -1


def _socket_text(file: OpenFile) -> str:
    """A socket's protocol, and its addresses or inodes; "" for one without."""
    from engine.linux.net.inet import InetSocket
    from engine.linux.net.netlink import NetlinkSocket
    from engine.linux.net.unix import UnixSocket
    from engine.linux.net.unixdatagrams import UnixDatagramSocket
    from engine.linux.net.unixstreams import UnixStream

    if isinstance(file, InetSocket):
        kind = "TCP" if file.kind == _STREAM else "UDP"
        head = kind if file.family == _AF_INET else f"{kind}v6"
        if not file.local.port:
            return f"{head}:[{file.ino}]"
        ends = [file.local] if file.remote is None else [file.local, file.remote]
        return f"{head}:[{'->'.join(map(str, ends))}]"
    if not isinstance(file, UnixSocket):
        return f"NETLINK:[{file.ino}]" if isinstance(file, NetlinkSocket) else ""
    head = _UNIX_KINDS.get(file.kind, "UNIX")
    peer = file.peer if isinstance(file, UnixStream | UnixDatagramSocket) else None
    text = str(file.ino) if peer is None else f"{file.ino}->{peer.ino}"
    name = file.own_name
    if name:
        at = "" if name[0] else "@"
        text += f",{at}{quoted(name.rstrip(bytes(1)) if name[0] else name[1:])}"
    return f"{head}:[{text}]"


def _escaped(path: bytes) -> str:
    return escaped_text(path).replace("<", "\\74").replace(">", "\\76")
