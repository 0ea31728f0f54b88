"""Memory that Unicorn holds and hardly any guest needs: given back, or not taken at first.

A run of a small guest would else hold six megabytes more than it uses. All of this is advice to
the host's kernel, and left out where it does not take it.
"""

import ctypes
import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Final

from engine.cpu.unicorn_linkage import tables

_SET_HUGE_OFF, _IS_HUGE_OFF = 41, 42
"""prctl.h: PR_SET_THP_DISABLE, PR_GET_THP_DISABLE."""


_COLLAPSE: Final = 25
"""MADV_COLLAPSE of asm-generic/mman-common.h, since Linux 6.1."""
_COLLAPSE_SINCE: Final = (6, 1)
_HUGE: Final = 2 << 20
"""Bytes of a huge page."""
_LARGE: Final = 64 << 20
"""No mapping of code but that for translations has so many bytes."""


def _release(text: str) -> tuple[int, ...]:
    """The numbers in front of a kernel's release: (6, 1)."""
    return tuple(int(word) for word in re.findall(r"\d+", text)[:2])


@cache
def _libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None)


@cache
def _prctl() -> "ctypes._NamedFuncPointer | None":
    """None where small pages could not be joined later."""
    if _release(os.uname().release) < _COLLAPSE_SINCE:
        return None
    return getattr(_libc(), "prctl", None)


@contextmanager
def small_pages() -> Iterator[None]:
    """Memory that is touched for the first time in here is backed by small pages.

    Unicorn asks for huge pages for translated code: the first piece of code that it writes takes
    two megabytes, and a small guest needs a hundredth. Larger ones want them (`join_pages`).
    """
    prctl = _prctl()
    if prctl is None or prctl(_IS_HUGE_OFF, 0, 0, 0, 0) or prctl(_SET_HUGE_OFF, 1, 0, 0, 0):
        yield
        return
    try:
        yield
    finally:
        prctl(_SET_HUGE_OFF, 0, 0, 0, 0)


def join_pages() -> None:
    """Have a huge page where translated code begins: the guest turns out not to be small."""
    libc = _libc()
    with suppress(OSError), open("/proc/self/maps", encoding="utf-8") as lines:
        for line in lines:
            area, perms, *_, last = line.split()
            start, end = (int(word, 16) for word in area.split("-"))
            if perms == "rwxp" and last == "0" and end - start >= _LARGE:
                first = -(-start // _HUGE) * _HUGE
                libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(_HUGE), _COLLAPSE)


def forget_tables() -> None:
    """Give the pages of the library's symbols and relocations back.

    The loader has read all of them. They are of the file and unchanged: who looks a name up has
    them again.
    """
    found = tables()
    if found is not None:
        start, size = found
        _libc().madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), mmap.MADV_DONTNEED)
