"""Options of sockets: setsockopt and getsockopt, by level and number."""

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from engine.linux.context import Context
from engine.linux.errno import LinuxError
from engine.linux.net import interface
from engine.linux.net.addresses import AF_INET, AF_INET6, AF_NETLINK, AF_UNIX
from engine.linux.net.inet import SOL_IP, SOL_IPV6, InetSocket
from engine.linux.net.messages import STRANGER
from engine.linux.net.socket import (
    SO_LINGER,
    SO_PASSCRED,
    SO_RCVBUF,
    SO_RCVLOWAT,
    SO_RCVTIMEO,
    SO_REUSEPORT,
    SO_SNDBUF,
    SO_SNDTIMEO,
    SOL_SOCKET,
    Socket,
)
from engine.linux.net.tcp import IPPROTO_TCP, TcpSocket, TcpState
from engine.linux.net.udp import IPPROTO_UDP

EPERM, ENOENT, EACCES, ENODEV, EINVAL, EDOM = 1, 2, 13, 19, 22, 33
ENODATA, ENOPROTOOPT, EOPNOTSUPP, EADDRNOTAVAIL, ENOTCONN = 61, 92, 95, 99, 107

_SECOND: Final = 1_000_000_000
_LARGEST_BUFFER: Final = 212_992
"""net.core.rmem_max and wmem_max; what is stored is twice of it."""
_LEAST_SEND, _LEAST_RECEIVE = 4608, 2304
_INT_MAX: Final = 0x7FFFFFFF
_ANY: Final = range(-(1 << 31), 1 << 31)
_FLAG: Final = range(2)
"""Any number but 0 is stored as 1."""

_TYPE, _ERROR, _SNDBUFFORCE, _RCVBUFFORCE = 3, 4, 32, 33
_PEERCRED, _BINDTODEVICE, _ATTACH_FILTER, _DETACH_FILTER, _PEERNAME = 17, 25, 26, 27, 28
_ACCEPTCONN, _PEERSEC, _PROTOCOL, _DOMAIN, _LOCK_FILTER = 30, 31, 38, 39, 44
_MEMINFO, _COOKIE, _PEERGROUPS = 55, 57, 59
_NAME_ROOM: Final = 16
"""IFNAMSIZ."""
_RCVTIMEO_NEW, _SNDTIMEO_NEW = 66, 67
_TCP_INFO, _TCP_CONGESTION = 11, 13
_CONGESTION: Final = b"cubic"
_V6ONLY, _ADDRFORM = 26, 1
_MEMBERSHIPS: Final = {(SOL_IP, 35), (SOL_IP, 36), (SOL_IPV6, 20), (SOL_IPV6, 21)}
_MULTICAST_IF: Final = {(SOL_IP, 32), (SOL_IPV6, 17)}


class IntOption(NamedTuple):
    """An option that is a number.

    Attributes:
        level: SOL_* or a protocol.
        name: its number there.
        start: its value while nobody has set it.
        allowed: numbers that it takes; `_FLAG`: all, as 0 and 1.
        refused: the error for others.
    """

    level: int
    name: int
    start: int = 0
    allowed: range = _FLAG
    refused: int = EINVAL


def _flags(level: int, *names: int) -> tuple[IntOption, ...]:
    return tuple(IntOption(level, name) for name in names)


_OPTIONS: Final = (
    # SO_REUSEADDR, DONTROUTE, BROADCAST, KEEPALIVE, OOBINLINE, NO_CHECK, REUSEPORT, PASSCRED,
    # TIMESTAMP, PASSSEC, TIMESTAMPNS, RXQ_OVFL, WIFI_STATUS, NOFCS, SELECT_ERR_QUEUE, ZEROCOPY
    *_flags(SOL_SOCKET, 2, 5, 6, 9, 10, 11, 15, 16, 29, 34, 35, 40, 41, 43, 45, 60),
    IntOption(SOL_SOCKET, 12, 0, range(7), EPERM),  # PRIORITY
    IntOption(SOL_SOCKET, SO_RCVLOWAT, 1, _ANY),
    IntOption(SOL_SOCKET, 37, 0, _ANY),  # TIMESTAMPING
    IntOption(SOL_SOCKET, 42, -1, _ANY),  # PEEK_OFF
    IntOption(SOL_SOCKET, 46, 0, range(1), EPERM),  # BUSY_POLL
    IntOption(SOL_SOCKET, 47, -1, _ANY),  # MAX_PACING_RATE
    IntOption(SOL_SOCKET, 49, -1, _ANY),  # INCOMING_CPU
    IntOption(SOL_SOCKET, 62, 0, range(2), ENODEV),  # BINDTOIFINDEX
    IntOption(SOL_SOCKET, 74, 1, range(-1, 2)),  # TXREHASH
    # IP_RECVOPTS, RETOPTS, PKTINFO, RECVERR, RECVTTL, RECVTOS, FREEBIND, ORIGDSTADDR, NODEFRAG,
    # BIND_ADDRESS_NO_PORT
    *_flags(SOL_IP, 6, 7, 8, 11, 12, 13, 15, 20, 24),
    IntOption(SOL_IP, 1, 0, range(256)),  # TOS
    IntOption(SOL_IP, 2, 64, range(1, 256)),  # TTL
    IntOption(SOL_IP, 10, 1, range(6)),  # MTU_DISCOVER
    IntOption(SOL_IP, 33, 1, range(256)),  # MULTICAST_TTL
    IntOption(SOL_IP, 34, 1),  # MULTICAST_LOOP
    IntOption(SOL_IP, 49, 1),  # MULTICAST_ALL
    # IPV6_RECVERR, V6ONLY, RECVPKTINFO, RECVHOPLIMIT, DONTFRAG, RECVTCLASS, FREEBIND
    *_flags(SOL_IPV6, 25, _V6ONLY, 49, 51, 62, 66, 78),
    IntOption(SOL_IPV6, 16, 64, range(256)),  # UNICAST_HOPS
    IntOption(SOL_IPV6, 18, 1, range(256)),  # MULTICAST_HOPS
    IntOption(SOL_IPV6, 19, 1),  # MULTICAST_LOOP
    IntOption(SOL_IPV6, 23, 1, range(6)),  # MTU_DISCOVER
    IntOption(SOL_IPV6, 67, 0, range(256)),  # TCLASS
    # TCP_NODELAY, CORK
    *_flags(IPPROTO_TCP, 1, 3),
    IntOption(IPPROTO_TCP, 2, 536, range(88, 32768)),  # MAXSEG
    IntOption(IPPROTO_TCP, 4, 7200, range(1, 32768)),  # KEEPIDLE
    IntOption(IPPROTO_TCP, 5, 75, range(1, 32768)),  # KEEPINTVL
    IntOption(IPPROTO_TCP, 6, 9, range(1, 128)),  # KEEPCNT
    IntOption(IPPROTO_TCP, 7, 6, range(1, 128)),  # SYNCNT
    IntOption(IPPROTO_TCP, 8, 60, _ANY),  # LINGER2
    IntOption(IPPROTO_TCP, 9, 0, _ANY),  # DEFER_ACCEPT
    IntOption(IPPROTO_TCP, 10, 0, _ANY),  # WINDOW_CLAMP
    IntOption(IPPROTO_TCP, 12, 1),  # QUICKACK
    IntOption(IPPROTO_TCP, 18, 0, range(_INT_MAX + 1)),  # USER_TIMEOUT
    IntOption(IPPROTO_TCP, 23, 0, range(_INT_MAX + 1)),  # FASTOPEN
    IntOption(IPPROTO_TCP, 25, -1, _ANY),  # NOTSENT_LOWAT
    IntOption(IPPROTO_UDP, 1),  # CORK
)
_BY_NUMBER: Final = {(each.level, each.name): each for each in _OPTIONS}


def _levels(socket: Socket) -> tuple[int, ...]:
    """The levels that a socket has options of, beside SOL_SOCKET."""
    if isinstance(socket, InetSocket):
        own = (SOL_IP, SOL_IPV6) if socket.family == AF_INET6 else (SOL_IP,)
        return (*own, socket.protocol)
    return ()


def _check_level(socket: Socket, level: int, *, setting: bool) -> None:
    if level == SOL_SOCKET or level in _levels(socket):
        return
    known = socket.family in (AF_INET6, AF_NETLINK) or (setting and socket.family == AF_INET)
    raise LinuxError(ENOPROTOOPT if known else EOPNOTSUPP)


# -- setting -------------------------------------------------------------------------------


def set_option(ctx: Context, socket: Socket, level: int, name: int, value: bytes) -> None:
    """Linux's setsockopt of a value in memory.

    Raises:
        LinuxError: EINVAL for a value that is too short, EDOM, EPERM and others for one that is
            not taken, ENOPROTOOPT for an option that there is not.
    """
    _check_level(socket, level, setting=True)
    if level == IPPROTO_TCP and name == _TCP_CONGESTION:
        if value.split(b"\0")[0] not in (_CONGESTION, b"reno"):
            raise LinuxError(ENOENT)
        return
    if level == SOL_SOCKET and name == _BINDTODEVICE:
        _bind_to_device(socket, value)
        return
    if (level, name) in _MEMBERSHIPS or (level, name) in _MULTICAST_IF:
        _join(socket, (level, name), value)
        return
    if level == SOL_SOCKET and len(value) < 4:
        raise LinuxError(EINVAL)
    if level == SOL_SOCKET and name in _SETTERS:
        _SETTERS[name](socket, value)
        return
    number = _number(level, value)
    option = _BY_NUMBER.get((level, name))
    if option is None:
        ctx.unsupported(f"socket option {name} of level {level}")
        raise LinuxError(ENOPROTOOPT)
    _check_use(socket, option)
    if level in (SOL_IP, SOL_IPV6) and number == -1 and option.allowed is not _FLAG:
        number = option.start
    if option.allowed is _FLAG:
        number = int(number != 0)
    elif number not in option.allowed:
        raise LinuxError(option.refused)
    if (level, name) == (SOL_SOCKET, SO_RCVLOWAT):
        number = _INT_MAX if number < 0 else number or 1
    socket.options[level, name] = number


def _number(level: int, value: bytes) -> int:
    """The value as an int; options of IP may also be a byte."""
    if len(value) >= 4:
        return int(struct.unpack("<i", value[:4])[0])
    if level == SOL_IP and value:
        return value[0]
    raise LinuxError(EINVAL)


def _check_use(socket: Socket, option: IntOption) -> None:
    """Fail where a socket can't have an option now."""
    key = option.level, option.name
    if key == (SOL_IPV6, _V6ONLY) and isinstance(socket, InetSocket) and socket.local.port:
        raise LinuxError(EINVAL)
    if key == (SOL_SOCKET, SO_PASSCRED) and socket.family not in (AF_UNIX, AF_NETLINK):
        raise LinuxError(EOPNOTSUPP)
    if key == (SOL_SOCKET, SO_REUSEPORT) and socket.family not in (AF_INET, AF_INET6):
        raise LinuxError(EOPNOTSUPP)


def _set_buffer(name: int, least: int) -> Callable[[Socket, bytes], None]:
    def store(socket: Socket, value: bytes) -> None:
        (size,) = struct.unpack("<i", value[:4])
        size = min(size & 0xFFFFFFFF, _LARGEST_BUFFER)
        socket.options[SOL_SOCKET, name] = max(2 * size, least)

    return store


def _set_linger(socket: Socket, value: bytes) -> None:
    if len(value) < 8:
        raise LinuxError(EINVAL)
    on, seconds = struct.unpack("<ii", value[:8])
    # 0: off, otherwise the seconds and one.
    socket.options[SOL_SOCKET, SO_LINGER] = 1 + (seconds & _INT_MAX) if on else 0


def _set_timeout(name: int) -> Callable[[Socket, bytes], None]:
    def store(socket: Socket, value: bytes) -> None:
        if len(value) < 16:
            raise LinuxError(EINVAL)
        seconds, micro = struct.unpack("<qq", value[:16])
        if not 0 <= micro < 1_000_000:
            raise LinuxError(EDOM)
        # A negative time: do not wait at all.
        moment = seconds * _SECOND + micro * 1000 if seconds >= 0 else 1
        socket.options[SOL_SOCKET, name] = min(moment, 1 << 62)

    return store


def _set_nothing(socket: Socket, value: bytes) -> None:
    """Taken, and without effect."""


def _set_filter(socket: Socket, value: bytes) -> None:
    """A program that picks packets: of netlink's there are none that could be picked."""
    if socket.family != AF_NETLINK:
        raise LinuxError(ENOPROTOOPT)


def _refuse(socket: Socket, value: bytes) -> None:
    raise LinuxError(EPERM)


def _set_debug(socket: Socket, value: bytes) -> None:
    if any(value[:4]):
        raise LinuxError(EACCES)


def _read_only(socket: Socket, value: bytes) -> None:
    raise LinuxError(ENOPROTOOPT)


_SETTERS: Final[dict[int, Callable[[Socket, bytes], None]]] = {
    SO_SNDBUF: _set_buffer(SO_SNDBUF, _LEAST_SEND),
    SO_RCVBUF: _set_buffer(SO_RCVBUF, _LEAST_RECEIVE),
    SO_LINGER: _set_linger,
    SO_RCVTIMEO: _set_timeout(SO_RCVTIMEO),
    SO_SNDTIMEO: _set_timeout(SO_SNDTIMEO),
    _RCVTIMEO_NEW: _set_timeout(SO_RCVTIMEO),
    _SNDTIMEO_NEW: _set_timeout(SO_SNDTIMEO),
    14: _set_nothing,  # SO_BSDCOMPAT
    _ATTACH_FILTER: _set_filter,
    _DETACH_FILTER: _set_filter,
    1: _set_debug,
    _SNDBUFFORCE: _refuse,
    _RCVBUFFORCE: _refuse,
    36: _refuse,  # SO_MARK
    **dict.fromkeys(
        (_TYPE, _ERROR, _PEERCRED, 19, _PEERNAME, _ACCEPTCONN, _PEERSEC, _PROTOCOL, _DOMAIN),
        _read_only,
    ),
}


def _bind_to_device(socket: Socket, value: bytes) -> None:
    name = value[:15].split(b"\0")[0]
    if name not in (b"", interface.NAME):
        raise LinuxError(ENODEV)
    socket.binding = bool(name)


def _join(socket: Socket, key: tuple[int, int], value: bytes) -> None:
    """Groups: `lo` is not an interface of groups; what is chosen must be it."""
    if len(value) < 4:
        raise LinuxError(EINVAL)
    if key not in _MEMBERSHIPS:
        return
    if isinstance(socket, TcpSocket):
        raise LinuxError(EPERM if key[0] == SOL_IPV6 else ENOPROTOOPT)
    if key[1] in (36, 21):
        raise LinuxError(EADDRNOTAVAIL)
    raise LinuxError(ENODEV)


# -- getting -------------------------------------------------------------------------------


def get_option(ctx: Context, socket: Socket, level: int, name: int, room: int) -> bytes:
    """The value of an option, as there is room for.

    Raises:
        LinuxError: ENOPROTOOPT and others, as `set_option`.
    """
    _check_level(socket, level, setting=False)
    if level == SOL_SOCKET:
        special = _socket_level(socket, name, room)
        if special is not None:
            return special
    elif level == IPPROTO_TCP and isinstance(socket, TcpSocket):
        if name == _TCP_INFO:
            return tcp_info(socket)[:room]
        if name == _TCP_CONGESTION:
            return _CONGESTION.ljust(16, b"\0")[:room]
    elif level == SOL_IP and name == 4:  # IP_OPTIONS: none
        return b""
    elif (level, name) in ((SOL_IP, 14), (SOL_IPV6, 24)):  # MTU
        if isinstance(socket, InetSocket) and socket.remote is None:
            raise LinuxError(ENOTCONN)
        return struct.pack("<i", interface.MTU)[:room]
    elif (level, name) in _MULTICAST_IF:
        return bytes(4)[:room]
    option = _BY_NUMBER.get((level, name))
    if option is None:
        raise LinuxError(ENOPROTOOPT)
    number = socket.options.get((level, name), option.start)
    if level == SOL_IP and room < 4 and 0 <= number < 256:
        return bytes((number,))[:room]
    return struct.pack("<i", number)[:room]


def _socket_level(socket: Socket, name: int, room: int) -> bytes | None:
    """Options of SOL_SOCKET that are not plain numbers."""
    if name in (SO_RCVTIMEO, SO_SNDTIMEO, _RCVTIMEO_NEW, _SNDTIMEO_NEW):
        old = {_RCVTIMEO_NEW: SO_RCVTIMEO, _SNDTIMEO_NEW: SO_SNDTIMEO}.get(name, name)
        seconds, rest = divmod(socket.option(old), _SECOND)
        return struct.pack("<qq", seconds, rest // 1000)[:room]
    if name == SO_LINGER:
        linger = socket.option(SO_LINGER)
        return struct.pack("<ii", linger > 0, max(0, linger - 1))[:room]
    if name == _PEERCRED:
        return socket.peer_credentials.pack()[:room]
    if name == _PEERNAME:
        answer = socket.peer_name()
        if room > len(answer):
            return answer
        if room < len(answer):
            raise LinuxError(EINVAL)
        return answer
    if name == _BINDTODEVICE:
        if socket.binding and room < _NAME_ROOM:
            raise LinuxError(EINVAL)
        return interface.NAME + b"\0" if socket.binding else b""
    if name == _COOKIE:
        return struct.pack("<Q", socket.ino)[:room]
    if name == _MEMINFO:
        sizes = (0, socket.receive_buffer, 0, socket.send_buffer, 0, 0, 0, 0, 0)
        return struct.pack("<9I", *sizes)[:room]
    if name == _PEERGROUPS:
        if socket.peer_credentials is STRANGER:
            raise LinuxError(ENODATA)
        return struct.pack("<I", socket.peer_credentials.gid)  # a guest has one group
    if name == _PEERSEC:
        raise LinuxError(ENOPROTOOPT)
    plain = {
        _TYPE: socket.kind,
        _ACCEPTCONN: int(socket.listening),
        _PROTOCOL: socket.protocol,
        _DOMAIN: socket.family,
        SO_SNDBUF: socket.send_buffer,
        SO_RCVBUF: socket.receive_buffer,
        1: 0,
        14: 0,
        19: 1,
        36: 0,
        _LOCK_FILTER: 0,
        48: 16,
        56: 0,
    }
    if name == _ERROR:
        return struct.pack("<i", socket.take_error())[:room]
    return struct.pack("<i", plain[name])[:room] if name in plain else None


def tcp_info(socket: TcpSocket) -> bytes:
    """A struct tcp_info: what a connection on loopback is like."""
    waiting = len(socket.queue) if socket.state is TcpState.LISTEN else 0
    most = socket.backlog if socket.state is TcpState.LISTEN else 0
    head = struct.pack("<8B", socket.state, 0, 0, 0, 0, 7, 0x77, 0)
    mss = 32_768 if socket.remote is not None else 536
    words = (
        *(200_000, 40_000, mss, mss, waiting, most, 0, 0, 0),
        *(0, 0, 0, 0, interface.MTU, socket.receive_buffer // 2, 50, 25, _INT_MAX, 10, mss, 3),
        *(0, socket.receive_buffer // 2, 0),
    )
    body = struct.pack(f"<{len(words)}I", *words)
    counts = struct.pack("<4Q", 1 << 63, (1 << 64) - 1, 0, socket.received)
    return (head + body + counts).ljust(232, b"\0")
