"""Files of a guest's tree for gdb: its Host I/O packets, as far as it reads ("vFile")."""

import os
from typing import Final

from engine.linux.errno import LinuxError
from engine.session.guest.session import Session
from engine.session.serve.packets import number
from engine.session.serve.servedfile import STAT

_ERRORS: Final = {1: 1, 2: 2, 4: 4, 9: 9, 13: 13, 17: 17, 20: 20, 21: 21, 22: 22}
_OTHER: Final = 9999
"""Errno values of gdb's own that are those of Linux, and the one for all others."""
_PIECE: Final = 1 << 16
_BAD, _READ_ONLY = 9, 30
_OPEN_MOST: Final = 64


class GuestFiles:
    """Descriptors of one connection, for reading."""

    def __init__(self, session: Session) -> None:
        """None is open."""
        self._session = session
        self._open: dict[int, int] = {}

    def answer(self, request: bytes) -> bytes | None:
        """The answer to a request behind `vFile:`; None for one that is not known.

        Raises:
            ValueError: it is damaged.
        """
        name, _, rest = request.partition(b":")
        words = rest.split(b",")
        try:
            match name:
                case b"setfs":
                    return b"F0"
                case b"open":
                    return b"F%x" % self._opened(_path(words[0]), number(words[1]))
                case b"pread":
                    return self._read(*(number(word) for word in words))
                case b"close":
                    os.close(self._open.pop(number(rest)))
                    return b"F0"
                case b"fstat":
                    return self._stat(number(rest))
                case b"readlink":
                    return _with(self._link(_path(rest)))
        except KeyError:
            return b"F-1,%x" % _BAD
        except LinuxError as error:
            return b"F-1,%x" % _ERRORS.get(error.code, _OTHER)
        except OSError as error:
            return b"F-1,%x" % _ERRORS.get(error.errno or 0, _OTHER)
        except (IndexError, TypeError) as error:
            raise ValueError("words are missing") from error
        return None

    def close(self) -> None:
        """Close all."""
        for handle in self._open.values():
            os.close(handle)
        self._open.clear()

    def _opened(self, path: str, flags: int) -> int:
        if flags & 3 or flags & 0x200:
            raise OSError(_READ_ONLY, "read-only")
        if len(self._open) >= _OPEN_MOST:
            raise OSError(24, "too many")
        host = self._session.host_file(path)
        if host is None:
            raise OSError(2, "not in the guest's view")
        handle = os.open(host, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        given = next(n for n in range(3, _OPEN_MOST + 4) if n not in self._open)
        self._open[given] = handle
        return given

    def _read(self, given: int, count: int, offset: int) -> bytes:
        return _with(os.pread(self._open[given], min(count, _PIECE), offset))

    def _stat(self, given: int) -> bytes:
        found = os.fstat(self._open[given])
        times = (int(one) & 0xFFFFFFFF for one in (found.st_atime, found.st_mtime, found.st_ctime))
        data = STAT.pack(
            found.st_dev & 0xFFFFFFFF,
            found.st_ino & 0xFFFFFFFF,
            found.st_mode,
            found.st_nlink,
            found.st_uid & 0xFFFFFFFF,
            found.st_gid & 0xFFFFFFFF,
            0,
            found.st_size,
            found.st_blksize,
            found.st_blocks,
            *times,
        )
        return _with(data)

    def _link(self, path: str) -> bytes:
        host = self._session.host_file(path)
        if host is None:
            raise OSError(2, "not in the guest's view")
        return os.fsencode(os.readlink(host))


def _path(word: bytes) -> str:
    return os.fsdecode(bytes.fromhex(word.decode("ascii")))


def _with(data: bytes) -> bytes:
    """An answer with an attachment, which is escaped by whoever sends it."""
    return b"F%x;" % len(data) + data
