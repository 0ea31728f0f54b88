"""A disk whose content is a file of the host's, which is never written.

What the guest writes is kept in memory, in blocks, above the file.
"""

import os
import stat
import weakref
from typing import Final, NoReturn, Protocol

from engine.errors import CommandError, NotElfError
from engine.hostlimits import because_of

SECTOR: Final = 512
BLOCK: Final = 4096
_MOST: Final = 1 << 60
_FORMATS: Final = (
    (0, b"QFI\xfb", "qcow2"),
    (0, b"KDMV", "VMDK"),
    (0, b"# Disk Descriptor", "VMDK"),
    (0, b"conectix", "VHD"),
    (0, b"vhdxfile", "VHDX"),
    (64, b"\x7f\x10\xda\xbe", "VDI"),
)
"""Offset, magic number and name of the image formats of other machines."""
_HEAD: Final = 512


class ChangeBudget:
    """The changed blocks that all disks of a machine may still keep.

    Attributes:
        left: their number.
        most: bytes that were allowed in all.
    """

    def __init__(self, most: int) -> None:
        """Allow so many bytes."""
        self.most = most
        self.left = most // BLOCK

    def take(self, path: str) -> None:
        """Take a block for a disk.

        Raises:
            CommandError: none is left.
        """
        if not self.left:
            raise CommandError(
                f"{path}: the guest has changed more than {self.most >> 20} MB on its disks, and "
                "changes are kept in memory: --disk-memory"
            )
        self.left -= 1


class DiskImage(Protocol):
    """The content of a disk before a guest changes it.

    Attributes:
        path: of it on the host.
        size: bytes, whole sectors.
    """

    path: str
    size: int

    def read(self, start: int, size: int) -> bytes:
        """The bytes at a place, which lies on the disk.

        Raises:
            OSError: the host cannot read it.
        """


class HostImage:
    """A raw image in a file of the host's; a `DiskImage`."""

    def __init__(self, path: str) -> None:
        """Open the image.

        Args:
            path: of a file or a block device.

        Raises:
            NotElfError: the file cannot be read, or is no raw image.
        """
        self.path = path
        try:
            file = self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            weakref.finalize(self, os.close, file).atexit = False
            mode = os.fstat(file).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISBLK(mode)):
                _refuse(path, "neither a file nor a block device: a disk is a raw image")
            self.size = os.lseek(file, 0, os.SEEK_END)
            head = os.pread(file, _HEAD, 0)
        except OSError as error:
            _refuse(path, because_of(error))
        if not self.size:
            _refuse(path, "the file is empty, a disk is not")
        for at, magic, name in _FORMATS:
            if head[at:].startswith(magic):
                _refuse(path, f"an image in the format {name}; raw: qemu-img convert -O raw")
        if self.size % SECTOR:
            _refuse(path, f"{self.size} bytes are no disk: sectors have {SECTOR}")
        if self.size > _MOST:
            _refuse(path, "too large for a disk")

    def read(self, start: int, size: int) -> bytes:
        """See `DiskImage`: zeros behind the end, which may have moved since."""
        pieces = []
        left = size
        while left and (piece := os.pread(self._file, left, start + size - left)):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces) + bytes(left)


class RawDisk:
    """A disk: an image, and the blocks that were changed.

    Attributes:
        size: bytes, whole sectors.
        changes: content of each changed block by its number; blocks are replaced, never altered.
        touched: numbers of blocks that were changed since whoever keeps the past has emptied this.
    """

    def __init__(self, image: DiskImage, budget: ChangeBudget) -> None:
        """Take the image.

        Args:
            image: its content so far.
            budget: of the blocks that may be changed.
        """
        self._image, self._budget = image, budget
        self.size = image.size
        self.changes: dict[int, bytes] = {}
        self.touched: set[int] = set()

    def read(self, start: int, size: int) -> bytes:
        """The bytes at a place, which lies on the disk.

        Raises:
            OSError: the host cannot read the image.
        """
        first, last = start // BLOCK, (start + size - 1) // BLOCK
        if not self.changes or not any(n in self.changes for n in range(first, last + 1)):
            return self._image.read(start, size)
        whole = b"".join(self.block(number) for number in range(first, last + 1))
        skipped = start - first * BLOCK
        return whole[skipped : skipped + size]

    def write(self, start: int, data: bytes) -> None:
        """Change bytes at a place, which lies on the disk.

        Raises:
            CommandError: more is changed than may be.
            OSError: the host cannot read the image.
        """
        at, end = start, start + len(data)
        while at < end:
            number, skipped = divmod(at, BLOCK)
            piece = data[at - start : at - start + BLOCK - skipped]
            if len(piece) < BLOCK:
                old = self.block(number)
                piece_end = skipped + len(piece)
                at += len(piece)
                piece = old[:skipped] + piece + old[piece_end:]
            else:
                at += BLOCK
            if number not in self.changes:
                self._budget.take(self._image.path)
            self.changes[number] = piece
            self.touched.add(number)

    def put_back(self, number: int, content: bytes | None) -> None:
        """Give a block the content of an earlier moment; None where it was not changed then."""
        if content is not None:
            self._budget.left -= number not in self.changes
            self.changes[number] = content
        elif self.changes.pop(number, None) is not None:
            self._budget.left += 1

    def block(self, number: int) -> bytes:
        """The content of a block."""
        changed = self.changes.get(number)
        return self._image.read(number * BLOCK, BLOCK) if changed is None else changed


def _refuse(path: str, why: str) -> NoReturn:
    raise NotElfError(f"{path}: {why}")
