"""A disk whose content is a file of the host's, which is never written.

What the guest writes is kept in memory, in blocks, above the file.
"""

import os
import stat
import weakref
from typing import Final, NoReturn

from engine.errors import CommandError, NotElfError
from engine.hostlimits import because_of

SECTOR: Final = 512
BLOCK: Final = 4096
DEFAULT_CHANGES: Final = 512 << 20
"""Bytes of changed blocks that a machine keeps at the most."""
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


class RawDisk:
    """A raw image, and the blocks that were changed.

    Attributes:
        size: bytes, whole sectors.
        changes: content of each changed block by its number; blocks are replaced, never altered.
    """

    def __init__(self, path: str, budget: ChangeBudget) -> None:
        """Open the image.

        Args:
            path: of a file or a block device.
            budget: of the blocks that may be changed.

        Raises:
            NotElfError: the file cannot be read, or is no raw image.
        """
        self._path, self._budget = path, budget
        self.changes: dict[int, bytes] = {}
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
        """The bytes at a place, which lies on the disk.

        Raises:
            OSError: the host cannot read the image.
        """
        first, last = start // BLOCK, (start + size - 1) // BLOCK
        if not self.changes or not any(n in self.changes for n in range(first, last + 1)):
            return self._stored(start, size)
        whole = b"".join(self._block(number) for number in range(first, last + 1))
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
                old = self._block(number)
                piece_end = skipped + len(piece)
                at += len(piece)
                piece = old[:skipped] + piece + old[piece_end:]
            else:
                at += BLOCK
            if number not in self.changes:
                self._budget.take(self._path)
            self.changes[number] = piece

    def _block(self, number: int) -> bytes:
        changed = self.changes.get(number)
        return self._stored(number * BLOCK, BLOCK) if changed is None else changed

    def _stored(self, start: int, size: int) -> bytes:
        """Bytes of the image; zeros behind its end, which may have moved since."""
        pieces = []
        left = size
        while left and (piece := os.pread(self._file, left, start + size - left)):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces) + bytes(left)


def _refuse(path: str, why: str) -> NoReturn:
    raise NotElfError(f"{path}: {why}")
