"""Messages between sockets, and how system calls hand them over: msghdr and control messages."""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

from engine.linux.context import Context
from engine.linux.errno import LinuxError
from engine.linux.fs.vfs import OpenFile

EPERM, EINVAL, ENOBUFS = 1, 22, 105

SOL_SOCKET, SOL_IP, SOL_IPV6 = 1, 0, 41
_RIGHTS, _CREDENTIALS = 1, 2

MSG_OOB, MSG_PEEK, MSG_CTRUNC, MSG_TRUNC, MSG_DONTWAIT = 1, 2, 8, 0x20, 0x40
MSG_EOR, MSG_WAITALL, MSG_ERRQUEUE, MSG_NOSIGNAL = 0x80, 0x100, 0x2000, 0x4000
MSG_WAITFORONE, MSG_CMSG_CLOEXEC = 0x10000, 0x40000000

_MOST_FILES: Final = 253
"""SCM_MAX_FD."""
_MOST_CONTROL: Final = 20480
"""Bytes of control messages (net.core.optmem_max)."""
_NOBODY: Final = 65534


class Credentials(NamedTuple):
    """Who somebody is (struct ucred)."""

    pid: int
    uid: int
    gid: int

    def pack(self) -> bytes:
        """As in memory."""
        return struct.pack("<iII", self.pid, self.uid & 0xFFFFFFFF, self.gid & 0xFFFFFFFF)


NOBODY: Final = Credentials(0, _NOBODY, _NOBODY)
"""Of messages that were sent without."""
STRANGER: Final = Credentials(0, 0xFFFFFFFF, 0xFFFFFFFF)
"""The peer of a socket that has none."""


def own_credentials(ctx: Context) -> Credentials:
    """The credentials of the process that makes the call."""
    who = ctx.fs.identity
    return Credentials(ctx.pid, who.uid, who.gid)


class Outgoing(Struct):
    """A message that a call sends.

    Attributes:
        data: the bytes.
        name: sockaddr of the receiver, b"" for the one that is connected.
        files: sent along.
        credentials: those that were given, None for the sender's.
        flags: MSG_*.
    """

    data: bytes
    name: bytes = b""
    files: Sequence[OpenFile] = ()
    credentials: Credentials | None = None
    flags: int = 0


class ControlItem(NamedTuple):
    """A control message that is received.

    Attributes:
        level: SOL_*.
        kind: its number there.
        data: its contents.
    """

    level: int
    kind: int
    data: bytes


class Incoming(Struct):
    """A message, or a part of a stream, that a call receives.

    Attributes:
        data: the bytes.
        whole: length of the message they are from, or theirs.
        name: sockaddr of the sender, b"" if it has none, None where that is not told.
        files: that came along, with a reference each.
        control: what else came along.
        flags: MSG_* for the receiver.
        last: a stream hands over no more in this call, as what follows came from someone else.
    """

    data: bytes
    whole: int
    name: bytes | None = None
    files: list[OpenFile] = field(default_factory=list)
    control: list[ControlItem] = field(default_factory=list)
    flags: int = 0
    last: bool = False


class MessageHeader(NamedTuple):
    """A struct msghdr.

    Attributes:
        name: address of a sockaddr.
        name_size: its size.
        vectors: address of an iovec array.
        length: its length.
        control: address of control messages.
        control_size: their size.
    """

    name: int
    name_size: int
    vectors: int
    length: int
    control: int
    control_size: int


def header_at(ctx: Context, address: int) -> MessageHeader:
    """The struct msghdr at an address."""
    found = struct.unpack("<Qi4xQQQQ", ctx.memory.read(address, 48))
    if found[0] and found[1] < 0:
        raise LinuxError(EINVAL)
    return MessageHeader(*found)


def name_at(ctx: Context, address: int, size: int) -> bytes:
    """A sockaddr argument."""
    if not 0 <= size <= 128:
        raise LinuxError(EINVAL)
    return bytes(ctx.memory.read(address, size))


def store_name(ctx: Context, name: bytes, address: int, size_at: int) -> None:
    """Write a sockaddr to memory, cut to the size that is there, and its whole size to there."""
    (room,) = struct.unpack("<i", ctx.memory.read(size_at, 4))
    if room < 0:
        raise LinuxError(EINVAL)
    if room and name:
        ctx.memory.write(address, name[:room])
    ctx.memory.write(size_at, struct.pack("<i", len(name)))


def control_at(ctx: Context, header: MessageHeader) -> list[ControlItem]:
    """The control messages that are sent."""
    size = header.control_size
    if not header.control or not size:
        return []
    if size > _MOST_CONTROL:
        raise LinuxError(ENOBUFS)
    raw = bytes(ctx.memory.read(header.control, size))
    items = []
    at = 0
    while at + 16 <= size:
        length, level, kind = struct.unpack_from("<Qii", raw, at)
        if length < 16 or length > size - at:
            raise LinuxError(EINVAL)
        items.append(ControlItem(level, kind, raw[at + 16 : at + length]))
        at += (length + 7) & ~7
    return items


def rights_in(
    ctx: Context, items: Sequence[ControlItem]
) -> tuple[list[OpenFile], Credentials | None]:
    """Files and credentials that are sent over a UNIX socket (scm_send)."""
    files: list[OpenFile] = []
    credentials = None
    for level, kind, data in items:
        if level != SOL_SOCKET:
            continue
        if kind == _RIGHTS:
            fds = struct.unpack_from(f"<{len(data) // 4}i", data)
            if len(files) + len(fds) > _MOST_FILES:
                raise LinuxError(EINVAL)
            files += [ctx.files.get(fd) for fd in fds]
        elif kind == _CREDENTIALS:
            if len(data) != 12:
                raise LinuxError(EINVAL)
            credentials = Credentials(*struct.unpack("<iII", data))
            if credentials != own_credentials(ctx) and ctx.fs.identity.uid:
                raise LinuxError(EPERM)
        else:
            raise LinuxError(EINVAL)
    return files, credentials


def credentials_item(who: Credentials) -> ControlItem:
    """Who has sent a message."""
    return ControlItem(SOL_SOCKET, _CREDENTIALS, who.pack())


def hand_over(ctx: Context, header: MessageHeader, got: Incoming, flags: int) -> tuple[int, int]:
    """Write control messages to memory; (bytes written, MSG_CTRUNC or 0)."""
    at = 0
    room = header.control_size if header.control else 0
    lost = 0
    for item in got.control:
        length = 16 + len(item.data)
        if room - at < 16:
            lost = MSG_CTRUNC
            continue
        if room - at < length:
            lost, length = MSG_CTRUNC, room - at
        head = struct.pack("<Qii", length, item.level, item.kind)
        ctx.memory.write(header.control + at, head + item.data[: length - 16])
        at = min(room, at + (length + 7 & ~7))
    if got.files:
        fds = _descriptors(ctx, got.files, (room - at - 16) // 4, flags)
        if len(fds) < len(got.files):
            lost = MSG_CTRUNC
        if fds:
            length = 16 + 4 * len(fds)
            head = struct.pack("<Qii", length, SOL_SOCKET, _RIGHTS)
            ctx.memory.write(header.control + at, head + struct.pack(f"<{len(fds)}i", *fds))
            at = min(room, at + (length + 7 & ~7))
    return at, lost


def _descriptors(ctx: Context, files: Sequence[OpenFile], room: int, flags: int) -> list[int]:
    """Give received files descriptors, as many as there is room for."""
    fds: list[int] = []
    for file in files[: max(0, room)]:
        try:
            fds.append(ctx.files.add(file, cloexec=bool(flags & MSG_CMSG_CLOEXEC)))
        except LinuxError:
            break
    return fds
