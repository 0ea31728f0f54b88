"""The contents of debug sections, plain or compressed.

Compressed sections carry an Elf_Chdr (gABI, SHF_COMPRESSED) or, from old toolchains, the
name .zdebug_* and "ZLIB" with a size. Sizes in them are claims: what is unpacked is
bounded by what deflate can produce from the stored bytes, and by `engine.unpacking`.
"""

import struct
import zlib
from typing import Final

from engine.image import headers
from engine.image.elf import ElfImage

_ELFCOMPRESS_ZLIB: Final = 1
_DEFLATE_RATIO: Final = 1040  # deflate reaches 1032:1 at best
_MAX_UNPACKED: Final = 1 << 31
_SPARE: Final = 16 << 20
"""Bytes that any section may unpack to; a file has a dozen of them."""


def debug_bytes(image: ElfImage, name: str) -> bytes:
    """The unpacked contents of section `name` (".debug_line"), or of its .zdebug_ twin.

    Args:
        image: the file to look in.
        name: the section's modern name.

    Returns:
        The contents; b"" when absent, damaged or packed in a way we do not know. They are read
        once: lines, variables and unwind rules of a file share them.
    """
    known = image.once(_known_sections)
    if name not in known:
        known[name] = _read(image, name)
    return known[name]


def _known_sections(_: ElfImage) -> dict[str, bytes]:
    return {}


def _read(image: ElfImage, name: str) -> bytes:
    section = image.section(name)
    try:
        if section is not None:
            raw = image.section_data(section)
            return _unpack(image, raw) if section.flags & headers.SHF_COMPRESSED else raw
        section = image.section(name.replace(".debug_", ".zdebug_"))
        if section is not None:
            raw = image.section_data(section)
            if raw[:4] == b"ZLIB" and len(raw) >= 12:
                return _inflate(raw[12:], int.from_bytes(raw[4:12], "big"))
    except (ValueError, zlib.error, struct.error) as error:
        image.damage.note(f"{image.name}: section {name}: {error}")
    return b""


def _unpack(image: ElfImage, raw: bytes) -> bytes:
    wide = image.bits == 64
    form = struct.Struct(image.layout.order + ("IIQQ" if wide else "III"))
    kind, *rest = form.unpack_from(raw)
    if kind != _ELFCOMPRESS_ZLIB:
        raise ValueError(f"compressed by method {kind}; only zlib (1) can be read")
    return _inflate(raw[form.size :], rest[1] if wide else rest[0])


def _inflate(packed: bytes, size: int) -> bytes:
    if size > min(_DEFLATE_RATIO * len(packed), _MAX_UNPACKED):
        raise ValueError(f"{len(packed)} bytes cannot unpack to {size}")
    from engine.unpacking import beyond_limit, unpack_limit  # most sections are not packed

    limit = unpack_limit(len(packed), _SPARE)
    if size > limit:
        raise ValueError(beyond_limit(size, limit))
    return zlib.decompressobj().decompress(packed, size) if size else b""
