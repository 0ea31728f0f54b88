"""One file that is nowhere but in memory, for gdb: its Host I/O packets ("vFile")."""

import stat
import struct
from typing import Final

from engine.session.serve.packets import number

STAT: Final = struct.Struct(">7I3Q3I")
"""gdb's struct stat: device, inode, mode, links, user, group, rdev; size, block size, blocks;
three times."""
_PIECE: Final = 1 << 14
_HANDLE: Final = 3
_MISSING, _BAD, _READ_ONLY = 2, 9, 30


class ServedFile:
    """A file for reading."""

    def __init__(self, path: str, data: bytes) -> None:
        """Serve a file.

        Args:
            path: its name.
            data: its content.
        """
        self._path, self._data = path, data

    def answer(self, request: bytes) -> bytes | None:
        """The answer to a request behind `vFile:`; None for one that is not known.

        Raises:
            ValueError: it is damaged.
        """
        name, _, rest = request.partition(b":")
        words = rest.split(b",")
        match name:
            case b"setfs":
                return b"F0"
            case b"open":
                if bytes.fromhex(words[0].decode("ascii")).decode() != self._path:
                    return b"F-1,%x" % _MISSING
                return b"F-1,%x" % _READ_ONLY if number(words[1]) & 3 else b"F%x" % _HANDLE
            case b"close":
                return b"F0"
            case b"pread" | b"fstat":
                if number(words[0]) != _HANDLE:
                    return b"F-1,%x" % _BAD
                if name == b"fstat":
                    return self._stat()
                count, offset = number(words[1]), number(words[2])
                found = self._data[offset : offset + min(count, _PIECE)]
                return b"F%x;" % len(found) + found
        return None

    def _stat(self) -> bytes:
        size = len(self._data)
        data = STAT.pack(
            0, 1, stat.S_IFREG | 0o400, 1, 0, 0, 0, size, 4096, -(-size // 512), 0, 0, 0
        )
        return b"F%x;" % len(data) + data
