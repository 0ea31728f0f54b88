"""The files that the programs of a kernel run, which is a guest: user-mode Linux.

In the processes that run them their pages are shared with the kernel's memory and have no names.
The kernel itself knows what it has mapped: which file, under which path, and its content as far as
that is in memory. Where its code is otherwise than is known, what is in a page tells the files of
the initramfs.
"""

from collections.abc import Mapping as Table
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.errors import GuestFaultError, ImageError
from engine.guest.mapping import Mapping
from engine.guest.memory import Memory
from engine.guest.modules import Module
from engine.image.elf import ElfImage
from engine.image.filepages import PAGE, FilePage
from engine.session.guest.kernel_files import KernelFiles, MappedArea
from engine.session.program.libraries import ProgramFile

if TYPE_CHECKING:
    from engine.session.guest.loading import LoadedGuest

_KEPT: Final = 64
"""Files, and address spaces of which pages are known, at a time."""
_LARGEST: Final = 1 << 28
"""Bytes of a file that is read, and of all that are kept."""
_ODD: Final = 1024
"""Pages that are not as their file is, known of each."""


class _FoundFile(Struct):
    """A file as it was read from the kernel's memory.

    Attributes:
        size: bytes of it.
        image: it; None where it is no ELF file.
        odd: hashes of pages that programs have of it which are otherwise.
    """

    size: int
    image: ElfImage | None
    odd: set[int]

    def shows(self, offset: int, data: bytes) -> bool:
        """True if a page is of it as it was read, or is known not to be."""
        if self.image is None:
            return False
        same = self.image.data(offset, PAGE).ljust(PAGE, b"\0") == data
        return same or hash(data) in self.odd


class UserFiles:
    """The programs and libraries of a kernel's programs, by path and by what has them mapped.

    Satisfies `engine.guest.modules.FilesByContent` and `engine.session.program.libraries.
    CarriedFiles`.
    """

    def __init__(self, guest: "LoadedGuest") -> None:
        """Start for a guest that has not run yet."""
        self._guest = guest
        self._carried = guest.initramfs
        self._read: dict[tuple[int, str], _FoundFile] = {}
        self._modules: dict[tuple[str, ElfImage, int], Module] = {}
        self._shown: dict[Memory, tuple[object, dict[int, FilePage]]] = {}
        self._seen: dict[str, ProgramFile] = {}

    # -- by path --------------------------------------------------------------------------

    @property
    def files(self) -> Table[str, ProgramFile]:
        """ELF files by path: those of the initramfs, and those that programs have mapped."""
        carried = {} if self._carried is None else self._carried.files
        return {**self._seen, **carried} if self._seen else carried

    def named(self, name: str) -> ProgramFile | None:
        """The file that LIB in `LIB:SYM` means."""
        return next((file for file in self.files.values() if name in file.names), None)

    def has(self, path: str, image: ElfImage) -> bool:
        """True for one of these files, and not one of the same path elsewhere."""
        found = self.files.get(path)
        return found is not None and found.image is image

    def content(self, image: ElfImage) -> bytes:
        """The content of a file that was read from the kernel's memory; b"" of others."""
        if all(one.image is not image for one in self._read.values()):
            return b""
        carried = () if self._carried is None else self._carried.files.values()
        return b"" if any(one.image is image for one in carried) else image.data(0, image.size)

    # -- by what is mapped ----------------------------------------------------------------

    def tells(self, memory: Memory) -> bool:
        """True if the kernel says of all of a program's memory what file it is of."""
        programs = self._guest.user_programs
        return programs is not None and programs.files is not None and programs.mm(memory) != 0

    def module(self, memory: Memory, mapping: Mapping | None, address: int) -> Module | None:
        """The file that a page of a user program shows; None where that cannot be told."""
        at = address & -PAGE
        page = self.page(memory, mapping, at)
        if page is None:
            return None
        key = page.path, page.image, at - page.link
        found = self._modules.get(key)
        if found is None:
            found = self._modules[key] = Module(page.path, page.image, at - page.link)
        return found

    def page(self, memory: Memory, mapping: Mapping | None, at: int) -> FilePage | None:
        """The page of a file that stands at an address, which is a page's."""
        layout = memory.table.layout
        known, pages = self._shown.get(memory, (None, {}))
        if known is not layout:
            if len(self._shown) >= _KEPT:
                self._shown.clear()
            pages = {}
            self._shown[memory] = layout, pages
        page = pages.get(at)
        if page is None:
            page = self._page(memory, mapping, at)
            if page is not None and mapping is not None:
                pages[at] = page
        return page

    def _page(self, memory: Memory, mapping: Mapping | None, at: int) -> FilePage | None:
        programs = self._guest.user_programs
        files = None if programs is None else programs.files
        if programs is None or files is None or not programs.mm(memory):
            return None if self._carried is None else self._carried.page(memory, mapping, at)
        area = files.area(programs.mm(memory), at)
        if area is None:
            return None
        offset = area.offset + at - area.start
        shown = None
        if mapping is not None and mapping.shared:
            try:
                shown = memory.peek(at, PAGE)
            except GuestFaultError:
                return None
        path = files.path(area.file)
        image = self._file(files, area, path, offset, shown).image if path else None
        link = None if image is None else image.vaddr_of(offset)
        return None if image is None or link is None else FilePage(path, image, offset, link)

    def _file(
        self, files: KernelFiles, area: MappedArea, path: str, offset: int, shown: bytes | None
    ) -> _FoundFile:
        """The file of an area, read anew where a page of it is not as it was."""
        key = area.inode, path
        known = self._read.get(key)
        if known is not None and known.size == area.size:
            if shown is None or known.shows(offset, shown):
                return known
        else:
            known = None
        image = self._image(path, files.content(area, _LARGEST), known)
        if known is not None and image is known.image:
            if shown is not None and len(known.odd) < _ODD:
                known.odd.add(hash(shown))
            return known
        self._read.pop(key, None)
        while self._read and (
            len(self._read) >= _KEPT
            or area.size + sum(one.size for one in self._read.values()) > _LARGEST
        ):
            oldest = next(iter(self._read))
            del self._read[oldest]
            self._seen.pop(oldest[1], None)
        found = self._read[key] = _FoundFile(area.size, image, set())
        if image is not None:
            self._seen[path] = ProgramFile(path, image, frozenset((path,)))
        return found

    def _image(self, path: str, data: bytes, known: _FoundFile | None) -> ElfImage | None:
        """A file's content as an image: the one that is there of the same, if any."""
        there = [] if known is None else [known.image]
        if self._carried is not None:
            there += [file.image for file in self._carried.files.values() if file.path == path]
            there += [file.image for file in self._carried.files.values() if file.path != path]
        for image in there:
            if image is not None and image.size == len(data) and image.data(0, len(data)) == data:
                return image
        try:
            return ElfImage.from_bytes(data, path) if data else None
        except ImageError:
            return None
