"""System calls of NUMA memory policies, on a machine with one node (Linux: mm/mempolicy.c)."""

import errno
import struct
from typing import Final

from engine.cpu.ram import PAGE
from engine.guest.memory import page_up
from engine.linux.context import SyscallTable, s32
from engine.linux.errno import LinuxError
from engine.linux.sysv import order
from engine.linux.thread import Thread

_DEFAULT, _PREFERRED, _LOCAL = 0, 1, 4
_MODES: Final = 7
_FLAGS: Final = 0xE000
"""MPOL_F_STATIC_NODES, MPOL_F_RELATIVE_NODES, MPOL_F_NUMA_BALANCING."""
_F_NODE, _F_ADDR, _F_MEMS_ALLOWED = 1, 2, 4


def _mask(k: Thread, address: int, bits: int) -> int:
    """A mask of nodes; EINVAL for nodes that are not there."""
    bits -= 1
    if not address or bits <= 0:
        return 0
    if bits > PAGE * 8:
        raise LinuxError(errno.EINVAL)
    count = (bits + 63) // 64
    first, *others = struct.unpack(f"{order(k)}{count}Q", k.memory.read(address, 8 * count))
    if count == 1:
        first &= (1 << bits) - 1
    elif bits % 64:
        others[-1] &= (1 << bits % 64) - 1
    if first & ~1 or any(others):
        raise LinuxError(errno.EINVAL)
    return int(first)


def _checked(k: Thread, mode: int, address: int, bits: int) -> None:
    """EINVAL for a policy that does not exist or whose nodes do not fit it."""
    mode = s32(mode)
    kind = mode & ~_FLAGS
    if not 0 <= kind < _MODES or mode & 0xC000 == 0xC000:
        raise LinuxError(errno.EINVAL)
    nodes = _mask(k, address, bits)
    if kind in (_DEFAULT, _LOCAL):
        if nodes or (kind == _DEFAULT and mode & _FLAGS):
            raise LinuxError(errno.EINVAL)
    elif not nodes and kind != _PREFERRED:
        raise LinuxError(errno.EINVAL)


def set_mempolicy(k: Thread, mode: int, mask: int, bits: int) -> int:
    """All policies come to the same: the one node."""
    _checked(k, mode, mask, bits)
    return 0


def mbind(k: Thread, address: int, size: int, mode: int, mask: int, bits: int, flags: int) -> int:
    """The same for a range."""
    if flags & ~7 or address % PAGE:
        raise LinuxError(errno.EINVAL)
    _checked(k, mode, mask, bits)
    end = address + page_up(size)
    at = address
    for mapping in k.memory.overlapping(address, end):
        if mapping.start > at:
            break
        at = mapping.end
    if at < end:
        raise LinuxError(errno.EFAULT)
    return 0


def get_mempolicy(k: Thread, mode: int, mask: int, bits: int, address: int, flags: int) -> int:
    """The default policy, node 0."""
    if flags & ~7 or (mask and bits < 1):
        raise LinuxError(errno.EINVAL)
    if flags & _F_MEMS_ALLOWED:
        if flags & (_F_NODE | _F_ADDR):
            raise LinuxError(errno.EINVAL)
    elif flags & _F_ADDR:
        if not k.memory.accessible(address, 1, write=False):
            raise LinuxError(errno.EFAULT)
    elif address or flags & _F_NODE:
        raise LinuxError(errno.EINVAL)
    if mode:
        k.memory.write(mode, struct.pack("i", 0))
    if mask:
        count = (bits + 63) // 64
        nodes = 1 if flags & _F_MEMS_ALLOWED else 0
        k.memory.write(mask, struct.pack(f"{order(k)}{count}Q", nodes, *[0] * (count - 1)))
    return 0


def migrate_pages(k: Thread, pid: int, bits: int, old: int, new: int) -> int:
    """Nothing to move."""
    k.machine.find_thread(pid, k)
    _mask(k, old, bits)
    _mask(k, new, bits)
    return 0


def move_pages(
    k: Thread, pid: int, count: int, pages: int, nodes: int, status: int, flags: int
) -> int:
    """Tells where pages are: on node 0, or nowhere."""
    if flags & ~6:
        raise LinuxError(errno.EINVAL)
    k.machine.find_thread(pid, k)
    if count > 1 << 20:
        raise LinuxError(errno.E2BIG)
    for index in range(count):
        (page,) = struct.unpack(order(k) + "Q", k.memory.read(pages + 8 * index, 8))
        if nodes and any(k.memory.read(nodes + 4 * index, 4)):
            raise LinuxError(errno.ENODEV)
        there = k.memory.accessible(page, 1, write=False)
        answer = 0 if there else -errno.EFAULT
        k.memory.write(status + 4 * index, struct.pack(order(k) + "i", answer))
    return 0


SYSCALLS: SyscallTable = {
    "set_mempolicy": set_mempolicy,
    "mbind": mbind,
    "get_mempolicy": get_mempolicy,
    "migrate_pages": migrate_pages,
    "move_pages": move_pages,
}
