"""System calls about attributes: stat and its kin, modes, owners, times, links' targets."""

import os
import struct

from engine.linux.context import Context, SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import devices
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import MAY_WRITE, NOW, Stat
from engine.linux.fs.calls import opened, path_at, place_at
from engine.linux.fs.data import INODE
from engine.linux.fs.eventfd_timerfd import AnonymousFile
from engine.linux.fs.filesystem import ResolvedPath
from engine.linux.fs.fsnotify import ACCESS, ATTRIB, MODIFY
from engine.linux.fs.layout import pack_stat
from engine.linux.fs.links import MagicLink, SymlinkNode
from engine.linux.fs.openfile import PathFile
from engine.linux.fs.vfs import Node, OpenFile

EPERM, ENOENT, EBADF, EACCES, EINVAL, EOPNOTSUPP = 1, 2, 9, 13, 22, 95

_SECOND = 1_000_000_000
_UTIME_NOW, _UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2

_AT_FLAGS = fl.AT_SYMLINK_NOFOLLOW | fl.AT_EMPTY_PATH | 0x800 | 0x6000

# f_type by the device numbers of the file systems made here.
_OVERLAY_MAGIC, _PROC_MAGIC, _SYSFS_MAGIC, _TMPFS_MAGIC = 0x794C7630, 0x9FA0, 0x62656572, 0x1021994
_PIPEFS_MAGIC, _CGROUP2_MAGIC = 0x50495045, 0x63677270


def _store(ctx: Context, address: int, st: Stat) -> int:
    ctx.memory.write(address, pack_stat(st, ctx.arch.linux.stat_layout, ctx.arch.byteorder))
    return 0


def _stat_of(ctx: Context, place: ResolvedPath) -> Stat:
    if place.node is not None and not (place.file is not None and place.name):
        return place.node.stat()
    if place.file is not None:
        return _file_stat(ctx, place.file)
    return place.existing().stat()


def _file_stat(ctx: Context, file: OpenFile) -> Stat:
    """Attributes of an open file: what has no inode of its own (pipes, streams) is the guest's."""
    st = file.stat()
    who = ctx.fs.identity
    if file.node is not None or isinstance(file, AnonymousFile):
        return st
    return st._replace(uid=who.uid, gid=who.gid)


def newfstatat(ctx: Context, dirfd: int, path: int, buffer: int, flags: int) -> int:
    """Linux's newfstatat; of a descriptor alone, flags are not looked at (vfs_fstatat, 6.11)."""
    flags = u32(flags)
    if flags & ~_AT_FLAGS and not _descriptor_alone(ctx, dirfd, path, flags):
        raise LinuxError(EINVAL)
    place = place_at(
        ctx,
        dirfd,
        path,
        follow=not flags & fl.AT_SYMLINK_NOFOLLOW,
        empty=bool(flags & fl.AT_EMPTY_PATH),
        null=bool(flags & fl.AT_EMPTY_PATH),
    )
    return _store(ctx, buffer, _stat_of(ctx, place))


def _descriptor_alone(ctx: Context, dirfd: int, path: int, flags: int) -> bool:
    """Tell whether AT_EMPTY_PATH makes a path argument mean its descriptor."""
    if not flags & fl.AT_EMPTY_PATH or s32(dirfd) < 0:
        return False
    return not path or not path_at(ctx, path)


def stat(ctx: Context, path: int, buffer: int) -> int:
    """Linux's stat."""
    return newfstatat(ctx, fl.AT_FDCWD, path, buffer, 0)


def lstat(ctx: Context, path: int, buffer: int) -> int:
    """Linux's lstat."""
    return newfstatat(ctx, fl.AT_FDCWD, path, buffer, fl.AT_SYMLINK_NOFOLLOW)


def fstat(ctx: Context, fd: int, buffer: int) -> int:
    """Linux's fstat."""
    return _store(ctx, buffer, _file_stat(ctx, ctx.files.get(fd)))


def statx(ctx: Context, dirfd: int, path: int, flags: int, mask: int, buffer: int) -> int:
    """Linux's statx: the basic fields."""
    flags = u32(flags)
    if u32(mask) & 0x80000000 or flags & 0x6000 == 0x6000:
        raise LinuxError(EINVAL)
    if flags & ~_AT_FLAGS and not _descriptor_alone(ctx, dirfd, path, flags):
        raise LinuxError(EINVAL)
    place = place_at(
        ctx,
        dirfd,
        path,
        follow=not flags & fl.AT_SYMLINK_NOFOLLOW,
        empty=bool(flags & fl.AT_EMPTY_PATH),
        null=bool(flags & fl.AT_EMPTY_PATH),
    )
    st = _stat_of(ctx, place)
    order = "<" if ctx.arch.byteorder == "little" else ">"

    def time(ns: int) -> bytes:
        return struct.pack(order + "qI4x", *divmod(ns, _SECOND))

    head = struct.pack(
        order + "IIQIIIH2xQQQQ",
        0x7FF,
        st.blksize,
        0,
        st.nlink,
        st.uid,
        st.gid,
        st.mode,
        st.ino,
        st.size,
        st.blocks,
        0,
    )
    times = time(st.atime) + time(0) + time(st.ctime) + time(st.mtime)
    numbers = (part(dev) for dev in (st.rdev, st.dev) for part in (os.major, os.minor))
    shown = struct.pack(order + "IIII", *numbers)
    ctx.memory.write(buffer, (head + times + shown).ljust(256, b"\0"))
    return 0


def faccessat2(ctx: Context, dirfd: int, path: int, mode: int, flags: int) -> int:
    """Linux's faccessat2."""
    mode, flags = u32(mode), u32(flags)
    if mode & ~7 or flags & ~(fl.AT_EACCESS | fl.AT_SYMLINK_NOFOLLOW | fl.AT_EMPTY_PATH):
        raise LinuxError(EINVAL)
    place = place_at(
        ctx,
        dirfd,
        path,
        follow=not flags & fl.AT_SYMLINK_NOFOLLOW,
        empty=bool(flags & fl.AT_EMPTY_PATH),
    )
    st = _stat_of(ctx, place)
    node = place.node if place.file is None else None
    if node is not None:
        allowed = not mode or node.may(mode)
    else:
        allowed = ctx.fs.identity.may(st.mode, st.uid, st.gid, mode)
    if not allowed:
        raise LinuxError(EACCES)
    return 0


def faccessat(ctx: Context, dirfd: int, path: int, mode: int) -> int:
    """Linux's faccessat."""
    return faccessat2(ctx, dirfd, path, mode, 0)


def access(ctx: Context, path: int, mode: int) -> int:
    """Linux's access."""
    return faccessat2(ctx, fl.AT_FDCWD, path, mode, 0)


def readlinkat(ctx: Context, dirfd: int, path: int, buffer: int, size: int) -> int:
    """Linux's readlinkat."""
    if s32(size) <= 0:
        raise LinuxError(EINVAL)
    place = place_at(ctx, dirfd, path, follow=False, empty=True)
    node = place.existing()
    if not isinstance(node, SymlinkNode | MagicLink):
        raise LinuxError(EINVAL if path_at(ctx, path) else ENOENT)
    target = node.target()[: s32(size)]
    ctx.memory.write(buffer, target)
    return len(target)


def readlink(ctx: Context, path: int, buffer: int, size: int) -> int:
    """Linux's readlink."""
    return readlinkat(ctx, fl.AT_FDCWD, path, buffer, size)


def _statfs(ctx: Context, address: int, dev: int) -> int:
    magic = {
        devices.PROC: _PROC_MAGIC,
        devices.SYS: _SYSFS_MAGIC,
        devices.DEV: _TMPFS_MAGIC,
        devices.SHARED_MEMORY: _TMPFS_MAGIC,
        devices.PIPES: _PIPEFS_MAGIC,
        devices.CGROUP: _CGROUP2_MAGIC,
    }.get(dev, _OVERLAY_MAGIC)
    order = "<" if ctx.arch.byteorder == "little" else ">"
    budget = ctx.fs.budget
    blocks, free = budget.space >> 12, budget.free >> 12
    files = budget.inodes
    spare = min(files - budget.files, budget.free // INODE)
    if magic not in (_OVERLAY_MAGIC, _TMPFS_MAGIC):
        blocks = free = files = spare = 0
    numbers = (magic, 4096, blocks, free, free, files, spare)
    ctx.memory.write(
        address,
        struct.pack(order + "7q2I3q32x", *numbers, dev & 0xFFFFFFFF, dev >> 32, 255, 4096, 0x20),
    )
    return 0


def statfs(ctx: Context, path: int, buffer: int) -> int:
    """Linux's statfs."""
    return _statfs(ctx, buffer, _stat_of(ctx, place_at(ctx, fl.AT_FDCWD, path)).dev)


def fstatfs(ctx: Context, fd: int, buffer: int) -> int:
    """Linux's fstatfs."""
    return _statfs(ctx, buffer, ctx.files.get(fd).stat().dev)


def _own(ctx: Context, node: Node) -> Node:
    """EPERM unless the guest owns the node."""
    if not node.owned():
        raise LinuxError(EPERM)
    return node


def _chmod(ctx: Context, node: Node, mode: int) -> int:
    if node.is_symlink:
        raise LinuxError(EOPNOTSUPP)
    _own(ctx, node).change_mode(u32(mode) & 0o7777)
    return 0


def _changed_file(ctx: Context, file: OpenFile, event: int) -> int:
    """Tell those who watch; the result of the call."""
    if ctx.fs.watches.by_inode:
        ctx.fs.watches.on_file(file, event)
    return 0


def _changed(ctx: Context, place: ResolvedPath, event: int) -> int:
    """The same of a file that a path has led to."""
    if ctx.fs.watches.by_inode:
        ctx.fs.watches.on(place.existing(), event, (place.parent, place.name))
    return 0


def _change_unnamed(ctx: Context, file: OpenFile, uid: int = -1, gid: int = -1) -> int:
    """Judge a change of a file without a node, whose attributes are kept nowhere.

    Raises:
        LinuxError: EOPNOTSUPP for anonymous files (anon_inode_setattr, 6.17), EPERM for an owner
            or a group that the caller may not give away to.
    """
    if isinstance(file, AnonymousFile):
        raise LinuxError(EOPNOTSUPP)
    who = ctx.fs.identity
    allowed = s32(uid) in (-1, who.uid) and s32(gid) in (-1, who.gid, *who.groups)
    if who.uid != 0 and not allowed:
        raise LinuxError(EPERM)
    return 0


def _touch_unnamed(ctx: Context, file: OpenFile, *, now: bool) -> int:
    """The same of its times, which who may write it may set to now; only root may these."""
    if now and isinstance(file, AnonymousFile) and ctx.fs.identity.uid != 0:
        raise LinuxError(EACCES)
    return _change_unnamed(ctx, file)


def fchmod(ctx: Context, fd: int, mode: int) -> int:
    """Linux's fchmod."""
    file = ctx.files.get(fd)
    if isinstance(file, PathFile):
        raise LinuxError(EBADF)
    if file.node is None:
        return _change_unnamed(ctx, file)
    _chmod(ctx, file.node, mode)
    return _changed_file(ctx, file, ATTRIB)


def fchmodat(ctx: Context, dirfd: int, path: int, mode: int) -> int:
    """Linux's fchmodat."""
    return fchmodat2(ctx, dirfd, path, mode, 0)


def fchmodat2(ctx: Context, dirfd: int, path: int, mode: int, flags: int) -> int:
    """Linux's fchmodat2."""
    flags = u32(flags)
    if flags & ~(fl.AT_SYMLINK_NOFOLLOW | fl.AT_EMPTY_PATH):
        raise LinuxError(EINVAL)
    follow, empty = not flags & fl.AT_SYMLINK_NOFOLLOW, bool(flags & fl.AT_EMPTY_PATH)
    place = place_at(ctx, dirfd, path, follow=follow, empty=empty)
    if place.file is not None and place.node is None:
        return _change_unnamed(ctx, place.file)
    _chmod(ctx, place.existing(), mode)
    return _changed(ctx, place, ATTRIB)


def chmod(ctx: Context, path: int, mode: int) -> int:
    """Linux's chmod."""
    return fchmodat(ctx, fl.AT_FDCWD, path, mode)


def _chown(ctx: Context, node: Node, uid: int, gid: int) -> int:
    who, st = ctx.fs.identity, node.stat()
    uid, gid = s32(uid), s32(gid)
    allowed = uid in (-1, st.uid) and gid in (-1, st.gid, *who.groups) and node.owned(st)
    if who.uid != 0 and not allowed:
        raise LinuxError(EPERM)
    node.change_owner(uid, gid)
    return 0


def fchownat(ctx: Context, dirfd: int, path: int, uid: int, gid: int, flags: int) -> int:
    """Linux's fchownat."""
    flags = u32(flags)
    if flags & ~(fl.AT_SYMLINK_NOFOLLOW | fl.AT_EMPTY_PATH):
        raise LinuxError(EINVAL)
    follow, empty = not flags & fl.AT_SYMLINK_NOFOLLOW, bool(flags & fl.AT_EMPTY_PATH)
    place = place_at(ctx, dirfd, path, follow=follow, empty=empty)
    if place.file is not None and place.node is None:
        return _change_unnamed(ctx, place.file, uid, gid)
    _chown(ctx, place.existing(), uid, gid)
    return 0 if s32(uid) == s32(gid) == -1 else _changed(ctx, place, ATTRIB)


def chown(ctx: Context, path: int, uid: int, gid: int) -> int:
    """Linux's chown."""
    return fchownat(ctx, fl.AT_FDCWD, path, uid, gid, 0)


def lchown(ctx: Context, path: int, uid: int, gid: int) -> int:
    """Linux's lchown."""
    return fchownat(ctx, fl.AT_FDCWD, path, uid, gid, fl.AT_SYMLINK_NOFOLLOW)


def fchown(ctx: Context, fd: int, uid: int, gid: int) -> int:
    """Linux's fchown."""
    file = ctx.files.get(fd)
    if isinstance(file, PathFile):
        raise LinuxError(EBADF)
    if file.node is None:
        return _change_unnamed(ctx, file, uid, gid)
    _chown(ctx, file.node, uid, gid)
    return 0 if s32(uid) == s32(gid) == -1 else _changed_file(ctx, file, ATTRIB)


def _set_times(ctx: Context, node: Node, times: tuple[int | None, int | None] | None) -> int:
    """Set times in nanoseconds or to `NOW`: None = both now, a None in the pair = leave alone."""
    owner = node.owned()
    if times is None:
        if not owner and not node.may(MAY_WRITE):
            raise LinuxError(EACCES)
        times = NOW, NOW
    elif times == (None, None):
        return 0
    elif not owner:
        raise LinuxError(EPERM)
    node.change_times(*times)
    return 0


def _times_event(times: tuple[int | None, int | None] | None) -> int:
    """Setting both is a change of attributes, one of them looks as if it had been used."""
    if times is None or None not in times:
        return ATTRIB
    return 0 if times == (None, None) else MODIFY if times[0] is None else ACCESS


def utimensat(ctx: Context, dirfd: int, path: int, times: int, flags: int) -> int:
    """Linux's utimensat; without a path the descriptor itself."""
    flags = u32(flags)
    valid = True  # said when the file is known
    wanted: tuple[int | None, int | None] | None = None
    if times:
        order = "<" if ctx.arch.byteorder == "little" else ">"
        values = struct.unpack(order + "4q", ctx.memory.read(times, 32))
        pair: list[int | None] = []
        for seconds, nanoseconds in (values[:2], values[2:]):
            if nanoseconds == _UTIME_NOW:
                pair.append(NOW)
            elif nanoseconds == _UTIME_OMIT:
                pair.append(None)
            else:
                valid = valid and 0 <= nanoseconds < _SECOND
                pair.append(seconds * _SECOND + nanoseconds)
        if not (values[1] == values[3] == _UTIME_NOW):
            wanted = pair[0], pair[1]
    descriptor_alone = path == 0 and s32(dirfd) != fl.AT_FDCWD
    if flags & ~(0 if descriptor_alone else fl.AT_SYMLINK_NOFOLLOW | fl.AT_EMPTY_PATH):
        raise LinuxError(EINVAL)
    if descriptor_alone:
        file = opened(ctx, dirfd)
        if not valid:
            raise LinuxError(EINVAL)
        if file.node is None:
            return _touch_unnamed(ctx, file, now=wanted is None)
        _set_times(ctx, file.node, wanted)
        return _changed_file(ctx, file, _times_event(wanted))
    follow, empty = not flags & fl.AT_SYMLINK_NOFOLLOW, bool(flags & fl.AT_EMPTY_PATH)
    place = place_at(ctx, dirfd, path, follow=follow, empty=empty)
    unnamed = place.file if place.node is None else None
    node = place.existing() if unnamed is None else None
    if not valid:
        raise LinuxError(EINVAL)
    if node is None:
        assert unnamed is not None, "a place has a node or a file"
        return _touch_unnamed(ctx, unnamed, now=wanted is None)
    _set_times(ctx, node, wanted)
    return _changed(ctx, place, _times_event(wanted))


def futimesat(ctx: Context, dirfd: int, path: int, times: int) -> int:
    """Linux's futimesat: seconds and microseconds."""
    wanted: tuple[int | None, int | None] | None = None
    if times:
        order = "<" if ctx.arch.byteorder == "little" else ">"
        values = struct.unpack(order + "4q", ctx.memory.read(times, 32))
        if not all(0 <= value < 1_000_000 for value in values[1::2]):
            raise LinuxError(EINVAL)
        wanted = (
            values[0] * _SECOND + values[1] * 1000,
            values[2] * _SECOND + values[3] * 1000,
        )
    if path == 0 and s32(dirfd) != fl.AT_FDCWD:
        file = opened(ctx, dirfd)
        if file.node is None:
            return _touch_unnamed(ctx, file, now=wanted is None)
        _set_times(ctx, file.node, wanted)
        return _changed_file(ctx, file, _times_event(wanted))
    place = place_at(ctx, dirfd, path)
    _set_times(ctx, place.existing(), wanted)
    return _changed(ctx, place, _times_event(wanted))


def utimes(ctx: Context, path: int, times: int) -> int:
    """Linux's utimes."""
    return futimesat(ctx, fl.AT_FDCWD, path, times)


def utime(ctx: Context, path: int, times: int) -> int:
    """Linux's utime: whole seconds."""
    wanted: tuple[int | None, int | None] | None = None
    if times:
        order = "<" if ctx.arch.byteorder == "little" else ">"
        access_time, change_time = struct.unpack(order + "2q", ctx.memory.read(times, 16))
        wanted = access_time * _SECOND, change_time * _SECOND
    place = place_at(ctx, fl.AT_FDCWD, path)
    _set_times(ctx, place.existing(), wanted)
    return _changed(ctx, place, _times_event(wanted))


SYSCALLS: SyscallTable = {
    "stat": stat,
    "lstat": lstat,
    "fstat": fstat,
    "newfstatat": newfstatat,
    "statx": statx,
    "access": access,
    "faccessat": faccessat,
    "faccessat2": faccessat2,
    "readlink": readlink,
    "readlinkat": readlinkat,
    "statfs": statfs,
    "fstatfs": fstatfs,
    "chmod": chmod,
    "fchmod": fchmod,
    "fchmodat": fchmodat,
    "fchmodat2": fchmodat2,
    "chown": chown,
    "fchown": fchown,
    "lchown": lchown,
    "fchownat": fchownat,
    "utime": utime,
    "utimes": utimes,
    "futimesat": futimesat,
    "utimensat": utimensat,
}
