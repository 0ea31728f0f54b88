"""System calls that make pipes, socket pairs and memory files."""

import struct

from engine.linux.context import Context, SyscallTable, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.pipe import make_pipe
from engine.linux.fs.regular import F_SEAL_SEAL, FileNode
from engine.linux.fs.vfs import OpenFile

EFAULT, EINVAL, ENOSYS = 14, 22, 38

_MFD_CLOEXEC, _MFD_ALLOW_SEALING, _MFD_HUGETLB, _MFD_NOEXEC, _MFD_EXEC = 1, 2, 4, 8, 0x10
_MFD_HUGE_SIZES = 0x3F << 26
"""Bits for the size of huge pages (MFD_HUGE_MASK)."""


def install_pair(
    ctx: Context, address: int, pair: tuple[OpenFile, OpenFile], *, cloexec: bool
) -> int:
    """Give two files descriptors and store the numbers."""
    first, second = _descriptors(ctx, pair, cloexec=cloexec)
    order = "<" if ctx.arch.byteorder == "little" else ">"
    ctx.memory.write(address, struct.pack(order + "ii", first, second))
    return 0


def _descriptors(
    ctx: Context, pair: tuple[OpenFile, OpenFile], *, cloexec: bool
) -> tuple[int, int]:
    try:
        first = ctx.files.add(pair[0], cloexec=cloexec)
    except LinuxError:
        pair[1].acquire().release()  # nothing else refers to it
        raise
    try:
        second = ctx.files.add(pair[1], cloexec=cloexec)
    except LinuxError:
        ctx.files.close(first)
        raise
    return first, second


def pipe2(ctx: Context, address: int, flags: int) -> int:
    """Linux's pipe2."""
    ours = fl.from_guest(u32(flags), ctx.arch.linux.open_flags)
    if ours & ~(fl.O_CLOEXEC | fl.O_NONBLOCK | fl.O_DIRECT):
        raise LinuxError(EINVAL)
    if not ctx.memory.accessible(address, 8, True):
        raise LinuxError(EFAULT)
    pair = make_pipe(ctx.fs.numbers.next(), ctx.fs.budget.memory, ours & fl.O_NONBLOCK)
    return install_pair(ctx, address, pair, cloexec=bool(ours & fl.O_CLOEXEC))


def pipe(ctx: Context, address: int) -> int:
    """Linux's pipe."""
    if not ctx.arch.linux.second:
        return pipe2(ctx, address, 0)
    first, second = _descriptors(
        ctx, make_pipe(ctx.fs.numbers.next(), ctx.fs.budget.memory), cloexec=False
    )
    ctx.set_second_result(second)
    return first


def memfd_create(ctx: Context, name: int, flags: int) -> int:
    """Linux's memfd_create, as of a kernel without huge pages (CONFIG_HUGETLBFS)."""
    flags = u32(flags)
    sizes = _MFD_HUGE_SIZES if flags & _MFD_HUGETLB else 0
    known = _MFD_CLOEXEC | _MFD_ALLOW_SEALING | _MFD_HUGETLB | _MFD_NOEXEC | _MFD_EXEC
    if flags & ~(known | sizes) or (flags & _MFD_NOEXEC and flags & _MFD_EXEC):
        raise LinuxError(EINVAL)
    text = ctx.memory.read_cstring(name, 250)
    if len(text) > 249:
        raise LinuxError(EINVAL)
    if flags & _MFD_HUGETLB:
        raise LinuxError(ENOSYS)
    file = ctx.fs.unnamed_file(fl.O_RDWR | fl.O_LARGEFILE, 0o777)
    file.title = b"/memfd:" + bytes(text) + b" (deleted)"
    node = file.node
    assert isinstance(node, FileNode)
    node.seals = 0 if flags & _MFD_ALLOW_SEALING else F_SEAL_SEAL
    return ctx.files.add(file, cloexec=bool(flags & _MFD_CLOEXEC))


SYSCALLS: SyscallTable = {
    "pipe": pipe,
    "pipe2": pipe2,
    "memfd_create": memfd_create,
}
