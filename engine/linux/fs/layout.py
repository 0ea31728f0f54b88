"""Struct stat as architectures lay it out."""

import struct
from functools import cache

from engine.linux.fs.node import Stat

_SECOND = 1_000_000_000


@cache
def _stat_layout(name: str, byteorder: str) -> struct.Struct:
    order = "<" if byteorder == "little" else ">"
    if name == "x86_64":
        return struct.Struct(order + "QQQIII4xQqqqqqqqqq24x")
    if name == "ia64":
        return struct.Struct(order + "QQQIII4xQqqqqqqqqq24x")
    return struct.Struct(order + "QQIIIIQ8xqi4xqqqqqqq8x")


def pack_stat(st: Stat, layout: str, byteorder: str) -> bytes:
    """A struct stat; "x86_64", "ia64" and "generic" are the layouts of 64-bit Linux."""
    times = (
        *divmod(st.atime, _SECOND),
        *divmod(st.mtime, _SECOND),
        *divmod(st.ctime, _SECOND),
    )
    packer = _stat_layout(layout, byteorder)
    if layout != "generic":
        head = (st.dev, st.ino, st.nlink, st.mode, st.uid, st.gid)
    else:
        head = (st.dev, st.ino, st.mode, st.nlink, st.uid, st.gid)
    if layout == "ia64":
        return packer.pack(*head, st.rdev, st.size, *times, st.blksize, st.blocks)
    return packer.pack(*head, st.rdev, st.size, st.blksize, st.blocks, *times)
