"""The list of loaded files that a guest's dynamic linker keeps for debuggers (link.h of glibc)."""

import struct
from collections.abc import Callable, Iterator
from typing import Final

from engine.errors import GuestFaultError
from engine.guest.modules import Module

_DT_DEBUG: Final = 21
_MOST: Final = 4096
_NAME_MOST: Final = 4096
_MAP: Final = struct.Struct("<QQQQQ")
"""struct link_map: bias, name, dynamic section, next, previous."""

Read = Callable[[int, int], bytes]


def link_maps(main: Module, read: Read) -> list[tuple[str, int, int, int]]:
    """Name, address of the link_map, bias and dynamic section of each file; the program is first.

    Nothing before the linker has made the list, and of static programs.
    """
    try:
        return list(_walk(main, read))
    except (GuestFaultError, struct.error):
        return []


def _walk(main: Module, read: Read) -> Iterator[tuple[str, int, int, int]]:
    at = _debug_address(main, read)
    if not at:
        return
    _, at = struct.unpack("<QQ", read(at, 16))
    seen: set[int] = set()
    while at and at not in seen and len(seen) < _MOST:
        seen.add(at)
        bias, name, dynamic, following, _ = _MAP.unpack(read(at, _MAP.size))
        yield _text(name, read), at, bias, dynamic
        at = following


def _debug_address(main: Module, read: Read) -> int:
    """The address that DT_DEBUG of the program has; 0 for none."""
    for segment in main.image.segments:
        if segment.type == 2:  # PT_DYNAMIC
            data = read(segment.vaddr + main.bias, min(segment.memsz, 1 << 16) & -16)
            for tag, value in struct.iter_unpack("<QQ", data):
                if tag == _DT_DEBUG:
                    return int(value)
                if not tag:
                    break
    return 0


def _text(address: int, read: Read) -> str:
    out = bytearray()
    while len(out) < _NAME_MOST:
        piece = read(address + len(out), 64 - (address + len(out)) % 64)
        before, end, _ = piece.partition(b"\0")
        out += before
        if end:
            break
    return out.decode(errors="surrogateescape")
