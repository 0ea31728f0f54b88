"""The bytes of an ELF file as mappings need them."""

from engine.image import ElfImage


class ImageBacking:
    """An ELF file's bytes for the mappings of its segments; a `Backing`.

    Attributes:
        size: bytes of the file.
        writable: nothing is written back.
        identity: the file.
    """

    def __init__(self, image: ElfImage) -> None:
        """The bytes of an image that is open."""
        self._image = image
        self.size = image.file_size
        self.writable = False
        self.identity = image

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes of the file."""
        return bytes(self._image.buffer[offset : offset + size])

    def write_back(self, offset: int, data: bytes) -> None:
        """Drop it: a program's own file is not written to."""
        return

    def host_descriptor(self) -> int | None:
        """There is none."""
        return None

    def contents(self) -> None:
        """Return None: pages hold copies of the content only."""
