"""The families of sockets: the one list of what socket(2) can make."""

from collections.abc import Callable
from typing import Final, NamedTuple

from engine.linux.context import Context
from engine.linux.errno import LinuxError
from engine.linux.net.addresses import AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_UNIX
from engine.linux.net.messages import own_credentials
from engine.linux.net.netlink import NETLINK_KOBJECT_UEVENT, NETLINK_ROUTE, NetlinkSocket
from engine.linux.net.socket import (
    SOCK_DGRAM,
    SOCK_RAW,
    SOCK_SEQPACKET,
    SOCK_STREAM,
    Socket,
)
from engine.linux.net.tcp import IPPROTO_TCP, TcpSocket
from engine.linux.net.udp import IPPROTO_UDP, UdpSocket
from engine.linux.net.unixdatagrams import UnixDatagramSocket, pair_datagrams
from engine.linux.net.unixstreams import UnixStream

EPERM, EACCES, EINVAL = 1, 13, 22
EPROTONOSUPPORT, ESOCKTNOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT = 93, 94, 95, 97

_KINDS: Final = 11
"""SOCK_MAX."""
_FAMILIES: Final = 46
"""AF_MAX."""
_ICMP, _MPTCP, _ICMPV6 = 1, 262, 58
_PROTOCOLS: Final = 263
"""Numbers of protocols (IPPROTO_MAX)."""

Maker = Callable[[Context, int, int], Socket]


class SocketFamily(NamedTuple):
    """A family of sockets.

    Attributes:
        number: AF_*.
        make: makes one of a kind and protocol, or fails as Linux does.
        pair: makes two that are connected, None where that does not exist.
    """

    number: int
    make: Maker
    pair: Callable[[Context, int, int], tuple[Socket, Socket]] | None = None


def _uid(ctx: Context) -> int:
    return ctx.fs.identity.uid


def _unix(ctx: Context, kind: int, protocol: int) -> Socket:
    if protocol not in (0, AF_UNIX):
        raise LinuxError(EPROTONOSUPPORT)
    if kind in (SOCK_STREAM, SOCK_SEQPACKET):
        return UnixStream(ctx.net, kind, _uid(ctx))
    if kind in (SOCK_DGRAM, SOCK_RAW):
        return UnixDatagramSocket(ctx.net, _uid(ctx))
    raise LinuxError(ESOCKTNOSUPPORT)


def _unix_pair(ctx: Context, kind: int, protocol: int) -> tuple[Socket, Socket]:
    one = _unix(ctx, kind, protocol)
    try:
        other = _unix(ctx, kind, protocol)
    except LinuxError:
        one.acquire().release()
        raise
    who = own_credentials(ctx)
    if isinstance(one, UnixStream) and isinstance(other, UnixStream):
        one.join(other, who)
    elif isinstance(one, UnixDatagramSocket) and isinstance(other, UnixDatagramSocket):
        pair_datagrams(one, other)
    one.peer_credentials = other.peer_credentials = who
    return one, other


def _inet(family: int) -> Maker:
    def make(ctx: Context, kind: int, protocol: int) -> Socket:
        if not 0 <= protocol < _PROTOCOLS:
            raise LinuxError(EINVAL)
        if kind == SOCK_STREAM and protocol in (0, IPPROTO_TCP):
            return TcpSocket(ctx.net, family, _uid(ctx))
        if kind == SOCK_DGRAM and protocol in (0, IPPROTO_UDP):
            return UdpSocket(ctx.net, family, _uid(ctx))
        if kind == SOCK_DGRAM and protocol in (_ICMP, _ICMPV6):
            raise LinuxError(EACCES)  # as net.ipv4.ping_group_range begins
        if kind == SOCK_RAW:
            raise LinuxError(EPERM if protocol else EPROTONOSUPPORT)
        if kind == SOCK_STREAM and protocol == _MPTCP:
            raise LinuxError(EPROTONOSUPPORT)  # programs then take TCP
        if kind in (SOCK_STREAM, SOCK_DGRAM):
            if protocol not in (IPPROTO_TCP, IPPROTO_UDP):
                ctx.unsupported(f"protocol {protocol} of the internet")
            raise LinuxError(EPROTONOSUPPORT)
        raise LinuxError(ESOCKTNOSUPPORT)

    return make


def _netlink(ctx: Context, kind: int, protocol: int) -> Socket:
    if kind not in (SOCK_RAW, SOCK_DGRAM):
        raise LinuxError(ESOCKTNOSUPPORT)
    if protocol not in (NETLINK_ROUTE, NETLINK_KOBJECT_UEVENT):
        ctx.unsupported(f"netlink protocol {protocol}")
        raise LinuxError(EPROTONOSUPPORT)
    return NetlinkSocket(ctx.net, kind, protocol, _uid(ctx))


def _packet(ctx: Context, kind: int, protocol: int) -> Socket:
    raise LinuxError(EPERM)


FAMILIES: Final = (
    SocketFamily(AF_UNIX, _unix, _unix_pair),
    SocketFamily(AF_INET, _inet(AF_INET)),
    SocketFamily(AF_INET6, _inet(AF_INET6)),
    SocketFamily(AF_NETLINK, _netlink),
    SocketFamily(AF_PACKET, _packet),
)


def _family(ctx: Context, number: int, kind: int) -> SocketFamily:
    if not 0 <= number < _FAMILIES:
        raise LinuxError(EAFNOSUPPORT)
    if not 0 <= kind < _KINDS:
        raise LinuxError(EINVAL)
    for family in FAMILIES:
        if family.number == number:
            return family
    ctx.unsupported(f"sockets of address family {number}")
    raise LinuxError(EAFNOSUPPORT)


def make_socket(ctx: Context, number: int, kind: int, protocol: int) -> Socket:
    """A socket of a family, a kind and a protocol."""
    return _family(ctx, number, kind).make(ctx, kind, protocol)


def make_pair(ctx: Context, number: int, kind: int, protocol: int) -> tuple[Socket, Socket]:
    """Two sockets that are connected."""
    family = _family(ctx, number, kind)
    if family.pair is None:
        family.make(ctx, kind, protocol).acquire().release()
        raise LinuxError(EOPNOTSUPP)
    return family.pair(ctx, kind, protocol)
