"""The host's calls for memory that Python's `mmap` cannot make: at fixed places, moved, holes."""

import ctypes
import mmap
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

PAGE: Final = 4096
"""Bytes of a page of the guest's; mappings of files begin at multiples of the host's."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_mremap = getattr(_libc, "mremap", None)
if _mremap is not None:
    _mremap.restype = ctypes.c_void_p
    _mremap.argtypes = [
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    ]
_fallocate = getattr(_libc, "fallocate", None)
if _fallocate is not None:
    _fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
_FAILED = ctypes.c_void_p(-1).value
_READ_WRITE: Final = mmap.PROT_READ | mmap.PROT_WRITE
_FIXED = 0x10
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_ANONYMOUS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
_FAR: Final = 1 << 36
_PLACES: Final = 1 << 10
"""Of the addresses that a program has on the hosts there are, half."""
_TRIES: Final = 8
"""Of these at the most: others may be there already."""
_DONTNEED = 4
_MAYMOVE_FIXED = 3
_PUNCH_HOLE_KEEP_SIZE = 3


def reserve(size: int) -> int | None:
    """Addresses of fresh memory that takes none until it is used; None if the host refuses.

    They are far from those of libraries, near which code that is made at run time is to find room;
    where the host has none there, it takes another place.
    """
    return _map_far(lambda: _FAR * (1 + _random(2) % (_PLACES - 1)), size, _ANONYMOUS)


def distant(size: int) -> "ctypes.Array[ctypes.c_ubyte]":
    """Fresh memory as far from libraries as that, which forked processes share.

    It is given back with the last that makes use of it.

    Raises:
        OSError: the host refuses.
    """
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS
    base = _map_far(lambda: _FAR * _PLACES + _random(4) * PAGE, size, flags)
    if base is None:
        raise OSError(ctypes.get_errno(), "no memory")
    memory = (ctypes.c_ubyte * size).from_address(base)
    weakref.finalize(memory, unmap, base, size).atexit = False
    return memory


def _map_far(place: Callable[[], int], size: int, flags: int) -> int | None:
    """Map memory in one of some places, or anywhere if all those tried are taken."""
    for left in reversed(range(_TRIES)):
        wanted = place()
        base: int | None = _libc.mmap(wanted, size, _READ_WRITE, flags, -1, 0)
        if base is None or base == _FAILED:
            return None
        if base == wanted or not left:
            return base
        unmap(base, size)
    return None


def _random(size: int) -> int:
    return int.from_bytes(os.urandom(size))


def private(size: int) -> mmap.mmap:
    """Fresh memory that a forked process gets a copy of, as of all else that is its own."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def unmap(address: int, size: int) -> None:
    """Give memory back."""
    _libc.munmap(address, size)


def renew(address: int, size: int) -> None:
    """Put fresh memory in a place, instead of what is mapped there."""
    _libc.mmap(address, size, _READ_WRITE, _ANONYMOUS | _FIXED, -1, 0)


def drop(address: int, size: int) -> None:
    """Make anonymous memory zeros again, which take no room."""
    _libc.madvise(address, size, _DONTNEED)


def map_privately(address: int, size: int, descriptor: int, offset: int) -> bool:
    """Map a file in a place, with changes of its own; False if the host refuses."""
    flags = mmap.MAP_PRIVATE | _FIXED | _NORESERVE
    mapped = _libc.mmap(address, size, _READ_WRITE, flags, descriptor, offset)
    return bool(mapped != _FAILED)


def map_shared(address: int, size: int, descriptor: int, offset: int) -> bool:
    """Map a file in a place; False if the host refuses."""
    flags = mmap.MAP_SHARED | _FIXED | _NORESERVE
    mapped = _libc.mmap(address, size, _READ_WRITE, flags, descriptor, offset)
    return bool(mapped != _FAILED)


def double(address: int, size: int, place: int) -> bool:
    """Map a shared mapping's memory in a second place; False where the host cannot."""
    if _mremap is None:
        return False
    return bool(_mremap(address, 0, size, _MAYMOVE_FIXED, place) == place)


def punch(descriptor: int, offset: int, size: int) -> None:
    """Make a part of a file a hole, which takes no room."""
    if _fallocate is not None:
        _fallocate(descriptor, _PUNCH_HOLE_KEEP_SIZE, offset, size)


class _SharedMapping(Struct):
    """A stretch of shared memory without a file.

    Attributes:
        start: its address.
        end: one past its last byte.
        offset: where in the memory it begins.
        inode: which memory it is.
    """

    start: int
    end: int
    offset: int
    inode: str


def unshare() -> None:
    """Have memory that this process shares with the one that it was forked from for itself.

    It keeps its addresses and contents, and what was one memory in two places still is.

    Raises:
        OSError: the host has no room for it.
    """
    ours: dict[str, _SharedMapping] = {}
    for one in sorted(_shared(), key=lambda one: one.start - one.end):
        known = ours.get(one.inode)
        size = one.end - one.start
        if known is not None:
            source = known.start + one.offset - known.offset
            if known.start <= source and source + size <= known.end:
                if not double(source, size, one.start):
                    raise OSError("memory that is in two places cannot be")
                continue
        ours.setdefault(one.inode, one)
        content = ctypes.string_at(one.start, size)
        flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _FIXED
        if _libc.mmap(one.start, size, _READ_WRITE, flags, -1, 0) == _FAILED:
            raise OSError("no memory")
        if content.strip(b"\0"):
            ctypes.memmove(one.start, content, size)


def _shared() -> list[_SharedMapping]:
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, perms, offset, _, inode, *name = line.split(maxsplit=5)
        if "w" in perms and perms.endswith("s") and name[:1] == ["/dev/zero (deleted)"]:
            start, end = (int(word, 16) for word in place.split("-"))
            found.append(_SharedMapping(start, end, int(offset, 16), inode))
    return found
