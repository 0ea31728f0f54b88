"""System calls about names and directories."""

import struct
from typing import NoReturn

from engine.linux.context import Context, SyscallTable, s32, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs import operations
from engine.linux.fs.attributes import MAY_EXEC
from engine.linux.fs.calls import entry_at, path_at, place_at, working_directory
from engine.linux.fs.fsnotify import ACCESS, CREATE, ISDIR
from engine.linux.fs.vfs import Directory

EPERM, ENOENT, EACCES, ENOTDIR, EINVAL, ERANGE = 1, 2, 13, 20, 22, 34

_S_IFMT, _S_IFREG, _S_IFIFO, _S_IFSOCK = 0o170000, 0o100000, 0o010000, 0o140000

_CWD = fl.AT_FDCWD


def mkdirat(ctx: Context, dirfd: int, path: int, mode: int) -> int:
    """Linux's mkdirat."""
    place = entry_at(ctx, dirfd, path)
    parent, name = operations.new_name(ctx.fs, place, directory=True)
    parent.make_directory(name, u32(mode) & 0o1777 & ~ctx.umask)
    ctx.fs.watches.named(parent, name, CREATE | ISDIR)
    return 0


def mkdir(ctx: Context, path: int, mode: int) -> int:
    """Linux's mkdir."""
    return mkdirat(ctx, _CWD, path, mode)


def mknodat(ctx: Context, dirfd: int, path: int, mode: int, _dev: int) -> int:
    """Linux's mknodat: regular files, FIFOs and names of sockets."""
    mode = u32(mode)
    kind = mode & _S_IFMT
    bits = mode & 0o7777 & ~ctx.umask
    place = entry_at(ctx, dirfd, path)
    parent, name = operations.new_name(ctx.fs, place)
    if kind in (0, _S_IFREG):
        parent.make_file(name, bits)
    elif kind == _S_IFIFO:
        parent.make_fifo(name, bits)
    elif kind == _S_IFSOCK:
        parent.make_socket(name, bits)
    else:
        raise LinuxError(EPERM)
    ctx.fs.watches.named(parent, name, CREATE)
    return 0


def mknod(ctx: Context, path: int, mode: int, dev: int) -> int:
    """Linux's mknod."""
    return mknodat(ctx, _CWD, path, mode, dev)


def unlinkat(ctx: Context, dirfd: int, path: int, flags: int) -> int:
    """Linux's unlinkat."""
    flags = u32(flags)
    if flags & ~fl.AT_REMOVEDIR:
        raise LinuxError(EINVAL)
    place = entry_at(ctx, dirfd, path)
    if flags & fl.AT_REMOVEDIR:
        operations.rmdir(ctx.fs, place, path_at(ctx, path))
    else:
        operations.unlink(ctx.fs, place)
    return 0


def unlink(ctx: Context, path: int) -> int:
    """Linux's unlink."""
    return unlinkat(ctx, _CWD, path, 0)


def rmdir(ctx: Context, path: int) -> int:
    """Linux's rmdir."""
    return unlinkat(ctx, _CWD, path, fl.AT_REMOVEDIR)


def renameat2(
    ctx: Context, old_dirfd: int, old_path: int, new_dirfd: int, new_path: int, flags: int
) -> int:
    """Linux's renameat2; a whiteout (RENAME_WHITEOUT) is refused last, as FAT does."""
    flags = u32(flags)
    if flags & ~7 or (flags & operations.EXCHANGE and flags != operations.EXCHANGE):
        raise LinuxError(EINVAL)
    old = entry_at(ctx, old_dirfd, old_path)
    new = entry_at(ctx, new_dirfd, new_path)
    operations.rename(ctx.fs, old, new, flags)
    return 0


def renameat(ctx: Context, old_dirfd: int, old_path: int, new_dirfd: int, new_path: int) -> int:
    """Linux's renameat."""
    return renameat2(ctx, old_dirfd, old_path, new_dirfd, new_path, 0)


def rename(ctx: Context, old_path: int, new_path: int) -> int:
    """Linux's rename."""
    return renameat2(ctx, _CWD, old_path, _CWD, new_path, 0)


def linkat(
    ctx: Context, old_dirfd: int, old_path: int, new_dirfd: int, new_path: int, flags: int
) -> int:
    """Linux's linkat."""
    flags = u32(flags)
    if flags & ~(fl.AT_SYMLINK_FOLLOW | fl.AT_EMPTY_PATH):
        raise LinuxError(EINVAL)
    old = place_at(
        ctx,
        old_dirfd,
        old_path,
        follow=bool(flags & fl.AT_SYMLINK_FOLLOW),
        empty=bool(flags & fl.AT_EMPTY_PATH),
    )
    node = old.existing()
    if old.directory and not node.is_directory:
        raise LinuxError(ENOTDIR)
    operations.link(ctx.fs, node, entry_at(ctx, new_dirfd, new_path))
    return 0


def link(ctx: Context, old_path: int, new_path: int) -> int:
    """Linux's link."""
    return linkat(ctx, _CWD, old_path, _CWD, new_path, 0)


def symlinkat(ctx: Context, target: int, dirfd: int, path: int) -> int:
    """Linux's symlinkat."""
    text = path_at(ctx, target)
    if not text:
        raise LinuxError(ENOENT)
    place = entry_at(ctx, dirfd, path)
    parent, name = operations.new_name(ctx.fs, place)
    parent.make_symlink(name, text)
    ctx.fs.watches.named(parent, name, CREATE)
    return 0


def symlink(ctx: Context, target: int, path: int) -> int:
    """Linux's symlink."""
    return symlinkat(ctx, target, _CWD, path)


def getcwd(ctx: Context, buffer: int, size: int) -> int:
    """Linux's getcwd: the raw call returns the length with the zero byte."""
    directory = working_directory(ctx)
    if directory.removed:
        raise LinuxError(ENOENT)
    path = directory.path_of() + b"\0"
    if len(path) > size:
        raise LinuxError(ERANGE)
    ctx.memory.write(buffer, path)
    return len(path)


def _enter(ctx: Context, directory: object) -> int:
    if not isinstance(directory, Directory):
        raise LinuxError(ENOTDIR)
    if not directory.may(MAY_EXEC):
        raise LinuxError(EACCES)
    ctx.directory = directory
    return 0


def chdir(ctx: Context, path: int) -> int:
    """Linux's chdir."""
    return _enter(ctx, place_at(ctx, _CWD, path).existing())


def fchdir(ctx: Context, fd: int) -> int:
    """Linux's fchdir."""
    return _enter(ctx, ctx.files.get(fd).node)


def chroot(ctx: Context, path: int) -> NoReturn:
    """Linux's chroot: not for this user."""
    place_at(ctx, _CWD, path).existing()
    raise LinuxError(EPERM)


def _not_permitted(ctx: Context, *_arguments: int) -> NoReturn:
    """Linux's mount, umount2, pivot_root: not for this user."""
    raise LinuxError(EPERM)


def umask(ctx: Context, mask: int) -> int:
    """Linux's umask."""
    before = ctx.umask
    ctx.umask = u32(mask) & 0o777
    return before


_TYPES = {0o010000: 1, 0o020000: 2, 0o040000: 4, 0o060000: 6, 0o100000: 8, 0o120000: 10}


def _records(
    ctx: Context, fd: int, buffer: int, size: int, head: struct.Struct, *, type_last: bool
) -> int:
    file = ctx.files.get(fd)
    size = s32(size)  # a negative one has no room for any record (filldir64)
    listing = file.readdir()
    out = bytearray()
    position = file.offset
    while position < len(listing):
        name, ino, kind = listing[position]
        dtype = _TYPES.get(kind, 0)
        length = (head.size + len(name) + 1 + type_last + 7) & ~7
        if len(out) + length > size:
            if not out:
                raise LinuxError(EINVAL)
            break
        position += 1
        if type_last:
            record = head.pack(ino, position, length) + name
            record = record.ljust(length - 1, b"\0") + bytes((dtype,))
        else:
            record = (head.pack(ino, position, length, dtype) + name).ljust(length, b"\0")
        out += record
    ctx.memory.write(buffer, bytes(out))
    file.offset = position
    if ctx.fs.watches.by_inode:
        ctx.fs.watches.on_file(file, ACCESS)
    return len(out)


def getdents64(ctx: Context, fd: int, buffer: int, size: int) -> int:
    """Linux's getdents64."""
    order = "<" if ctx.arch.byteorder == "little" else ">"
    return _records(ctx, fd, buffer, size, struct.Struct(order + "QqHB"), type_last=False)


def getdents(ctx: Context, fd: int, buffer: int, size: int) -> int:
    """Linux's getdents: the type is the last byte of a record."""
    order = "<" if ctx.arch.byteorder == "little" else ">"
    return _records(ctx, fd, buffer, size, struct.Struct(order + "QQH"), type_last=True)


SYSCALLS: SyscallTable = {
    "mkdir": mkdir,
    "mkdirat": mkdirat,
    "mknod": mknod,
    "mknodat": mknodat,
    "unlink": unlink,
    "unlinkat": unlinkat,
    "rmdir": rmdir,
    "rename": rename,
    "renameat": renameat,
    "renameat2": renameat2,
    "link": link,
    "linkat": linkat,
    "symlink": symlink,
    "symlinkat": symlinkat,
    "getcwd": getcwd,
    "chdir": chdir,
    "fchdir": fchdir,
    "chroot": chroot,
    "umask": umask,
    "getdents": getdents,
    "getdents64": getdents64,
    **dict.fromkeys(("mount", "umount2", "pivot_root", "swapon", "swapoff"), _not_permitted),
}
