"""The files a program consists of, found as its dynamic loader would find them.

Nothing runs: names are looked up in the guest's tree by the rules of ld.so(8), "DT_NEEDED"
entries breadth first. What a program opens later with dlopen is not among them.
"""

import os
import posixpath
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from engine.arch.base import Arch
from engine.errors import ImageError
from engine.image import ElfImage
from engine.linux.errno import LinuxError
from engine.linux.fs.attributes import MAY_READ
from engine.linux.fs.data import MmapSource
from engine.linux.fs.filesystem import FileSystem
from engine.linux.images import ProgramImages

if TYPE_CHECKING:
    from engine.image import Lines, SymbolTable
    from engine.image.variables import Variables

IMAGE_MAX: Final = 1 << 30
"""Larger files are not read as images."""

_DT_RPATH, _DT_RUNPATH, _DT_STRTAB, _DT_STRSZ = 15, 29, 5, 10
_SUFFIX: Final = re.compile(r"\.so(\.[0-9A-Za-z_.]+)?$")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_MAX_LIBRARIES: Final = 4096
CACHE: Final = "/etc/ld.so.cache"
"""Guest path of the loader's cache."""
_CACHE_MAGIC: Final = b"glibc-ld.so.cache1.1"


class ProgramFile:
    """An ELF file of a program.

    Attributes:
        path: guest path as the loader spells it.
        image: the file.
        paths: all guest paths it is known by; a mapping shows one of them.
        inode: (device, inode), by which Linux knows the files of uprobes; None where only paths
            are known.
    """

    def __init__(
        self,
        path: str,
        image: ElfImage,
        paths: frozenset[str] = frozenset(),
        inode: tuple[int, int] | None = None,
        pinned: object = None,
    ) -> None:
        """Describe a file; as long as `pinned` lives no other file gets its inode."""
        self.inode = inode
        self._pinned = pinned
        self.path = path
        self.image = image
        self.paths = paths

    @cached_property
    def symbols(self) -> "SymbolTable":
        """The file's symbols, indexed at first use."""
        from engine.image.symbols import SymbolTable  # see `engine.image`

        return self.image.once(SymbolTable)

    @cached_property
    def lines(self) -> "Lines":
        """The file's source lines, read at first use."""
        from engine.image.lines import Lines

        return self.image.once(Lines)

    @cached_property
    def variables(self) -> "Variables":
        """The file's variables, read at first use."""
        from engine.image.variables import Variables

        return Variables(self.image)

    @cached_property
    def names(self) -> frozenset[str]:
        """Names for LIB in `LIB:SYM`: file name, soname, both without their suffixes."""
        full = {posixpath.basename(path) for path in (self.path, *self.paths)}
        full.add(posixpath.basename(self.image.soname or self.path))
        return frozenset(full | {_SUFFIX.sub("", name) for name in full})


class ProgramTree(Protocol):
    """The tree of files in which a program and its libraries are found."""

    def inode(self, path: str) -> tuple[int, int] | None:
        """(device, inode) of a path; None where nothing is."""

    def open(self, path: str) -> ProgramFile | None:
        """An ELF file; None if nothing readable is there.

        Raises:
            ImageError: it is no ELF file that can be loaded.
        """

    def problem(self, path: str) -> str:
        """Why no uprobe can be in a file: FILE_NOT_FOUND, NO_REGULAR_FILE; "" if one can."""

    def entries(self, path: str) -> Sequence[str]:
        """The names in a folder; none where it is none, or cannot be read."""

    @property
    def cached_libraries(self) -> Mapping[str, tuple[str, ...]]:
        """The entries of the loader's cache: soname to paths."""


class GuestTree:
    """Reads files of the guest's file system; a `ProgramTree`."""

    def __init__(self, fs: FileSystem, images: ProgramImages) -> None:
        """Read through `fs`, as the guest itself would.

        Args:
            fs: the guest's.
            images: the ELF files that were read already, by whoever it was.
        """
        self._fs = fs
        self._images = images

    def inode(self, path: str) -> tuple[int, int] | None:
        """(device, inode) of a path; None where nothing is."""
        try:
            node = self._fs.walk(self._fs.root, path.encode(errors="surrogateescape")).node
            return None if node is None else self._fs.mapped_inode(node, node.stat())
        except (LinuxError, UnicodeEncodeError):
            return None

    def _source(self, path: bytes) -> tuple[MmapSource, str] | None:
        """A regular file's contents, and its path without symlinks; None where none is."""
        try:
            place = self._fs.walk(self._fs.root, path)
            node = place.node
            if node is None or node.is_directory:
                return None
            file = self._fs.open_place(place, 0)
            if not file.is_regular:
                return None
            source = file.mmap_source()
            if source.size > IMAGE_MAX:
                return None
            resolved = place.parent.path_of(place.name)
            return source, resolved.decode(errors="surrogateescape")
        except LinuxError:
            return None

    def open(self, path: str) -> ProgramFile | None:
        """An ELF file; None if nothing readable is there.

        Raises:
            ImageError: it is no ELF file that can be loaded.
        """
        found = self._source(path.encode(errors="surrogateescape"))
        if found is None:
            return None
        source, resolved = found
        root = os.fsdecode(self._fs.view.root or b"")
        try:
            image = self._images.open(source, resolved, root)
        except LinuxError:
            return None
        return ProgramFile(path, image, frozenset((path, resolved)), self.inode(path), source)

    def content(self, path: str) -> bytes | None:
        """A regular file's content; None if nothing readable is there."""
        found = self._source(os.fsencode(path))
        try:
            return None if found is None else found[0].read(0, found[0].size)
        except LinuxError:
            return None

    def problem(self, path: str) -> str:
        """Why no uprobe can be in a file: FILE_NOT_FOUND, NO_REGULAR_FILE; "" if one can."""
        try:
            node = self._fs.walk(self._fs.root, path.encode(errors="surrogateescape")).node
        except (LinuxError, UnicodeEncodeError):
            node = None
        if node is None:
            return "FILE_NOT_FOUND"
        return "" if stat.S_ISREG(node.kind) else "NO_REGULAR_FILE"

    def entries(self, path: str) -> Sequence[str]:
        """The names in a folder; none where it is none, or cannot be read."""
        try:
            folder = self._fs.directory(os.fsencode(path))
            if not folder.may(MAY_READ):
                return ()
            return [os.fsdecode(name) for name, *_ in folder.listing()]
        except LinuxError:
            return ()

    @cached_property
    def cached_libraries(self) -> Mapping[str, tuple[str, ...]]:
        """The entries of /etc/ld.so.cache: soname to paths."""
        found = self._source(CACHE.encode())
        try:
            return parse_cache(found[0].read(0, found[0].size)) if found else {}
        except LinuxError:
            return {}


class CarriedFiles(Protocol):
    """Files that a kernel gives its own programs."""

    @property
    def files(self) -> Mapping[str, ProgramFile]:
        """ELF files by path."""

    def named(self, name: str) -> ProgramFile | None:
        """The one that LIB in `LIB:SYM` means."""


class _Needed(Struct, frozen=True):
    """A name to look for, and who asks: the asker comes first, the program last."""

    name: str
    askers: tuple[ProgramFile, ...]


class Program:
    """The guest's own file and the libraries it starts with, in the order of lookup.

    Attributes:
        main: the guest's own file.
        missing: names of libraries that were not found.
        assumed: paths that names of libraries were taken for which no loader looks for there.
    """

    def __init__(
        self,
        main: ProgramFile,
        arch: Arch,
        open_file: Callable[[str], ProgramFile | None],
        *,
        environment: Mapping[str, str],
        cwd: str = "/",
        cache: Callable[[], Mapping[str, tuple[str, ...]]] = dict,
        problem: Callable[[str], str] = lambda path: "",
        carried: CarriedFiles | None = None,
        vdso: ProgramFile | None = None,
        entries: Callable[[str], Sequence[str]] = lambda path: (),
    ) -> None:
        """Libraries are looked for when they are first asked for.

        Args:
            main: the guest's own file.
            arch: its architecture.
            open_file: opens a guest path; None where nothing is.
            environment: the guest's: LD_LIBRARY_PATH and LD_PRELOAD count.
            cwd: the guest's working directory, for relative paths.
            cache: the loader's cache, soname to paths.
            problem: why no uprobe can be in a file, see `ProgramTree.problem`.
            carried: of a kernel: files that it gives its own programs; a path means these first.
            vdso: what the guest's kernel maps into the program; None for none.
            entries: the names in a folder, for patterns of paths.
        """
        self.main = main
        self.missing: list[str] = []
        self.assumed: dict[str, str] = {}
        self._arch = arch
        self._open = open_file
        self._environment = environment
        self._cwd = cwd
        self._cache = cache
        self._problem = problem
        self._carried = carried
        self._vdso = vdso
        self._entries = entries
        self._opened: dict[str, ProgramFile | None] = {}

    @cached_property
    def files(self) -> tuple[ProgramFile, ...]:
        """The program, then its libraries in load order, the interpreter among them."""
        interpreter = self.main.image.interpreter
        loader = self._file(interpreter) if interpreter else None
        found = [self.main]
        names: dict[str, ProgramFile] = {}
        if loader is not None:
            names[loader.image.soname or posixpath.basename(loader.path)] = loader
        preload = re.split(r"[\s:]+", self._environment.get("LD_PRELOAD", ""))
        dynamic = interpreter is not None or bool(self.main.image.needed)
        todo = [_Needed(name, (self.main,)) for name in preload if name and dynamic]
        todo += [_Needed(name, (self.main,)) for name in self.main.image.needed]
        for wanted in todo:  # grows while it is walked: breadth first
            if len(found) > _MAX_LIBRARIES:
                break
            library = names.get(wanted.name) or self._find(wanted)
            if library is None:
                if wanted.name not in self.missing:
                    self.missing.append(wanted.name)
                continue
            names[wanted.name] = library
            if library.image.soname:
                names.setdefault(library.image.soname, library)
            if library in found:
                continue
            found.append(library)
            askers = (library, *wanted.askers)
            todo.extend(_Needed(name, askers) for name in library.image.needed)
        if loader is not None and loader not in found:
            found.append(loader)
        return tuple(found)

    @property
    def searched(self) -> tuple[ProgramFile, ...]:
        """Files in which a symbol without LIB is looked for: `files`, and at last the vDSO."""
        return self.files if self._vdso is None else (*self.files, self._vdso)

    def named(self, name: str) -> ProgramFile | None:
        """The file that LIB in `LIB:SYM` means: the first in load order.

        Of a kernel a file that it gives its own programs comes before those.
        """
        carried = None if self._carried is None else self._carried.named(name)
        if carried is not None:
            return carried
        for file in self.searched:
            if name in file.names:
                return file
        return None

    def later(self, name: str) -> ProgramFile | None:
        """The library that LIB means if the program does not begin with it.

        It may be opened later (dlopen), or by another program of the guest's: the one that the
        loader would find by its file name, with a suffix or without; then one in the current
        directory, or beside the program and its libraries, which is opened by its path.
        """
        asked = (name, *(key for key in self._cache() if _SUFFIX.sub("", key) == name))
        for each in (*asked, f"{name}.so"):
            found = self._find(_Needed(each, (self.main,))) if "/" not in each else None
            if found is not None:
                return found
        folders = (self._cwd, *(posixpath.dirname(file.path) for file in self.files))
        for folder in dict.fromkeys(folders) if "/" not in name else ():
            for each in (name, f"{name}.so"):
                found = self._file(f"{folder}/{each}")
                if found is not None:
                    self.assumed[name] = found.path
                    return found
        return None

    def at_path(self, path: str) -> ProgramFile | None:
        """A file by its guest path, one of the program's own or any other.

        Raises:
            ImageError: what is there is no ELF file that can be loaded.
        """
        absolute = self._absolute(path)
        if self._vdso is not None and path == self._vdso.path:
            return self._vdso
        if self._carried is not None and path in self._carried.files:
            return self._carried.files[path]
        for file in (self.main, *self._opened.values()):
            if file is not None and (path in file.paths or absolute in file.paths):
                return file
        return self._file(absolute, strict=True)

    def matching(self, pattern: str) -> Iterator[tuple[str, ProgramFile]]:
        """The ELF files of the guest's machine whose path matches a pattern, each once.

        Each comes with its path as one would type it: relative if the pattern is.
        """
        from engine.session.program.file_globs import (
            fixed_part,
            matching_paths,
        )  # few are patterns

        found: list[ProgramFile] = []
        stem = fixed_part(pattern)
        start = len(self._absolute(stem or ".").rstrip("/")) + 1
        for path in matching_paths(self._absolute(pattern), self._entries):
            file = self._file(path)
            if file is not None and file not in found:
                found.append(file)
                yield stem + path[start:], file

    def paths(self, typed: str) -> Iterator[str]:
        """The paths of the guest that begin like this, folders with a slash behind them."""
        folder, _, begun = typed.rpartition("/")
        for name in sorted(self._entries(self._absolute(f"{folder}/"))):
            if name.startswith(begun) and (begun or not name.startswith(".")):
                path = f"{folder}/{name}"
                is_folder = self._problem(self._absolute(path)) == "NO_REGULAR_FILE"
                yield f"{path}/" if is_folder else path

    def problem(self, path: str) -> str:
        """Why no uprobe can be in a file: FILE_NOT_FOUND, NO_REGULAR_FILE; "" if one can."""
        absolute = self._absolute(path)
        if path in self.main.paths or absolute in self.main.paths:
            return ""
        if self._carried is not None and path in self._carried.files:
            return ""
        return self._problem(absolute)

    def _absolute(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self._cwd, path))

    # -- the loader's search -----------------------------------------------------

    def _find(self, wanted: _Needed) -> ProgramFile | None:
        if "/" in wanted.name:
            asker = wanted.askers[0]
            return self._file(posixpath.join(self._cwd, self._expand(wanted.name, asker)))
        for folder in self._folders(wanted.askers):
            found = self._file(posixpath.join(self._cwd, folder, wanted.name))
            if found is not None:
                return found
        for path in self._cache().get(wanted.name, ()):
            if (found := self._file(path)) is not None:
                return found
        for folder in self._default_folders():
            if (found := self._file(f"{folder}/{wanted.name}")) is not None:
                return found
        return None

    def _folders(self, askers: Sequence[ProgramFile]) -> Iterator[str]:
        """Folders before the loader's own: RPATH of the askers, environment, RUNPATH."""
        asker = askers[0]
        runpath = self._paths(asker, _DT_RUNPATH)
        if not runpath:
            for file in askers:
                if not self._paths(file, _DT_RUNPATH):
                    yield from self._paths(file, _DT_RPATH)
        for folder in re.split("[:;]", self._environment.get("LD_LIBRARY_PATH", "")):
            if folder:
                yield self._expand(folder, asker)
        yield from runpath

    def _paths(self, file: ProgramFile, tag: int) -> list[str]:
        index = file.image.dynamic_value(tag)
        table = file.image.dynamic_value(_DT_STRTAB)
        if index is None or table is None:
            return []
        size = min(file.image.dynamic_value(_DT_STRSZ) or 0, 1 << 24)
        raw = file.image.read_vaddr(table + index, max(size - index, 0)).partition(b"\0")[0]
        text = raw.decode(errors="surrogateescape")
        return [self._expand(part, file) for part in text.split(":") if part]

    def _expand(self, path: str, file: ProgramFile) -> str:
        """Replace $ORIGIN, $LIB and $PLATFORM (ld.so(8), "Dynamic string tokens")."""
        origin = posixpath.dirname(max(file.paths, default=file.path, key=len))
        if file is self.main:
            origin = posixpath.dirname(file.path)
        values = {
            "ORIGIN": origin,
            "LIB": f"lib/{self._triplet}",
            "PLATFORM": self._arch.linux.platform.decode(),
        }
        return _VARIABLE.sub(lambda match: values.get(match[1] or match[2], match[0]), path)

    @property
    def _triplet(self) -> str:
        return f"{self._arch.linux.machine}-linux-gnu"

    def _default_folders(self) -> tuple[str, ...]:
        machine, wide = self._arch.linux.machine, f"lib{self._arch.bits}"
        folders = (f"lib/{self._triplet}", f"lib/{machine}-linux-musl", wide, "lib", "local/lib")
        return tuple(f"{top}/{folder}" for folder in folders for top in ("", "/usr"))

    def _file(self, path: str, *, strict: bool = False) -> ProgramFile | None:
        path = posixpath.normpath(path)
        if path in self.main.paths:
            return self.main
        if path not in self._opened:
            try:
                found = self._open(path)
            except ImageError:
                if strict:
                    raise
                found = None
            if found is not None:
                known = (file for file in self._opened.values() if file is not None)
                found = next((file for file in known if file.paths & found.paths), found)
            self._opened[path] = found
        file = self._opened[path]
        if file is not None and not strict and file.image.machine != self._arch.elf_machine:
            return None  # ld.so goes on looking past files for other machines
        return file


def parse_cache(data: bytes) -> dict[str, tuple[str, ...]]:
    """Read the loader's cache (glibc, sysdeps/generic/dl-cache.h: struct cache_file_new)."""
    start = data.find(_CACHE_MAGIC)
    if start < 0:
        return {}
    head, step = start + 48, 24
    count = int.from_bytes(data[start + 20 : start + 24], "little")
    found: dict[str, tuple[str, ...]] = {}

    def text(at: int) -> str:
        end = data.find(b"\0", at)
        return data[at:end].decode(errors="surrogateescape") if at and end > at else ""

    for number in range(min(count, (len(data) - head) // step)):
        at = head + number * step
        key = text(start + int.from_bytes(data[at + 4 : at + 8], "little"))
        value = text(start + int.from_bytes(data[at + 8 : at + 12], "little"))
        hwcap = int.from_bytes(data[at + 16 : at + 24], "little")
        if key and value and not hwcap:
            found[key] = (*found.get(key, ()), value)
    return found
