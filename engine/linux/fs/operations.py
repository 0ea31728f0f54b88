"""The calls that change names: mkdir, unlink, rename, link and their kin."""

from engine.linux.errno import LinuxError
from engine.linux.fs import flags as fl
from engine.linux.fs.directory import OverlayDirectory
from engine.linux.fs.filesystem import FileSystem, ResolvedPath
from engine.linux.fs.fsnotify import ATTRIB, CREATE, DELETE, ISDIR, MOVE_SELF
from engine.linux.fs.shared import SharedDirectory
from engine.linux.fs.vfs import Directory, Node

EPERM, ENOENT, EACCES, EBUSY, EEXIST, EXDEV, ENOTDIR, EISDIR = 1, 2, 13, 16, 17, 18, 20, 21
EINVAL, ENAMETOOLONG, ENOTEMPTY = 22, 36, 39

NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4

_STICKY = 0o1000


def new_name(
    fs: FileSystem, place: ResolvedPath, *, directory: bool = False
) -> tuple[Directory, bytes]:
    """The place of something new to be made; EEXIST if there is something."""
    if place.node is not None or place.file is not None or not place.name:
        raise LinuxError(EEXIST)
    if len(place.name) > fl.MAX_NAME:
        raise LinuxError(ENAMETOOLONG)
    if place.directory and not directory:
        raise LinuxError(ENOENT)
    fs.check_parent(place.parent)
    return place.parent, place.name


def _check_removal(fs: FileSystem, parent: Directory, name: bytes, node: Node) -> None:
    fs.check_parent(parent)
    if name in parent.mounts:
        raise LinuxError(EBUSY)
    st = parent.stat()
    if st.mode & _STICKY and not (parent.owned(st) or node.owned()):
        raise LinuxError(EPERM)


def unlink(fs: FileSystem, place: ResolvedPath) -> None:
    """Remove a name that is not a directory's."""
    if not place.name:
        raise LinuxError(EISDIR)
    node = place.existing()
    if node.is_directory:
        fs.check_parent(place.parent)
        raise LinuxError(EISDIR)
    if place.directory:
        raise LinuxError(ENOTDIR)
    _check_removal(fs, place.parent, place.name, node)
    last = _last_name(fs, node)
    place.parent.remove(place.name, node)
    fs.watches.itself(node, ATTRIB)
    fs.watches.named(place.parent, place.name, DELETE)
    fs.watches.unlinked(node, last=last)


def _last_name(fs: FileSystem, node: Node) -> bool:
    """True if nothing is left of a node that loses a name; only asked where somebody watches."""
    return bool(fs.watches.by_inode) and (node.is_directory or node.stat().nlink <= 1)


def rmdir(fs: FileSystem, place: ResolvedPath, path: bytes) -> None:
    """Remove an empty directory."""
    if not place.name:
        last = path.rstrip(b"/").rsplit(b"/", 1)[-1]
        raise LinuxError({b".": EINVAL, b"..": ENOTEMPTY}.get(last, EBUSY))
    node = place.existing()
    if not isinstance(node, Directory):
        raise LinuxError(ENOTDIR)
    _check_removal(fs, place.parent, place.name, node)
    if node.mounts:
        raise LinuxError(EBUSY)
    if not node.is_empty():
        raise LinuxError(ENOTEMPTY)
    place.parent.remove(place.name, node)
    fs.watches.unlinked(node, last=True)
    fs.watches.named(place.parent, place.name, DELETE | ISDIR)


def link(fs: FileSystem, node: Node, place: ResolvedPath) -> None:
    """Give a node one more name."""
    parent, name = new_name(fs, place)
    if node.is_directory:
        raise LinuxError(EPERM)
    if node.volume is not parent.volume:
        raise LinuxError(EXDEV)
    parent.add_link(name, node)
    fs.watches.itself(node, ATTRIB)
    fs.watches.named(parent, name, CREATE)


def _is_below(directory: Directory, ancestor: Node) -> bool:
    while True:
        if directory is ancestor:
            return True
        if directory.parent is directory:
            return False
        directory = directory.parent


def rename(fs: FileSystem, old: ResolvedPath, new: ResolvedPath, flags: int = 0) -> None:
    """Move a name, replacing what is at the new one."""
    if not old.name or not new.name:
        raise LinuxError(EBUSY)
    node, target = old.existing(), new.node
    if len(new.name) > fl.MAX_NAME:
        raise LinuxError(ENAMETOOLONG)
    if flags & EXCHANGE:
        if target is None:
            raise LinuxError(ENOENT)
    elif flags & NOREPLACE and target is not None:
        raise LinuxError(EEXIST)
    if old.parent.volume is not new.parent.volume or node.volume is not old.parent.volume:
        raise LinuxError(EXDEV)
    if (old.directory or (new.directory and not flags & EXCHANGE)) and not node.is_directory:
        raise LinuxError(ENOTDIR)
    if node is target and not node.is_directory:
        # Two names of one file: both stay, says POSIX.
        return
    if node.is_directory and _is_below(new.parent, node):
        raise LinuxError(EINVAL)
    if target is not None and target.is_directory and _is_below(old.parent, target):
        raise LinuxError(EINVAL if flags & EXCHANGE else ENOTEMPTY)
    if node is target:
        return
    _check_removal(fs, old.parent, old.name, node)
    fs.check_parent(new.parent)
    if target is not None:
        _check_removal(fs, new.parent, new.name, target)
        if not flags & EXCHANGE:
            _check_replacement(node, target)
    if isinstance(node, Directory) and node.mounts:
        raise LinuxError(EBUSY)
    if node.is_directory and new.parent is not old.parent and not node.may(2):
        # Its entry ".." changes.
        raise LinuxError(EACCES)
    if flags & WHITEOUT:
        raise LinuxError(EINVAL)  # as of a file system that keeps none
    exchange = bool(flags & EXCHANGE)
    last = target is not None and not exchange and _last_name(fs, target)
    _move(old, new, node, target, exchange=exchange)
    if fs.watches.by_inode:
        _tell_move(fs, old, new, node, target, exchange=exchange)
        if target is not None and not exchange:
            fs.watches.unlinked(target, last=last)


def _tell_move(
    fs: FileSystem,
    old: ResolvedPath,
    new: ResolvedPath,
    node: Node,
    target: Node | None,
    *,
    exchange: bool,
) -> None:
    """Tell those who watch of a rename (fsnotify_move)."""
    watches, places = fs.watches, ((old.parent, old.name), (new.parent, new.name))
    watches.moved(node, *places)
    if target is not None and not exchange:
        watches.itself(target, ATTRIB)
    watches.itself(node, MOVE_SELF)
    if target is not None and exchange:
        watches.moved(target, places[1], places[0])
        watches.itself(target, MOVE_SELF)


def _check_replacement(node: Node, target: Node) -> None:
    if isinstance(target, Directory):
        if not node.is_directory:
            raise LinuxError(EISDIR)
        if target.mounts:
            raise LinuxError(EBUSY)
        if not target.is_empty():
            raise LinuxError(ENOTEMPTY)
    elif node.is_directory:
        raise LinuxError(ENOTDIR)


def _move(
    old: ResolvedPath, new: ResolvedPath, node: Node, target: Node | None, *, exchange: bool
) -> None:
    source, goal = old.parent, new.parent
    if isinstance(source, SharedDirectory) and isinstance(goal, SharedDirectory):
        if exchange:
            raise LinuxError(EINVAL)
        source.rename_to(old.name, goal, new.name)
        return
    if not (isinstance(source, OverlayDirectory) and isinstance(goal, OverlayDirectory)):
        raise LinuxError(EXDEV)
    if target is not None and not exchange:
        goal.remove(new.name, target)
    # The node takes its host file along: nothing is copied.
    source.detach(old.name)
    if target is not None and exchange:
        goal.detach(new.name)
        source.put(old.name, target)
    goal.put(new.name, node)
    node.renamed()
