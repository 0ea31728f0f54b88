"""The part of TCP and UDP sockets that is about addresses, ports and routes."""

from typing import Final

from engine.linux.context import Context
from engine.linux.errno import LinuxError
from engine.linux.net.addresses import (
    AF_INET,
    AF_INET6,
    AF_UNSPEC,
    ANY4,
    ANY6,
    LOOPBACK4,
    LOOPBACK6,
    Endpoint,
    family_of,
    is_any,
    is_loopback,
    is_multicast,
    is_v4,
    pack_inet,
    parse_inet,
)
from engine.linux.net.network import Network, Ports
from engine.linux.net.socket import Socket

EACCES, EINVAL, EAFNOSUPPORT, EADDRINUSE, EADDRNOTAVAIL = 13, 22, 97, 98, 99
ENETUNREACH, EAGAIN = 101, 11

SOL_IP, SOL_IPV6 = 0, 41
IP_FREEBIND, IPV6_V6ONLY, IPV6_FREEBIND = 15, 26, 78

_PRIVILEGED: Final = 1024


class InetSocket(Socket):
    """A socket of AF_INET or AF_INET6.

    Attributes:
        ports: those of its protocol.
        local: its own address; port 0 while it has none.
        remote: that of its peer, None without one.
        asked: its port was asked for: it stays its own when a connection fails.
        holds_port: nobody else may have its port.
    """

    def __init__(self, network: Network, family: int, kind: int, ports: Ports, uid: int) -> None:
        super().__init__(network, kind, uid)
        self.family = family
        self.ports = ports
        self.local = self.nowhere
        self.remote: Endpoint | None = None
        self.asked = self.holds_port = False
        self._asked_host = self.local.host

    @property
    def nowhere(self) -> Endpoint:
        """The address of a socket that has none."""
        return Endpoint(ANY4 if self.family == AF_INET else ANY6, 0)

    @property
    def v6only(self) -> bool:
        """IPV6_V6ONLY is set."""
        return bool(self.options.get((SOL_IPV6, IPV6_V6ONLY)))

    # -- own address -----------------------------------------------------------------------

    def bind(self, ctx: Context, name: bytes) -> None:
        """Take an address."""
        if self.family == AF_INET and len(name) >= 16 and family_of(name) == AF_UNSPEC:
            # As programs of long ago do: only for the address that stands for all.
            if any(name[4:8]):
                raise LinuxError(EAFNOSUPPORT)
            name = AF_INET.to_bytes(2, "little") + name[2:]
        wanted = parse_inet(name, self.family)
        if self.family == AF_INET6 and is_v4(wanted.host) and self.v6only:
            raise LinuxError(EINVAL)
        self._check_own(wanted.host)
        if 0 < wanted.port < _PRIVILEGED and ctx.fs.identity.uid:
            raise LinuxError(EACCES)
        if self.holds_port or self.busy:
            raise LinuxError(EINVAL)
        self.take(wanted, EADDRINUSE)
        self.asked = bool(wanted.port)
        self._asked_host = wanted.host

    @property
    def busy(self) -> bool:
        """True past the time at which the socket could be bound."""
        return False

    def _check_own(self, host: bytes) -> None:
        free = self.options.get((SOL_IP, IP_FREEBIND)) or self.options.get(
            (SOL_IPV6, IPV6_FREEBIND)
        )
        if is_any(host) or is_loopback(host) or is_multicast(host) or free:
            return
        if host[:2] == b"\xfe\x80":
            raise LinuxError(EINVAL)  # of a link that is not named
        raise LinuxError(EADDRNOTAVAIL)

    def take(self, wanted: Endpoint, none_left: int) -> None:
        """Have an address from now on, with any free port for port 0."""
        self.network.expire()
        if not wanted.port:
            port = self.ports.free()
            if port is None:
                raise LinuxError(none_left)
            wanted = Endpoint(wanted.host, port)
        elif self.ports.conflict(self, wanted):
            raise LinuxError(EADDRINUSE)
        self.hold(wanted)

    def hold(self, own: Endpoint) -> None:
        """Have an address, which nobody else may have."""
        self.local, self.holds_port = own, True
        self.ports.take(self)

    def let_port_go(self) -> None:
        """Others may have the port, though it is still shown."""
        if self.holds_port:
            self.ports.leave(self)
            self.holds_port = False

    def leave_port(self) -> None:
        """Give the port back; it has no address then."""
        self.let_port_go()
        self.local = self.nowhere
        self._asked_host = self.local.host

    def forget_peer(self, *, show: bool = False) -> None:
        """Not be connected any more, with the address that was asked for or none.

        Args:
            show: the port is shown further on, even if it was not asked for.
        """
        self.remote = None
        if self.asked or show:
            if not self.asked:
                self.let_port_go()
            self.local = Endpoint(self._asked_host, self.local.port)
        else:
            self.leave_port()

    def name(self) -> bytes:
        """The socket's own sockaddr."""
        return pack_inet(self.local, self.family)

    # -- routes ----------------------------------------------------------------------------

    def target(self, name: bytes) -> Endpoint:
        """The endpoint that a sockaddr names, as one that can be reached.

        Raises:
            LinuxError: ENETUNREACH for all that is not on this machine.
        """
        wanted = parse_inet(name, self.family)
        host = wanted.host
        if host == ANY4:
            host = LOOPBACK4
        elif host == ANY6:
            host = LOOPBACK4 if is_v4(self.local.host) and self.local.port else LOOPBACK6
        if not is_loopback(host):
            raise LinuxError(ENETUNREACH)
        if self.family == AF_INET6 and is_v4(host) and self.v6only:
            raise LinuxError(ENETUNREACH)
        own = self.local.host
        if not is_any(own) and is_v4(own) != is_v4(host):
            raise LinuxError(EINVAL if is_v4(own) else ENETUNREACH)
        return Endpoint(host, wanted.port)

    def source_for(self, target: Endpoint) -> bytes:
        """The host that something sent there comes from."""
        if not is_any(self.local.host):
            return self.local.host
        return LOOPBACK4 if is_v4(target.host) else LOOPBACK6

    def shown(self, endpoint: Endpoint) -> bytes:
        """The sockaddr of an endpoint as this socket shows it."""
        return pack_inet(endpoint, self.family)


def best(found: "list[tuple[int, InetSocket]]", source: Endpoint) -> "InetSocket | None":
    """The socket that fits best; among those that share a port, one by the sender's address."""
    if not found:
        return None
    most = max(score for score, _ in found)
    equal = [socket for score, socket in found if score == most]
    if len(equal) > 1 and all(socket.reuse_port for socket in equal):
        return equal[(source.port * 0x9E3779B1 >> 16) % len(equal)]
    return equal[-1]
