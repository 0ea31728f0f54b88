"""Descriptors with what they refer to, as strace's -y and -yy show them."""

import stat
from typing import Final

from engine.linux.errno import LinuxError
from engine.linux.thread import Thread
from engine.trace.strace.quoting import escaped_text

_AT_FDCWD: Final = -100


def descriptor_text(thread: Thread, number: int, *, whole: bool) -> str:
    """The file of a descriptor; "" for none.

    Args:
        thread: whose it is.
        number: of the descriptor; AT_FDCWD for the working directory.
        whole: devices with their numbers.
    """
    if number == _AT_FDCWD:
        return _escaped(thread.directory.path_of())
    file = thread.files.peek(number & 0xFFFFFFFF)
    if file is None:
        return ""
    text = _escaped(file.describe())
    if not whole:
        return text
    try:
        found = file.stat()
    except (LinuxError, OSError):
        return text
    kind = stat.S_IFMT(found.mode)
    if kind in (stat.S_IFCHR, stat.S_IFBLK):
        major = found.rdev >> 8 & 0xFFF | found.rdev >> 32 & 0xFFFFF000
        minor = found.rdev & 0xFF | found.rdev >> 12 & 0xFFFFFF00
        return f"{text}<{'char' if kind == stat.S_IFCHR else 'block'} {major}:{minor}>"
    return text


def _escaped(path: bytes) -> str:
    return escaped_text(path).replace("<", "\\74").replace(">", "\\76")
