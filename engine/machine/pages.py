"""Pages of two memories that differ."""

import ctypes
import mmap
from collections.abc import Iterator
from typing import Final

from engine.cpu.unicorn_system import PAGE

_PIECE: Final = 64 * PAGE

_memcmp: Final = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
)(("memcmp", ctypes.CDLL(None)))


class ComparedMemory:
    """Two memories of the same size; neither can be closed before this object is gone."""

    def __init__(self, one: mmap.mmap, other: mmap.mmap) -> None:
        """Take them."""
        self._size = len(one)
        self._places = ctypes.c_char.from_buffer(one), ctypes.c_char.from_buffer(other)

    def differing(self) -> Iterator[int]:
        """The numbers of the pages that differ, ascending."""
        one, other = map(ctypes.addressof, self._places)
        for start in range(0, self._size, _PIECE):
            size = min(_PIECE, self._size - start)
            if _memcmp(one + start, other + start, size):
                for at in range(start, start + size, PAGE):
                    if _memcmp(one + at, other + at, PAGE):
                        yield at // PAGE
