"""Paths of the guest's file system that a pattern means, as glob(3) finds them."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from os import fsdecode, fsencode
from typing import Final

from engine.linux.errno import LinuxError
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.vfs import Directory

_SIGNS: Final = frozenset("*?[")
_HIDDEN: Final = "."


def matching_paths(fs: FileSystem, directory: str, pattern: str) -> Iterator[str]:
    """The paths that are there, as they would be typed, in the order of their names.

    Args:
        fs: the guest's.
        directory: where relative paths start.
        pattern: with at least one slash; `*` does not cross one.
    """
    start = "" if pattern.startswith("/") else f"{directory}/"
    yield from _below(fs, start, "", pattern.split("/"))


def _below(fs: FileSystem, start: str, typed: str, parts: list[str]) -> Iterator[str]:
    """The paths behind one that is typed already."""
    name, *rest = parts
    if not _SIGNS & set(name):
        names = [name] if rest or _is_there(fs, f"{start}{typed}{name}") else []
    else:
        hidden = name.startswith(_HIDDEN)
        found = _names(fs, f"{start}{typed}" or "/")
        names = sorted(
            each
            for each in found
            if fnmatchcase(each, name) and each.startswith(_HIDDEN) == hidden
        )
    for each in names:
        if rest:
            yield from _below(fs, start, f"{typed}{each}/", rest)
        else:
            yield f"{typed}{each}"


def _is_there(fs: FileSystem, path: str) -> bool:
    try:
        return fs.walk(fs.root, fsencode(path)).node is not None
    except LinuxError:
        return False


def _names(fs: FileSystem, path: str) -> list[str]:
    """The entries of a directory; none where it is none that can be read."""
    try:
        node = fs.walk(fs.root, fsencode(path)).node
        if not isinstance(node, Directory):
            return []
        return [fsdecode(entry[0]) for entry in node.listing()]
    except LinuxError:
        return []
