"""System calls about descriptors themselves: dup, fcntl, ioctl."""

import struct

from engine.linux.context import Context, SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.filelocks import COMMANDS as LOCKS
from engine.linux.fileowners import COMMANDS as OWNERS
from engine.linux.fs import flags as fl
from engine.linux.fs.openfile import PathFile
from engine.linux.fs.pipe import PipeEnd
from engine.linux.fs.pty import MasterFile
from engine.linux.fs.regular import F_SEAL_SEAL, F_SEAL_WRITE, FileNode
from engine.linux.fs.termios import TIOCGPTPEER
from engine.linux.fs.vfs import OpenFile
from engine.linux.wait import Wait

EPERM, EBADF, EAGAIN, EBUSY, EINVAL, ENOTTY = 1, 9, 11, 16, 22, 25

F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL = 0, 1, 2, 3, 4
F_DUPFD_CLOEXEC, F_SETPIPE_SZ, F_GETPIPE_SZ = 1030, 1031, 1032
F_ADD_SEALS, F_GET_SEALS = 1033, 1034
F_SETLEASE, F_GETLEASE = 1024, 1025
_F_UNLCK = 2

FIOCLEX, FIONCLEX, FIONBIO, FIOASYNC, FIONREAD = 0x5451, 0x5450, 0x5421, 0x5452, 0x541B

_SETTABLE = fl.O_APPEND | fl.O_NONBLOCK | fl.O_ASYNC | fl.O_DIRECT | fl.O_NOATIME


def dup(ctx: Context, fd: int) -> int:
    """Linux's dup."""
    return ctx.files.add(ctx.files.get(fd))


def dup3(ctx: Context, old: int, new: int, flags: int) -> int:
    """Linux's dup3."""
    if u32(flags) & ~fl.O_CLOEXEC or u32(old) == u32(new):
        raise LinuxError(EINVAL)
    ctx.files.put(s32(new), ctx.files.get(old), cloexec=bool(flags & fl.O_CLOEXEC))
    return s32(new)


def dup2(ctx: Context, old: int, new: int) -> int:
    """Linux's dup2."""
    if u32(old) == u32(new):
        ctx.files.get(old)
        return s32(new)
    return dup3(ctx, old, new, 0)


def _set_flags(ctx: Context, fd: int, file: OpenFile, flags: int) -> None:
    if file.came() is None:
        flags &= ~fl.O_ASYNC  # it cannot tell
    changed = (file.flags ^ flags) & fl.O_ASYNC
    file.flags = file.flags & ~_SETTABLE | flags & _SETTABLE
    if changed:
        ctx.fs.signalled.set(file, fd, on=bool(flags & fl.O_ASYNC))


def _seals(ctx: Context, file: OpenFile, add: int | None) -> int:
    node = file.node
    if add is not None:
        if file.flags & fl.O_ACCMODE == fl.O_RDONLY:
            raise LinuxError(EPERM)
        if add & ~0x1F:
            raise LinuxError(EINVAL)
    if not isinstance(node, FileNode) or file.place is not None:
        raise LinuxError(EINVAL)
    if add is not None:
        if node.seals & F_SEAL_SEAL:
            raise LinuxError(EPERM)
        if add & ~node.seals & F_SEAL_WRITE and ctx.memory.shared.may_be_written(node):
            raise LinuxError(EBUSY)
        node.seals |= add
        return 0
    return node.seals


def fcntl(ctx: Context, fd: int, command: int, argument: int) -> int | Wait:
    """Linux's fcntl."""
    fd, command = u32(fd), u32(command)
    file = ctx.files.get(fd)
    table = ctx.arch.linux.open_flags
    if isinstance(file, PathFile) and command not in (
        F_DUPFD,
        F_DUPFD_CLOEXEC,
        F_GETFD,
        F_SETFD,
        F_GETFL,
    ):
        raise LinuxError(EBADF)
    if command in (F_DUPFD, F_DUPFD_CLOEXEC):
        if not 0 <= s32(argument) < ctx.limit("nofile"):
            raise LinuxError(EINVAL)
        return ctx.files.add(file, cloexec=command == F_DUPFD_CLOEXEC, minimum=s32(argument))
    if command == F_GETFD:
        return int(ctx.files.is_cloexec(fd))
    if command == F_GETFL:
        return fl.to_guest(file.flags, table)
    if command in (F_SETPIPE_SZ, F_GETPIPE_SZ):
        if not isinstance(file, PipeEnd):
            raise LinuxError(EBADF)
        if command == F_SETPIPE_SZ:
            file.pipe.resize(u32(argument))
        return file.pipe.capacity
    if command in (F_ADD_SEALS, F_GET_SEALS):
        return _seals(ctx, file, u32(argument) if command == F_ADD_SEALS else None)
    if command == F_GETLEASE:
        return _F_UNLCK
    if command == F_SETLEASE:
        raise LinuxError(EAGAIN if s32(argument) == _F_UNLCK else EINVAL)  # nobody has a lease
    if command == F_SETFD:
        ctx.files.set_cloexec(fd, bool(argument & 1))
    elif command == F_SETFL:
        _set_flags(ctx, fd, file, fl.from_guest(u32(argument), table))
    elif command in LOCKS:
        return LOCKS[command](ctx, file, argument)
    elif command in OWNERS:
        return OWNERS[command](ctx, file, argument)
    else:
        raise LinuxError(EINVAL)
    return 0


def ioctl(ctx: Context, fd: int, request: int, argument: int) -> int:
    """Linux's ioctl."""
    fd, request = u32(fd), u32(request)
    file = ctx.files.get(fd)
    if isinstance(file, PathFile):
        raise LinuxError(EBADF)
    order = "<" if ctx.arch.byteorder == "little" else ">"
    if request in (FIOCLEX, FIONCLEX):
        ctx.files.set_cloexec(fd, request == FIOCLEX)
    elif request in (FIONBIO, FIOASYNC):
        (on,) = struct.unpack(order + "i", ctx.memory.read(argument, 4))
        flag = fl.O_NONBLOCK if request == FIONBIO else fl.O_ASYNC
        if request == FIOASYNC and file.came() is None and on != bool(file.flags & flag):
            raise LinuxError(ENOTTY)
        _set_flags(ctx, fd, file, file.flags | flag if on else file.flags & ~flag)
    elif request == FIONREAD and file.is_regular and file.node is not None:
        left = max(0, file.stat().size - file.offset)
        ctx.memory.write(argument, struct.pack(order + "i", min(left, 0x7FFFFFFF)))
    elif request == TIOCGPTPEER and isinstance(file, MasterFile):
        flags = fl.from_guest(u32(argument), ctx.arch.linux.open_flags)
        return ctx.files.add(file.pty.open_slave(flags), cloexec=bool(flags & fl.O_CLOEXEC))
    else:
        return file.ioctl(ctx, request, argument)
    return 0


SYSCALLS: SyscallTable = {
    "dup": dup,
    "dup2": dup2,
    "dup3": dup3,
    "fcntl": fcntl,
    "ioctl": ioctl,
}
