"""The host's calls for memory that Python's `mmap` cannot make: at fixed places, moved, holes."""

import ctypes
import mmap
import os
from typing import Final

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
_DONTNEED = 4
_MAYMOVE_FIXED = 3
_PUNCH_HOLE_KEEP_SIZE = 3


def reserve(size: int) -> int | None:
    """Addresses of fresh memory that takes none until it is used; None if the host refuses.

    They are far from those of libraries, near which code that is made at run time is to find room;
    where the host has none there, it takes another place.
    """
    far = _FAR * (1 + int.from_bytes(os.urandom(2)) % (_PLACES - 1))
    base: int | None = _libc.mmap(far, size, _READ_WRITE, _ANONYMOUS, -1, 0)
    return None if base == _FAILED else base


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
