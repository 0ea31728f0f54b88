"""Lines of source files, where debug information names them and they are there to be read."""

import os
import stat
from functools import lru_cache
from typing import Final

_LARGEST: Final = 4 << 20


class SourceFiles:
    """Reads source files once each.

    The names come from the guest's file, which may be hostile: only regular files of the
    user's own reach are opened, and nothing of them leaves the screen.
    """

    def __init__(self) -> None:
        self._lines = lru_cache(maxsize=64)(_read)

    def lines(self, path: str) -> tuple[str, ...]:
        """All lines; () where they cannot be read."""
        return self._lines(path)

    def line(self, path: str, number: int) -> str:
        """A line without its indentation's end; "" where it cannot be read."""
        lines = self._lines(path)
        return lines[number - 1].rstrip().expandtabs(4) if 0 < number <= len(lines) else ""


def _read(path: str) -> tuple[str, ...]:
    for name in (path, os.path.basename(path)):
        try:
            info = os.stat(name)
            if not stat.S_ISREG(info.st_mode) or info.st_size > _LARGEST:
                continue
            with open(name, encoding="utf-8", errors="replace") as file:
                return tuple(file.read().split("\n"))
        except (OSError, ValueError):
            continue
    return ()
