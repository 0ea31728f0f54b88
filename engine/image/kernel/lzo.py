"""LZO1X and the lzop container, which kernels may be compressed with (CONFIG_KERNEL_LZO).

There is no library for it that comes without a compiler. The format of the instructions:
Documentation/staging/lzo.rst of Linux; of the container: lib/decompress_unlzo.c.
"""

import struct
from typing import Final

from engine.unpacking import beyond_limit

_MAGIC: Final = b"\x89LZO\0\r\n\x1a\n"
_EXTRA_FIELD, _FILTER = 0x40, 0x800
_ADLER_D, _ADLER_C, _CRC_D, _CRC_C = 1, 2, 0x100, 0x200
_BLOCK_MAX: Final = 64 << 20


def lzop_unpacked(data: bytes, most: int) -> bytes:
    """The contents of an lzop file.

    Args:
        data: the file; what follows its last block is ignored.
        most: bytes that it may unpack to.

    Raises:
        ValueError: it is damaged, or unpacks to more.
        EOFError: it ends too early.
    """
    if not data.startswith(_MAGIC):
        raise ValueError("no lzop header")
    try:
        return _blocks(data, most)
    except (struct.error, IndexError) as error:
        raise EOFError("the compressed data ends too early") from error


def _blocks(data: bytes, most: int) -> bytes:
    (version,) = struct.unpack_from(">H", data, 9)
    at = 13  # behind version and library version
    if version >= 0x0940:
        at += 2  # version needed to extract
    at += 1  # method
    if version >= 0x0940:
        at += 1  # level
    (flags,) = struct.unpack_from(">I", data, at)
    at += 4
    if flags & _FILTER:
        at += 4
    at += 8  # mode, time
    if version >= 0x0940:
        at += 4  # time, upper half
    at += 1 + data[at] + 4  # name, checksum
    if flags & _EXTRA_FIELD:
        (size,) = struct.unpack_from(">I", data, at)
        at += 4 + size + 4
    sums = 4 * (bool(flags & _ADLER_D) + bool(flags & _CRC_D))
    packed_sums = 4 * (bool(flags & _ADLER_C) + bool(flags & _CRC_C))
    found = bytearray()
    while True:
        (size,) = struct.unpack_from(">I", data, at)
        if size == 0:
            return bytes(found)
        (stored,) = struct.unpack_from(">I", data, at + 4)
        if size > _BLOCK_MAX or stored > size:
            raise ValueError(f"block at {at:#x}: {stored} bytes for {size}")
        at += 8 + sums + (packed_sums if stored < size else 0)
        block = data[at : at + stored]
        if len(block) < stored:
            raise EOFError("the compressed data ends too early")
        found += block if stored == size else _lzo1x(block, size)
        at += stored
        if len(found) > most:
            raise ValueError(beyond_limit(None, most))


def _lzo1x(source: bytes, size: int) -> bytearray:
    """One block.

    Raises:
        ValueError: an instruction reaches in front of the block, or the size is another.
        IndexError: it ends inside of an instruction.
    """
    out = bytearray()
    at = 0
    state = 0  # literals that the last instruction copied: 0 to 3, 4 for more
    code = source[0]
    if code > 17:
        at = 1
        count = code - 17
        out += source[at : at + count]
        at += count
        state = min(count, 4)
    while True:
        code = source[at]
        at += 1
        if code < 16 and state == 0:
            count, at = _length(source, at, code, 15)
            count += 3
            out += source[at : at + count]
            at += count
            state = 4
            continue
        if code < 16:
            distance = (code >> 2) + (source[at] << 2) + 1
            length = 2
            if state == 4:
                distance += 2048
                length = 3
            at += 1
            literals = code & 3
        elif code >= 64:
            distance = (code >> 2 & 7) + (source[at] << 3) + 1
            at += 1
            length = (code >> 5) + 1
            literals = code & 3
        else:
            mask = 31 if code >= 32 else 7
            length, at = _length(source, at, code & mask, mask)
            length += 2
            pair = source[at] | source[at + 1] << 8
            at += 2
            literals = pair & 3
            distance = pair >> 2
            if code >= 32:
                distance += 1
            else:
                distance += (code & 8) << 11
                if distance == 0:
                    break
                distance += 16384
        start = len(out) - distance
        if start < 0:
            raise ValueError("a copy from in front of the block")
        if len(out) + length > size:
            raise ValueError(f"a block of more than {size} bytes")
        if distance >= length:
            out += out[start : start + length]
        else:
            pattern = out[start:]
            out += (pattern * (length // distance + 1))[:length]
        out += source[at : at + literals]
        at += literals
        state = literals
    if len(out) != size:
        raise ValueError(f"a block of {len(out)} bytes instead of {size}")
    return out


def _length(source: bytes, at: int, low: int, base: int) -> tuple[int, int]:
    """A length that zero bytes extend, and the position behind it."""
    if low:
        return low, at
    count = base
    while source[at] == 0:
        count += 255
        at += 1
    return count + source[at], at + 1
