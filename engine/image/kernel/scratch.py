"""Large pieces of data put together without having them in memory twice."""

import mmap
import os
import time
from collections.abc import Iterable
from pathlib import Path
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


def write_file(path: Path, pieces: Iterable[bytes | memoryview | mmap.mmap]) -> None:
    """Write a file of the user's own, as a whole or not at all, and the folder around it.

    The pieces go to a file of another name first, ending in .part, which is moved then.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    part = path.parent / f"{path.name}.{os.getpid()}-{time.monotonic_ns()}.part"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        for piece in pieces:
            write_all(handle, piece)
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
