"""Struct stat as architectures lay it out."""

import struct
from collections.abc import Callable
from functools import cache
from operator import itemgetter

from engine.arch.base import StatLayout
from engine.linux.fs.attributes import Stat

_SECOND = 1_000_000_000
_TIMES = ("atime", "mtime", "ctime")


@cache
def _packer(
    layout: StatLayout, byteorder: str
) -> tuple[struct.Struct, Callable[[tuple[int, ...]], tuple[int, ...]]]:
    """The form, and what puts the fields of a `Stat` with its times split in order."""
    plain = [name for name in Stat._fields if name not in _TIMES]
    order: list[int] = []
    for name in layout.fields:
        if name in _TIMES:
            at = len(plain) + 2 * _TIMES.index(name)
            order += (at, at + 1)
        else:
            order.append(plain.index(name))
    return struct.Struct(("<" if byteorder == "little" else ">") + layout.form), itemgetter(*order)


def pack_stat(st: Stat, layout: StatLayout, byteorder: str) -> bytes:
    """A struct stat."""
    packer, ordered = _packer(layout, byteorder)
    times = (
        *divmod(st.atime, _SECOND),
        *divmod(st.mtime, _SECOND),
        *divmod(st.ctime, _SECOND),
    )
    return packer.pack(*ordered((*st[:-3], *times)))
