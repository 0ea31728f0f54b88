"""The files of this machine that definitions name, as the running kernel finds them.

A guest sees a part of the machine's files; uprobes are placed in any of them. The files of a
process are those of its mount namespace and root directory, which /proc/PID/root shows
(proc_pid_root(5)), and those that it has mapped, even where their names are gone or mean other
files by now (/proc/PID/map_files).
"""

import os
import posixpath
import re
import stat
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError, ImageError
from engine.image import ElfImage
from engine.image.damage import Damage
from engine.session.live.ifunc_choice import MachineChoice
from engine.session.program.implementations import ResolverCalls
from engine.session.program.libraries import (
    CACHE,
    IMAGE_MAX,
    CarriedFiles,
    Program,
    ProgramFile,
    ProgramTree,
    parse_cache,
)
from engine.session.program.opening import OpenedProgram, resolve_inside
from engine.session.protocol.config import GuestConfig

DELETED: Final = " (deleted)"
"""Stands behind the path of a mapped file whose name is gone."""
_CODE: Final = re.compile(
    r"([0-9a-f]+-[0-9a-f]+) ..x. [0-9a-f]+ \S+ [1-9]\d* +(/.*)", re.ASCII | re.DOTALL
)
_LOADERS: Final = ("LD_LIBRARY_PATH", "LD_PRELOAD")
_OWN_ROOT: Final = ("/", "/proc/self/ns/mnt")


class ProcessRoot:
    """The root directory of processes that may see other files than we do.

    Attributes:
        path: the directory for us, "" for our own; it lasts as long as this object does.
    """

    def __init__(self, pid: int = 0) -> None:
        """Take that of a process, or our own.

        Raises:
            CommandError: there is no such process.
        """
        self.path = self._before = ""
        root = process_root(pid) if pid else ""
        if not root:
            return
        try:
            number = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            self._before = os.readlink(root).rstrip("/")
        except OSError as error:
            raise CommandError(f"--pid {pid}: {error.strerror}") from error
        weakref.finalize(self, os.close, number)
        self.path = f"/proc/self/fd/{number}"

    def inside(self, path: str) -> str:
        """A path of /proc/PID/maps or /proc/PID/exe below the directory.

        Those are told from the root of the namespace, and not of a process that has changed its
        root there (d_path of fs/d_path.c).
        """
        before = self._before
        return path[len(before) :] if before and path.startswith(f"{before}/") else path

    def host(self, path: str) -> str:
        """Our path of a path below the directory; without symlinks, which lead out of it.

        Raises:
            ImageError: symlinks go round in circles.
        """
        return f"{self.path}{resolve_inside(self.path, path)}" if self.path else path


class MachineTree:
    """The machine's files, as they are below a directory; a `ProgramTree`."""

    def __init__(self, root: str, damage: Damage) -> None:
        """Nothing is read before the first question.

        Args:
            root: the directory, "" for the machine's own.
            damage: where to tell what cannot be read of them.
        """
        self._root = root
        self._damage = damage

    def _host(self, path: str) -> tuple[str, str] | None:
        """The path for the host, and the one below the directory without symlinks."""
        try:
            real = resolve_inside(self._root, path) if self._root else os.path.realpath(path)
        except (OSError, ValueError, ImageError):
            return None
        return f"{self._root}{real}", real

    def _status(self, path: str) -> os.stat_result | None:
        found = self._host(path)
        with suppress(OSError, ValueError):
            return None if found is None else os.stat(found[0])
        return None

    def inode(self, path: str) -> tuple[int, int] | None:
        """(device, inode) of a path; None where nothing is."""
        found = self._status(path)
        return None if found is None else (found.st_dev, found.st_ino)

    def open(self, path: str) -> ProgramFile | None:
        """An ELF file; None if no regular file is there.

        Raises:
            ImageError: it is no ELF file that can be loaded.
        """
        host, status = self._host(path), self._status(path)
        if host is None or status is None or not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > IMAGE_MAX:
            return None
        image = ElfImage.open(host[0], root=self._root, damage=self._damage)
        paths = frozenset((path, host[1]))
        return ProgramFile(path, image, paths, (status.st_dev, status.st_ino))

    def content(self, path: str) -> bytes | None:
        """A regular file's content; None if nothing readable is there."""
        host, status = self._host(path), self._status(path)
        if host is None or status is None or not stat.S_ISREG(status.st_mode):
            return None
        with suppress(OSError), open(host[0], "rb") as file:
            return file.read()
        return None

    def problem(self, path: str) -> str:
        """Why no uprobe can be in a file: FILE_NOT_FOUND, NO_REGULAR_FILE; "" if one can."""
        status = self._status(path)
        if status is None:
            return "FILE_NOT_FOUND"
        return "" if stat.S_ISREG(status.st_mode) else "NO_REGULAR_FILE"

    def entries(self, path: str) -> list[str]:
        """The names in a folder; none where it is none, or cannot be read."""
        host = self._host(path)
        with suppress(OSError, ValueError):
            return [] if host is None else os.listdir(host[0])
        return []

    @cached_property
    def cached_libraries(self) -> Mapping[str, tuple[str, ...]]:
        """The entries of /etc/ld.so.cache: soname to paths."""
        return parse_cache(self.content(CACHE) or b"")


class MappedFiles:
    """The files whose code a process has mapped; `CarriedFiles` of a program."""

    def __init__(self, pid: int, tree: MachineTree) -> None:
        """Read the mappings of a process.

        Args:
            pid: its id.
            tree: the files below its root directory.

        Raises:
            CommandError: there is no such process.
        """
        self._tree = tree
        root = ProcessRoot(pid)
        self._links: dict[str, str] = {}
        self._opened: dict[str, ProgramFile | None] = {}
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
                for line in file:
                    found = _CODE.fullmatch(line.rstrip("\n"))
                    if found is not None:
                        path = root.inside(found[2].removesuffix(DELETED))
                        self._links.setdefault(path, f"/proc/{pid}/map_files/{found[1]}")
        except OSError as error:
            raise CommandError(f"--pid {pid}: {error.strerror}") from error

    @cached_property
    def files(self) -> Mapping[str, ProgramFile]:
        """The files by their paths in the list of mappings, and by our own."""
        each = [(path, self._file(path)) for path in self._links]
        found = {path: file for path, file in each if file is not None}
        return {file.path: file for file in found.values()} | found

    def named(self, name: str) -> ProgramFile | None:
        """The one that LIB in `LIB:SYM` means: by the file's name before its soname."""
        likely = [path for path in self._links if posixpath.basename(path).startswith(name)]
        for path in likely:
            file = self._file(path)
            if file is not None and name in file.names:
                return file
        return next((file for file in self.files.values() if name in file.names), None)

    def _file(self, path: str) -> ProgramFile | None:
        if path not in self._opened:
            self._opened[path] = self._read(path)
        return self._opened[path]

    def _read(self, path: str) -> ProgramFile | None:
        """The file that is mapped, whatever its path means by now."""
        link = self._links[path]
        with suppress(OSError, ImageError):
            status = os.stat(link)
            inode = (status.st_dev, status.st_ino)
            if self._tree.inode(path) == inode:
                return self._tree.open(path)
            return ProgramFile(link, ElfImage.open(link), frozenset((path,)), inode)
        return None


class MachineProgram(OpenedProgram, frozen=True, eq=False):
    """A program whose files are the machine's.

    Attributes:
        pid: a process that runs it, whose mapped files come first; 0 for none.
    """

    pid: int = 0

    @property
    def root(self) -> str:
        """The directory that its paths are below, "" for the machine's own."""
        return self.config.root or ""

    def program(self, tree: ProgramTree, carried: CarriedFiles | None = None) -> Program:
        """The file with its libraries, which are found among the machine's files."""
        files = MachineTree(self.root, self.image.damage)
        mapped = MappedFiles(self.pid, files) if self.pid else carried
        return super().program(files, mapped)

    def choice(self, program: Program) -> ResolverCalls:
        """This machine calls the resolvers of indirect functions, as the real loader does."""
        return MachineChoice(program, self.host_path)

    def host_path(self, path: str) -> str:
        """The path by which the running kernel finds a file of the program."""
        if not self.root or path.startswith(f"/proc/{self.pid}/"):
            return path
        return f"{self.root}{resolve_inside(self.root, path)}"


def machine_program(config: GuestConfig, pid: int = 0) -> MachineProgram:
    """Open the program of a configuration with the machine's files.

    Args:
        config: of the program.
        pid: the process that runs it, 0 for none.

    Raises:
        ImageError: it is no ELF file, or for a machine that is not supported.
        CommandError: there is no such process.
    """
    found = MachineProgram.open(config if not pid else _process_config(config, pid))
    if not isinstance(found, MachineProgram):
        raise CommandError(f"{config.guest}: a recording, which the running kernel does not run")
    return replace(found, pid=pid)


def process_root(pid: int) -> str:
    """The directory below which a process's files are; "" if they are ours.

    Raises:
        CommandError: there is no such process.
    """
    root, space = f"/proc/{pid}/root", f"/proc/{pid}/ns/mnt"
    try:
        for mine, theirs in zip(_OWN_ROOT, (root, space), strict=True):
            if not os.path.samestat(os.stat(mine), os.stat(theirs)):
                return root
    except OSError as error:
        raise CommandError(f"--pid {pid}: {error.strerror}") from error
    return ""


def _process_config(config: GuestConfig, pid: int) -> GuestConfig:
    """The configuration of a process's program: its file, and where its files are.

    Raises:
        CommandError: there is no such process.
    """
    root = process_root(pid)
    link = f"/proc/{pid}/exe"
    try:
        path = f"{root}{ProcessRoot(pid).inside(os.readlink(link))}"
        same = os.path.exists(path) and os.path.samefile(path, link)
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="surrogateescape") as file:
            given = [entry for entry in file.read().split("\0") if entry]
    except OSError as error:
        raise CommandError(f"--pid {pid}: {error.strerror}") from error
    env = tuple(entry for entry in given if entry.partition("=")[0] in _LOADERS)
    return replace(config, guest=path if same else link, root=root or None, env=env)
