"""Guests that are no programs by themselves: mere names, and scripts.

PATH has the program of a name; the first line of a script names the one that runs it
(binfmt_script.c).
"""

import os
from shutil import which
from typing import Final, NamedTuple

from engine.errors import CommandError

_LINE: Final = 256
"""BINPRM_BUF_SIZE: bytes of a script that are looked at."""
_DEEP: Final = 5
"""Interpreters that are scripts themselves, and the last one that is not."""
_LINKS: Final = 40


class GuestStart(NamedTuple):
    """A program to start.

    Attributes:
        guest: its host path.
        args: its arguments.
        argv0: its name for itself, None for its path.
        shares: host paths that it sees beside others, and whether it may write there.
    """

    guest: str
    args: tuple[str, ...]
    argv0: str | None
    shares: tuple[tuple[str, bool], ...]


def found_by_path(start: GuestStart, root: str | None) -> GuestStart:
    """The same; or, if its guest is a mere name that is not here, the program that PATH has.

    A file of that name in the current directory comes first, unlike in a shell.

    Args:
        start: as the user wants it; its name for itself is the one that was typed.
        root: the guest's tree, in which PATH is looked up; None for the host's.
    """
    name = start.guest
    if not name or "/" in name or os.path.lexists(name):
        return start
    base = os.path.abspath(root).rstrip("/") if root is not None else ""
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = f"{base}{directory}/{name}"
        if directory.startswith("/") and os.path.isfile(path) and os.access(path, os.X_OK):
            return start._replace(guest=path, argv0=start.argv0 or name)
    return start


def hidden(name: str, root: str | None) -> str | None:
    """The program of PATH that a shell would run, where a file here of that name comes first."""
    if not name or "/" in name or root is not None or not os.path.exists(name):
        return None
    found = which(name)
    return None if found is None or os.path.samefile(found, name) else found


def interpreted(start: GuestStart, root: str | None, *, isolated: bool) -> GuestStart:
    """The same if it is a program, else its interpreter with the script's path as argument.

    Args:
        start: as the user wants it.
        root: the guest's tree; a script in it has its interpreter there.
        isolated: relative paths of the host mean nothing to the guest.

    Raises:
        CommandError: an interpreter is not there, or is a script again and again.
    """
    first = start.guest
    base = os.path.abspath(root).rstrip("/") if root is not None else ""
    for _ in range(_DEEP):
        path = os.path.abspath(start.guest)
        inside = root is not None and path.startswith(base + "/")
        words = _first_line(_followed(path, base if inside else ""))
        if not words:
            return start
        interpreter = os.fsdecode(words[0])
        place = base + interpreter if inside else interpreter
        if not os.path.lexists(place):
            raise CommandError(f"{start.guest}: its interpreter {interpreter} is not there")
        outside = path if isolated else start.guest
        script = path[len(base) :] if inside else outside
        seen = () if inside else ((path, False),)
        arguments = (*map(os.fsdecode, words[1:]), script, *start.args)
        start = GuestStart(place, arguments, interpreter, (*start.shares, *seen))
    raise CommandError(f"{first}: its interpreters are scripts themselves, again and again")


def _followed(path: str, base: str) -> str:
    """The file that symlinks lead to, in the tree below `base`."""
    for _ in range(_LINKS):
        if not os.path.islink(path):
            break
        target = os.readlink(path)
        path = base + target if target.startswith("/") else f"{os.path.dirname(path)}/{target}"
    return path


def _first_line(path: str) -> list[bytes]:
    """The interpreter and its one argument; nothing of a file that is no script."""
    try:
        if not os.path.isfile(path):
            return []
        with open(path, "rb") as file:
            head = file.read(_LINE)
    except OSError:
        return []
    if not head.startswith(b"#!"):
        return []
    words = head[2:].partition(b"\n")[0].strip(b" \t").split(maxsplit=1)
    return [word.strip(b" \t") for word in words]
