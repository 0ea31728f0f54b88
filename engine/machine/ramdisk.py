"""The initial ramdisk that a kernel is given: a packed one, and what is added to it.

Archives stand one behind the other, and a kernel unpacks all of them: files of a later one take
the place of earlier ones. Source: Documentation/driver-api/early-userspace/buffer-format.rst.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

from msgspec import Struct

from engine.errors import NotElfError
from engine.image.elf import ElfImage
from engine.image.kernel.initramfs import initramfs_entries
from engine.machine.cpioarchive import ArchiveEntry, archive
from engine.machine.hosttree import contents, tree_entries
from engine.machine.moduletree import ModuleTree

_INIT: Final = b"init"
_FOLDERS: Final = (b"dev", b"proc", b"root", b"sys", b"tmp")
_ELF: Final = b"\x7fELF"
_X86: Final = (3, 62)  # e_machine of both widths
_LINKS_MOST: Final = 40
_SCRIPTS_MOST: Final = 5
"""Of scripts that interpret scripts: BINPRM_BUF's nesting in fs/exec.c."""
_ALIGNMENT: Final = 512


class Ramdisk(Struct, frozen=True):
    """The parts that an initial ramdisk is made of.

    Attributes:
        packed: path of an initial ramdisk, "" for none.
        init: path of the first program, or of a folder that becomes the root; "" for none.
        modules: path of a folder of modules, "" for none.
        chosen: names of modules; none for all of the folder.
        looks_for_init: the kernel runs /init, and no word of its command line says otherwise.
    """

    packed: str = ""
    init: str = ""
    modules: str = ""
    chosen: Sequence[str] = ()
    looks_for_init: bool = True


def assembled(wanted: Ramdisk, release: str) -> bytes:
    """The bytes of an initial ramdisk, b"" for none.

    Args:
        wanted: what makes it.
        release: of the kernel.

    Raises:
        ImageError: a file cannot be read, or is none that the kernel could use.
    """
    packed = contents(wanted.packed) if wanted.packed else b""
    if wanted.packed and not packed:
        _refuse(wanted.packed, "the file is empty, an initial ramdisk is not")
    if not wanted.init and not wanted.modules:
        return packed
    root = RamdiskRoot()
    root.add_packed(packed, wanted.packed)
    entries: list[ArchiveEntry] = []
    if wanted.init:
        entries += _init_entries(wanted.init)
        root.add(entries)
        if wanted.looks_for_init or not os.path.isdir(wanted.init):
            root.check_init(wanted.init)
    if wanted.modules:
        tree = ModuleTree(wanted.modules, release)
        entries += tree.entries(wanted.chosen, root.resolved(b"lib") + b"/modules")
    added = archive(entries)
    # Some formats end at zeros, all are followed by them.
    return packed + bytes(_ALIGNMENT - len(packed) % _ALIGNMENT) * bool(packed) + added


def unpacked(wanted: Ramdisk) -> "RamdiskRoot":
    """The file system that a kernel makes of an initial ramdisk, but for its modules.

    Raises:
        ImageError: a file cannot be read.
    """
    root = RamdiskRoot()
    if wanted.packed:
        root.add_packed(contents(wanted.packed), wanted.packed)
    if wanted.init:
        root.add(_init_entries(wanted.init))
    return root


def _init_entries(path: str) -> list[ArchiveEntry]:
    if os.path.isdir(path):
        return tree_entries(path)
    folders = [ArchiveEntry(name, stat.S_IFDIR | 0o755) for name in _FOLDERS]
    return [*folders, ArchiveEntry(_INIT, stat.S_IFREG | 0o755, contents(path))]


class RamdiskRoot:
    """The file system that a kernel makes of archives, as far as it is known."""

    def __init__(self) -> None:
        self._modes: dict[bytes, int] = {}
        self._data: dict[bytes, bytes | memoryview] = {}
        self._is_known = True

    def mode(self, path: bytes) -> int | None:
        """Kind and permissions of what a path leads to; None where nothing is known there."""
        found = self.resolved(path)
        return stat.S_IFDIR if not found else self._modes.get(found)

    def content(self, path: bytes) -> bytes | None:
        """The content of the file that a path leads to; None where none is known there."""
        mode = self.mode(path)
        if mode is None or not stat.S_ISREG(mode):
            return None
        return bytes(self._data[self.resolved(path)])

    def add_packed(self, data: bytes, name: str) -> None:
        """Add what is in an initial ramdisk; of one of an older kind nothing is known."""
        for entry in initramfs_entries(data, name):
            self._add(os.fsencode(entry.path.strip("/")), entry.mode, entry.data)
        self._is_known = not data or bool(self._modes)

    def add(self, entries: Iterable[ArchiveEntry]) -> None:
        """Add what comes behind."""
        shared: dict[tuple[int, int], bytes] = {}
        for entry in entries:
            data = entry.data
            if entry.identity is not None:  # the first name of a file has the content
                data = shared.setdefault(entry.identity, data)
            self._add(entry.path, entry.mode, data)

    def _add(self, path: bytes, mode: int, data: bytes | memoryview) -> None:
        self._modes[path], self._data[path] = mode, data

    def resolved(self, path: bytes) -> bytes:
        """A path without symbolic links."""
        left = [part for part in path.split(b"/") if part]
        done: list[bytes] = []
        links = 0
        while left:
            part = left.pop(0)
            if part in (b".", b".."):
                del done[len(done) - (part == b"..") :]
                continue
            here = b"/".join((*done, part))
            if stat.S_ISLNK(self._modes.get(here, 0)) and links < _LINKS_MOST:
                links += 1
                target = bytes(self._data[here])
                done = [] if target.startswith(b"/") else done
                left = [each for each in target.split(b"/") if each] + left
            else:
                done.append(part)
        return b"/".join(done)

    def check_init(self, name: str) -> None:
        """Refuse what no kernel could run as its first program.

        Args:
            name: of the file or folder that it comes from, for messages.

        Raises:
            NotElfError: /init is missing, is no program, or needs what is not there.
        """
        path = self.resolved(_INIT)
        mode = self._modes.get(path)
        if mode is None:
            if self._is_known:
                _refuse(name, "there is no init in it, which a kernel runs first (or rdinit=)")
            return
        if not stat.S_ISREG(mode) or not mode & 0o111:
            _refuse(name, f"/{os.fsdecode(path)} is no file that may be executed: chmod +x")
        data = bytes(self._data[path])
        needed = _interpreter(data, name)
        for _ in range(_SCRIPTS_MOST):
            if not needed or not self._is_known:
                return
            inner = self.resolved(needed)
            mode = self._modes.get(inner)
            text = os.fsdecode(needed)
            if mode is None:
                kind = "a script" if data.startswith(b"#!") else "dynamically linked"
                _refuse(
                    name,
                    f"the first program is {kind} and needs {text}, which is not in the initial "
                    "ramdisk; --init takes a folder, too",
                )
            if not mode & 0o111:
                _refuse(name, f"{text}, which /init needs, may not be executed: chmod +x")
            again = bytes(self._data[inner])
            needed = _interpreter(again, text) if again.startswith(b"#!") else b""
        _refuse(name, f"more than {_SCRIPTS_MOST} scripts are needed to run /init")


def _interpreter(data: bytes, name: str) -> bytes:
    """The path of the program that a program needs to run; b"" for none.

    Raises:
        NotElfError: no kernel of x86-64 runs it.
    """
    if data.startswith(b"#!"):
        words = data[2:].split(b"\n", 1)[0].split()
        if not words:
            _refuse(name, "its first line #! names no program")
        return words[0]
    if not data.startswith(_ELF):
        _refuse(name, "the first program is neither an ELF program nor a script with #!")
    image = ElfImage(data, name)
    if image.machine not in _X86:
        _refuse(name, "a program for another architecture than x86-64")
    return os.fsencode(image.interpreter or "")


def _refuse(place: str, why: str) -> NoReturn:
    raise NotElfError(f"{place}: {why}")
