"""Sockets as open files: with options, an error that waits, and wakeups."""

import stat
import struct
from collections.abc import Iterable

from engine.linux.context import Context
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import Stat
from engine.linux.fs.devices import SOCKETS
from engine.linux.fs.vfs import IoctlCaller, OpenFile, Sleeper
from engine.linux.net import interface
from engine.linux.net.messages import STRANGER, Incoming, Outgoing
from engine.linux.net.network import Network

EINVAL, ENOTTY, EOPNOTSUPP, ENOTCONN = 22, 25, 95, 107

SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET = 1, 2, 3, 5

SOL_SOCKET = 1
SO_REUSEADDR, SO_SNDBUF, SO_RCVBUF, SO_LINGER = 2, 7, 8, 13
SO_REUSEPORT, SO_PASSCRED, SO_RCVLOWAT = 15, 16, 18
SO_RCVTIMEO, SO_SNDTIMEO = 20, 21

OVERHEAD = 512
"""Bytes that a message takes beside its own, so that many small ones are bounded, too."""

_FIONREAD, _TIOCOUTQ, _SIOCATMARK = 0x541B, 0x5411, 0x8905


class Socket(OpenFile):
    """One socket; the kinds say what it can do, a call that none of them has is EOPNOTSUPP.

    Attributes:
        family: AF_*.
        kind: SOCK_*.
        protocol: as SO_PROTOCOL tells it.
        stream: bytes follow each other without boundaries.
        discards: MSG_TRUNC means that what is received is not stored.
        network: the one it is on.
        ino: its inode number.
        uid: its user.
        options: what setsockopt has stored, by (level, name).
        error: what SO_ERROR tells and the next call fails with, 0 for nothing.
        receive_ends: nothing more is received.
        send_ends: nothing more may be sent.
        queued: bytes of the messages that wait in it, with what each costs beside its data.
        peer_credentials: SO_PEERCRED.
        binding: SO_BINDTODEVICE names the interface.
    """

    family = 0
    protocol = 0
    stream = False
    discards = False

    def __init__(self, network: Network, kind: int, uid: int) -> None:
        super().__init__(fl.O_RDWR)
        network.enter(self)
        self.network = network
        self.kind = kind
        self.uid = uid
        self.ino = network.numbers.next()
        self.options: dict[tuple[int, int], int] = {}
        self.error = 0
        self.receive_ends = self.send_ends = False
        self.peer_credentials = STRANGER
        self.binding = False
        self.messages = not self.stream
        self.breaks = kind == SOCK_STREAM
        self.sleepers: dict[Sleeper, None] = {}
        self.queued = 0
        self._wakes_in = self._wakes_out = 0

    # -- options ---------------------------------------------------------------------------

    def option(self, name: int, default: int = 0) -> int:
        """An option of SOL_SOCKET."""
        return self.options.get((SOL_SOCKET, name), default)

    @property
    def reuse(self) -> bool:
        """SO_REUSEADDR is set."""
        return bool(self.option(SO_REUSEADDR))

    @property
    def reuse_port(self) -> bool:
        """SO_REUSEPORT is set."""
        return bool(self.option(SO_REUSEPORT))

    @property
    def listening(self) -> bool:
        """True while the socket takes connections."""
        return False

    @property
    def send_buffer(self) -> int:
        """SO_SNDBUF."""
        return self.option(SO_SNDBUF, 212_992)

    @property
    def receive_buffer(self) -> int:
        """SO_RCVBUF."""
        return self.option(SO_RCVBUF, 212_992)

    @property
    def low_water(self) -> int:
        """Bytes below which a stream is not readable (SO_RCVLOWAT)."""
        return self.option(SO_RCVLOWAT) or 1

    def patience(self, *, writing: bool) -> int | None:
        """Nanoseconds a blocked call lasts, None for no limit (SO_RCVTIMEO, SO_SNDTIMEO)."""
        return self.option(SO_SNDTIMEO if writing else SO_RCVTIMEO) or None

    # -- errors and wakeups ----------------------------------------------------------------

    def take_error(self) -> int:
        """The error that waits; it waits no more."""
        error, self.error = self.error, 0
        return error

    def check_error(self) -> None:
        """Fail with the error that waits."""
        if self.error:
            raise LinuxError(self.take_error())

    def wake(self, *, readable: bool = False, writable: bool = False) -> None:
        """Something has happened to it: for who waits to receive, and edge-triggered epoll."""
        self._wakes_in += readable
        self._wakes_out += writable
        if readable:
            for each in self.sleepers:
                each.wake()

    def wake_all(self) -> None:
        """Something has happened to it that concerns everybody."""
        self.wake(readable=True, writable=True)

    def wakeups(self, events: int) -> int:
        """Counts what happened that concerns some POLL* bits, for edge-triggered epoll."""
        found = self._wakes_in if events & (fl.READABLE | fl.POLLRDHUP | fl.POLLPRI) else 0
        return found + (self._wakes_out if events & fl.WRITABLE else 0)

    def came(self) -> tuple[int, int]:
        """Counts what came to read; of room to write no signals tell."""
        return self._wakes_in, 0

    @property
    def activity(self) -> int:
        """Counts what happened to it."""
        return self._wakes_in + self._wakes_out

    def ended(self) -> int:
        """POLL* bits of an error that waits, and of directions that are shut down."""
        mask = fl.POLLERR if self.error else 0
        if self.receive_ends:
            mask |= fl.READABLE | fl.POLLRDHUP
            if self.send_ends:
                mask |= fl.POLLHUP
        return mask

    # -- messages --------------------------------------------------------------------------

    def fits(self, size: int) -> bool:
        """True if there is room for so many bytes of data more, as one message."""
        size += OVERHEAD
        return self.queued + size <= self.receive_buffer and self.network.room(size) > 0

    def charge(self, size: int) -> None:
        """So many more bytes wait in it, or fewer."""
        self.queued += size
        self.network.buffered += size

    # -- the calls -------------------------------------------------------------------------

    def bind(self, ctx: Context, name: bytes) -> None:
        """Take an address."""
        raise LinuxError(EOPNOTSUPP)

    def listen(self, ctx: Context, backlog: int) -> None:
        """Take connections from now on."""
        raise LinuxError(EOPNOTSUPP)

    def connect(self, ctx: Context, name: bytes) -> bool:
        """Connect to an address; False if that takes time, and it may be asked again."""
        raise LinuxError(EOPNOTSUPP)

    def connected(self) -> bool | None:
        """True once `connect` has done what it began, None where it is to be begun again."""
        return None

    def give_up(self) -> None:
        """A connection has not come about in time."""

    def accept(self) -> "Socket | None":
        """The first connection that waits to be taken, None if there is none."""
        raise LinuxError(EOPNOTSUPP)

    def name(self) -> bytes:
        """The socket's own sockaddr."""
        raise LinuxError(EOPNOTSUPP)

    def peer_name(self, *, gone: bool = False) -> bytes:
        """Sockaddr of its peer; with `gone`, also of one that has left."""
        raise LinuxError(ENOTCONN)

    def refuse(self, ctx: Context, message: Outgoing, size: int) -> None:
        """Fail as sending fails before it looks at the bytes; what it does not see then is fine.

        Args:
            ctx: the process that sends.
            message: all of a message but its bytes.
            size: their number.
        """

    def send(self, ctx: Context, message: Outgoing) -> int | None:
        """Send a message, or what there is room for of a stream; None if it would block."""
        raise LinuxError(EOPNOTSUPP)

    def put(self, data: bytes) -> int | None:
        """The same to its peer, of bytes alone (write)."""
        raise LinuxError(EOPNOTSUPP)

    def receive(self, size: int, flags: int, enough: int = 1) -> Incoming | None:
        """Receive up to `size` bytes, None if it would block.

        Args:
            size: bytes there is room for.
            flags: MSG_PEEK counts.
            enough: fewer bytes of a stream are not worth it yet.
        """
        raise LinuxError(EOPNOTSUPP)

    def shut(self, how: int) -> None:
        """Shutdown: 0 input, 1 output, 2 both."""
        raise LinuxError(EOPNOTSUPP)

    def unread(self) -> int:
        """Bytes that the next call could receive."""
        return 0

    def unsent(self) -> int:
        """Bytes that have not reached the other end."""
        return 0

    def files_on_their_way(self) -> Iterable[OpenFile]:
        """Files in messages to it that it has not received."""
        return ()

    def drop_queue(self) -> None:
        """Forget messages that it has not received."""

    # -- the file --------------------------------------------------------------------------

    def read(self, count: int) -> bytes | None:
        """Up to `count` bytes, b"" at the end, None if it would block."""
        got = self.receive(count, 0, self.low_water)
        if got is None:
            return None
        self.network.rights.drop(got.files)
        return got.data

    def write(self, data: bytes) -> int | None:
        """Take bytes: their number, None if it would block."""
        return self.put(data)

    def stat(self) -> Stat:
        """Attributes."""
        mode = stat.S_IFSOCK | 0o777
        return Stat(SOCKETS, self.ino, mode, 1, self.uid, self.uid, 0, 0, 4096, 0, 0, 0, 0)

    def ioctl(self, caller: IoctlCaller, request: int, argument: int) -> int:
        """Device control: how much waits, and the interface."""
        if request == _FIONREAD:
            answer = self.unread()
        elif request == _TIOCOUTQ:
            answer = self.unsent()
        elif request == _SIOCATMARK and self.stream:
            answer = 0
        else:
            return interface.ioctl(caller, self.family, request, argument)
        caller.memory.write(argument, struct.pack("<i", answer))
        return 0

    def describe(self) -> bytes:
        """The text that readlink of /proc/self/fd/N shows."""
        return b"socket:[%d]" % self.ino
