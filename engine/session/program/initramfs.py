"""The programs in the initramfs of a kernel that is a guest: user-mode Linux.

In the processes that run them their pages are shared with the kernel's memory and have no names;
which file they are of is told by what is in them.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from engine.errors import GuestFaultError, ImageError
from engine.guest.mapping import Mapping
from engine.guest.memory import Memory
from engine.image.elf import ElfImage
from engine.image.filepages import PAGE, FilePage, FilePages
from engine.image.kernel.initramfs import initramfs_files
from engine.session.program.libraries import GuestTree, ProgramFile

_OPTION: Final = "initrd="
_ELF: Final = b"\x7fELF"


class InitramfsFiles:
    """The programs and libraries in the kernel's initramfs, by path and by content.

    Satisfies `engine.session.program.libraries.CarriedFiles`.

    Attributes:
        absent: reads a page that a program has, but not yet in its process's memory; b"" for none.
    """

    def __init__(self, path: str, tree: GuestTree, start: str) -> None:
        """Read nothing before the first question.

        Args:
            path: of the initramfs, as the kernel is told it.
            tree: the files that the kernel sees.
            start: guest path of the directory that it begins in.
        """
        self._path, self._tree, self._start = path, tree, start
        self.absent: Callable[[Memory, int], bytes] = lambda memory, at: b""

    @cached_property
    def files(self) -> dict[str, ProgramFile]:
        """ELF files by path."""
        found: dict[str, ProgramFile] = {}
        for path, image in self._images():
            found[path] = ProgramFile(path, image, frozenset((path,)))
        return found

    def named(self, name: str) -> ProgramFile | None:
        """The file that LIB in `LIB:SYM` means."""
        return next((file for file in self.files.values() if name in file.names), None)

    def _images(self) -> Iterator[tuple[str, ElfImage]]:
        data = self._tree.content(os.path.join(self._start, self._path))
        try:
            for file in initramfs_files(data or b"", self._path):
                if bytes(file.data[: len(_ELF)]) != _ELF:
                    continue
                try:
                    yield file.path, ElfImage.from_bytes(bytes(file.data), file.path)
                except ImageError:
                    continue
        except ImageError:
            return  # the kernel will say so

    @cached_property
    def _pages(self) -> FilePages:
        return FilePages((path, file.image) for path, file in self.files.items())

    def page(self, memory: Memory, mapping: Mapping | None, at: int) -> FilePage | None:
        """The page of a file that stands at an address, which is a page's."""
        if mapping is not None and not mapping.shared:
            return self._pages.at(mapping.name, mapping.offset + at - mapping.start)

        def beside(by: int) -> bytes:
            try:
                return memory.peek(at + by, PAGE)
            except GuestFaultError:
                return self.absent(memory, at + by)

        data = beside(0)
        return self._pages.showing(data, beside) if data else None


def initramfs_of(words: Sequence[str], tree: GuestTree, start: str) -> InitramfsFiles | None:
    """The initramfs that a kernel's words name; None where they name none."""
    named = [word for word in words if word.startswith(_OPTION)]
    return InitramfsFiles(named[-1].removeprefix(_OPTION), tree, start) if named else None
