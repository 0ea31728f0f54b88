"""The one network of a machine: ports, abstract names, and bounds for all sockets."""

from typing import TYPE_CHECKING, Final, Protocol

from engine.linux.clock import Clock
from engine.linux.errno import LinuxError
from engine.linux.fs.pipe import Numbers
from engine.linux.memorylimit import MemoryLimit
from engine.linux.net.addresses import Endpoint, overlap
from engine.linux.net.rights import Rights

if TYPE_CHECKING:
    from engine.linux.net.socket import Socket

ENFILE, EADDRINUSE, EADDRNOTAVAIL, ENOBUFS = 23, 98, 99, 105

_SOCKETS: Final = 1 << 15
"""Sockets there may be at once, those in backlogs included."""
_BUFFERED: Final = 128 << 20
"""Bytes that may be on the way at once, in all sockets."""
_SOCKET: Final = 2048
"""Bytes that a socket takes beside them."""
_LEAST: Final = 4096
_FIRST_PORT, _LAST_PORT = 32768, 60999
"""Ports that are given to sockets that ask for none (net.ipv4.ip_local_port_range)."""
_TIME_WAIT: Final = 60 * 10**9
_MOST_TIME_WAIT: Final = 4096


class PortHolder(Protocol):
    """Who has a port: a socket, or what is left of a connection.

    Attributes:
        local: its address.
        v6only: IPV6_V6ONLY is set.
        reuse: SO_REUSEADDR is set.
        reuse_port: SO_REUSEPORT is set.
        listening: it takes connections.
        uid: its user.
        remote: the other end, None without one.
    """

    @property
    def local(self) -> Endpoint:
        """The holder's address."""

    @property
    def v6only(self) -> bool:
        """IPV6_V6ONLY is set."""

    @property
    def reuse(self) -> bool:
        """SO_REUSEADDR is set."""

    @property
    def reuse_port(self) -> bool:
        """SO_REUSEPORT is set."""

    @property
    def listening(self) -> bool:
        """True while the holder takes connections."""

    @property
    def uid(self) -> int:
        """The holder's user."""

    @property
    def remote(self) -> Endpoint | None:
        """The other end."""


class TimeWait:
    """The rest of a connection, at the end that closed it first.

    Attributes:
        expires: guest time (monotonic) at which it is gone.
    """

    listening = False
    reuse_port = False

    def __init__(self, gone: PortHolder, expires: int) -> None:
        self.local, self.remote = gone.local, gone.remote
        self.v6only, self.reuse, self.uid = gone.v6only, gone.reuse, gone.uid
        self.expires = expires


class Ports:
    """The ports of one protocol and who has them.

    Attributes:
        shareable: SO_REUSEADDR lets listeners have one port, too (UDP).
    """

    def __init__(self, *, shareable: bool) -> None:
        self.shareable = shareable
        self._holders: dict[int, dict[PortHolder, None]] = {}
        self._next = _FIRST_PORT

    def holders(self, port: int) -> list[PortHolder]:
        """Who has a port, the first to have it first."""
        return list(self._holders.get(port, ()))

    def conflict(self, asking: PortHolder, wanted: Endpoint) -> bool:
        """True if a socket may not have an address (inet_csk_bind_conflict)."""
        for each in self._holders.get(wanted.port, ()):
            if each is asking or not overlap(
                wanted.host, asking.v6only, each.local.host, each.v6only
            ):
                continue
            if asking.reuse and each.reuse and (self.shareable or not each.listening):
                continue
            if asking.reuse_port and each.reuse_port and asking.uid == each.uid:
                continue
            return True
        return False

    def free(self) -> int | None:
        """A port that nobody has, from those for sockets that ask for none."""
        for _ in range(_LAST_PORT - _FIRST_PORT + 1):
            port, self._next = self._next, self._next + 1
            if self._next > _LAST_PORT:
                self._next = _FIRST_PORT
            if port not in self._holders:
                return port
        return None

    def take(self, holder: PortHolder) -> None:
        """Somebody has the port of its address from now on."""
        self._holders.setdefault(holder.local.port, {})[holder] = None

    def leave(self, holder: PortHolder) -> None:
        """Somebody has it no more."""
        port = holder.local.port
        found = self._holders.get(port)
        if found is not None:
            found.pop(holder, None)
            if not found:
                del self._holders[port]


class Network:
    """The network that all processes of a machine are on.

    Attributes:
        clock: the machine's time.
        numbers: gives inode numbers.
        tcp: the ports of TCP.
        udp: the ports of UDP.
        abstract: UNIX sockets by names that are not in the tree of files.
        sockets: all there are, in the order in which they were made.
        rights: descriptors on their way between UNIX sockets.
        memory: the limit that they count against.
        waiting: connections whose first end has closed a while ago.
    """

    def __init__(self, clock: Clock, numbers: Numbers, memory: MemoryLimit | None = None) -> None:
        self.clock = clock
        self.numbers = numbers
        self.tcp = Ports(shareable=False)
        self.udp = Ports(shareable=True)
        self.abstract: dict[bytes, Socket] = {}
        self.sockets: dict[Socket, None] = {}
        self.rights = Rights(self.sockets)
        self.memory = MemoryLimit() if memory is None else memory
        self._buffered = 0
        self.waiting: dict[TimeWait, None] = {}
        self._next_name = 0

    def enter(self, socket: "Socket") -> None:
        """A socket is made; ENFILE if there are too many."""
        if len(self.sockets) >= _SOCKETS:
            raise LinuxError(ENFILE)
        self.memory.take(_SOCKET, ENOBUFS)
        self.sockets[socket] = None

    def leave(self, socket: "Socket") -> None:
        """A socket is gone."""
        if socket in self.sockets:
            del self.sockets[socket]
            self.memory.change(-_SOCKET)

    @property
    def buffered(self) -> int:
        """Bytes on their way."""
        return self._buffered

    @buffered.setter
    def buffered(self, size: int) -> None:
        self.memory.change(size - self._buffered)
        self._buffered = size

    def room(self, wanted: int) -> int:
        """The bytes of those wanted that may be put on their way.

        Without a buffer on its way, one page is free in any case: what nobody could send would
        never make room.
        """
        left = self.memory.left
        if left <= 0 < wanted:
            self.memory.note()
        least = 0 if self._buffered else _LEAST
        return max(0, min(wanted, _BUFFERED - self._buffered, max(left, least)))

    def new_name(self) -> bytes:
        """An abstract name that nobody has: five hexadecimal digits (unix_autobind)."""
        while True:
            self._next_name = self._next_name + 1 & 0xFFFFF
            name = b"\0%05x" % self._next_name
            if name not in self.abstract:
                return name

    def linger(self, gone: PortHolder) -> None:
        """A connection has ended at the end that closed it first: its port is kept a while."""
        self.expire()
        if len(self.waiting) < _MOST_TIME_WAIT:
            left = TimeWait(gone, self.clock.monotonic() + _TIME_WAIT)
            self.waiting[left] = None
            self.tcp.take(left)

    def expire(self) -> None:
        """Forget connections that have ended long ago."""
        if not self.waiting:
            return
        now = self.clock.monotonic()
        for left in list(self.waiting):
            if left.expires > now:
                break
            del self.waiting[left]
            self.tcp.leave(left)
