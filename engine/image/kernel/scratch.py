"""Large pieces of data put together without having them in memory twice."""

import mmap
import os
from collections.abc import Iterable
from typing import Final

from engine.image.headers import Buffer

_SMALL: Final = 1 << 20


def joined(pieces: Iterable[bytes | memoryview | mmap.mmap]) -> Buffer:
    """All pieces, one behind the other; mapped from a file without a name if they are large.

    What is mapped may be written to.

    Raises:
        OSError: there is no memory for it.
    """
    waiting = iter(pieces)
    held: list[bytes | memoryview | mmap.mmap] = []
    size = 0
    for piece in waiting:
        held.append(piece)
        size += len(piece)
        if size > _SMALL:
            break
    else:
        return b"".join(held)
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("kprobe-tui", os.MFD_CLOEXEC)
        try:
            size = 0
            while held:
                size += write_all(handle, held.pop(0))
            for piece in waiting:
                size += write_all(handle, piece)
            return mmap.mmap(handle, size)
        finally:
            os.close(handle)
    return b"".join([*held, *waiting])


def write_all(handle: int, data: bytes | memoryview | mmap.mmap) -> int:
    """Writes all of some data to a file; the number of its bytes.

    Raises:
        OSError: it cannot be written.
    """
    with memoryview(data) as view:
        at = 0
        while at < len(view):
            at += os.write(handle, view[at:])
        return at
