"""Netlink: questions about interfaces, addresses and routes (net/core/rtnetlink.c)."""

import struct
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from engine.linux.context import Context
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.net import interface
from engine.linux.net.addresses import AF_INET, AF_INET6, AF_NETLINK, LOOPBACK6, family_of
from engine.linux.net.messages import MSG_OOB, MSG_PEEK, Incoming, Outgoing
from engine.linux.net.network import Network
from engine.linux.net.socket import OVERHEAD, Socket

EPERM, ENODEV, EINVAL, ENOBUFS, EOPNOTSUPP = 1, 19, 22, 105, 95
EADDRINUSE, ECONNREFUSED, ENODATA = 98, 111, 61

NETLINK_ROUTE, NETLINK_KOBJECT_UEVENT = 0, 15

_ERROR, _DONE = 2, 3
_MULTI, _ACK, _DUMP = 2, 4, 0x300
_NEWLINK, _GETLINK, _NEWADDR, _GETADDR, _NEWROUTE, _GETROUTE = 16, 18, 20, 22, 24, 26
_HEAD: Final = struct.Struct("<IHHII")
_PIECE: Final = 4096
"""Bytes of an answer's messages that are received together at most."""


def _attribute(kind: int, data: bytes) -> bytes:
    size = 4 + len(data)
    return struct.pack("<HH", size, kind) + data + bytes(-size % 4)


def _word(kind: int, number: int) -> bytes:
    return _attribute(kind, struct.pack("<I", number))


def link_message() -> bytes:
    """`lo` as struct ifinfomsg with its attributes."""
    head = struct.pack(
        "<BxHiII", 0, interface.ARP_TYPE, interface.INDEX, interface.FLAGS | 0x10000, 0
    )
    return head + b"".join(
        (
            _attribute(3, interface.NAME + b"\0"),  # IFLA_IFNAME
            _word(13, interface.QUEUE_LENGTH),  # IFLA_TXQLEN
            _attribute(16, b"\0"),  # IFLA_OPERSTATE: unknown
            _attribute(17, b"\0"),  # IFLA_LINKMODE
            _word(4, interface.MTU),  # IFLA_MTU
            _word(27, 0),  # IFLA_GROUP
            _word(30, 0),  # IFLA_PROMISCUITY
            _word(31, 1),  # IFLA_NUM_TX_QUEUES
            _word(32, 1),  # IFLA_NUM_RX_QUEUES
            _attribute(33, b"\1"),  # IFLA_CARRIER
            _attribute(6, b"noqueue\0"),  # IFLA_QDISC
            _attribute(14, bytes(32)),  # IFLA_MAP, with its padding
            _attribute(1, bytes(6)),  # IFLA_ADDRESS
            _attribute(2, bytes(6)),  # IFLA_BROADCAST
            _attribute(7, bytes(96)),  # IFLA_STATS
            _attribute(23, bytes(200)),  # IFLA_STATS64
        )
    )


def address_messages(family: int) -> list[bytes]:
    """Addresses of `lo` of a family, 0 for all, as struct ifaddrmsg with attributes."""
    forever = struct.pack("<IIII", 0xFFFFFFFF, 0xFFFFFFFF, 0, 0)
    found = []
    if family in (0, AF_INET):
        head = struct.pack("<BBBBI", AF_INET, interface.PREFIX4, 0x80, 254, interface.INDEX)
        found.append(
            head
            + _attribute(1, interface.ADDRESS4)  # IFA_ADDRESS
            + _attribute(2, interface.ADDRESS4)  # IFA_LOCAL
            + _attribute(3, interface.NAME + b"\0")  # IFA_LABEL
            + _word(8, 0x80)  # IFA_FLAGS
            + _attribute(6, forever)  # IFA_CACHEINFO
        )
    if family in (0, AF_INET6):
        head = struct.pack("<BBBBI", AF_INET6, 128, 0x80, 254, interface.INDEX)
        found.append(head + _attribute(1, LOOPBACK6) + _attribute(6, forever) + _word(8, 0x80))
    return found


def _route(family: int, size: int, table: int, scope: int, kind: int, attributes: bytes) -> bytes:
    head = struct.pack("<8BI", family, size, 0, 0, table, 2, scope, kind, 0)
    return head + _word(15, table) + attributes + _word(4, interface.INDEX)


def route_messages(family: int) -> list[bytes]:
    """Routes of a family, 0 for all, as struct rtmsg with attributes: all lead to `lo`."""
    found = []
    source = _attribute(7, interface.ADDRESS4)
    if family in (0, AF_INET):
        for host, size, kind in ((0, 8, 2), (1, 32, 2), (0xFFFFFF, 32, 3)):
            to = _attribute(1, b"\x7f" + host.to_bytes(3, "big"))
            found.append(_route(AF_INET, size, 255, 254 if kind == 2 else 253, kind, to + source))
    if family in (0, AF_INET6):
        to = _attribute(1, LOOPBACK6)
        found.append(_route(AF_INET6, 128, 255, 0, 2, to + _word(6, 0)))
    return found


_ANSWERS: Final[dict[int, tuple[int, Callable[[int], list[bytes]]]]] = {
    _GETLINK: (_NEWLINK, lambda family: [link_message()]),
    _GETADDR: (_NEWADDR, address_messages),
    _GETROUTE: (_NEWROUTE, route_messages),
    30: (28, lambda family: []),  # neighbours
    34: (32, lambda family: []),  # rules
    38: (36, lambda family: []),  # queueing disciplines
}
"""Answers by the type of the request: (type of the messages, their bodies)."""


class NetlinkRequest(NamedTuple):
    """A struct nlmsghdr and what follows it.

    Attributes:
        kind: RTM_*.
        flags: NLM_F_*.
        sequence: number that the answer repeats.
        raw: all of it.
    """

    kind: int
    flags: int
    sequence: int
    raw: bytes


class NetlinkSocket(Socket):
    """A netlink socket.

    Attributes:
        port: its address, 0 while it has none.
    """

    family = AF_NETLINK

    def __init__(self, network: Network, kind: int, protocol: int, uid: int) -> None:
        super().__init__(network, kind, uid)
        self.protocol = protocol
        self.port = 0
        self._groups = 0
        self._queue: deque[bytes] = deque()

    # -- addresses -------------------------------------------------------------------------

    def bind(self, ctx: Context, name: bytes) -> None:
        """Take an address: a number, or the process's for 0."""
        port, groups = self._address(name)
        if self.port and port not in (0, self.port):
            raise LinuxError(EINVAL)
        if not self.port:
            self._take(ctx, port)
        self._groups = groups

    @staticmethod
    def _address(name: bytes) -> tuple[int, int]:
        if len(name) < 12 or family_of(name) != AF_NETLINK:
            raise LinuxError(EINVAL)
        port, groups = struct.unpack_from("<II", name, 4)
        return port, groups

    def _take(self, ctx: Context, port: int) -> None:
        taken = {
            each.port
            for each in self.network.sockets
            if isinstance(each, NetlinkSocket) and each.protocol == self.protocol
        }
        if port and port in taken:
            raise LinuxError(EADDRINUSE)
        wanted = port or ctx.pid
        while wanted in taken:
            wanted = wanted + 1 if wanted >= 1 << 31 else (1 << 31) + 1
        self.port = wanted

    def connect(self, ctx: Context, name: bytes) -> bool:
        """Talk to the kernel, which it does anyway."""
        if family_of(name) and self._address(name)[0]:
            raise LinuxError(ECONNREFUSED)
        if not self.port:
            self._take(ctx, 0)
        return True

    def name(self) -> bytes:
        """The socket's own sockaddr."""
        return struct.pack("<HHII", AF_NETLINK, 0, self.port, self._groups)

    def peer_name(self, *, gone: bool = False) -> bytes:
        """Sockaddr of the kernel."""
        return struct.pack("<HHII", AF_NETLINK, 0, 0, 0)

    # -- questions and answers -------------------------------------------------------------

    def refuse(self, ctx: Context, message: Outgoing, size: int) -> None:
        """Fail as sending fails before it looks at the bytes."""
        if message.flags & MSG_OOB:
            raise LinuxError(EOPNOTSUPP)
        if not size:
            raise LinuxError(ENODATA)
        if message.name:
            port, groups = self._address(message.name)
            if groups:
                raise LinuxError(EPERM)
            if port:
                raise LinuxError(ECONNREFUSED)

    def send(self, ctx: Context, message: Outgoing) -> int | None:
        """Ask; the answer is there at once."""
        self.refuse(ctx, message, len(message.data))
        if not self.port:
            self._take(ctx, 0)
        return self.put(message.data)

    def put(self, data: bytes) -> int | None:
        """The same of bytes alone."""
        if self.protocol != NETLINK_ROUTE:
            raise LinuxError(ECONNREFUSED)
        rest = data
        while len(rest) >= _HEAD.size:
            size, kind, flags, sequence, _ = _HEAD.unpack_from(rest)
            if not _HEAD.size <= size <= len(rest):
                break
            if flags & 1 and kind >= 16:  # NLM_F_REQUEST, and no control message
                self._answer(NetlinkRequest(kind, flags, sequence, rest[:size]))
            rest = rest[size + 3 & ~3 :]
        return len(data)

    def _answer(self, request: NetlinkRequest) -> None:
        found = _ANSWERS.get(request.kind)
        if found is None:
            # Changes take privileges; of the rest there is nothing here.
            self._fail(request, EPERM if request.kind & 3 != 2 else EOPNOTSUPP)
            return
        kind, bodies = found
        family = request.raw[16] if len(request.raw) > 16 else 0
        if request.flags & _DUMP != _DUMP:
            if request.kind != _GETLINK:
                self._fail(request, EOPNOTSUPP)
            elif not self._means_loopback(request.raw):
                self._fail(request, ENODEV)
            else:
                self._arrive(self._pack(request, kind, 0, link_message()))
            return
        answer = b""
        for body in bodies(family):
            message = self._pack(request, kind, _MULTI, body)
            if answer and len(answer) + len(message) > _PIECE:
                self._arrive(answer)
                answer = b""
            answer += message
        if answer:
            self._arrive(answer)
        self._arrive(self._pack(request, _DONE, _MULTI, bytes(4)))

    @staticmethod
    def _means_loopback(raw: bytes) -> bool:
        """True if a request for one interface, by number or name, is for `lo`."""
        if len(raw) < 32:
            return False
        (index,) = struct.unpack_from("<i", raw, 20)
        named = _attribute(3, interface.NAME + b"\0") in raw[32:]
        return index == interface.INDEX or (not index and named)

    def _pack(self, request: NetlinkRequest, kind: int, flags: int, body: bytes) -> bytes:
        size = _HEAD.size + len(body)
        head = _HEAD.pack(size, kind, flags, request.sequence, self.port)
        return head + body + bytes(-size % 4)

    def _fail(self, request: NetlinkRequest, code: int) -> None:
        body = struct.pack("<i", -code) + request.raw
        self._arrive(self._pack(request, _ERROR, 0, body))

    def _arrive(self, answer: bytes) -> None:
        if not self.fits(len(answer)):
            self.error = ENOBUFS
            self.wake_all()
            return
        self._queue.append(answer)
        self.charge(len(answer) + OVERHEAD)
        self.wake(readable=True)

    def receive(self, size: int, flags: int, enough: int = 1) -> Incoming | None:
        """Receive an answer, None if it would block."""
        if flags & MSG_OOB:
            raise LinuxError(EOPNOTSUPP)
        if not self._queue:
            self.check_error()
            return None
        answer = self._queue[0]
        if not flags & MSG_PEEK:
            self._queue.popleft()
            self._gone(answer)
        return Incoming(answer[:size], len(answer), self.peer_name())

    def _gone(self, answer: bytes) -> None:
        self.charge(-len(answer) - OVERHEAD)

    def unread(self) -> int:
        """Bytes of the next answer."""
        return len(self._queue[0]) if self._queue else 0

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        mask = fl.WRITABLE | (fl.READABLE if self._queue else 0)
        return mask | (fl.POLLERR if self.error else 0)

    def on_close(self) -> None:
        """The last descriptor is gone."""
        for answer in self._queue:
            self._gone(answer)
        self._queue.clear()
        self.network.leave(self)
