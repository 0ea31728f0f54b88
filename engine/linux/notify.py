"""System calls of inotify."""

import errno
from typing import Final

from engine.linux.context import Context, SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs import fsnotify
from engine.linux.fs.attributes import MAY_READ
from engine.linux.fs.calls import node_at, opened
from engine.linux.fs.inotify import InotifyFile

_FLAGS: Final = (
    fsnotify.UNMOUNT
    | fsnotify.Q_OVERFLOW
    | fsnotify.IGNORED
    | fsnotify.ONLYDIR
    | fsnotify.DONT_FOLLOW
    | fsnotify.EXCL_UNLINK
    | fsnotify.MASK_CREATE
    | fsnotify.MASK_ADD
    | fsnotify.ISDIR
    | fsnotify.ONESHOT
)


def inotify_init1(ctx: Context, flags: int) -> int:
    """Linux's inotify_init1."""
    flags = u32(flags)
    if flags & ~(fl.O_CLOEXEC | fl.O_NONBLOCK):
        raise LinuxError(errno.EINVAL)
    use, watches = ctx.fs.inotify, ctx.fs.watches
    file = InotifyFile(watches, use, ctx.arch.byteorder, flags & fl.O_NONBLOCK)
    return ctx.files.add(file, cloexec=bool(flags & fl.O_CLOEXEC))


def inotify_init(ctx: Context) -> int:
    """Linux's inotify_init."""
    return inotify_init1(ctx, 0)


def _instance(ctx: Context, fd: int) -> InotifyFile:
    file = opened(ctx, u32(fd))
    if not isinstance(file, InotifyFile):
        raise LinuxError(errno.EINVAL)
    return file


def inotify_add_watch(ctx: Context, fd: int, path: int, mask: int) -> int:
    """Linux's inotify_add_watch."""
    mask = u32(mask)
    if mask & ~(fsnotify.EVENTS | _FLAGS) or not mask:
        raise LinuxError(errno.EINVAL)
    ctx.files.get(u32(fd))
    if mask & fsnotify.MASK_ADD and mask & fsnotify.MASK_CREATE:
        raise LinuxError(errno.EINVAL)
    file = _instance(ctx, fd)
    node = node_at(ctx, fl.AT_FDCWD, path, follow=not mask & fsnotify.DONT_FOLLOW)
    if mask & fsnotify.ONLYDIR and not node.is_directory:
        raise LinuxError(errno.ENOTDIR)
    if not node.may(MAY_READ):
        raise LinuxError(errno.EACCES)
    return file.watch(node, mask)


def inotify_rm_watch(ctx: Context, fd: int, number: int) -> int:
    """Linux's inotify_rm_watch."""
    _instance(ctx, fd).unwatch(s32(number))
    return 0


SYSCALLS: SyscallTable = {
    "inotify_init": inotify_init,
    "inotify_init1": inotify_init1,
    "inotify_add_watch": inotify_add_watch,
    "inotify_rm_watch": inotify_rm_watch,
}
