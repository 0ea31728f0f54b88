"""The files that a guest's kernel makes itself: those of /proc, /sys and /dev."""

import stat
from typing import Final

from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.vfs import Directory

_DEEPEST: Final = 12


def entries_below(fs: FileSystem, path: bytes, numbered: str) -> list[str]:
    """Paths below a directory, without its own; a directory without entries ends in a slash.

    Args:
        fs: the guest's tree.
        path: of the directory.
        numbered: what stands for the numbers of processes; such a directory is not gone into.
    """
    top = fs.directory(path)
    return _below(top, "", numbered, _DEEPEST)


def _below(directory: Directory, prefix: str, numbered: str, deepest: int) -> list[str]:
    found: list[str] = []
    for name, _, kind in directory.listing():
        path = prefix + name.decode()
        if name.isdigit():
            found.append(prefix + numbered)
            continue
        node = directory.lookup(name) if kind == stat.S_IFDIR else None
        below = (
            _below(node, path + "/", numbered, deepest - 1)
            if isinstance(node, Directory) and deepest
            else []
        )
        found += below or [path + "/" * (kind == stat.S_IFDIR)]
    return list(dict.fromkeys(found))
