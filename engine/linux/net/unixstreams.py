"""UNIX sockets that are connected: SOCK_STREAM and SOCK_SEQPACKET."""

import enum
from collections import deque
from collections.abc import Iterable

from engine.linux.context import Context
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.vfs import OpenFile
from engine.linux.net.messages import (
    MSG_OOB,
    MSG_PEEK,
    Credentials,
    Incoming,
    Outgoing,
    own_credentials,
)
from engine.linux.net.network import Network
from engine.linux.net.socket import OVERHEAD, SOCK_STREAM
from engine.linux.net.unix import UnixMessage, UnixSocket

EAGAIN, EINVAL, EPIPE, EMSGSIZE, EOPNOTSUPP = 11, 22, 32, 90, 95
ECONNRESET, EISCONN, ENOTCONN, ECONNREFUSED = 104, 106, 107, 111

_MOST_BACKLOG = 4096


class UnixState(enum.IntEnum):
    """States, with Linux's numbers."""

    ESTABLISHED = 1
    CLOSE = 7
    LISTEN = 10


class UnixStream(UnixSocket):
    """A UNIX socket that connects.

    Attributes:
        state: of its connection.
        peer: the other end, also once that has closed.
        backlog: connections that may wait to be taken, one less.
        waiting: those that do.
    """

    def __init__(self, network: Network, kind: int, uid: int) -> None:
        self.stream = kind == SOCK_STREAM
        super().__init__(network, kind, uid)
        self.state = UnixState.CLOSE
        self.peer: UnixStream | None = None
        self.backlog = 0
        self.waiting: deque[UnixStream] = deque()
        self._closed = False

    @property
    def listening(self) -> bool:
        """True while the socket takes connections."""
        return self.state is UnixState.LISTEN

    # -- connections -----------------------------------------------------------------------

    def listen(self, ctx: Context, backlog: int) -> None:
        """Take connections from now on."""
        if self.own_name is None or self.state is UnixState.ESTABLISHED:
            raise LinuxError(EINVAL)
        self.backlog = min(backlog & 0xFFFFFFFF, _MOST_BACKLOG)
        self.state = UnixState.LISTEN
        self.peer_credentials = own_credentials(ctx)
        self.wake(writable=True)

    def connect(self, ctx: Context, name: bytes) -> bool:
        """Connect to a name; False if there is no room in the backlog yet."""
        listener = self.find(ctx, name)
        assert isinstance(listener, UnixStream), "found by its kind"
        if self.passes_credentials:
            self.bind_somehow()
        if not listener.listening or listener.receive_ends:
            raise LinuxError(ECONNREFUSED)
        if len(listener.waiting) > listener.backlog:
            if self.nonblocking:
                raise LinuxError(EAGAIN)
            return False
        if self.state is UnixState.ESTABLISHED:
            raise LinuxError(EISCONN)
        if self.state is UnixState.LISTEN:
            raise LinuxError(EINVAL)
        child = UnixStream(self.network, self.kind, listener.uid)
        child.own_name = listener.own_name
        child.options = dict(listener.options)
        child.join(self, own_credentials(ctx))
        self.peer_credentials = listener.peer_credentials
        listener.waiting.append(child)
        listener.wake(readable=True)
        return True

    def join(self, other: "UnixStream", who: Credentials) -> None:
        """Two ends are one connection from now on; `who` is at the other end."""
        self.peer, other.peer = other, self
        self.state = other.state = UnixState.ESTABLISHED
        self.peer_credentials = who

    def accept(self) -> "UnixStream | None":
        """The first connection that waits to be taken, None if there is none."""
        if not self.listening or self.receive_ends:
            raise LinuxError(EINVAL)
        return self.waiting.popleft() if self.waiting else None

    def peer_name(self, *, gone: bool = False) -> bytes:
        """Sockaddr of its peer."""
        if self.peer is None:
            raise LinuxError(ENOTCONN)
        return self.peer.name()

    def leave_name(self) -> None:
        """Leave the socket's name; a socket that was taken shares its listener's."""
        if self.place_node is not None or self.network.abstract.get(self.own_name or b"") is self:
            super().leave_name()

    def shut(self, how: int) -> None:
        """Shutdown: 0 input, 1 output, 2 both."""
        receive, send = how in (0, 2), how in (1, 2)
        self.receive_ends = self.receive_ends or receive
        self.send_ends = self.send_ends or send
        peer = self.peer
        if peer is not None and not peer._closed:
            peer.receive_ends = peer.receive_ends or send
            peer.send_ends = peer.send_ends or receive
            peer.wake_all()
        self.wake_all()

    def on_close(self) -> None:
        """The last descriptor is gone."""
        self._closed = True
        while self.waiting:
            child = self.waiting.popleft()
            child.cut(ECONNRESET)
            child.vanish()
        self.cut(ECONNRESET if self.queue else 0)
        self.state = UnixState.CLOSE
        self.vanish()

    def cut(self, error: int) -> None:
        """The other end learns that this one is gone."""
        self._closed = True
        peer = self.peer
        if peer is not None and not peer._closed:
            peer.receive_ends = peer.send_ends = True
            peer.error = peer.error or error
            peer.wake_all()

    # -- bytes and messages ----------------------------------------------------------------

    def refuse(self, ctx: Context, message: Outgoing, size: int) -> None:
        """Fail as sending fails before it looks at the bytes."""
        self._check(ctx, message)
        self._room(size)

    def _check(self, ctx: Context, message: Outgoing) -> None:
        """Refuse urgent data, a socket without a peer, and the name of another one."""
        if message.flags & MSG_OOB:
            ctx.unsupported("urgent data (MSG_OOB)")
            raise LinuxError(EOPNOTSUPP)
        if not self.stream and self.state is not UnixState.ESTABLISHED:
            raise LinuxError(ENOTCONN)
        if message.name and self.stream:
            connected = self.state is UnixState.ESTABLISHED
            raise LinuxError(EISCONN if connected else EOPNOTSUPP)

    def send(self, ctx: Context, message: Outgoing) -> int | None:
        """Send a message, or what there is room for of a stream; None if it would block."""
        self._check(ctx, message)
        room = self._room(len(message.data))
        if room is None or self.peer is None:
            return None
        if self.stream and not message.data:
            return 0
        message.data = message.data[:room]
        self.peer.arrive(self.message_to(ctx, self.peer, message))
        return room

    def put(self, data: bytes) -> int | None:
        """The same of bytes alone."""
        if not self.stream and self.state is not UnixState.ESTABLISHED:
            raise LinuxError(ENOTCONN)
        room = self._room(len(data))
        if room is None or self.peer is None:
            return None
        if room or not self.stream:
            self.peer.arrive(UnixMessage(data[:room], self, [], None))
        return room

    def _room(self, size: int) -> int | None:
        """Bytes that may be sent now, None if it would block."""
        peer = self.peer
        if peer is None:
            raise LinuxError(ENOTCONN)
        if self.send_ends or peer.receive_ends or peer._closed:
            raise LinuxError(EPIPE)
        self.check_error()
        most = self.send_buffer
        if not self.stream and size > most - 32:
            raise LinuxError(EMSGSIZE)
        room = self.network.room(most - peer.queued - OVERHEAD)
        if not size:
            return 0
        if room <= 0 or (not self.stream and room < size and peer.queue):
            return None
        return min(room, size) if self.stream else size

    def receive(self, size: int, flags: int, enough: int = 1) -> Incoming | None:
        """Receive a message or up to `size` bytes of a stream, None if it would block."""
        if self.state is not UnixState.ESTABLISHED:
            raise LinuxError(EINVAL if self.stream else ENOTCONN)
        if flags & MSG_OOB:
            raise LinuxError(EINVAL if self.stream else EOPNOTSUPP)
        if not self.stream:
            self.check_error()
        if not self.queue:
            self.check_error()
            return Incoming(b"", 0) if self.receive_ends else None
        peek = bool(flags & MSG_PEEK)
        got = self._stream(size, enough, peek=peek) if self.stream else self._packet(size, peek)
        if got is not None and not peek and self.peer is not None:
            self.peer.wake(writable=True)
        return got

    def _packet(self, size: int, peek: bool) -> Incoming:
        message = self.queue[0]
        got = Incoming(message.data[:size], len(message.data), message.sender.sender_name)
        self.along(message, got, peek=peek)
        if not peek:
            self.queue.popleft()
            self.gone(len(message.data))
        return got

    def _stream(self, size: int, enough: int, *, peek: bool) -> Incoming | None:
        if enough > 1 and self.unread() < min(enough, size) and not self.receive_ends:
            return None
        first = self.queue[0]
        got = Incoming(b"", 0, first.sender.sender_name)
        pieces: list[bytes] = []
        taken = 0
        used = 0
        for message in self.queue:
            strange = self.passes_credentials and message.credentials != first.credentials
            if used and (strange or (message.files and got.files)):
                got.last = True
                break
            if used and taken >= size:
                break
            used += 1
            piece = message.data[: size - taken]
            pieces.append(piece)
            taken += len(piece)
            brought = bool(message.files)
            self.along(message, got, peek=peek)
            if not peek:
                message.data = message.data[len(piece) :]
                self.gone(len(piece), whole=not message.data)
            if brought:  # files belong to the bytes that they came with
                got.last = True
                break
            if message.data and not peek:
                break
        if not peek:
            while self.queue and not self.queue[0].data and used:
                self.queue.popleft()
                used -= 1
        got.data, got.whole = b"".join(pieces), taken
        return got

    # -- what others see -------------------------------------------------------------------

    def files_on_their_way(self) -> Iterable[OpenFile]:
        """Files in messages that nobody has received, to those that wait to be taken, too."""
        found = list(super().files_on_their_way())
        for each in self.waiting:
            found += each.files_on_their_way()
        return found

    def drop_queue(self) -> None:
        """Forget messages that it has not received, nor those that wait to be taken."""
        super().drop_queue()
        for each in self.waiting:
            each.drop_queue()

    def unsent(self) -> int:
        """Bytes that the other end has not received."""
        return 0 if self.peer is None else self.peer.unread() if self.stream else 0

    def readiness(self) -> int:
        """POLL* bits that hold now."""
        mask = self.ended()
        if self.queue or self.waiting:
            mask |= fl.READABLE
        if self.state is UnixState.CLOSE:
            mask |= fl.POLLHUP
        if self.listening:
            return mask
        peer = self.peer
        if peer is None or 4 * peer.queued <= self.send_buffer:
            mask |= fl.WRITABLE
        return mask
