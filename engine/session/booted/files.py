"""Files of a booted system as far as the host has them: what an initial ramdisk is made of."""

import stat
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Final

from engine.image.elf import ElfImage
from engine.machine.ramdisk import RamdiskRoot
from engine.session.program.libraries import ProgramFile

_FOLDERS: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_LIBRARIES: Final = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
_VERSIONS: Final = ("", ".6", ".1", ".2", ".3")
"""Endings of the names of libraries: libc.so.6, libz.so.1."""


class BootFiles:
    """The files that a boot's first file system is made of, read where somebody asks."""

    def __init__(self, unpack: Callable[[], RamdiskRoot] = RamdiskRoot) -> None:
        """Take what unpacks them."""
        self._unpack = unpack
        self.file = lru_cache(maxsize=64)(self._file)

    @cached_property
    def _root(self) -> RamdiskRoot:
        return self._unpack()

    def mode(self, path: str) -> int | None:
        """Kind and permissions of a file; None where none is known."""
        return self._root.mode(path.encode(errors="surrogateescape"))

    def real_path(self, path: str) -> bytes:
        """A path without the links that are known."""
        return b"/" + self._root.resolved(path.encode(errors="surrogateescape"))

    def image(self, path: str) -> ElfImage | None:
        """The program or library at a path; None where no file is known.

        Raises:
            ImageError: it is no ELF file.
        """
        file = self.file(path)
        return None if file is None else file.image

    def _file(self, path: str) -> ProgramFile | None:
        """The program or library at a path with its symbols and lines; see `image`."""
        data = self._root.content(path.encode(errors="surrogateescape"))
        if data is None:
            return None
        real = self.real_path(path).decode(errors="surrogateescape")
        return ProgramFile(path, ElfImage(data, path), frozenset((path, real)))

    def named(self, name: str, machine: str) -> str | None:
        """The path of a program or a library by its short name; None where none is known.

        Args:
            name: of a program, or of a library as `libc.so.6`, `libc` or `c`.
            machine: as Debian's folders of libraries name it: "x86_64".

        Raises:
            ImageError: a ramdisk cannot be read.
        """
        where = [f"{folder}/{name}" for folder in _FOLDERS]
        for folder in _LIBRARIES:
            for inner in (folder, f"{folder}/{machine}-linux-gnu"):
                stems = name, f"lib{name}" if not name.startswith("lib") else name
                where += [f"{inner}/{stem}.so{end}" for stem in stems for end in _VERSIONS]
                where += [f"{inner}/{name}"] * (".so" in name)
        return next((path for path in where if stat.S_ISREG(self.mode(path) or 0)), None)
