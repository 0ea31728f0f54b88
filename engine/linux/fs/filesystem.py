"""The tree a guest sees, and how paths are resolved in it."""

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.linux.clock import Clock
from engine.linux.errno import LinuxError
from engine.linux.fs import devices
from engine.linux.fs import flags as fl
from engine.linux.fs.attributes import MAY_READ, MAY_WRITE, Identity, InodeNumber, Stat
from engine.linux.fs.build import TreeBuilder, split
from engine.linux.fs.data import Budget
from engine.linux.fs.device import make_dev
from engine.linux.fs.fsnotify import CREATE, Watches
from engine.linux.fs.host import HostAnswers
from engine.linux.fs.inotify import InotifyUse
from engine.linux.fs.layers import OverlayLayers
from engine.linux.fs.links import MagicLink, SymlinkNode
from engine.linux.fs.locks import FileLocks
from engine.linux.fs.openfile import PathFile
from engine.linux.fs.pipe import Numbers
from engine.linux.fs.proc import make_proc
from engine.linux.fs.procsource import ProcSource
from engine.linux.fs.regular import FileNode
from engine.linux.fs.shared import SharedFileNode
from engine.linux.fs.signalled import SignalledFiles
from engine.linux.fs.sysfs import make_cgroup, make_sys
from engine.linux.fs.vfs import FIRST_INODE, Directory, Node, OpenFile, Volume
from engine.linux.fs.view import View

if TYPE_CHECKING:
    from engine.linux.fs.scope import PathScope

STRANGER: Final = 1000
"""User and group of a guest that is not the tool's user."""

EPERM, ENOENT, EACCES, EEXIST, ENOTDIR, EISDIR, EINVAL = 1, 2, 13, 17, 20, 21, 22
ENAMETOOLONG, ELOOP = 36, 40


class ResolvedPath(NamedTuple):
    """The end of a path's resolution.

    Attributes:
        parent: the directory of the last name.
        name: the last name; empty if the path ended in a directory itself (/, ., ..).
        node: what is there, None if nothing is.
        directory: the path ended in a slash, so only a directory will do.
        file: an open file that a link in /proc led to and that has no node.
    """

    parent: Directory
    name: bytes
    node: Node | None
    directory: bool = False
    file: OpenFile | None = None

    def existing(self) -> Node:
        """The node; ENOENT if there is none."""
        if self.node is None:
            raise LinuxError(ENAMETOOLONG if len(self.name) > fl.MAX_NAME else ENOENT)
        return self.node


class FileSystem:
    """The guest's tree; shared by all processes of a guest.

    Attributes:
        view: what of the host is visible.
        identity: the guest's user and group.
        budget: caps of the private overlay.
        volume: the device of the private overlay.
        host_volumes: those of the host's files that the guest cannot change.
        root: the directory /.
        proc: what /proc shows.
        numbers: inode numbers of pipes and the like.
        watches: who wants to hear of changes (inotify).
        inotify: how much inotify has in use.
        locks: the locks on files.
        signalled: open files that send signals.
    """

    def __init__(
        self,
        view: View,
        proc: ProcSource,
        *,
        uid: int | None = None,
        gid: int | None = None,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        budget: Budget | None = None,
        cpus: int = 1,
        copies_clock: Clock | None = None,
        host: HostAnswers | None = None,
    ) -> None:
        """Build the tree.

        Args:
            view: what of the host is visible.
            proc: what /proc shows.
            uid: the guest's user, as whose the files of the tool's user count; where it is None,
                the tool's user, or `STRANGER` if that is root or the view has no directory of it.
            gid: likewise its group.
            clock: the guest's.
            random_bytes: gives random bytes.
            budget: caps of the private overlay.
            cpus: processors that the guest is told of.
            copies_clock: the time of writable shares whose changes stay in memory.
            host: answers what the host is asked of its files.
        """
        host = host or HostAnswers()
        self._copies_clock = copies_clock or clock
        self.view = view
        self.proc = proc
        self.clock = clock
        owners, plain = host.owners(), uid is None and view.shows_host
        if uid is None and (not view.shows_host or owners[0] == 0):
            uid = gid = STRANGER
        self.identity = Identity(owners, uid, gid, plain=plain)
        self.budget = budget or Budget()
        self.numbers = Numbers()
        self.watches = Watches()
        self.watches.is_open = self._is_open
        self.inotify = InotifyUse()
        self.locks = FileLocks(self.budget.memory)
        self.signalled = SignalledFiles()
        self._share_volumes: list[Volume] = []
        self._layers = OverlayLayers(host)
        self._inodes = itertools.count(FIRST_INODE)
        self.volume = self._volume(devices.PRIVATE, self._inodes)
        own = {
            b"/proc": make_proc(
                self._volume(devices.PROC),
                proc,
                lambda path: self.walk(self.root, path).existing(),
                random_bytes,
                self.locks.text,
            ),
            b"/sys": make_sys(
                self._volume(devices.SYS), cpus, make_cgroup(self._volume(devices.CGROUP), proc)
            ),
            b"/dev": make_dev(
                self._volume(devices.DEV), self._volume(devices.PTS), proc, random_bytes
            ),
        }
        programs = Volume(
            *(devices.PRIVATE, self.identity, clock, self.budget),
            foreign=True,
            watches=self.watches,
            inodes=self._inodes,
        )
        self.host_volumes = self.volume, programs
        shared_memory = self._volume(devices.SHARED_MEMORY, self._inodes)
        builder = TreeBuilder(view, self.volume, programs, shared_memory, self._share_volume, host)
        self._pools = [builder.pool]
        self.root: Directory = builder.build(own)

    def _is_open(self, node: Node) -> bool:
        """True if any process has a node open."""
        for pid in self.proc.pids():
            process = self.proc.process(pid)
            if process is not None:
                files = process.files
                if any(files.get(fd).node is node for fd in files):
                    return True
        return False

    def close(self) -> None:
        """Let go of the host's directories; open files and mappings keep theirs."""
        for pool in self._pools:
            pool.close()

    def _volume(self, dev: int, inodes: Iterator[int] | None = None) -> Volume:
        return Volume(
            *(dev, self.identity, self.clock, self.budget),
            links=self.view.links,
            watches=self.watches,
            inodes=inodes,
        )

    def _share_volume(self) -> Volume:
        volume = self._volume(devices.PRIVATE, self._inodes)
        if self.view.copied:
            volume.clock = self._copies_clock
        self._share_volumes.append(volume)
        return volume

    def granted(self, view: View) -> Directory:
        """A tree of its own of what another view shows: its names are not those of this one."""
        volume = self._volume(devices.PRIVATE, self._inodes)
        volume.clock = self._copies_clock  # to be made takes no time of the guest's
        builder = TreeBuilder(view, volume, volume, volume, self._share_volume, HostAnswers())
        self._pools.append(builder.pool)
        return builder.build({})

    def mapped_inode(self, node: Node | None, st: Stat) -> InodeNumber:
        """Device and inode by which a mapped file is known to uprobes.

        Args:
            node: the file's; None if it has none.
            st: its attributes.
        """
        lower = node.lower if isinstance(node, FileNode | SharedFileNode) else None
        return self._layers.behind(InodeNumber(st.dev, st.ino), lower)

    def look_beyond(self, find: Callable[[Directory, bytes], Node | None]) -> None:
        """Look for what this tree does not have elsewhere from now on.

        Args:
            find: gives what is there at a name of a directory of this tree, None for nothing.
        """
        for volume in (*self.host_volumes, *self._share_volumes):
            volume.beyond = find

    def walk(
        self,
        base: Directory,
        path: bytes,
        *,
        follow: bool = True,
        entry: bool = False,
        scope: "PathScope | None" = None,
    ) -> ResolvedPath:
        """Resolve a path from a directory; the last name need not exist.

        Args:
            base: where a relative path starts.
            path: the path.
            follow: whether a symlink in the last place is followed.
            entry: the last name itself is meant (mkdir, unlink, rename): it is never
                followed, and a slash behind it or too long a name is the caller's to judge.
            scope: where it may lead; None for anywhere.
        """
        if not path:
            raise LinuxError(ENOENT)
        if len(path) >= fl.MAX_PATH:
            raise LinuxError(ENAMETOOLONG)
        root, current = self.root, base
        if scope is not None and scope.inside:
            root = base
        if path.startswith(b"/"):
            current = root
            if scope is not None:
                scope.to_root(None, root)
        todo = split(path)[::-1]
        bare = path.rstrip(b"/")
        # A last "." names no entry that could be made, removed or renamed.
        dot = bare == b"." or bare.endswith(b"/.")
        trailing = dot or path.endswith(b"/")
        links = 0
        while todo:
            name = todo.pop()
            if not current.searchable():
                if current.volume.foreign:
                    rest = b"/".join((current.path_of(name), *reversed(todo)))
                    self._keep_back(rest)
                raise LinuxError(EACCES)
            if name == b"..":
                if scope is not None:
                    if current is root:
                        scope.above_root()
                        continue
                    scope.cross(current, current.parent)
                current = current.parent
                continue
            if len(name) > fl.MAX_NAME:
                if entry and not todo:
                    return ResolvedPath(current, name, None, trailing)
                raise LinuxError(ENAMETOOLONG)
            node = None if current.removed else current.lookup(name)
            if node is None:
                if current.hidden is not None:
                    self._refuse(current.hidden, name, todo)
                if todo or current.removed or dot:
                    raise LinuxError(ENOENT)
                return ResolvedPath(current, name, None, trailing)
            if scope is not None:
                scope.cross(current, node)
            if node.is_symlink and (todo or dot or (not entry and (follow or trailing))):
                links += 1
                if links > fl.MAX_LINKS:
                    raise LinuxError(ELOOP)
                if scope is not None:
                    scope.follow()
                if isinstance(node, MagicLink):
                    goal = node.jump()
                    if scope is not None:
                        scope.jump(current, goal if isinstance(goal, Node) else goal.node)
                    if not todo:
                        place = self._magic_end(current, name, goal, trailing=trailing)
                        return self._by_own_name(place, node)
                    node = goal if isinstance(goal, Node) else goal.node
                elif isinstance(node, SymlinkNode):
                    target = node.target()
                    if not target:
                        raise LinuxError(ENOENT)
                    if not todo and target.endswith((b"/", b"/.")):
                        trailing = True
                    if target.startswith(b"/"):
                        if scope is not None:
                            scope.to_root(current, root)
                        current = root
                    todo.extend(split(target)[::-1])
                    continue
            elif not todo:
                if (dot or (trailing and not entry)) and not node.is_directory:
                    raise LinuxError(ENOTDIR)
                if not (dot and isinstance(node, Directory)):
                    return ResolvedPath(current, name, node, trailing)
            if not isinstance(node, Directory):
                raise LinuxError(ENOTDIR)
            current = node
        return ResolvedPath(current, b"", current, True)

    def _magic_end(
        self, current: Directory, name: bytes, goal: Node | OpenFile, *, trailing: bool
    ) -> ResolvedPath:
        node, file = (goal, None) if isinstance(goal, Node) else (goal.node, goal)
        if trailing and not (node is not None and node.is_directory):
            raise LinuxError(ENOTDIR)
        if isinstance(node, Directory):
            return ResolvedPath(node, b"", node, trailing)
        if file is not None and file.place is not None:
            current, name = file.place
        return ResolvedPath(current, name, node, trailing, file)

    def _by_own_name(self, place: ResolvedPath, link: MagicLink) -> ResolvedPath:
        """The end of a magic link by the name that the file has itself, where it has one."""
        if place.file is not None or isinstance(place.node, Directory):
            return place
        try:
            found = self.walk(self.root, link.target())
        except LinuxError:
            return place
        return found if found.node is place.node else place

    def _refuse(self, hidden: bytes, name: bytes, todo: list[bytes]) -> None:
        rest = [name, *reversed(todo)]
        if b".." not in rest:
            self.view.refused.note(hidden.rstrip(b"/") + b"/" + b"/".join(rest))

    def _keep_back(self, path: bytes) -> None:
        """Remember what the guest may not read of the programs' files but the user could."""
        with contextlib.suppress(OSError):
            if os.access(path, os.R_OK):
                self.view.refused.note(path)

    def lookup(self, base: Directory, path: bytes, *, follow: bool = True) -> Node:
        """The node at a path; ENOENT if there is none."""
        place = self.walk(base, path, follow=follow)
        if place.node is None and place.file is not None:
            raise LinuxError(EACCES)
        return place.existing()

    def directory(self, path: bytes) -> Directory:
        """The directory at an absolute path (a working directory)."""
        if path == b"/":
            return self.root
        node = self.walk(self.root, path).existing()
        if not isinstance(node, Directory):
            raise LinuxError(ENOTDIR)
        return node

    def check_parent(self, parent: Directory) -> None:
        """EACCES unless the guest may add and remove names in a directory."""
        if parent.removed:
            raise LinuxError(ENOENT)
        if not parent.may(MAY_WRITE | 1):
            raise LinuxError(EACCES)

    def open(
        self,
        base: Directory,
        path: bytes,
        flags: int,
        mode: int = 0,
        scope: "PathScope | None" = None,
    ) -> OpenFile:
        """Open a path; `mode` is the umask-adjusted mode of a file it creates."""
        if flags & fl.O_TMPFILE_BIT:
            return self._open_unnamed(base, path, flags, mode, scope)
        if flags & fl.O_CREAT and path.endswith(b"/") and path.strip(b"/"):
            # Whatever is there: a name with a slash cannot be a file to create.
            self.walk(base, path, entry=True, scope=scope)
            raise LinuxError(EISDIR)
        exclusive = flags & fl.O_CREAT and flags & fl.O_EXCL
        follow = not (flags & fl.O_NOFOLLOW or exclusive)
        place = self.walk(base, path, follow=follow, scope=scope)
        node = place.node
        if node is None and place.file is None:
            if not flags & fl.O_CREAT:
                raise LinuxError(ENOENT)
            if place.directory:
                raise LinuxError(EISDIR)
            if flags & fl.O_DIRECTORY:
                raise LinuxError(EINVAL)
            self.check_parent(place.parent)
            node = place.parent.make_file(place.name, mode & 0o7777)
            file = node.open(flags & ~fl.O_TRUNC)
            file.place = (place.parent, place.name)
            if self.watches.by_inode:
                self.watches.named(place.parent, place.name, CREATE)
            return file
        if exclusive:
            raise LinuxError(EEXIST)
        return self.open_place(place, flags)

    def open_place(self, place: ResolvedPath, flags: int) -> OpenFile:
        """Open what a path has led to."""
        node = place.node
        if node is None:
            assert place.file is not None, "the caller has dealt with missing files"
            return place.file.reopen(flags)
        if flags & fl.O_DIRECTORY and not node.is_directory:
            raise LinuxError(ENOTDIR)
        if flags & fl.O_PATH:
            file: OpenFile = PathFile(node, flags)
        else:
            if node.is_symlink:
                raise LinuxError(ELOOP)
            if node.is_directory and flags & fl.O_CREAT:
                raise LinuxError(EISDIR)
            self._check_access(place, node, flags)
            file = place.file.reopen(flags) if place.file is not None else node.open(flags)
            if flags & fl.O_TRUNC and file.is_regular:
                node.truncate(0)
        file.place = (place.parent, place.name)
        return file

    def _check_access(self, place: ResolvedPath, node: Node, flags: int) -> None:
        access = flags & fl.O_ACCMODE
        want = MAY_READ if access == fl.O_RDONLY else MAY_WRITE
        if access >= fl.O_RDWR:
            want |= MAY_READ
        if flags & fl.O_TRUNC:
            want |= MAY_WRITE
        st = node.stat()
        if node.is_directory and want & MAY_WRITE:
            raise LinuxError(EISDIR)
        if not node.may(want):
            if node.volume.foreign and not want & MAY_WRITE:
                self._keep_back(place.parent.path_of(place.name))
            raise LinuxError(EACCES)
        if flags & fl.O_NOATIME and not node.owned(st):
            raise LinuxError(EPERM)

    def _open_unnamed(
        self, base: Directory, path: bytes, flags: int, mode: int, scope: "PathScope | None"
    ) -> OpenFile:
        if flags & fl.O_ACCMODE == fl.O_RDONLY or not flags & fl.O_DIRECTORY:
            raise LinuxError(EINVAL)
        directory = self.walk(base, path, scope=scope).existing()
        if not isinstance(directory, Directory):
            raise LinuxError(ENOTDIR)
        self.check_parent(directory)
        if directory.volume is not self.volume:
            raise LinuxError(95)
        file = self.unnamed_file(flags, mode)
        file.place = (directory, b"#" + str(file.stat().ino).encode())
        return file

    def unnamed_file(self, flags: int, mode: int) -> OpenFile:
        """A regular file without a name (O_TMPFILE, memfd)."""
        return FileNode(self.volume, meta=self.volume.new_meta(mode & 0o7777, 0)).open(flags)
