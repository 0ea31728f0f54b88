"""Memory that Unicorn holds and hardly any guest needs: given back, or not taken at first.

A run of a small guest would else hold six megabytes more than it uses. All of this is advice to
the host's kernel, and left out where it does not take it.
"""

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from engine.cpu.unicorn_linkage import tables

_SET_HUGE_OFF, _IS_HUGE_OFF = 41, 42
"""prctl.h: PR_SET_THP_DISABLE, PR_GET_THP_DISABLE."""


@cache
def _prctl() -> "ctypes._NamedFuncPointer | None":
    return getattr(ctypes.CDLL(None), "prctl", None)


@contextmanager
def small_pages() -> Iterator[None]:
    """Memory that is touched for the first time in here is backed by small pages.

    Unicorn asks for huge pages for translated code: the first piece of code that it writes takes
    two megabytes, and a small guest needs a hundredth. The kernel joins the pages of guests that
    run on (khugepaged), and the pages behind these are huge at once.
    """
    prctl = _prctl()
    if prctl is None or prctl(_IS_HUGE_OFF, 0, 0, 0, 0) or prctl(_SET_HUGE_OFF, 1, 0, 0, 0):
        yield
        return
    try:
        yield
    finally:
        prctl(_SET_HUGE_OFF, 0, 0, 0, 0)


def forget_tables() -> None:
    """Give the pages of the library's symbols and relocations back.

    The loader has read all of them. They are of the file and unchanged: who looks a name up has
    them again.
    """
    found = tables()
    if found is not None:
        start, size = found
        libc = ctypes.CDLL(None)
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), mmap.MADV_DONTNEED)
