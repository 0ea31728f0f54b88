"""Files by the content of their pages of code, for memory of which no name is known."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct

from engine.image.elf import ElfImage
from engine.image.headers import PF_X

PAGE: Final = 4096
"""Bytes of a page, as kernels keep files in memory."""
_LIKE: Final = 64
"""Pages of the same content that are told apart."""


class FilePage(Struct, frozen=True):
    """A page of code of a file.

    Attributes:
        path: of the file.
        image: the ELF file that was read from `path`.
        offset: of the page in the file.
        link: link address of its first byte.
    """

    path: str
    image: ElfImage
    offset: int
    link: int

    def content(self, by: int = 0) -> bytes:
        """The content of the page, or of one so many bytes behind it: zeros behind the file."""
        at = self.offset + by
        return self.image.data(at, PAGE).ljust(PAGE, b"\0") if at >= 0 else b""


class FilePages:
    """The pages of code of some files, by what is in them."""

    def __init__(self, files: Iterable[tuple[str, ElfImage]]) -> None:
        """Look at files, by path; of files that are equal the first one is found."""
        self._alike: dict[int, list[FilePage]] = {}
        self._at: dict[tuple[str, int], FilePage] = {}
        for path, image in files:
            for page in _pages(path, image):
                if (path, page.offset) not in self._at:
                    self._at[path, page.offset] = page
                    self._alike.setdefault(hash(page.content()), []).append(page)

    def at(self, path: str, offset: int) -> FilePage | None:
        """The page of a file at an offset, which is a page's."""
        return self._at.get((path, offset))

    def showing(self, data: bytes, beside: Callable[[int], bytes]) -> FilePage | None:
        """The page that memory shows.

        Where several files have such a page it is the one whose neighbours are there, too.

        Args:
            data: the page.
            beside: the one so many bytes behind it in memory, b"" where none is.
        """
        alike = self._alike.get(hash(data), ())
        found = [page for page in alike[:_LIKE] if page.content() == data]
        if len(found) < 2:
            return found[0] if found else None
        around = {by: shown for by in (-PAGE, PAGE) if (shown := beside(by))}
        return max(
            found, key=lambda page: sum(page.content(by) == there for by, there in around.items())
        )


def _pages(path: str, image: ElfImage) -> Iterator[FilePage]:
    for segment in image.load_segments:
        if segment.flags & PF_X:
            end = min(segment.offset + segment.filesz, image.size)
            for offset in range(segment.offset & -PAGE, end, PAGE):
                yield FilePage(path, image, offset, segment.vaddr + offset - segment.offset)
