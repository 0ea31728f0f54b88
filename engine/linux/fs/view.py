"""The part of the host that a guest may see."""

import fnmatch
import os
import re
import stat
from collections.abc import Iterable

from msgspec import Struct, field

from engine.linux.fs.host import HostAnswers, PlantedLinks

LIBRARY_DIRECTORIES = (
    b"/lib",
    b"/lib64",
    b"/usr/lib",
    b"/usr/lib64",
    b"/usr/local/lib",
    b"/usr/local/lib64",
)
"""Directories in which a loader finds shared libraries without being told."""

LOADER_CACHE = b"/etc/ld.so.cache"

PROGRAM_DIRECTORIES = (b"/usr", b"/bin", b"/sbin", b"/opt", b"/etc")
"""Directories of programs and what they need; /lib and its like stand in the root beside them."""

_LIBRARY = re.compile(
    "|".join(
        fnmatch.translate(pattern) for pattern in ("*.so", "*.so.*", "ld-*", "klibc-*.so")
    ).encode(),
    re.DOTALL,
)
# Multiarch folders, and the folders for newer CPUs that the loader looks into.
_LIBRARY_FOLDER = re.compile(rb".*-linux-(gnu|musl|uclibc).*|glibc-hwcaps|x86-64-v[234]|tls")

_REMEMBERED = 1000


def program_directories(host: HostAnswers) -> list[bytes]:
    """Program directories that the host has, real ones before symlinks to them."""
    libraries = sorted(b"/" + name for name in host.top() if name.startswith(b"lib"))
    found = [path for path in (*PROGRAM_DIRECTORIES, *libraries) if host.is_directory(path)]
    return sorted(found, key=host.is_link)


def library_entry(name: bytes, mode: int) -> bool:
    """True if an entry of a standard library directory is visible."""
    if stat.S_ISDIR(mode):
        return _LIBRARY_FOLDER.fullmatch(name) is not None
    return _LIBRARY.match(name) is not None


class Refusal(Struct, frozen=True):
    """A host path that exists but that the view kept from the guest.

    Attributes:
        path: the host path.
        option: what on the command line would have allowed it.
    """

    path: str
    option: str


class Refusals:
    """Paths kept from the guest, each once, in the order of the first attempt.

    Attributes:
        dropped: further paths that were not remembered.
        word: what they are, in short.
        why: the guest does not see them, in words.
        way: to have it see all of them.
    """

    word: str = "refused"
    why: str = "not visible"
    way: str = "--root / would show it the whole file system"

    def __init__(self, limit: int = _REMEMBERED) -> None:
        self._paths: dict[bytes, None] = {}
        self._limit = limit
        self.dropped = 0

    def note(self, path: bytes) -> None:
        """Remember a path if the host has it."""
        if path in self._paths:
            return
        # lexists follows symlinks on the way: harmless, only "it exists" is learnt, and by
        # the user, not by the guest.
        try:
            if not os.path.lexists(path):
                return
        except ValueError:
            return
        self.add(path)

    def add(self, path: bytes) -> None:
        """Remember a path."""
        if path in self._paths:
            return
        if len(self._paths) >= self._limit:
            self.dropped += 1
            return
        self._paths[path] = None

    def __len__(self) -> int:
        """The number of paths, those that were not remembered as well."""
        return len(self._paths) + self.dropped

    def listed(self) -> list[Refusal]:
        """The paths that were refused."""
        return [Refusal(os.fsdecode(path), f"--share {os.fsdecode(path)}") for path in self._paths]


class View(Struct, frozen=True):
    """The directories that the guest may see; all paths are absolute host paths.

    Attributes:
        guest: the program itself, None in tests.
        cwd: the directory whose tree is visible, None when isolated.
        root: the directory that is the whole tree, None for the standard view.
        shares: (path, writable) of what `--share` adds.
        files: further single files to show read-only (an interpreter in an odd place).
        programs: show the system's program directories, as far as a user without privileges
            and groups may read them; only shared libraries and the loader's cache if false.
        refused: collects what was kept from the guest.
        links: collects the symlinks that it makes on the host.
        copied: what the guest changes in writable shares stays in memory; all else looks the same.
        home: the guest's HOME, which is there without anything in it where the host has it; None
            where it has none.
        host_order: directories are listed in the order of the host, not sorted.
    """

    guest: bytes | None = None
    cwd: bytes | None = None
    root: bytes | None = None
    shares: tuple[tuple[bytes, bool], ...] = ()
    files: tuple[bytes, ...] = ()
    programs: bool = False
    refused: Refusals = field(default_factory=Refusals)
    links: PlantedLinks = field(default_factory=PlantedLinks)
    copied: bool = False
    home: bytes | None = None
    host_order: bool = False

    @property
    def shows_host(self) -> bool:
        """True if a directory of the tool's user is visible: the current one, or a share."""
        return bool(self.shares) or (self.root is None and self.cwd is not None)

    @classmethod
    def make(
        cls,
        guest: str | None = None,
        *,
        cwd: str | None = None,
        root: str | None = None,
        shares: Iterable[tuple[str, bool]] = (),
        files: Iterable[str] = (),
        programs: bool = False,
        home: str | None = None,
        host_order: bool = False,
    ) -> "View":
        """Build from paths as the user typed them, relative ones included."""

        def absolute(path: str | None) -> bytes | None:
            return None if path is None else os.fsencode(os.path.abspath(path))

        return cls(
            absolute(guest),
            absolute(cwd),
            absolute(root),
            tuple((os.fsencode(os.path.abspath(path)), rw) for path, rw in shares),
            tuple(os.fsencode(os.path.abspath(path)) for path in files),
            programs,
            home=os.fsencode(home) if home is not None and home.startswith("/") else None,
            host_order=host_order,
        )
