"""Files of /proc/net, in the formats of proc(5)."""

from collections.abc import Callable, Iterable
from typing import Final

from engine.linux.net.addresses import AF_INET, AF_INET6, Endpoint
from engine.linux.net.netlink import NetlinkSocket
from engine.linux.net.network import Network
from engine.linux.net.tcp import TcpSocket, TcpState
from engine.linux.net.udp import UdpSocket
from engine.linux.net.unix import UnixSocket
from engine.linux.net.unixstreams import UnixState, UnixStream

Text = Callable[[Network], bytes]

_LISTENS: Final = 0x10000
"""SO_ACCEPTCON, as the flags of UNIX sockets show it."""


def _hex(endpoint: Endpoint | None, family: int) -> str:
    """An endpoint: words of the host in this machine's byte order, and the port."""
    if endpoint is None:
        endpoint = Endpoint(bytes(16), 0)
    host = endpoint.host[12:] if family == AF_INET else endpoint.host
    words = (host[at : at + 4][::-1].hex().upper() for at in range(0, len(host), 4))
    return f"{''.join(words)}:{endpoint.port:04X}"


_TCP_TITLE: Final = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"
    "  timeout inode"
)
_TCP6_TITLE: Final = (
    "  sl  local_address                         remote_address                        st"
    " tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
)
_UDP_TITLE: Final = (
    "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout"
    " inode ref pointer drops             "
)
_UDP6_TITLE: Final = (
    "  sl  local_address                         remote_address                        st"
    " tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops"
)


def _lines(title: str, lines: Iterable[str], width: int = 0) -> bytes:
    return "".join(f"{line:<{width}}\n" for line in (title, *lines)).encode()


def _tcp_lines(network: Network, family: int) -> Iterable[str]:
    network.expire()
    sockets = [
        each
        for each in network.sockets
        if isinstance(each, TcpSocket)
        and each.family == family
        and (each.state is not TcpState.CLOSE)
    ]
    sockets.sort(key=lambda each: not each.listening)
    at = 0
    for at, each in enumerate(sockets):
        waits = len(each.queue) if each.listening else each.unread()
        inode = 0 if each.orphan else each.ino
        yield (
            f"{at:4}: {_hex(each.local, family)} {_hex(each.remote, family)} {each.state:02X}"
            f" {0 if each.listening else each.unsent():08X}:{waits:08X} 00:00000000 00000000"
            f" {each.uid:5}        0 {inode} 1 0000000000000000 100 0 0 10 0"
        )
    for left in network.waiting:
        v4 = not any(left.local.host[:10]) and left.local.host[10:12] == b"\xff\xff"
        if v4 == (family == AF_INET):
            at += 1
            yield (
                f"{at:4}: {_hex(left.local, family)} {_hex(left.remote, family)} 06"
                f" 00000000:00000000 03:00000000 00000000     0        0 0 3 0000000000000000"
            )


def _udp_lines(network: Network, family: int) -> Iterable[str]:
    at = 0
    for each in network.sockets:
        if isinstance(each, UdpSocket) and each.family == family and each.local.port:
            at += 1
            state = 7 if each.remote is None else 1
            yield (
                f"{at:5}: {_hex(each.local, family)} {_hex(each.remote, family)} {state:02X}"
                f" 00000000:{each.unread():08X} 00:00000000 00000000 {each.uid:5}        0"
                f" {each.ino} 2 0000000000000000 0"
            )


def unix(network: Network) -> bytes:
    """UNIX sockets; abstract names begin with @."""
    lines = []
    for each in network.sockets:
        if not isinstance(each, UnixSocket):
            continue
        connected = isinstance(each, UnixStream) and each.state is UnixState.ESTABLISHED
        name = each.own_name or b""
        if name.startswith(b"\0"):
            name = b"@" + name[1:].replace(b"\0", b"@")
        shown = name.rstrip(b"\0").decode(errors="replace")
        flags = _LISTENS if each.listening else 0
        lines.append(
            f"0000000000000000: {2 + connected:08X} 00000000 {flags:08X} {each.kind:04X}"
            f" {3 if connected else 1:02X} {each.ino:5}" + (f" {shown}" if shown else "")
        )
    return _lines("Num       RefCount Protocol Flags    Type St Inode Path", lines)


def _netlink(network: Network) -> bytes:
    lines = [
        f"0000000000000000 {each.protocol:<3} {each.port:<10} 00000000 0        0        "
        f"0     2        0        {each.ino}"
        for each in network.sockets
        if isinstance(each, NetlinkSocket)
    ]
    title = (
        "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode"
    )
    return _lines(title, lines)


def _sockstat(network: Network) -> bytes:
    tcp = [each for each in network.sockets if isinstance(each, TcpSocket)]
    udp = [each for each in network.sockets if isinstance(each, UdpSocket)]
    used = sum(1 for each in network.sockets if each.references)
    inet = [each for each in tcp if each.family == AF_INET and each.state is not TcpState.CLOSE]
    orphans = sum(1 for each in tcp if each.orphan)
    bound = sum(1 for each in udp if each.family == AF_INET and each.local.port)
    return (
        f"sockets: used {used}\n"
        f"TCP: inuse {len(inet)} orphan {orphans} tw {len(network.waiting)}"
        f" alloc {len(tcp)} mem 0\n"
        f"UDP: inuse {bound} mem 0\nUDPLITE: inuse 0\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n"
    ).encode()


def _sockstat6(network: Network) -> bytes:
    tcp = sum(
        1
        for each in network.sockets
        if isinstance(each, TcpSocket)
        and each.family == AF_INET6
        and each.state is not TcpState.CLOSE
    )
    udp = sum(
        1
        for each in network.sockets
        if isinstance(each, UdpSocket) and each.family == AF_INET6 and each.local.port
    )
    return (
        f"TCP6: inuse {tcp}\nUDP6: inuse {udp}\nUDPLITE6: inuse 0\nRAW6: inuse 0\n"
        "FRAG6: inuse 0 memory 0\n"
    ).encode()


_DEV: Final = (
    b"Inter-|   Receive                                                |  Transmit\n"
    b" face |bytes    packets errs drop fifo frame compressed multicast"
    b"|bytes    packets errs drop fifo colls carrier compressed\n"
    b"    lo:       0       0    0    0    0     0          0         0"
    b"        0       0    0    0    0     0       0          0\n"
)
_ROUTE_TITLE: Final = (
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT"
)
_LO6: Final = "00000000000000000000000000000001"

FILES: Final[dict[bytes, Text]] = {
    b"tcp": lambda net: _lines(_TCP_TITLE, _tcp_lines(net, AF_INET), 149),
    b"tcp6": lambda net: _lines(_TCP6_TITLE, _tcp_lines(net, AF_INET6)),
    b"udp": lambda net: _lines(_UDP_TITLE, _udp_lines(net, AF_INET), 127),
    b"udp6": lambda net: _lines(_UDP6_TITLE, _udp_lines(net, AF_INET6)),
    b"raw": lambda net: _lines(_UDP_TITLE[1:], (), 127),
    b"raw6": lambda net: _lines(_UDP6_TITLE, ()),
    b"unix": unix,
    b"netlink": _netlink,
    b"packet": lambda net: _lines(
        "sk               RefCnt Type Proto  Iface R Rmem   User   Inode", ()
    ),
    b"dev": lambda net: _DEV,
    b"if_inet6": lambda net: f"{_LO6} 01 80 10 80       lo\n".encode(),
    b"route": lambda net: _lines(_ROUTE_TITLE, (), 127),
    b"ipv6_route": lambda net: (
        f"{_LO6} 80 {'0' * 32} 00 {'0' * 32} 00000000 00000002 00000000 80200001       lo\n"
    ).encode(),
    b"arp": lambda net: (
        b"IP address       HW type     Flags       HW address            Mask     Device\n"
    ),
    b"sockstat": _sockstat,
    b"sockstat6": _sockstat6,
}
"""Contents by name."""
