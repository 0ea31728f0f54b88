"""Source files as the front end and as the program call them."""

import filecmp
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from engine.errors import CommandError
from engine.guest.modules import Module
from engine.session.serve.dap.requests import DapSource

_ADDRESS: Final = re.compile(r"\s*(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})\s*")


def address_of(reference: str) -> int:
    """The address that a reference to memory or to an instruction is.

    Raises:
        CommandError: it is none.
    """
    match = _ADDRESS.fullmatch(reference)
    number = int(match[1], 0 if match[1][:2] in ("0x", "0X") else 10) if match else -1
    if not 0 <= number < 1 << 64:
        raise CommandError(f"{reference[:40]} is no address")
    return number


def _may_be(name: str, path: str) -> bool:
    """True unless the program's own file is here, and a file of the front end's is another."""
    try:
        here = os.path.isabs(name) and os.path.exists(name)
        return not here or filecmp.cmp(name, path, shallow=False)
    except OSError:  # one of them cannot be read
        return False


class SourceNames:
    """Finds files of the front end in the debug information, wherever the program was built."""

    def __init__(self, modules: Callable[[], Sequence[Module]]) -> None:
        """`modules` gives the files in the guest's memory."""
        self._modules = modules
        self._shown: dict[str, str] = {}

    def known(self, path: str) -> str:
        """The path by which the program knows a file of the front end's; itself if it does not."""
        for name in dict.fromkeys((path, os.path.realpath(path))):
            if any(module.lines.has_file(name) for module in self._modules()):
                self._shown.pop(name, None)
                if name != path:
                    self._shown[name] = path
                return name
        parts = path.strip("/").split("/")
        for at in range(1, len(parts)):
            found = self._ending_in("/".join(parts[at:]))
            if found:
                # Of several nobody knows which it is.
                if len(found) == 1 and _may_be(found[0], path):
                    self._shown[found[0]] = path
                    return found[0]
                break
        return path

    def _ending_in(self, end: str) -> list[str]:
        return list(
            dict.fromkeys(
                name
                for module in self._modules()
                if module.lines.has_file(end)
                for name in module.lines.files()
                if name == end or name.endswith("/" + end)
            )
        )

    def source(self, path: str) -> DapSource:
        """A file of the program's for the front end."""
        shown = self._shown.get(path, path)
        there = os.path.exists(shown)
        hint = "" if there else "deemphasize"
        return DapSource(os.path.basename(shown), shown, presentation_hint=hint)

    def lines(self, path: str, first: int, last: int) -> Iterator[int]:
        """The lines of a file that have code."""
        name = self.known(path)
        found: set[int] = set()
        for module in self._modules():
            if module.lines.has_file(name):
                found.update(module.lines.statements_of(name))
        return (line for line in sorted(found) if first <= line <= last)

    def all(self) -> Iterator[DapSource]:
        """All that there are, of the program and of libraries with debug information."""
        seen: set[str] = set()
        for module in self._modules():
            for name in module.lines.files():
                if name not in seen:
                    seen.add(name)
                    yield self.source(name)
