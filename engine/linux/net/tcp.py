"""TCP without a wire: connections whose ends put bytes into each other's queues."""

import enum
from collections import deque
from typing import Final

from engine.linux.context import Context
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.net.addresses import AF_INET, AF_UNSPEC, Endpoint, family_of, is_v4
from engine.linux.net.inet import InetSocket, best
from engine.linux.net.messages import MSG_OOB, MSG_PEEK, Incoming, Outgoing
from engine.linux.net.network import Network
from engine.linux.net.socket import SO_LINGER, SO_RCVBUF, SO_SNDBUF, SOCK_STREAM, SOL_SOCKET

EINVAL, EPIPE, EOPNOTSUPP, EADDRINUSE, EADDRNOTAVAIL = 22, 32, 95, 98, 99
ECONNABORTED, ECONNRESET, EISCONN, ENOTCONN = 103, 104, 106, 107
ETIMEDOUT, ECONNREFUSED, EALREADY = 110, 111, 114

IPPROTO_TCP: Final = 6

_GROWN: Final = 2_626_560
"""Bytes that a send buffer grows to by itself on loopback."""
_MOST_BACKLOG: Final = 4096
"""net.core.somaxconn."""


class TcpState(enum.IntEnum):
    """States of a connection, with Linux's numbers (net/tcp_states.h)."""

    ESTABLISHED = 1
    SYN_SENT = 2
    FIN_WAIT2 = 5
    TIME_WAIT = 6
    CLOSE = 7
    CLOSE_WAIT = 8
    LISTEN = 10


_OPEN: Final = (TcpState.ESTABLISHED, TcpState.CLOSE_WAIT)


class TcpSocket(InetSocket):
    """A TCP socket.

    Attributes:
        state: of its connection.
        peer: the other end.
        backlog: connections that may wait to be taken, one less.
        queue: those that do.
        knocking: sockets that connect and wait for room there.
        orphan: it is closed, and its connection is not at its end.
    """

    protocol = IPPROTO_TCP
    stream = True
    discards = True

    def __init__(self, network: Network, family: int, uid: int) -> None:
        super().__init__(network, family, SOCK_STREAM, network.tcp, uid)
        self.state = TcpState.CLOSE
        self.peer: TcpSocket | None = None
        self.backlog = 0
        self.queue: deque[TcpSocket] = deque()
        self.knocking: deque[TcpSocket] = deque()
        self.orphan = False
        self._goal: TcpSocket | None = None
        self._connecting = self._done = False
        self._data = bytearray()
        self._received = 0

    @property
    def listening(self) -> bool:
        """True while the socket takes connections."""
        return self.state is TcpState.LISTEN

    @property
    def busy(self) -> bool:
        """True past the time at which the socket could be bound."""
        return self.state is not TcpState.CLOSE

    @property
    def send_buffer(self) -> int:
        """SO_SNDBUF."""
        default = 16_384 if self.peer is None else _GROWN
        return self.options.get((SOL_SOCKET, SO_SNDBUF), default)

    @property
    def receive_buffer(self) -> int:
        """SO_RCVBUF."""
        return self.options.get((SOL_SOCKET, SO_RCVBUF), 131_072)

    # -- taking connections ----------------------------------------------------------------

    def listen(self, ctx: Context, backlog: int) -> None:
        """Take connections from now on."""
        if self._connecting or self.state not in (TcpState.CLOSE, TcpState.LISTEN):
            raise LinuxError(EINVAL)
        if self.state is TcpState.CLOSE:
            if not self.holds_port:
                self.take(Endpoint(self.local.host, 0), EADDRINUSE)
            self.state = TcpState.LISTEN
            if self.ports.conflict(self, self.local):
                self.state = TcpState.CLOSE
                raise LinuxError(EADDRINUSE)
            self.send_ends = self.receive_ends = False
        self.backlog = min(backlog & 0xFFFFFFFF, _MOST_BACKLOG)

    def accept(self) -> "TcpSocket | None":
        """The first connection that waits to be taken, None if there is none."""
        if self.state is not TcpState.LISTEN:
            raise LinuxError(EINVAL)
        if not self.queue:
            return None
        taken = self.queue.popleft()
        if self.knocking:
            self.knocking.popleft().meet(self)
        return taken

    def _stop_listening(self) -> None:
        """Drop the connections that wait, which none will take."""
        self.state = TcpState.CLOSE
        while self.queue:
            child = self.queue.popleft()
            child.reset_peer()
            child.vanish()
        while self.knocking:
            self.knocking.popleft().refused()
        self.wake_all()

    def _listener(self, target: Endpoint, source: Endpoint) -> "TcpSocket | None":
        """The socket that takes connections to an address."""
        found: list[tuple[int, InetSocket]] = []
        for each in self.ports.holders(target.port):
            if isinstance(each, TcpSocket) and each.listening and each.hears(target.host):
                exact = each.local.host == target.host
                found.append((2 * exact + (each.family == AF_INET), each))
        chosen = best(found, source)
        return chosen if isinstance(chosen, TcpSocket) else None

    def hears(self, host: bytes) -> bool:
        """True if what is sent to a host is sent to it."""
        own = self.local.host
        if own == host:
            return True
        if is_v4(own):
            return is_v4(host) and not any(own[12:])
        return not any(own) and not (self.v6only and is_v4(host))

    # -- connecting ------------------------------------------------------------------------

    def connect(self, ctx: Context, name: bytes) -> bool:
        """Connect to an address; False if that takes time, and it may be asked again."""
        if family_of(name) == AF_UNSPEC:
            self._disconnect()
            return True
        if self._connecting:
            if self.state is TcpState.SYN_SENT:
                if self.nonblocking:
                    raise LinuxError(EALREADY)
                return False
            return bool(self.connected())
        if self.state is not TcpState.CLOSE or self.remote is not None:
            raise LinuxError(EISCONN)
        target = self.target(name)
        source = self.source_for(target)
        if self.holds_port:
            if any(
                each is not self and each.remote == target and each.local.host == source
                for each in self.ports.holders(self.local.port)
            ):
                raise LinuxError(EADDRNOTAVAIL)
            self.local = Endpoint(source, self.local.port)
        else:
            self.take(Endpoint(source, 0), EADDRNOTAVAIL)
        self.remote, self._connecting, self.state = target, True, TcpState.SYN_SENT
        self.error, self._done = 0, False
        self.receive_ends = self.send_ends = False
        listener = self._listener(target, self.local)
        if listener is None:
            self.refused()
        elif len(listener.queue) > listener.backlog:
            self._goal = listener
            listener.knocking.append(self)
        else:
            self.meet(listener)
        return False

    def connected(self) -> bool | None:
        """True once `connect` has done what it began, False while it goes on."""
        if self.state is TcpState.SYN_SENT:
            return False
        self._connecting = False
        if self.state is TcpState.CLOSE and not self._done:
            error = self.take_error() or ECONNABORTED
            self._disconnect()
            raise LinuxError(error)
        return True

    def give_up(self) -> None:
        """A connection has not come about in time."""
        self._disconnect()

    def refused(self) -> None:
        """Take note that no socket listens there."""
        self._goal = None
        self._break(ECONNREFUSED)

    def meet(self, listener: "TcpSocket") -> None:
        """A listener has room for it: the connection stands."""
        assert self.remote is not None, "it connects to somewhere"
        self._goal = None
        try:
            child = TcpSocket(self.network, listener.family, listener.uid)
        except LinuxError:
            self.refused()
            return
        child.options = dict(listener.options)
        child.remote = self.local
        child.hold(self.remote)
        self.peer, child.peer = child, self
        self.state = child.state = TcpState.ESTABLISHED
        listener.queue.append(child)
        listener.wake(readable=True)
        self.wake(writable=True)

    def _disconnect(self) -> None:
        """Not be connected, or about to be, or take connections any more."""
        if self.state is TcpState.LISTEN:
            self._stop_listening()
        elif self.state is TcpState.SYN_SENT:
            self._stop_knocking()
        error = 0
        if self.peer is not None:
            self.reset_peer()
            error = ECONNRESET
        self._clear()
        self.state, self.error = TcpState.CLOSE, error
        self._connecting = self._done = False
        self.receive_ends = self.send_ends = False
        self.forget_peer(show=True)
        self.wake_all()

    def _stop_knocking(self) -> None:
        if self._goal is not None:
            self._goal.knocking.remove(self)
            self._goal = None

    def _clear(self) -> None:
        self.network.buffered -= len(self._data)
        self._data.clear()

    # -- the end of a connection -----------------------------------------------------------

    def _break(self, error: int) -> None:
        """The connection is no more, at once (tcp_reset)."""
        if self.state is TcpState.CLOSE:
            return
        self.error = error
        self.receive_ends = self.send_ends = True
        self._over()

    def reset_peer(self) -> None:
        """Tell the other end that the connection is no more."""
        peer, self.peer = self.peer, None
        if peer is not None:
            peer._break(EPIPE if peer.state is TcpState.CLOSE_WAIT else ECONNRESET)

    def _finish(self) -> None:
        """Nothing more will be sent (FIN)."""
        peer = self.peer
        if peer is None or self.state not in _OPEN:
            return
        first = self.state is TcpState.ESTABLISHED
        peer._heard_end()
        if first:
            self.state = TcpState.FIN_WAIT2
        else:
            self._over()

    def _heard_end(self) -> None:
        """The other end will send nothing more."""
        self.receive_ends = self._done = True
        if self.state is TcpState.ESTABLISHED:
            self.state = TcpState.CLOSE_WAIT
            self.wake_all()
        else:  # it has said so itself before: that is the end, and it keeps watch over the port
            self.send_ends = True
            self.network.linger(self)
            self._over()

    def _over(self) -> None:
        """The connection is at its end; the port is kept if it was asked for."""
        self.state, self.peer = TcpState.CLOSE, None
        if self.orphan:
            self.vanish()
            return
        if not self.asked:
            self.let_port_go()
        self.wake_all()

    def shut(self, how: int) -> None:
        """Shutdown: 0 input, 1 output, 2 both."""
        receive, send = how in (0, 2), how in (1, 2)
        if self.state is TcpState.LISTEN:
            if receive:
                self._disconnect()
            return
        if self.state is TcpState.SYN_SENT:
            self._disconnect()
            return
        closed = self.state is TcpState.CLOSE
        self.receive_ends = self.receive_ends or receive
        self.send_ends = self.send_ends or send
        if closed:
            raise LinuxError(ENOTCONN)
        if send:
            self._finish()
        self.wake_all()

    def on_close(self) -> None:
        """The last descriptor is gone."""
        if self.state is TcpState.LISTEN:
            self._stop_listening()
        elif self.state is TcpState.SYN_SENT:
            self._stop_knocking()
        elif self.peer is not None:
            if self._data or self.options.get((SOL_SOCKET, SO_LINGER)) == 1:
                self.reset_peer()
            else:
                self.orphan = True
                self.receive_ends = self.send_ends = True
                self._finish()
                if self.peer is not None:
                    return  # until the other end has closed, too
        self.vanish()

    def vanish(self) -> None:
        """Nothing is left of it."""
        self._clear()
        self.state = TcpState.CLOSE
        self.leave_port()
        self.network.leave(self)

    # -- bytes -----------------------------------------------------------------------------

    def refuse(self, ctx: Context, message: Outgoing, size: int) -> None:
        """Fail as sending fails before it looks at the bytes."""
        self._check(ctx, message)
        self._opens()

    def _check(self, ctx: Context, message: Outgoing) -> None:
        """Refuse urgent data."""
        if message.flags & MSG_OOB:
            ctx.unsupported("urgent data (MSG_OOB)")
            raise LinuxError(EOPNOTSUPP)

    def _opens(self) -> bool:
        """Tell whether the connection is still being made; fail if nothing can be sent."""
        if self.error or self.state not in _OPEN or self.send_ends:
            self.check_error()
            if self.state is not TcpState.SYN_SENT:
                raise LinuxError(EPIPE)
            return True
        return False

    def send(self, ctx: Context, message: Outgoing) -> int | None:
        """Send what there is room for; None if it would block."""
        self._check(ctx, message)
        return self.put(message.data)

    def put(self, data: bytes) -> int | None:
        """The same of bytes alone."""
        if self._opens():
            return None
        peer = self.peer
        assert peer is not None, "an open connection has another end"
        if peer.orphan and data:
            peer.vanish()
            self._break(EPIPE if self.state is TcpState.CLOSE_WAIT else ECONNRESET)
            return len(data)
        room = self._room()
        if room <= 0 and data:
            return None
        return peer.arrive(data[:room] if room < len(data) else data)

    def _room(self) -> int:
        """Bytes that may be sent now."""
        peer = self.peer
        if peer is None:
            return 0
        room = self.send_buffer + peer.receive_buffer - len(peer._data)
        return self.network.room(room)

    def arrive(self, data: bytes) -> int:
        """Bytes come from the other end; their number."""
        self._data += data
        self._received += len(data)
        self.network.buffered += len(data)
        if len(self._data) >= self.low_water or self.sleepers:
            self.wake(readable=True)
        return len(data)

    def receive(self, size: int, flags: int, enough: int = 1) -> Incoming | None:
        """Receive up to `size` bytes, None if it would block."""
        if flags & MSG_OOB:
            raise LinuxError(EINVAL)
        if self.state is TcpState.LISTEN:
            raise LinuxError(ENOTCONN)
        data = self._data
        if len(data) < (min(enough, size) or 1) and not self.receive_ends and not self.error:
            if self.state is TcpState.CLOSE:
                raise LinuxError(ENOTCONN)
            return None
        if not data and size:
            if not self._done:
                self.check_error()
            return Incoming(b"", 0)
        taken = bytes(data[:size])
        if not flags & MSG_PEEK:
            full = not self.writable_there()
            del data[: len(taken)]
            self.network.buffered -= len(taken)
            if full and self.peer is not None and self.writable_there():
                self.peer.wake(writable=True)
        return Incoming(taken, len(taken))

    def writable_there(self) -> bool:
        """True if the other end is told that it may send."""
        return self.peer is not None and self.peer.writable()

    def writable(self) -> bool:
        """True if a third of the room is there (sk_stream_is_writeable)."""
        peer = self.peer
        if peer is None:
            return self.send_buffer > 0
        whole = self.send_buffer + peer.receive_buffer
        return 3 * self._room() >= whole

    def unread(self) -> int:
        """Bytes that the next call could receive."""
        if self.state is TcpState.LISTEN:
            raise LinuxError(EINVAL)
        return len(self._data)

    def unsent(self) -> int:
        """Bytes that have not reached the other end."""
        if self.state is TcpState.LISTEN:
            raise LinuxError(EINVAL)
        peer = self.peer
        return 0 if peer is None else max(0, len(peer._data) - peer.receive_buffer)

    @property
    def received(self) -> int:
        """All bytes that have come from the other end."""
        return self._received

    # -- what others see -------------------------------------------------------------------

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        if self.state is TcpState.LISTEN:
            return fl.READABLE if self.queue else 0
        mask = 0
        if self.state is TcpState.CLOSE or (self.receive_ends and self.send_ends):
            mask |= fl.POLLHUP
        if self.receive_ends:
            mask |= fl.READABLE | fl.POLLRDHUP
        if self.state is not TcpState.SYN_SENT:
            if len(self._data) >= self.low_water:
                mask |= fl.READABLE
            if self.send_ends or self.writable():
                mask |= fl.WRITABLE
        return mask | (fl.POLLERR if self.error else 0)

    def peer_name(self, *, gone: bool = False) -> bytes:
        """Sockaddr of its peer; with `gone`, also of one that has left."""
        if self.remote is None or (not gone and self.state in (TcpState.CLOSE, TcpState.SYN_SENT)):
            raise LinuxError(ENOTCONN)
        return self.shown(self.remote)
