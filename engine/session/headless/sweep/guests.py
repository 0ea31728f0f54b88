"""Architectures and contents of files, as a sweep knows them before it runs."""

import hashlib
import os
from typing import Final, Literal

from engine.arch import ARCHES

_HEAD: Final = 20
_ORDERS: Final[dict[int, Literal["little", "big"]]] = {1: "little", 2: "big"}
_CLASSES: Final = {1: 32, 2: 64}
_PROGRAMS: Final = (2, 3)
"""e_type of programs and libraries: ET_EXEC, ET_DYN."""


def architecture(path: str) -> str | None:
    """Name of the architecture of an ELF program; None for other files and machines.

    Raises:
        OSError: it cannot be read.
    """
    if not os.path.isfile(path):  # nor what waits for a writer
        return None
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    order = _ORDERS.get(head[5]) if len(head) == _HEAD and head[:4] == b"\x7fELF" else None
    if order is None:
        return None
    kind, machine = (int.from_bytes(head[at : at + 2], order) for at in (16, 18))
    if kind not in _PROGRAMS:
        return None
    bits = _CLASSES.get(head[4])
    for arch in ARCHES:
        if (arch.elf_machine, arch.bits, arch.byteorder) == (machine, bits, order):
            return arch.name
    return None


def content_digest(path: str) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits.

    Raises:
        OSError: it cannot be read, or is no plain file.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise IsADirectoryError(21, "not a plain file", path)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
