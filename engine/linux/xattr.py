"""System calls about extended attributes: those of the private overlay, kept with its files."""

import errno
import stat
from collections.abc import Callable
from typing import Final

from engine.linux.context import Context, SyscallTable, u32
from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import MAY_READ, MAY_WRITE
from engine.linux.fs.calls import node_at
from engine.linux.fs.fsnotify import ATTRIB
from engine.linux.fs.openfile import PathFile
from engine.linux.fs.pseudo import PseudoDirectory
from engine.linux.fs.vfs import Directory, Node, OverlayNode
from engine.linux.fs.xattrs import CREATE, REPLACE, SIZE_MAX, AttributeSet

_NAME_MAX: Final = 255
_USER, _TRUSTED, _SECURITY = b"user.", b"trusted.", b"security."


def _name(ctx: Context, address: int) -> bytes:
    """The name argument (strncpy_from_user of import_xattr_name)."""
    name = bytes(ctx.memory.read_cstring(address, _NAME_MAX + 1))
    if not name or len(name) > _NAME_MAX:
        raise LinuxError(errno.ERANGE)
    return name


def _checked(ctx: Context, node: Node | None, name: bytes, want: int) -> Node:
    """The node, if the name's kind and the file's permissions allow it (xattr_permission)."""
    denied = errno.EPERM if want == MAY_WRITE else errno.ENODATA
    if node is None:
        raise LinuxError(denied if name.startswith(_USER) else errno.EOPNOTSUPP)
    who, status = ctx.fs.identity, node.stat()
    if name.startswith(_TRUSTED):
        if who.uid:
            raise LinuxError(denied)
    elif name.startswith(_USER):
        kind = stat.S_IFMT(status.mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR):
            raise LinuxError(denied)
        sticky = kind == stat.S_IFDIR and status.mode & stat.S_ISVTX
        if sticky and want == MAY_WRITE and not node.owned(status):
            raise LinuxError(errno.EPERM)
    if not name.startswith((_TRUSTED, _SECURITY)) and not node.may(want):
        raise LinuxError(errno.EACCES)
    return node


def _resolve(node: Node, name: bytes) -> OverlayNode:
    """The node if its file system knows the namespace (xattr_resolve_name)."""
    prefix = next((each for each in (_USER, _TRUSTED, _SECURITY) if name.startswith(each)), None)
    if prefix is None or not isinstance(node, OverlayNode) or isinstance(node, PseudoDirectory):
        raise LinuxError(errno.EOPNOTSUPP)
    if name == prefix:
        raise LinuxError(errno.EINVAL)
    return node


Find = Callable[[], Node | None]
"""Looks the file up, after the other arguments, as Linux does; None for pipes and the like."""


def _set(ctx: Context, find: Find, name: int, value: int, size: int, flags: int) -> int:
    if u32(flags) & ~(CREATE | REPLACE):
        raise LinuxError(errno.EINVAL)
    key = _name(ctx, name)
    if size > SIZE_MAX:
        raise LinuxError(errno.E2BIG)
    data = bytes(ctx.memory.read(value, size)) if size else b""
    node = _checked(ctx, find(), key, MAY_WRITE)
    if key.startswith(_SECURITY) and ctx.fs.identity.uid:
        raise LinuxError(errno.EPERM)
    found = _resolve(node, key)
    meta = found.own_meta()
    if found.xattrs is None:
        found.xattrs = AttributeSet(found.volume.budget)
    found.xattrs.set(key, data, u32(flags))
    meta.ctime = found.volume.clock.realtime()
    _tell(ctx, found)
    return 0


def _tell(ctx: Context, node: OverlayNode) -> None:
    if ctx.fs.watches.by_inode:
        home = (node.parent, node.name) if isinstance(node, Directory) else node.home
        ctx.fs.watches.on(node, ATTRIB, home)


def _give(ctx: Context, data: bytes, address: int, size: int) -> int:
    """Hand over an answer; without room only its size."""
    if size:
        if len(data) > size:
            raise LinuxError(errno.ERANGE)
        ctx.memory.write(address, data)
    return len(data)


def _get(ctx: Context, find: Find, name: int, value: int, size: int) -> int:
    key = _name(ctx, name)
    node = _checked(ctx, find(), key, MAY_READ)
    found = _resolve(node, key).xattrs
    data = found.values.get(key) if found is not None else None
    if data is None:
        raise LinuxError(errno.ENODATA)
    return _give(ctx, data, value, size)


def _list(ctx: Context, find: Find, address: int, size: int) -> int:
    node = find()
    found = node.xattrs if isinstance(node, OverlayNode) else None
    names = found.values if found is not None else ()
    all_seen = not ctx.fs.identity.uid
    shown = [name for name in names if all_seen or not name.startswith(_TRUSTED)]
    return _give(ctx, b"".join(name + b"\0" for name in shown), address, size)


def _remove(ctx: Context, find: Find, name: int) -> int:
    key = _name(ctx, name)
    node = _checked(ctx, find(), key, MAY_WRITE)
    if key.startswith(_SECURITY) and ctx.fs.identity.uid:
        raise LinuxError(errno.EPERM)
    found = _resolve(node, key)
    if found.xattrs is None:
        raise LinuxError(errno.ENODATA)
    found.xattrs.remove(key)
    found.own_meta().ctime = found.volume.clock.realtime()
    _tell(ctx, found)
    return 0


def _path(ctx: Context, path: int, *, follow: bool = True) -> Find:
    return lambda: node_at(ctx, fl.AT_FDCWD, path, follow=follow)


def _descriptor(ctx: Context, fd: int) -> Find:
    def find() -> Node | None:
        file = ctx.files.get(u32(fd))
        if isinstance(file, PathFile):
            raise LinuxError(errno.EBADF)
        return file.node

    return find


def setxattr(ctx: Context, path: int, name: int, value: int, size: int, flags: int) -> int:
    """Linux's setxattr."""
    return _set(ctx, _path(ctx, path), name, value, size, flags)


def lsetxattr(ctx: Context, path: int, name: int, value: int, size: int, flags: int) -> int:
    """Linux's lsetxattr."""
    return _set(ctx, _path(ctx, path, follow=False), name, value, size, flags)


def fsetxattr(ctx: Context, fd: int, name: int, value: int, size: int, flags: int) -> int:
    """Linux's fsetxattr."""
    return _set(ctx, _descriptor(ctx, fd), name, value, size, flags)


def getxattr(ctx: Context, path: int, name: int, value: int, size: int) -> int:
    """Linux's getxattr."""
    return _get(ctx, _path(ctx, path), name, value, size)


def lgetxattr(ctx: Context, path: int, name: int, value: int, size: int) -> int:
    """Linux's lgetxattr."""
    return _get(ctx, _path(ctx, path, follow=False), name, value, size)


def fgetxattr(ctx: Context, fd: int, name: int, value: int, size: int) -> int:
    """Linux's fgetxattr."""
    return _get(ctx, _descriptor(ctx, fd), name, value, size)


def listxattr(ctx: Context, path: int, buffer: int, size: int) -> int:
    """Linux's listxattr."""
    return _list(ctx, _path(ctx, path), buffer, size)


def llistxattr(ctx: Context, path: int, buffer: int, size: int) -> int:
    """Linux's llistxattr."""
    return _list(ctx, _path(ctx, path, follow=False), buffer, size)


def flistxattr(ctx: Context, fd: int, buffer: int, size: int) -> int:
    """Linux's flistxattr."""
    return _list(ctx, _descriptor(ctx, fd), buffer, size)


def removexattr(ctx: Context, path: int, name: int) -> int:
    """Linux's removexattr."""
    return _remove(ctx, _path(ctx, path), name)


def lremovexattr(ctx: Context, path: int, name: int) -> int:
    """Linux's lremovexattr."""
    return _remove(ctx, _path(ctx, path, follow=False), name)


def fremovexattr(ctx: Context, fd: int, name: int) -> int:
    """Linux's fremovexattr."""
    return _remove(ctx, _descriptor(ctx, fd), name)


SYSCALLS: SyscallTable = {
    "setxattr": setxattr,
    "lsetxattr": lsetxattr,
    "fsetxattr": fsetxattr,
    "getxattr": getxattr,
    "lgetxattr": lgetxattr,
    "fgetxattr": fgetxattr,
    "listxattr": listxattr,
    "llistxattr": llistxattr,
    "flistxattr": flistxattr,
    "removexattr": removexattr,
    "lremovexattr": lremovexattr,
    "fremovexattr": fremovexattr,
}
