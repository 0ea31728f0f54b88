"""Patterns of paths, as a shell expands them (glob(7)): a star stays inside one name."""

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

_SIGNS: Final = re.compile(r"[*?\[]")


def matching_paths(pattern: str, entries: Callable[[str], Sequence[str]]) -> Iterator[str]:
    """The paths that match, in the order of their names.

    Args:
        pattern: absolute.
        entries: the names in a folder; none where it is none, or cannot be read.
    """
    yield from _below("/", [part for part in pattern.split("/") if part], entries)


def fixed_part(pattern: str) -> str:
    """The folders at the beginning of a pattern that are none themselves, with their slash."""
    sign = _SIGNS.search(pattern)
    end = len(pattern) if sign is None else sign.start()
    return pattern[: pattern.rfind("/", 0, end) + 1]


def _below(
    folder: str, parts: Sequence[str], entries: Callable[[str], Sequence[str]]
) -> Iterator[str]:
    """The paths in a folder that match the parts that are left of a pattern."""
    at = next((at for at, part in enumerate(parts) if _SIGNS.search(part)), None)
    if at is None:
        yield posixpath.join(folder, *parts)
        return
    folder = posixpath.join(folder, *parts[:at])
    part, rest = parts[at], parts[at + 1 :]
    wanted = re.compile(fnmatch.translate(part)).match
    for name in sorted(entries(folder)):
        # A star matches no dot at the beginning of a name.
        if wanted(name) and (part.startswith(".") or not name.startswith(".")):
            yield from _below(posixpath.join(folder, name), rest, entries)
