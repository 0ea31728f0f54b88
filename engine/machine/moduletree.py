"""A kernel's modules as entries of an initramfs: all of a tree, or some with what they need.

A tree that a package has just been unpacked to has no `modules.dep` and `modules.alias`, which
depmod makes at the package's installation. What is put into the initramfs gets them.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, NoReturn

from msgspec import Struct

from engine.errors import NotElfError
from engine.hostlimits import because_of
from engine.image.kernel.kernelelf import sections_of
from engine.image.kernel.packing import unpacked, unpacked_head
from engine.image.kernel.recognition import is_object, mapped
from engine.machine.cpioarchive import ArchiveEntry
from engine.machine.hosttree import MOST, contents, parents

_BELOW: Final = ("lib/modules", "usr/lib/modules")
_DEPENDENCIES, _ALIASES = b"modules.dep", b"modules.alias"
_BUILT_IN: Final = b"modules.builtin.modinfo"
_SUFFIXES: Final = (b".ko", b".ko.gz", b".ko.xz", b".ko.zst")
_FILE: Final = stat.S_IFREG | 0o644


class ModuleFacts(Struct, frozen=True):
    """The facts that a module has in its `.modinfo`.

    Attributes:
        depends: names of modules that have to be loaded before.
        soft: names or aliases of modules that are loaded as well where there are such.
        aliases: further names of it, with wildcards.
    """

    depends: tuple[str, ...]
    soft: tuple[str, ...]
    aliases: tuple[str, ...]


class ModuleTree:
    """The modules of one release in a folder of the host's.

    Attributes:
        folder: that has them.
    """

    def __init__(self, path: str, release: str) -> None:
        """Find the modules.

        Args:
            path: the folder of the release, a folder of such folders, or a root that has one in
                lib/modules.
            release: of the kernel.

        Raises:
            NotElfError: there are none.
        """
        self._release = release
        self.folder = _folder_of(path, release)
        found = _files_below(self.folder)
        self._paths = {_module_name(each): each for each in found if each.endswith(_SUFFIXES)}
        self._lists = [each for each in found if b"/" not in each and not each.endswith(_SUFFIXES)]
        if not self._paths:
            _refuse(path, "there are no modules")
        self._known: dict[str, ModuleFacts] = {}

    def entries(self, chosen: Sequence[str], at: bytes) -> list[ArchiveEntry]:
        """Entries of an initramfs.

        Args:
            chosen: names of modules, which bring along what they need; none for all modules.
            at: path of the archive that modules of all releases lie in.

        Raises:
            NotElfError: a chosen module is not there, a file is damaged, or all is too large.
        """
        base = at + b"/" + self._release.encode()
        names = self._needed(chosen) if chosen else sorted(self._paths)
        paths = sorted([*self._lists, *(self._paths[name] for name in names)])
        folders = {folder.path for path in paths for folder in parents(os.path.dirname(path))}
        made = {path: ArchiveEntry(path, stat.S_IFDIR | 0o755) for path in folders}
        room = MOST
        for path in paths:
            data = contents(os.path.join(os.fsencode(self.folder), path), room)
            room -= len(data)
            made[path] = ArchiveEntry(path, _FILE, data)
        if _DEPENDENCIES not in made:
            made[_DEPENDENCIES] = ArchiveEntry(_DEPENDENCIES, _FILE, b"".join(self._rows(names)))
        if _ALIASES not in made:
            made[_ALIASES] = ArchiveEntry(_ALIASES, _FILE, b"".join(self._alias_rows(names)))
        moved = (
            ArchiveEntry(base + b"/" + path, entry.mode, entry.data)
            for path, entry in sorted(made.items())
        )
        return [*parents(base), *moved]

    def _facts(self, name: str) -> ModuleFacts:
        found = self._known.get(name)
        if found is None:
            path = os.path.join(os.fsencode(self.folder), self._paths[name])
            found = self._known[name] = _facts_of(os.fsdecode(path))
        return found

    @cached_property
    def _aliases(self) -> dict[str, str]:
        """The module of each alias without wildcards."""
        return {
            alias: name
            for name in sorted(self._paths, reverse=True)
            for alias in self._facts(name).aliases
        }

    @cached_property
    def _built_in(self) -> frozenset[str]:
        """Names and aliases of what is in the kernel itself."""
        if _BUILT_IN not in self._lists:
            return frozenset()
        text = contents(os.path.join(os.fsencode(self.folder), _BUILT_IN))
        found = set()
        for field in text.split(b"\0"):
            name, _, value = field.decode("utf-8", "replace").partition(".")
            found.add(name)
            found.update((value.removeprefix("alias="),) if value.startswith("alias=") else ())
        return frozenset(found)

    def _needed(self, chosen: Iterable[str]) -> list[str]:
        """Modules with all that they need, directly or not."""
        wanted: dict[str, None] = {}
        waiting = [each for each in map(self._chosen, chosen) if each]
        while waiting:
            name = waiting.pop()
            if name in wanted:
                continue
            wanted[name] = None
            facts = self._facts(name)
            waiting += [each for each in facts.depends if each in self._paths]
            for soft in facts.soft:
                plain = _plain(soft)
                if soft in self._built_in or plain in self._built_in:
                    continue
                found = plain if plain in self._paths else self._aliases.get(soft)
                waiting += [found] if found is not None else []
        return sorted(wanted)

    def _chosen(self, name: str) -> str:
        """The name of a module as kernels write it; "" for one that is built in."""
        plain = _plain(name.removesuffix(".ko"))
        if plain in self._paths:
            return plain
        if plain not in self._built_in:
            _refuse(self.folder, f"there is no module {name}")
        return ""

    def _rows(self, names: Iterable[str]) -> Iterator[bytes]:
        """Lines of `modules.dep`: a module and what it needs, whatever needs another before it."""
        for name in names:
            done: dict[str, None] = {}
            seen = {name}
            path = [(name, iter(self._facts(name).depends))]
            while path:
                at, left = path[-1]
                needed = next((each for each in left if each in self._paths), None)
                if needed is None:
                    done[at] = None
                    path.pop()
                elif needed not in seen:
                    seen.add(needed)
                    path.append((needed, iter(self._facts(needed).depends)))
            needs = b"".join(b" " + self._paths[each] for each in list(done)[-2::-1])
            yield self._paths[name] + b":" + needs + b"\n"

    def _alias_rows(self, names: Iterable[str]) -> Iterator[bytes]:
        for name in names:
            for alias in self._facts(name).aliases:
                yield f"alias {alias} {name}\n".encode()


def _files_below(folder: str) -> list[bytes]:
    """The regular files below a folder, as paths from there; links are no part of a tree.

    Raises:
        NotElfError: a folder cannot be read.
    """

    def refuse(error: OSError) -> None:
        _refuse(error.filename, because_of(error))

    root = os.fsencode(folder)
    return [
        os.path.relpath(os.path.join(place, name), root)
        for place, _, names in os.walk(root, onerror=refuse)
        for name in names
        if not os.path.islink(os.path.join(place, name))
    ]


def _folder_of(path: str, release: str) -> str:
    """The folder of a release.

    Raises:
        NotElfError: there is none, or one of other releases.
    """
    if not os.path.isdir(path):
        _refuse(path, "no folder" if os.path.exists(path) else "No such file or directory")
    for place in (release, *(os.path.join(below, release) for below in _BELOW)):
        inner = os.path.join(path, place)
        if os.path.isdir(inner):
            return inner
    if not os.path.isdir(os.path.join(path, "kernel")):
        _refuse(path, f"there are no modules of {release}")
    own = os.path.basename(os.path.realpath(path))
    if own != release and own[:1].isdigit():
        _refuse(path, f"modules of {own}, and the kernel is {release}")
    return path


def _facts_of(path: str) -> ModuleFacts:
    try:
        packed = mapped(path)[0]
    except OSError as error:
        _refuse(path, because_of(error))
    if not is_object(unpacked_head(packed, path)):
        _refuse(path, "no module")
    data = unpacked(packed, path)
    fields: list[tuple[str, str]] = []
    for section in sections_of(data, path):
        if section.name == ".modinfo":
            text = bytes(data[section.offset : section.offset + section.size])
            for field in text.split(b"\0"):
                key, _, value = field.decode("utf-8", "replace").partition("=")
                fields.append((key, value))
    depends = [name for key, value in fields if key == "depends" for name in value.split(",")]
    soft = [
        word
        for key, value in fields
        if key == "softdep"
        for word in value.split()
        if not word.endswith(":")
    ]
    aliases = [value for key, value in fields if key == "alias"]
    return ModuleFacts(
        tuple(_plain(each) for each in depends if each), tuple(soft), tuple(aliases)
    )


def _module_name(path: bytes) -> str:
    return _plain(os.path.basename(path).split(b".ko")[0].decode("utf-8", "replace"))


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _refuse(place: str, why: str) -> NoReturn:
    raise NotElfError(f"{place}: {why}")
