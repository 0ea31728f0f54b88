"""System calls that open, read, write and resize files."""

import stat
from typing import TYPE_CHECKING

from engine.linux.context import Context, SyscallTable, s32, s64, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs import fsnotify
from engine.linux.fs.attributes import MAY_WRITE
from engine.linux.fs.calls import (
    Vectors,
    base_of,
    opened,
    path_at,
    place_at,
    positioned,
    pread_into,
    pwrite_from,
    read_into,
    vectors_to_read,
    vectors_to_write,
    write_from,
)
from engine.linux.fs.openfile import PathFile
from engine.linux.fs.pipe import PipeEnd
from engine.linux.fs.vfs import OpenFile
from engine.linux.wait import Wait

if TYPE_CHECKING:
    from engine.linux.fs.scope import PathScope

E2BIG, EBADF, EACCES, EISDIR, EINVAL, ESPIPE = 7, 9, 13, 21, 22, 29
EAGAIN, EFBIG, EOPNOTSUPP = 11, 27, 95

_PATH_FLAGS = fl.O_PATH | fl.O_DIRECTORY | fl.O_NOFOLLOW | fl.O_CLOEXEC
_VALID_FLAGS = 0o37777703
"""Of openat2, in the values of every architecture: these differ by which bit means what."""
_KEEP_SIZE = 1
_FALLOCATE: dict[int, tuple[bool, ...]] = {
    0: (True, False),
    0x02: (True,),
    0x10: (True, False),
    0x40: (True, False),
    **dict.fromkeys((0x08, 0x20, 0x80), (False,)),
}
"""Modes of fallocate (vfs_fallocate, 6.18) with what FALLOC_FL_KEEP_SIZE may be beside them."""
_SEEK_MAX = 4  # SEEK_HOLE
_RANGED = (stat.S_IFREG, stat.S_IFBLK, stat.S_IFDIR, stat.S_IFLNK)
_UNSHARE, _CLOEXEC_RANGE = 2, 4
_HIPRI, _RW_FLAGS = 1, 0x1F
"""RWF_HIPRI, and flags up to RWF_APPEND: those of preadv2 and pwritev2 that are served."""
_STATUS = fl.O_ACCMODE | fl.O_APPEND | fl.O_NONBLOCK | fl.O_DSYNC | fl.O_ASYNC | fl.O_DIRECT
_KEPT = _STATUS | fl.O_NOATIME | fl.O_LARGEFILE | fl.O_PATH | 0o4000000


def read(ctx: Context, fd: int, buffer: int, count: int) -> int | Wait:
    """Linux's read."""
    return read_into(ctx, ctx.files.get(fd), [(buffer, count)])


def write(ctx: Context, fd: int, buffer: int, count: int) -> int | Wait:
    """Linux's write."""
    return write_from(ctx, ctx.files.get(fd), [(buffer, count)])


def readv(ctx: Context, fd: int, vectors: int, count: int) -> int | Wait:
    """Linux's readv."""
    file = ctx.files.get(fd)
    pieces = vectors_to_read(ctx, file, vectors, count)
    return read_into(ctx, file, pieces) if pieces else 0


def writev(ctx: Context, fd: int, vectors: int, count: int) -> int | Wait:
    """Linux's writev."""
    file = ctx.files.get(fd)
    pieces = vectors_to_write(ctx, file, vectors, count)
    return write_from(ctx, file, pieces) if pieces else 0


def pread64(ctx: Context, fd: int, buffer: int, count: int, offset: int) -> int:
    """Linux's pread64."""
    if s64(offset) < 0:
        raise LinuxError(EINVAL)
    file = _positioned(ctx, fd)
    return pread_into(ctx, file, [(buffer, count)], s64(offset))


def pwrite64(ctx: Context, fd: int, buffer: int, count: int, offset: int) -> int:
    """Linux's pwrite64."""
    if s64(offset) < 0:
        raise LinuxError(EINVAL)
    file = _positioned(ctx, fd)
    return pwrite_from(ctx, file, [(buffer, count)], s64(offset))


def preadv(ctx: Context, fd: int, vectors: int, count: int, low: int, _high: int) -> int:
    """Linux's preadv; on 64-bit machines the low word is the whole offset."""
    if s64(low) < 0:
        raise LinuxError(EINVAL)
    file = _positioned(ctx, fd)
    pieces = vectors_to_read(ctx, file, vectors, count)
    return pread_into(ctx, file, pieces, s64(low)) if pieces else 0


def pwritev(ctx: Context, fd: int, vectors: int, count: int, low: int, _high: int) -> int:
    """Linux's pwritev."""
    if s64(low) < 0:
        raise LinuxError(EINVAL)
    file = _positioned(ctx, fd)
    pieces = vectors_to_write(ctx, file, vectors, count)
    return pwrite_from(ctx, file, pieces, s64(low)) if pieces else 0


def preadv2(
    ctx: Context, fd: int, vectors: int, count: int, low: int, _high: int, flags: int
) -> int | Wait:
    """Linux's preadv2; offset -1 means the file's position."""
    offset = s64(low)
    if offset < -1:
        raise LinuxError(EINVAL)
    file = opened(ctx, fd) if offset == -1 else _positioned(ctx, fd)
    pieces = vectors_to_read(ctx, file, vectors, count)
    if not pieces:
        return 0
    _check_flags(file, offset, pieces, flags)
    return read_into(ctx, file, pieces) if offset == -1 else pread_into(ctx, file, pieces, offset)


def pwritev2(
    ctx: Context, fd: int, vectors: int, count: int, low: int, _high: int, flags: int
) -> int | Wait:
    """Linux's pwritev2; offset -1 means the file's position."""
    offset = s64(low)
    if offset < -1:
        raise LinuxError(EINVAL)
    file = opened(ctx, fd) if offset == -1 else _positioned(ctx, fd)
    pieces = vectors_to_write(ctx, file, vectors, count)
    if not pieces:
        return 0
    _check_flags(file, offset, pieces, flags)
    if offset == -1:
        return write_from(ctx, file, pieces)
    return pwrite_from(ctx, file, pieces, offset)


def _check_flags(file: OpenFile, offset: int, vectors: Vectors, flags: int) -> None:
    """Refuse flags of preadv2 and pwritev2 that are unknown (vfs_readv, kiocb_set_rw_flags).

    Raises:
        LinuxError: EINVAL for an end beyond all offsets, which comes first; EOPNOTSUPP for the
            flags. A directory takes RWF_HIPRI alone.
    """
    if offset + sum(size for _, size in vectors) >> 63 > 0:
        raise LinuxError(EINVAL)
    if u32(flags) & ~(_HIPRI if file.is_directory else _RW_FLAGS):
        raise LinuxError(EOPNOTSUPP)


def _positioned(ctx: Context, fd: int) -> OpenFile:
    """The file of a descriptor; ESPIPE before anything else where it has no positions."""
    file = opened(ctx, fd)
    if not positioned(file):
        raise LinuxError(ESPIPE)
    return file


def open_file(
    ctx: Context,
    dirfd: int,
    path: bytes,
    flags: int,
    mode: int,
    scope: "PathScope | None" = None,
) -> int | Wait:
    """Open a path and give it a descriptor; `flags` in the values used inside."""
    if flags & fl.O_PATH:
        flags &= _PATH_FLAGS
    rooted = scope is not None and scope.rooted
    base = base_of(ctx, dirfd, b"." if rooted else path)
    watched = bool(ctx.fs.watches.by_inode) and not flags & fl.O_PATH
    cut = watched and flags & fl.O_TRUNC and ctx.fs.walk(base, path, scope=scope).node is not None
    file = ctx.fs.open(base, path, flags, mode & 0o7777 & ~ctx.umask, scope)
    file.flags = flags & _KEPT | (0 if flags & fl.O_PATH else fl.O_LARGEFILE)
    if watched:
        ctx.fs.watches.on_file(file, fsnotify.OPEN)
        if cut and file.is_regular:
            ctx.fs.watches.on_file(file, fsnotify.MODIFY)
    if isinstance(file, PipeEnd) and file.node is not None and not file.nonblocking:
        return _meet(ctx, file, cloexec=bool(flags & fl.O_CLOEXEC))
    return ctx.files.add(file, cloexec=bool(flags & fl.O_CLOEXEC))


def _meet(ctx: Context, file: PipeEnd, *, cloexec: bool) -> int | Wait:
    """Opening a FIFO waits for the other side."""

    def attempt() -> int | None:
        return ctx.files.add(file, cloexec=cloexec) if file.met() else None

    fd = attempt()
    return Wait(attempt, leave=file.on_close) if fd is None else fd


def openat(ctx: Context, dirfd: int, path: int, flags: int, mode: int) -> int | Wait:
    """Linux's openat."""
    ours = fl.from_guest(u32(flags), ctx.arch.linux.open_flags)
    return open_file(ctx, dirfd, path_at(ctx, path), ours, u32(mode))


def open_(ctx: Context, path: int, flags: int, mode: int) -> int | Wait:
    """Linux's open."""
    return openat(ctx, fl.AT_FDCWD, path, flags, mode)


def creat(ctx: Context, path: int, mode: int) -> int | Wait:
    """Linux's creat."""
    flags = fl.O_CREAT | fl.O_WRONLY | fl.O_TRUNC
    return open_file(ctx, fl.AT_FDCWD, path_at(ctx, path), flags, u32(mode))


def openat2(ctx: Context, dirfd: int, path: int, how: int, size: int) -> int | Wait:
    """Linux's openat2; everything is in the cache that RESOLVE_CACHED looks at."""
    from engine.linux.fs.scope import PathScope  # few programs call it

    if size < 24:
        raise LinuxError(EINVAL)
    if size > 4096 or any(ctx.memory.read(how + 24, size - 24)):
        raise LinuxError(E2BIG)
    order = "little" if ctx.arch.byteorder == "little" else "big"
    raw = bytes(ctx.memory.read(how, 24))
    flags, mode, resolve = (
        int.from_bytes(raw[at : at + 8], order)  # type: ignore[arg-type]
        for at in (0, 8, 16)
    )
    ours = fl.from_guest(flags & 0xFFFFFFFF, ctx.arch.linux.open_flags)
    _check_how(flags, ours, mode, resolve)
    return open_file(
        ctx, dirfd, path_at(ctx, path), ours, mode, PathScope(resolve) if resolve else None
    )


def _check_how(flags: int, ours: int, mode: int, resolve: int) -> None:
    """Refuse what openat2 refuses of a struct open_how, in its order (build_open_flags).

    Args:
        flags: as the guest has them.
        ours: the same in the values used inside.
        mode: of a file that is created.
        resolve: RESOLVE flags.
    """
    from engine.linux.fs import scope as scopes

    if flags & ~_VALID_FLAGS or resolve & ~scopes.VALID:
        raise LinuxError(EINVAL)
    if resolve & scopes.BENEATH and resolve & scopes.IN_ROOT:
        raise LinuxError(EINVAL)
    creates = ours & (fl.O_CREAT | fl.O_TMPFILE_BIT)
    if mode & ~0o7777 or (mode and not creates):
        raise LinuxError(EINVAL)
    if ours & fl.O_DIRECTORY and ours & fl.O_CREAT:
        raise LinuxError(EINVAL)
    writes = ours & fl.O_ACCMODE != fl.O_RDONLY
    if ours & fl.O_TMPFILE_BIT and not (ours & fl.O_DIRECTORY and writes):
        raise LinuxError(EINVAL)
    if ours & fl.O_PATH and ours & ~_PATH_FLAGS:
        raise LinuxError(EINVAL)
    if resolve & scopes.CACHED and (creates or ours & fl.O_TRUNC):
        raise LinuxError(EAGAIN)


def close(ctx: Context, fd: int) -> int:
    """Linux's close."""
    ctx.files.close(u32(fd))
    return 0


def close_range(ctx: Context, first: int, last: int, flags: int) -> int:
    """Linux's close_range."""
    first, last = u32(first), u32(last)
    if first > last or u32(flags) & ~(_UNSHARE | _CLOEXEC_RANGE):
        raise LinuxError(EINVAL)
    for fd in list(ctx.files):
        if first <= fd <= last:
            if flags & _CLOEXEC_RANGE:
                ctx.files.set_cloexec(fd, True)
            else:
                ctx.files.close(fd)
    return 0


def lseek(ctx: Context, fd: int, offset: int, whence: int) -> int:
    """Linux's lseek."""
    file = opened(ctx, fd)
    if u32(whence) > _SEEK_MAX:
        raise LinuxError(EINVAL)
    return file.seek(s64(offset), u32(whence))


def _resize(file: OpenFile, size: int) -> None:
    if isinstance(file, PathFile):
        raise LinuxError(EBADF)
    if size < 0 or file.flags & fl.O_ACCMODE == fl.O_RDONLY:
        raise LinuxError(EINVAL)
    file.truncate(size)


def ftruncate(ctx: Context, fd: int, size: int) -> int:
    """Linux's ftruncate."""
    file = ctx.files.get(fd)
    _check_limit(ctx, s64(size))
    _resize(file, s64(size))
    if ctx.fs.watches.by_inode:
        ctx.fs.watches.on_file(file, fsnotify.MODIFY)
    return 0


def truncate(ctx: Context, path: int, size: int) -> int:
    """Linux's truncate."""
    if s64(size) < 0:
        raise LinuxError(EINVAL)
    place = place_at(ctx, fl.AT_FDCWD, path)
    node = place.existing()
    if node.is_directory:
        raise LinuxError(EISDIR)
    if not node.may(MAY_WRITE):
        raise LinuxError(EACCES)
    _check_limit(ctx, s64(size))
    node.truncate(s64(size))
    if ctx.fs.watches.by_inode:
        ctx.fs.watches.on(node, fsnotify.MODIFY, (place.parent, place.name))
    return 0


def _check_limit(ctx: Context, size: int) -> None:
    if size > ctx.limit("fsize"):
        ctx.send_signal(25)
        raise LinuxError(EFBIG)


def fallocate(ctx: Context, fd: int, mode: int, offset: int, length: int) -> int:
    """Linux's fallocate."""
    file = opened(ctx, fd)
    if s64(offset) < 0 or s64(length) <= 0:
        raise LinuxError(EINVAL)
    keep = bool(mode & _KEEP_SIZE)
    wanted = u32(mode) & ~_KEEP_SIZE
    if keep not in _FALLOCATE.get(wanted, ()):
        raise LinuxError(EOPNOTSUPP)
    file.check_writable()
    if stat.S_ISFIFO(file.stat().mode):
        raise LinuxError(ESPIPE)
    _check_limit(ctx, offset + length)
    file.allocate(u32(mode), offset, length)
    if ctx.fs.watches.by_inode:
        ctx.fs.watches.on_file(file, fsnotify.MODIFY)
    return 0


def fsync(ctx: Context, fd: int) -> int:
    """Linux's fsync and fdatasync."""
    ctx.files.get(fd).sync()
    return 0


def sync(ctx: Context) -> int:
    """Linux's sync: the overlay is memory, shares are the host's to write."""
    return 0


def syncfs(ctx: Context, fd: int) -> int:
    """Linux's syncfs, sync_file_range."""
    ctx.files.get(fd)
    return 0


def sync_file_range(ctx: Context, fd: int, offset: int, count: int, flags: int) -> int:
    """Linux's sync_file_range (fs/sync.c)."""
    file = opened(ctx, fd)
    offset, count = s64(offset), s64(count)
    if u32(flags) & ~7 or offset < 0 or count < 0 or offset + count >= 1 << 63:
        raise LinuxError(EINVAL)
    if stat.S_IFMT(file.stat().mode) not in _RANGED:
        raise LinuxError(ESPIPE)
    return 0


def fadvise64(ctx: Context, fd: int, _offset: int, length: int, advice: int) -> int:
    """Linux's fadvise64: advice is taken and not needed."""
    file = ctx.files.get(fd)
    if isinstance(file, PathFile):
        raise LinuxError(EBADF)
    if stat.S_ISFIFO(file.stat().mode):
        raise LinuxError(ESPIPE)
    if s32(advice) not in range(6) or s64(length) < 0:
        raise LinuxError(EINVAL)
    return 0


def readahead(ctx: Context, fd: int, _offset: int, count: int) -> int:
    """Linux's readahead: of regular files and block devices only."""
    file = ctx.files.get(fd)
    file.check_readable()
    if not file.is_regular or s64(count) < 0:
        raise LinuxError(EINVAL)
    return 0


SYSCALLS: SyscallTable = {
    "read": read,
    "write": write,
    "readv": readv,
    "writev": writev,
    "pread64": pread64,
    "pwrite64": pwrite64,
    "preadv": preadv,
    "pwritev": pwritev,
    "preadv2": preadv2,
    "pwritev2": pwritev2,
    "open": open_,
    "openat": openat,
    "openat2": openat2,
    "creat": creat,
    "close": close,
    "close_range": close_range,
    "lseek": lseek,
    "truncate": truncate,
    "ftruncate": ftruncate,
    "fallocate": fallocate,
    "fsync": fsync,
    "fdatasync": fsync,
    "sync": sync,
    "syncfs": syncfs,
    "sync_file_range": sync_file_range,
    "fadvise64": fadvise64,
    "readahead": readahead,
}
