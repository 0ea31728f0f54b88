"""The one network interface, `lo`, as ioctl shows it (net/core/dev_ioctl.c, devinet.c)."""

import struct
from typing import Final

from engine.linux.errno import LinuxError
from engine.linux.fs.vfs import IoctlCaller
from engine.linux.net.addresses import AF_INET

EPERM, ENODEV, ENOTTY, EOPNOTSUPP = 1, 19, 25, 95

NAME: Final = b"lo"
INDEX: Final = 1
MTU: Final = 65536
FLAGS: Final = 0x49
"""IFF_UP, IFF_LOOPBACK, IFF_RUNNING."""
ARP_TYPE: Final = 772
"""ARPHRD_LOOPBACK."""
QUEUE_LENGTH: Final = 1000
ADDRESS4, MASK4, PREFIX4 = bytes((127, 0, 0, 1)), bytes((255, 0, 0, 0)), 8

_IFREQ: Final = 40
_NAME_SIZE: Final = 16
_GIFNAME, _GIFCONF, _GIFFLAGS, _GIFADDR, _GIFDSTADDR = 0x8910, 0x8912, 0x8913, 0x8915, 0x8917
_GIFBRDADDR, _GIFNETMASK, _GIFMETRIC, _GIFMTU = 0x8919, 0x891B, 0x891D, 0x8921
_GIFHWADDR, _GIFINDEX, _GIFTXQLEN, _GIFMAP = 0x8927, 0x8933, 0x8942, 0x8970
_ETHTOOL: Final = 0x8946
_SETTING: Final = frozenset(
    (
        0x8914,
        0x8916,
        0x8918,
        0x891A,
        0x891C,
        0x891E,
        0x8922,
        0x8923,
        0x8924,
        0x8943,
        0x890B,
        0x890C,
    )
)
"""SIOCSIF*, SIOCADDRT and SIOCDELRT."""


def _sockaddr(host: bytes) -> bytes:
    return struct.pack("<HH", AF_INET, 0) + host + bytes(8)


_ANSWERS: Final = {
    _GIFFLAGS: struct.pack("<h", FLAGS),
    _GIFMETRIC: struct.pack("<i", 0),
    _GIFMTU: struct.pack("<i", MTU),
    _GIFHWADDR: struct.pack("<H", ARP_TYPE) + bytes(14),
    _GIFINDEX: struct.pack("<i", INDEX),
    _GIFTXQLEN: struct.pack("<i", QUEUE_LENGTH),
    _GIFMAP: bytes(24),
}
"""The part of a struct ifreq behind the name, by request."""
_INET_ANSWERS: Final = {
    _GIFADDR: _sockaddr(ADDRESS4),
    _GIFDSTADDR: _sockaddr(ADDRESS4),
    _GIFBRDADDR: _sockaddr(bytes(4)),
    _GIFNETMASK: _sockaddr(MASK4),
}


def ioctl(caller: IoctlCaller, family: int, request: int, argument: int) -> int:
    """Requests about interfaces, of a socket of some family."""
    memory = caller.memory
    if request == _GIFCONF:
        return _list(caller, argument)
    if request == _GIFNAME:
        raw = memory.read(argument, _IFREQ)
        if struct.unpack_from("<i", raw, _NAME_SIZE)[0] != INDEX:
            raise LinuxError(ENODEV)
        memory.write(argument, NAME.ljust(_NAME_SIZE, b"\0"))
        return 0
    if request in _SETTING:
        raise LinuxError(EPERM)
    if request == _ETHTOOL:
        raise LinuxError(EOPNOTSUPP)
    answer = _ANSWERS.get(request)
    if answer is None and family == AF_INET:
        answer = _INET_ANSWERS.get(request)
    if answer is None:
        raise LinuxError(ENOTTY)
    name = bytes(memory.read(argument, _IFREQ))[:_NAME_SIZE].split(b"\0")[0]
    if name.split(b":")[0] != NAME:
        raise LinuxError(ENODEV)
    memory.write(argument + _NAME_SIZE, answer)
    return 0


def _list(caller: IoctlCaller, argument: int) -> int:
    """SIOCGIFCONF: interfaces that have an IPv4 address."""
    room, address = struct.unpack("<i4xQ", caller.memory.read(argument, 16))
    entry = (NAME.ljust(_NAME_SIZE, b"\0") + _sockaddr(ADDRESS4)).ljust(_IFREQ, b"\0")
    if address:
        size = len(entry) if room >= len(entry) else 0
        caller.memory.write(address, entry[:size])
    else:
        size = len(entry)
    caller.memory.write(argument, struct.pack("<i", size))
    return 0
