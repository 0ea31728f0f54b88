"""The types `%pd` and `%pD`: names of a dentry's and a file's path, rewritten as strings."""

from collections.abc import Sequence

from msgspec import Struct

from engine.errors import UnloggedError

_ROOM = 256
"""Bytes for all rewritten words, each with its end (MAX_DENTRY_ARGS_LEN)."""


class DentryOffsets(Struct, frozen=True):
    """The members that the types look at.

    Attributes:
        name: bytes to `d_name.name` in a `struct dentry`.
        dentry: bytes to `f_path.dentry` in a `struct file`.
    """

    name: int
    dentry: int


def dentry_words(
    indexed: Sequence[tuple[int, str]], offsets: DentryOffsets | None
) -> list[tuple[int, str]]:
    """The words, those with one of the types as the kernel rewrites them.

    Raises:
        UnloggedError: the kernel has no room for them, or the members are not known.
    """
    found: list[tuple[int, str]] = []
    room = _ROOM
    for index, word in indexed:
        if not word.endswith((":%pd", ":%pD")):
            found.append((index, word))
            continue
        if offsets is None:
            raise UnloggedError(f"{word}: the image does not tell the members of struct dentry")
        name, equals, body = word[:-4].partition("=")
        if not equals:
            name, body = "", name
        if word[-1] == "D":
            body = f"+{offsets.dentry:#x}({body})"
        changed = f"{name}{equals}+0x0(+{offsets.name:#x}({body})):string"
        if len(changed) >= room:
            raise UnloggedError(f"{word}: no room for what it becomes", "ENOMEM")
        room -= len(changed) + 1
        found.append((index, changed))
    return found
