"""UDP: datagrams that are in the receiver's queue at once, or nowhere."""

import struct
from collections import deque
from typing import Final, NamedTuple

from engine.linux.context import Context
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.net.addresses import (
    AF_INET,
    AF_INET6,
    AF_UNSPEC,
    Endpoint,
    family_of,
    is_v4,
)
from engine.linux.net.inet import SOL_IP, SOL_IPV6, InetSocket, best
from engine.linux.net.interface import INDEX
from engine.linux.net.messages import (
    MSG_DONTWAIT,
    MSG_OOB,
    MSG_PEEK,
    ControlItem,
    Incoming,
    Outgoing,
)
from engine.linux.net.network import Network
from engine.linux.net.socket import OVERHEAD, SOCK_DGRAM, SOL_SOCKET

EAGAIN, EINVAL, EPIPE, EDESTADDRREQ, EMSGSIZE = 11, 22, 32, 89, 90
EOPNOTSUPP, ENOTCONN, ECONNREFUSED = 95, 107, 111

IPPROTO_UDP: Final = 17

_MOST4, _MOST6 = 65507, 65527
_PKTINFO, _IPV6_RECVPKTINFO, _IPV6_PKTINFO = 8, 49, 50
_TIMESTAMP, _TIMESTAMPNS = 29, 35


class Datagram(NamedTuple):
    """A message that has arrived.

    Attributes:
        data: its bytes.
        source: who has sent it.
        host: the one it was sent to.
        moment: when, in nanoseconds since 1970.
    """

    data: bytes
    source: Endpoint
    host: bytes
    moment: int


class UdpSocket(InetSocket):
    """A UDP socket."""

    protocol = IPPROTO_UDP

    def __init__(self, network: Network, family: int, uid: int) -> None:
        super().__init__(network, family, SOCK_DGRAM, network.udp, uid)
        self._queue: deque[Datagram] = deque()

    # -- addresses -------------------------------------------------------------------------

    def connect(self, ctx: Context, name: bytes) -> bool:
        """Talk to one address only; AF_UNSPEC: to anybody again."""
        if family_of(name) == AF_UNSPEC:
            self.forget_peer()
            return True
        target = self.target(name)
        source = self.source_for(target)
        if self.holds_port:
            self.local = Endpoint(source, self.local.port)
        else:
            self.take(Endpoint(source, 0), EAGAIN)
        self.remote = target
        return True

    def peer_name(self, *, gone: bool = False) -> bytes:
        """Sockaddr of its peer."""
        if self.remote is None:
            raise LinuxError(ENOTCONN)
        return self.shown(self.remote)

    def hears(self, target: Endpoint, source: Endpoint) -> int:
        """A number that is higher the better a datagram fits it, -1 for not at all."""
        own = self.local.host
        score = 2 if self.family == AF_INET else 1
        if any(own[12:] if is_v4(own) else own):
            if own != target.host:
                return -1
            score += 4
        elif is_v4(own) != is_v4(target.host) and (is_v4(own) or self.v6only):
            return -1
        if self.remote is not None:
            if self.remote != source:
                return -1
            score += 8
        return score

    # -- datagrams -------------------------------------------------------------------------

    def refuse(self, ctx: Context, message: Outgoing, size: int) -> None:
        """Fail as sending fails before it looks at the bytes (udp_sendmsg)."""
        self._receiver(message, size)

    def send(self, ctx: Context, message: Outgoing) -> int | None:
        """Send a datagram."""
        return self._put(message.data, self._receiver(message, len(message.data)))

    def _receiver(self, message: Outgoing, size: int) -> Endpoint:
        """Return the receiver of a datagram of so many bytes, or fail as sending fails."""
        if size > 0xFFFF:
            raise LinuxError(EMSGSIZE)
        if message.flags & MSG_OOB:
            raise LinuxError(EOPNOTSUPP)
        target = self.target(self._plain(message.name)) if message.name else self.remote
        if target is None:
            raise LinuxError(EDESTADDRREQ)
        if message.name and not target.port:
            raise LinuxError(EINVAL)
        if size > (_MOST4 if is_v4(target.host) else _MOST6):
            raise LinuxError(EMSGSIZE)
        return target

    def _plain(self, name: bytes) -> bytes:
        """A receiver's sockaddr: its family may be left out, an IPv6 socket takes IPv4's."""
        family = family_of(name)
        if self.family == AF_INET:
            return AF_INET.to_bytes(2, "little") + name[2:] if family == AF_UNSPEC else name
        if family == AF_INET and len(name) >= 16:
            mapped = bytes(10) + b"\xff\xff" + name[4:8]
            return AF_INET6.to_bytes(2, "little") + name[2:4] + bytes(4) + mapped + bytes(4)
        return name

    def put(self, data: bytes) -> int | None:
        """Send a datagram to its peer."""
        if self.remote is None:
            raise LinuxError(EDESTADDRREQ)
        return self._put(data, self.remote)

    def _put(self, data: bytes, target: Endpoint) -> int:
        if len(data) > (_MOST4 if is_v4(target.host) else _MOST6):
            raise LinuxError(EMSGSIZE)
        if not self.holds_port:
            self.take(self.local, EAGAIN)
        self.check_error()
        if self.send_ends:
            raise LinuxError(EPIPE)
        source = Endpoint(self.source_for(target), self.local.port)
        found: list[tuple[int, InetSocket]] = []
        for each in self.ports.holders(target.port):
            if isinstance(each, UdpSocket):
                score = each.hears(target, source)
                if score >= 0:
                    found.append((score, each))
        receiver = best(found, source)
        if not isinstance(receiver, UdpSocket):
            if self.remote is not None:  # as the ICMP message "port unreachable" says
                self.error = ECONNREFUSED
                self.wake_all()
        else:
            moment = self.network.clock.realtime()
            receiver.arrive(Datagram(data, source, target.host, moment))
        return len(data)

    def arrive(self, message: Datagram) -> None:
        """A datagram comes; it is lost if there is no room."""
        if self.fits(len(message.data)):
            self._queue.append(message)
            self.charge(len(message.data) + OVERHEAD)
            self.wake(readable=True)

    def receive(self, size: int, flags: int, enough: int = 1) -> Incoming | None:
        """Receive a datagram, None if it would block."""
        self.check_error()
        if not self._queue:
            patient = not (self.nonblocking or flags & MSG_DONTWAIT)
            return Incoming(b"", 0) if self.receive_ends and patient else None
        message = self._queue[0]
        if not flags & MSG_PEEK:
            self._queue.popleft()
            self._gone(message)
        got = Incoming(message.data[:size], len(message.data), self.shown(message.source))
        got.control = self._control(message)
        return got

    def _control(self, message: Datagram) -> list[ControlItem]:
        """Facts about a datagram that it has asked to be told."""
        items = []
        seconds, rest = divmod(message.moment, 10**9)
        if self.option(_TIMESTAMPNS):
            items.append(ControlItem(SOL_SOCKET, _TIMESTAMPNS, struct.pack("<qq", seconds, rest)))
        elif self.option(_TIMESTAMP):
            stamp = struct.pack("<qq", seconds, rest // 1000)
            items.append(ControlItem(SOL_SOCKET, _TIMESTAMP, stamp))
        if self.options.get((SOL_IP, _PKTINFO)) and is_v4(message.host):
            host = message.host[12:]
            items.append(ControlItem(SOL_IP, _PKTINFO, struct.pack("<i", INDEX) + host + host))
        if self.options.get((SOL_IPV6, _IPV6_RECVPKTINFO)):
            about = message.host + struct.pack("<i", INDEX)
            items.append(ControlItem(SOL_IPV6, _IPV6_PKTINFO, about))
        return items

    def _gone(self, message: Datagram) -> None:
        self.charge(-len(message.data) - OVERHEAD)

    def unread(self) -> int:
        """Bytes of the next datagram."""
        return len(self._queue[0].data) if self._queue else 0

    def shut(self, how: int) -> None:
        """Shutdown: 0 input, 1 output, 2 both."""
        self.receive_ends = self.receive_ends or how in (0, 2)
        self.send_ends = self.send_ends or how in (1, 2)
        self.wake_all()
        if self.remote is None:
            raise LinuxError(ENOTCONN)

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        return self.ended() | fl.WRITABLE | (fl.READABLE if self._queue else 0)

    def on_close(self) -> None:
        """The last descriptor is gone."""
        for message in self._queue:
            self._gone(message)
        self._queue.clear()
        self.leave_port()
        self.network.leave(self)
