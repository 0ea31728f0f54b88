"""Host directories and files, reached name by name from trusted anchors.

A `HostDir` never holds a path that is handed to the host's own resolution: it knows its
parent and its name and opens itself relative to the parent's descriptor with O_NOFOLLOW.
What such a walk reaches is below the anchor, whatever other processes do meanwhile.

Every question about files passes `HostAnswers`. It has a kind and a place: a path of the host's,
and a name in that directory where it is about an entry. Who keeps answers, or gives kept ones, is
a kind of `HostAnswers`.
"""

import contextlib
import errno
import os
import pwd
import resource
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import TypeVar

from engine.linux.errno import LinuxError

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking, because between the check and the open a file may become a FIFO.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn the host's OSError into the guest's errno.

    That the host gives this process no more descriptors is not the guest process's limit.
    """
    try:
        yield
    except OSError as error:
        code = error.errno or errno.EIO
        raise LinuxError(errno.ENFILE if code == errno.EMFILE else code) from error


class HostHandle:
    """A host descriptor that closes with its last user (open files, mappings, contents)."""

    __slots__ = ("__weakref__", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def reopened(self, flags: int) -> "HostHandle":
        """The same file opened once more, whatever its name is by now."""
        with translated():
            path = f"/proc/self/fd/{self.fd}"
            return HostHandle(os.open(path, flags | _FILE & ~os.O_NOFOLLOW))

    def leads_to(self, found: os.stat_result) -> bool:
        """True if it is still open, and its file the one with these attributes."""
        if self.fd < 0:
            return False
        own = os.fstat(self.fd)
        return (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino)

    def close(self) -> None:
        """Close it now."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)

    def __del__(self) -> None:
        self.close()


Answer = TypeVar("Answer")


class HostQuestion(Enum):
    """The kinds of what is asked."""

    ENTRY = "attributes of an entry"
    DIRECTORY = "attributes of a directory"
    TARGET = "the target of a symlink"
    NAMES = "the names in a directory"
    FILE = "a file's bytes"
    IS_DIRECTORY = "whether a path leads to a directory"
    IS_LINK = "whether a path is a symlink"
    LINK = "the target of a path's symlink"
    REAL = "a path without symlinks"
    REAL_FILE = "the same of a path that exists"
    ATTRIBUTES = "attributes of what a path leads to"
    TOP = "the names in the root directory"
    HOMES = "home directories of the user"
    OWNERS = "the user, and the groups"
    OVERLAYS = "overlay mounts"


class HostAnswers:
    """Asks the host each time.

    Attributes:
        asks: the host is there to be asked: its directories can be opened.
    """

    asks = True

    def ask(
        self, question: HostQuestion, path: bytes, name: bytes, call: Callable[[], Answer]
    ) -> Answer:
        """The answer to a question.

        Args:
            question: its kind.
            path: the place.
            name: of the entry there; b"" for the place itself.
            call: asks the host.

        Raises:
            OSError: the host refuses.
        """
        return call()

    def open_file(self, path: bytes, name: bytes, call: Callable[[], HostHandle]) -> HostHandle:
        """An open regular file.

        Args:
            path: of its directory.
            name: its name there.
            call: opens it.

        Raises:
            OSError: the host refuses.
        """
        return call()

    # -- by path: while a tree is made ------------------------------------------------------------

    def is_directory(self, path: bytes) -> bool:
        """True if a path leads to a directory."""
        return self.ask(HostQuestion.IS_DIRECTORY, path, b"", lambda: os.path.isdir(path))

    def is_link(self, path: bytes) -> bool:
        """True if a path is a symlink."""
        return self.ask(HostQuestion.IS_LINK, path, b"", lambda: os.path.islink(path))

    def link(self, path: bytes) -> bytes:
        """The target of a symlink."""
        return self.ask(HostQuestion.LINK, path, b"", lambda: os.readlink(path))

    def real(self, path: bytes) -> bytes:
        """A path without symlinks, whether there is anything or not."""
        return self.ask(HostQuestion.REAL, path, b"", lambda: os.path.realpath(path))

    def real_file(self, path: bytes) -> bytes:
        """The same of what is there.

        Raises:
            OSError: nothing is.
        """
        return self.ask(
            HostQuestion.REAL_FILE, path, b"", lambda: os.path.realpath(path, strict=True)
        )

    def attributes(self, path: bytes) -> os.stat_result:
        """Attributes of what a path leads to.

        Raises:
            OSError: it leads nowhere.
        """
        return self.ask(HostQuestion.ATTRIBUTES, path, b"", lambda: os.stat(path))

    def top(self) -> Sequence[bytes]:
        """Names in the root directory."""
        return self.ask(HostQuestion.TOP, b"/", b"", lambda: sorted(os.listdir(b"/")))

    def homes(self) -> Sequence[bytes]:
        """Home directories of the user who runs the tool, as real paths."""
        return self.ask(HostQuestion.HOMES, b"", b"", _homes)

    def overlays(self) -> bytes:
        """Lines of /proc/self/mountinfo about overlay mounts."""
        return self.ask(HostQuestion.OVERLAYS, b"", b"", _overlays)

    def owners(self) -> tuple[int, Sequence[int]]:
        """The user who runs the tool; its group, and then its other groups."""
        return self.ask(HostQuestion.OWNERS, b"", b"", _owners)


def _overlays() -> bytes:
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            return b"".join(line for line in file if b" - overlay " in line)
    except OSError:
        return b""


def _owners() -> tuple[int, list[int]]:
    group = os.getegid()
    return os.geteuid(), [group, *sorted({*os.getgroups()} - {group})]


def _homes() -> list[bytes]:
    try:
        homes = {pwd.getpwuid(os.geteuid()).pw_dir}
    except KeyError:
        homes = set()
    homes.update((os.environ.get("HOME", ""), "/root"))
    return sorted(os.path.realpath(os.fsencode(home)) for home in homes if home.startswith("/"))


def _most_descriptors() -> int:
    """The number of descriptors that this process may have: from now on as many as it is let.

    Those of a guest are not the host's; but each file of the host that it has open is one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            return hard
    return soft


class DirectoryPool:
    """Keeps the most recently used directory descriptors open.

    Attributes:
        answers: what the host is asked by way of these directories passes there.
        plain: nobody looks at that: it can be asked at once.
        limit: descriptors that are kept.
        sorts: names in a directory are told sorted, not in the order of the host.
        anchors: those of the directories that the user named.
    """

    def __init__(
        self,
        limit: int | None = None,
        answers: HostAnswers | None = None,
        *,
        sorts: bool = True,
    ) -> None:
        self.sorts = sorts
        self.answers = answers or HostAnswers()
        self.plain = type(self.answers) is HostAnswers
        soft = _most_descriptors()
        self.limit = limit or max(16, min(256, soft // 4 if soft > 0 else 256))
        self._open: OrderedDict[HostDir, HostHandle] = OrderedDict()
        self.anchors: list[HostHandle] = []

    def close(self) -> None:
        """Close all directories now; nothing of the host can be reached any more."""
        for handle in (*self._open.values(), *self.anchors):
            handle.close()
        self._open.clear()
        self.anchors.clear()

    def get(self, directory: "HostDir") -> int:
        """Descriptor of a directory, valid until the next call."""
        handle = self._open.get(directory)
        if handle is not None:
            self._open.move_to_end(directory)
            return handle.fd
        parent = directory.parent
        assert parent is not None, "anchors hold their own descriptor"
        fd = os.open(directory.name, _DIRECTORY, dir_fd=parent.fd())
        self._open[directory] = HostHandle(fd)
        if len(self._open) > self.limit:
            self._open.popitem(last=False)
        return fd

    def forget(self, directory: "HostDir") -> None:
        """A directory has another place now."""
        self._open.pop(directory, None)


class HostDir:
    """One host directory.

    Attributes:
        path: where it was on the host when first seen; for messages only.
        parent: the directory above, None for an anchor.
        name: its name in the parent.
    """

    __slots__ = ("_anchor", "name", "parent", "path", "pool")

    def __init__(
        self, pool: DirectoryPool, path: bytes, parent: "HostDir | None" = None, name: bytes = b""
    ) -> None:
        self.pool = pool
        self.path = path
        self.parent = parent
        self.name = name
        self._anchor: HostHandle | None = None
        if parent is None and pool.answers.asks:
            # The only host-resolved open: a directory that the user named.
            self._anchor = HostHandle(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
            pool.anchors.append(self._anchor)

    def where(self) -> bytes:
        """The directory's path now, as far as only the guest has moved it; for messages only."""
        parent = self.parent
        return self.path if parent is None else parent.where().rstrip(b"/") + b"/" + self.name

    def fd(self) -> int:
        """The directory's descriptor (O_PATH), for immediate use; raises OSError if it is gone."""
        return self._anchor.fd if self._anchor is not None else self.pool.get(self)

    def child(self, name: bytes) -> "HostDir":
        """A directory in it; nothing is opened yet."""
        assert name not in (b"", b".", b".."), name
        assert b"/" not in name, name
        return HostDir(self.pool, self.path.rstrip(b"/") + b"/" + name, self, name)

    def lstat(self, name: bytes) -> os.stat_result:
        """Attributes of an entry; OSError as the host says."""
        if self.pool.plain:
            return os.stat(name, dir_fd=self.fd(), follow_symlinks=False)
        return self.pool.answers.ask(
            HostQuestion.ENTRY,
            *(self.path, name),
            lambda: os.stat(name, dir_fd=self.fd(), follow_symlinks=False),
        )

    def stat(self) -> os.stat_result:
        """Attributes of the directory itself."""
        if self.pool.plain:
            return os.fstat(self.fd())
        return self.pool.answers.ask(
            HostQuestion.DIRECTORY, self.path, b"", lambda: os.fstat(self.fd())
        )

    def readlink(self, name: bytes) -> bytes:
        """Target of a symlink."""
        return self.pool.answers.ask(
            HostQuestion.TARGET, self.path, name, lambda: os.readlink(name, dir_fd=self.fd())
        )

    def entries(self) -> list[tuple[bytes, int, int]]:
        """(name, inode number, file type or 0 = unknown) of all entries; see `DirectoryPool`."""
        return self.pool.answers.ask(HostQuestion.NAMES, self.path, b"", self._entries)

    def _entries(self) -> list[tuple[bytes, int, int]]:
        fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd())
        result = []
        try:
            with os.scandir(fd) as scan:
                for entry in scan:
                    kind = 0
                    if entry.is_symlink():
                        kind = stat.S_IFLNK
                    elif entry.is_dir(follow_symlinks=False):
                        kind = stat.S_IFDIR
                    elif entry.is_file(follow_symlinks=False):
                        kind = stat.S_IFREG
                    result.append((os.fsencode(entry.name), entry.inode(), kind))
        finally:
            os.close(fd)
        if self.pool.sorts:
            result.sort()
        return result

    def open_file(self, name: bytes, flags: int = os.O_RDONLY, mode: int = 0) -> HostHandle:
        """Open a regular file of it; EACCES for anything else.

        Anything but a regular file is refused before it is opened (opening a FIFO or a
        device has effects) and once more afterwards, should it have been swapped between.
        """
        with translated():
            return self.pool.answers.open_file(
                self.path, name, lambda: self._open_file(name, flags, mode)
            )

    def _open_file(self, name: bytes, flags: int, mode: int) -> HostHandle:
        try:
            if not stat.S_ISREG(self.lstat(name).st_mode):
                raise LinuxError(13)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
        handle = HostHandle(os.open(name, flags | _FILE, mode, dir_fd=self.fd()))
        if not stat.S_ISREG(os.fstat(handle.fd).st_mode):
            raise LinuxError(13)
        return handle


class PlantedLinks:
    """Symlinks that a guest has made in writable shares."""

    def __init__(self) -> None:
        """There are none."""
        self._made: dict[tuple[HostDir, bytes], None] = {}

    def note(self, directory: HostDir, name: bytes) -> None:
        """One has been made, or moved there."""
        self._made[directory, name] = None

    def listed(self) -> list[tuple[str, str]]:
        """(path, target) of those that are still there."""
        found = []
        for directory, name in self._made:
            try:
                target = directory.readlink(name)
            except OSError:
                continue
            path = directory.where().rstrip(b"/") + b"/" + name
            found.append((os.fsdecode(path), os.fsdecode(target)))
        return found
