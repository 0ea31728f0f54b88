"""Where the guest's program is, on the host and in the guest."""

import os
from dataclasses import dataclass
from typing import Final

from engine.errors import ImageError

_MAX_LINKS: Final = 40


@dataclass(frozen=True, slots=True)
class ProgramPaths:
    """One program by its three names.

    Attributes:
        host: the file to open on the host; symlinks inside a root stay inside it.
        guest: the absolute path the guest knows it by.
        real: the same with symlinks resolved (/proc/self/exe).
        typed: the guest path as the user wrote it, relative perhaps (AT_EXECFN and argv[0]).
    """

    host: str
    guest: str
    real: str
    typed: str


def locate(guest: str, root: str | None) -> ProgramPaths:
    """Find a program given by a host path, in or outside the guest's root.

    Raises:
        ImageError: symlinks inside the root go round in circles.
    """
    path = os.path.abspath(guest)
    if root is not None:
        base = os.path.abspath(root).rstrip("/")
        if path.startswith(base + "/"):
            inside = path[len(base) :]
            real = _resolve(base, inside)
            return ProgramPaths(base + real, inside, real, inside if base else guest)
    return ProgramPaths(guest, path, os.path.realpath(path), guest)


def _resolve(root: str, path: str) -> str:
    """Follow symlinks as a process whose root directory is `root` would."""
    todo = path.split("/")[::-1]
    done: list[str] = []
    links = 0
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if name == "..":
            if done:
                done.pop()
            continue
        here = "/".join((root, *done, name))
        if not os.path.islink(here):
            done.append(name)
            continue
        links += 1
        if links > _MAX_LINKS:
            raise ImageError(f"{root}{path}: too many symbolic links")
        target = os.readlink(here)
        if target.startswith("/"):
            done = []
        todo.extend(target.split("/")[::-1])
    return "/" + "/".join(done)
