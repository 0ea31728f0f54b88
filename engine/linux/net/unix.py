"""UNIX sockets: names in the tree of files and outside of it, and what is sent along."""

import struct
from collections import deque
from collections.abc import Iterable
from typing import Final

from engine.linux.context import Context
from engine.linux.errno import LinuxError
from engine.linux.fs import operations
from engine.linux.fs.attributes import MAY_WRITE
from engine.linux.fs.calls import working_directory
from engine.linux.fs.socket import SocketNode
from engine.linux.fs.vfs import OpenFile
from engine.linux.net.addresses import AF_UNIX, family_of
from engine.linux.net.messages import (
    NOBODY,
    ControlItem,
    Credentials,
    Incoming,
    Outgoing,
    credentials_item,
    own_credentials,
)
from engine.linux.net.network import Network
from engine.linux.net.socket import OVERHEAD, SO_PASSCRED, SOCK_DGRAM, Socket

EACCES, EEXIST, EINVAL, EPROTOTYPE, EADDRINUSE, ECONNREFUSED = 13, 17, 22, 91, 98, 111

_LONGEST: Final = 110


class UnixMessage:
    """Bytes on their way.

    Attributes:
        data: those that have not been received.
        sender: who has sent them.
        files: sent along.
        credentials: of the sender, None where nobody has asked.
    """

    __slots__ = ("credentials", "data", "files", "sender")

    def __init__(
        self,
        data: bytes,
        sender: "UnixSocket",
        files: list[OpenFile],
        credentials: Credentials | None,
    ) -> None:
        self.data = data
        self.sender = sender
        self.files = files
        self.credentials = credentials


class UnixSocket(Socket):
    """A UNIX socket.

    Attributes:
        own_name: its sockaddr without the family, None while it has none: a path with a zero
            byte behind it, or a zero byte and an abstract name.
        place_node: the file that is its name, None if it is abstract.
        queue: messages that it has not received.
    """

    family = AF_UNIX

    def __init__(self, network: Network, kind: int, uid: int) -> None:
        super().__init__(network, kind, uid)
        self.own_name: bytes | None = None
        self.place_node: SocketNode | None = None
        self.queue: deque[UnixMessage] = deque()

    # -- names -----------------------------------------------------------------------------

    def bind(self, ctx: Context, name: bytes) -> None:
        """Take a name: a new file, or an abstract one."""
        if len(name) == 2 and family_of(name) == AF_UNIX:
            self.bind_somehow()
            return
        rest = name_in(name)
        if rest.startswith(b"\0"):
            if self.own_name is not None:
                raise LinuxError(EINVAL)
            if rest in self.network.abstract:
                raise LinuxError(EADDRINUSE)
            self.network.abstract[rest] = self
        else:
            rest = rest.split(b"\0")[0]
            try:
                place = ctx.fs.walk(working_directory(ctx), rest, follow=False, entry=True)
                parent, last = operations.new_name(ctx.fs, place)
            except LinuxError as error:
                raise LinuxError(EADDRINUSE if error.code == EEXIST else error.code) from None
            if self.own_name is not None:
                raise LinuxError(EINVAL)
            node = parent.make_socket(last, 0o777 & ~ctx.umask)
            assert isinstance(node, SocketNode), "the name of a socket"
            node.bound, self.place_node = self, node
            rest += b"\0"
        self.own_name = rest

    def bind_somehow(self) -> None:
        """Take an abstract name that nobody has, unless it has a name."""
        if self.own_name is None:
            self.own_name = self.network.new_name()
            self.network.abstract[self.own_name] = self

    def name(self) -> bytes:
        """The socket's own sockaddr."""
        return struct.pack("<H", AF_UNIX) + (self.own_name or b"")

    @property
    def sender_name(self) -> bytes:
        """The same for who receives from it; b"" without a name."""
        return b"" if self.own_name is None else self.name()

    def find(self, ctx: Context, name: bytes) -> "UnixSocket":
        """The socket that a sockaddr names, of the same kind."""
        rest = name_in(name)
        found: object
        if rest.startswith(b"\0"):
            found = self.network.abstract.get(rest)
        else:
            path = rest.split(b"\0")[0]
            node = ctx.fs.walk(working_directory(ctx), path).existing()
            if not node.may(MAY_WRITE):
                raise LinuxError(EACCES)
            found = node.bound if isinstance(node, SocketNode) else None
        if not isinstance(found, UnixSocket):
            raise LinuxError(ECONNREFUSED)
        if found.kind != self.kind:
            raise LinuxError(EPROTOTYPE)
        return found

    def leave_name(self) -> None:
        """Leave the socket's name, behind which nothing is any more; a file stays."""
        if self.place_node is not None:
            self.place_node.bound = None
        elif self.own_name is not None:
            self.network.abstract.pop(self.own_name, None)

    # -- messages --------------------------------------------------------------------------

    @property
    def passes_credentials(self) -> bool:
        """SO_PASSCRED is set: each message tells who has sent it."""
        return bool(self.option(SO_PASSCRED))

    def message_to(self, ctx: Context, other: "UnixSocket", out: Outgoing) -> UnixMessage:
        """A message of this socket's, with what is sent along on its way."""
        who = out.credentials
        if who is None and (self.passes_credentials or other.passes_credentials):
            who = own_credentials(ctx)
        files = self.network.rights.send(out.files, ctx.limit("nofile"))
        return UnixMessage(out.data, self, files, who)

    def arrive(self, message: UnixMessage) -> None:
        """A message comes."""
        self.queue.append(message)
        self.charge(len(message.data) + OVERHEAD)
        self.wake(readable=True)

    def gone(self, size: int, *, whole: bool = True) -> None:
        """Bytes of a message have been received, or all of it."""
        self.charge(-size - (OVERHEAD if whole else 0))

    def along(self, message: UnixMessage, got: Incoming, *, peek: bool) -> None:
        """Hand over what came along with a message."""
        if message.files:
            if peek:
                got.files += self.network.rights.send(message.files, 1 << 30)
            else:
                got.files += message.files
                message.files = []
        if self.passes_credentials:
            got.control = [credentials_item(message.credentials or NOBODY)]

    def files_on_their_way(self) -> Iterable[OpenFile]:
        """Files in messages to it that it has not received."""
        return [file for message in self.queue for file in message.files]

    def drop_queue(self) -> None:
        """Forget messages that it has not received."""
        files: list[OpenFile] = []
        while self.queue:
            message = self.queue.popleft()
            self.gone(len(message.data))
            files += message.files
        self.network.rights.drop(files)

    def unread(self) -> int:
        """Bytes of the next datagram, or of all that is connected."""
        if self.kind != SOCK_DGRAM:
            return sum(len(message.data) for message in self.queue)
        return len(self.queue[0].data) if self.queue else 0

    def unsent(self) -> int:
        """Bytes that the other end has not received."""
        return 0

    def vanish(self) -> None:
        """Nothing is left of it but a file with its name."""
        self.leave_name()
        self.network.leave(self)
        self.drop_queue()
        self.network.rights.collect()


def no_control(items: Iterable[ControlItem]) -> None:
    """EINVAL for control messages that UNIX sockets have not."""
    if any(item.level != 1 for item in items):
        raise LinuxError(EINVAL)


def name_in(name: bytes) -> bytes:
    """A sockaddr_un behind the family (unix_validate_addr)."""
    if not 2 < len(name) <= _LONGEST or family_of(name) != AF_UNIX:
        raise LinuxError(EINVAL)
    return name[2:]
