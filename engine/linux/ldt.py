"""The local descriptor table of x86: what a program puts there it can read again.

No segment of it can be loaded: the processor is one of 64-bit programs. Source:
arch/x86/kernel/ldt.c.
"""

import errno
import struct
from typing import Final

from engine.errors import GuestFaultError
from engine.linux.context import SyscallTable, s32
from engine.linux.thread import Thread

_ENTRIES: Final = 8192
_ENTRY: Final = 8
_DEFAULT: Final = 128
"""Bytes of the table that a program has in common with all others: zeros."""


def modify_ldt(k: Thread, function: int, address: int, size: int) -> int:
    """Read the table or set one of its descriptors; its errors have 32 bits, as on Linux."""
    try:
        result = _modify(k, s32(function), address, size)
    except GuestFaultError:
        result = -errno.EFAULT
    return result & 0xFFFF_FFFF


def _modify(k: Thread, function: int, address: int, size: int) -> int:
    if function == 0:
        return _read(k, address, size)
    if function == 2:
        k.memory.write(address, bytes(min(size, _DEFAULT)))
        return min(size, _DEFAULT)
    if function in (1, 0x11):
        return _write(k, address, size, old=function == 1)
    return -errno.ENOSYS


def _read(k: Thread, address: int, size: int) -> int:
    table = k.space.ldt
    if not table:
        return 0
    size = min(size, _ENTRIES * _ENTRY)
    k.memory.write(address, bytes(table[:size]).ljust(size, b"\0"))
    return size


def _write(k: Thread, address: int, size: int, *, old: bool) -> int:
    if size != 16:
        return -errno.EINVAL
    entry, base, limit, flags = struct.unpack("<4I", k.memory.read(address, 16))
    contents, absent = flags >> 1 & 3, flags >> 5 & 1
    if entry >= _ENTRIES or (contents == 3 and (old or not absent)):
        return -errno.EINVAL
    descriptor = _descriptor(base, limit, flags, old=old)
    if (old and not base and not limit) or _empty(base, limit, flags):
        descriptor = 0
    table = k.space.ldt
    if len(table) < (entry + 1) * _ENTRY:
        table.extend(bytes((entry + 1) * _ENTRY - len(table)))
    table[entry * _ENTRY : (entry + 1) * _ENTRY] = descriptor.to_bytes(_ENTRY, "little")
    return 0


def _empty(base: int, limit: int, flags: int) -> bool:
    """True if it says to clear an entry (LDT_empty): not present, and to be read only."""
    return not base and not limit and flags & 0x7F == 0x28


def _descriptor(base: int, limit: int, flags: int, *, old: bool) -> int:
    """A segment descriptor (SDM volume 3, figure 3-8; fill_ldt)."""
    wide, contents, read_only = flags & 1, flags >> 1 & 3, flags >> 3 & 1
    pages, absent, usable = flags >> 4 & 1, flags >> 5 & 1, flags >> 6 & 1
    kind = (read_only ^ 1) << 1 | contents << 2 | 1
    access = kind | 1 << 4 | 3 << 5 | (absent ^ 1) << 7
    upper = limit >> 16 & 0xF | (0 if old else usable) << 4 | wide << 6 | pages << 7
    return (
        limit & 0xFFFF
        | (base & 0xFFFFFF) << 16
        | access << 40
        | upper << 48
        | (base >> 24 & 0xFF) << 56
    )


SYSCALLS: SyscallTable = {"modify_ldt": modify_ldt}
