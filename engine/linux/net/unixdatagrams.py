"""UNIX sockets of datagrams."""

from engine.linux.context import Context
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.net.addresses import AF_UNSPEC, family_of
from engine.linux.net.messages import MSG_DONTWAIT, MSG_OOB, MSG_PEEK, Incoming, Outgoing
from engine.linux.net.network import Network
from engine.linux.net.socket import SOCK_DGRAM
from engine.linux.net.unix import UnixMessage, UnixSocket, name_in

EPERM, EPIPE, EMSGSIZE, EOPNOTSUPP, ENOTCONN, ECONNREFUSED = 1, 32, 90, 95, 107, 111

_MOST_QUEUED = 10
"""Datagrams that wait, one less (net.unix.max_dgram_qlen)."""


class UnixDatagramSocket(UnixSocket):
    """A UNIX socket of datagrams.

    Attributes:
        peer: the one it sends to by itself, and the only one it receives from.
    """

    def __init__(self, network: Network, uid: int) -> None:
        super().__init__(network, SOCK_DGRAM, uid)
        self.peer: UnixDatagramSocket | None = None
        self._closed = False

    def connect(self, ctx: Context, name: bytes) -> bool:
        """Send to one name by itself; AF_UNSPEC: to nobody."""
        if family_of(name) == AF_UNSPEC:
            self.peer = None
            return True
        other = self._other(ctx, name)
        if self.passes_credentials:
            self.bind_somehow()
        self.peer = other
        return True

    def _other(self, ctx: Context, name: bytes) -> "UnixDatagramSocket":
        """The socket of a name; EPERM if it talks to somebody else."""
        other = self.find(ctx, name)
        assert isinstance(other, UnixDatagramSocket), "found by its kind"
        if other.peer is not None and other.peer is not self:
            raise LinuxError(EPERM)
        return other

    def peer_name(self, *, gone: bool = False) -> bytes:
        """Sockaddr of its peer."""
        if self.peer is None:
            raise LinuxError(ENOTCONN)
        return self.peer.name()

    def shut(self, how: int) -> None:
        """Shutdown: 0 input, 1 output, 2 both."""
        self.receive_ends = self.receive_ends or how in (0, 2)
        self.send_ends = self.send_ends or how in (1, 2)
        self.wake_all()

    def on_close(self) -> None:
        """The last descriptor is gone."""
        self._closed = True
        self.vanish()
        if self.peer is not None:
            self.peer.wake(writable=True)

    def refuse(self, ctx: Context, message: Outgoing, size: int) -> None:
        """Fail as sending fails before it looks at the bytes (unix_dgram_sendmsg, 6.14)."""
        if message.flags & MSG_OOB:
            raise LinuxError(EOPNOTSUPP)
        if message.name:
            name_in(message.name)
        self._check(size)

    def send(self, ctx: Context, message: Outgoing) -> int | None:
        """Send a datagram; None if it would block."""
        self.refuse(ctx, message, len(message.data))
        if self.passes_credentials:
            self.bind_somehow()
        other = self._other(ctx, message.name) if message.name else self._peer()
        if not self._fits(other, len(message.data)):
            return None
        other.arrive(self.message_to(ctx, other, message))
        return len(message.data)

    def put(self, data: bytes) -> int | None:
        """The same to its peer, of bytes alone."""
        self._check(len(data))
        other = self._peer()
        if not self._fits(other, len(data)):
            return None
        other.arrive(UnixMessage(data, self, [], None))
        return len(data)

    def _peer(self) -> "UnixDatagramSocket":
        peer = self.peer
        if peer is None:
            raise LinuxError(ENOTCONN)
        if peer._closed:
            self.peer = None
            raise LinuxError(ECONNREFUSED)
        return peer

    def _check(self, size: int) -> None:
        """Fail if no datagram of a size may be sent to anybody."""
        if size > self.send_buffer - 32:
            raise LinuxError(EMSGSIZE)
        self.check_error()
        if self.send_ends:
            raise LinuxError(EPIPE)

    def _fits(self, other: "UnixDatagramSocket", size: int) -> bool:
        """True if a datagram may be sent now."""
        if other.receive_ends:
            raise LinuxError(EPIPE)
        if other is not self and other.peer is not self and other.full:
            return False
        crowded = other.queued + size > self.send_buffer and bool(other.queue)
        return not crowded and self.network.room(size + 1) > size

    @property
    def full(self) -> bool:
        """As many datagrams as may wait do."""
        return len(self.queue) > _MOST_QUEUED

    def receive(self, size: int, flags: int, enough: int = 1) -> Incoming | None:
        """Receive a datagram, None if it would block."""
        if flags & MSG_OOB:
            raise LinuxError(EOPNOTSUPP)
        self.check_error()
        if not self.queue:
            patient = not (self.nonblocking or flags & MSG_DONTWAIT)
            return Incoming(b"", 0) if self.receive_ends and patient else None
        message = self.queue[0]
        peek = bool(flags & MSG_PEEK)
        got = Incoming(message.data[:size], len(message.data), message.sender.sender_name)
        self.along(message, got, peek=peek)
        if not peek:
            full = self.full
            self.queue.popleft()
            self.gone(len(message.data))
            for each in self.network.sockets if full else ():
                if each is not self and isinstance(each, UnixDatagramSocket) and each.peer is self:
                    each.wake(writable=True)
        return got

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        mask = self.ended()
        if self.queue:
            mask |= fl.READABLE
        peer = self.peer
        if peer is None or peer._closed:
            return mask | fl.WRITABLE
        if peer.peer is self:
            return mask | (fl.WRITABLE if 4 * peer.queued <= self.send_buffer else 0)
        return mask | (0 if peer.full else fl.WRITABLE)


def pair_datagrams(one: UnixDatagramSocket, other: UnixDatagramSocket) -> None:
    """Two sockets send to each other (socketpair)."""
    one.peer, other.peer = other, one
