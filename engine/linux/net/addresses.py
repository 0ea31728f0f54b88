"""Addresses of sockets: struct sockaddr in its kinds, and hosts and ports."""

import struct
from typing import Final, NamedTuple

from engine.linux.errno import LinuxError

EINVAL, EAFNOSUPPORT = 22, 97

AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET = 0, 1, 2, 10, 16, 17

_MAPPED: Final = bytes(10) + b"\xff\xff"
ANY6: Final = bytes(16)
ANY4: Final = _MAPPED + bytes(4)
LOOPBACK6: Final = bytes(15) + b"\1"
LOOPBACK4: Final = _MAPPED + bytes((127, 0, 0, 1))

_IN_SIZE, _IN6_SIZE, _IN6_LEAST = 16, 28, 24


class Endpoint(NamedTuple):
    """A host and a port.

    Attributes:
        host: 16 bytes; an IPv4 address as the IPv6 address that stands for it (::ffff:0:0/96).
        port: 0 for none.
    """

    host: bytes
    port: int

    def __str__(self) -> str:
        """As people write it."""
        if is_v4(self.host):
            return f"{'.'.join(map(str, self.host[12:]))}:{self.port}"
        from ipaddress import IPv6Address  # takes a millisecond

        return f"[{IPv6Address(self.host)}]:{self.port}"


def is_v4(host: bytes) -> bool:
    """True for an IPv4 address."""
    return host[:12] == _MAPPED


def is_any(host: bytes) -> bool:
    """True for the two addresses that stand for all of a host's own."""
    return host in (ANY4, ANY6)


def is_loopback(host: bytes) -> bool:
    """True for what the only interface has: 127.0.0.0/8 and ::1."""
    return host == LOOPBACK6 or (is_v4(host) and host[12] == 127)


def is_multicast(host: bytes) -> bool:
    """True for the address of a group."""
    return 224 <= host[12] < 240 if is_v4(host) else host[0] == 0xFF


def family_of(raw: bytes) -> int:
    """The family of a sockaddr; EINVAL if it is too short to have one."""
    if len(raw) < 2:
        raise LinuxError(EINVAL)
    return int.from_bytes(raw[:2], "little")


def parse_inet(raw: bytes, family: int) -> Endpoint:
    """The endpoint in a sockaddr_in or sockaddr_in6 of a socket of that family."""
    found = family_of(raw)
    if len(raw) < (_IN_SIZE if family == AF_INET else _IN6_LEAST):
        raise LinuxError(EINVAL)
    if found != family:
        raise LinuxError(EAFNOSUPPORT)
    port = int.from_bytes(raw[2:4], "big")
    if family == AF_INET:
        return Endpoint(_MAPPED + raw[4:8], port)
    return Endpoint(raw[8:24], port)


def pack_inet(endpoint: Endpoint, family: int) -> bytes:
    """A sockaddr_in or sockaddr_in6."""
    port = endpoint.port.to_bytes(2, "big")
    if family == AF_INET:
        return struct.pack("<H", AF_INET) + port + endpoint.host[12:] + bytes(8)
    return struct.pack("<H", AF_INET6) + port + bytes(4) + endpoint.host + bytes(4)


def overlap(one: bytes, one_v6only: bool, other: bytes, other_v6only: bool) -> bool:
    """True if something could be sent to both hosts (inet_rcv_saddr_equal)."""
    if one == other:
        return True
    for any_host, only, host in ((one, one_v6only, other), (other, other_v6only, one)):
        if any_host == ANY6 and not (only and is_v4(host)):
            return True
        if any_host == ANY4 and is_v4(host):
            return True
    return False
