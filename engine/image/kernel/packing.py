"""Kernel images out of their wrappers: bzImage, EFI zboot, and every compression Linux offers.

Sources: Documentation/arch/x86/boot.rst (setup header, payload), arch/arm64/kernel/head.S
(Image header), drivers/firmware/efi/libstub/zboot-header.S, scripts/Makefile.lib (size
appended to what is compressed).
"""

import bz2
import lzma
import struct
import sys
import zlib
from collections.abc import Callable
from typing import Final, Protocol

from engine.errors import ImageError
from engine.image.kernel.recognition import compression, is_boot_image, is_raw_image, is_zboot

UNPACKED_MAX: Final = 1 << 30
"""Bytes that an image may unpack to; no kernel comes near."""

_PAYLOAD_SINCE: Final = 0x208  # version of the boot protocol
_ELF: Final = b"\x7fELF"
_DEPTH: Final = 3
_PIECE: Final = 1 << 20
_WINDOW_LOG: Final = 31
_LZ4_BLOCK: Final = 8 << 20


class _Decompressor(Protocol):
    """The common part of zlib, bz2 and lzma."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


def unpacked(data: bytes, name: str) -> bytes:
    """The ELF file or raw Image inside of all wrappers.

    Args:
        data: the whole file.
        name: of the file, for messages.

    Raises:
        ImageError: it is damaged, compressed in a way that is not known, or no kernel image.
    """
    for _ in range(_DEPTH):
        if data[:4] == _ELF:
            return data
        if is_boot_image(data):
            data = _decompressed(_bzimage_payload(data, name), name)
        elif is_zboot(data):
            at, size = struct.unpack_from("<II", data, 8)
            data = _decompressed(_cut(data, at, size, f"{name}: EFI zboot header"), name)
        elif is_raw_image(data):
            return data
        elif _method(data) is not None:
            data = _decompressed(data, name)
        else:
            break
    if data[:4] == _ELF or is_raw_image(data):
        return data
    raise ImageError(f"{name}: what was unpacked is no kernel image (neither ELF nor an Image)")


def _cut(data: bytes, at: int, size: int, what: str) -> bytes:
    if at + size > len(data):
        raise ImageError(
            f"{what}: the payload of {size} bytes at {at:#x} ends behind the file"
            f" ({len(data)} bytes): is it cut short?"
        )
    return data[at : at + size]


def _bzimage_payload(data: bytes, name: str) -> bytes:
    (version,) = struct.unpack_from("<H", data, 0x206)
    if version < _PAYLOAD_SINCE:
        raise ImageError(
            f"{name}: boot protocol {version >> 8}.{version & 255:02} does not say where the"
            " kernel lies (2.08 does, since Linux 2.6.24)"
        )
    sectors = data[0x1F1] or 4
    at, size = struct.unpack_from("<II", data, 0x248)
    return _cut(data, (sectors + 1) * 512 + at, size, f"{name}: bzImage header")


# -- compressions ----------------------------------------------------------------------


def _decompressed(data: bytes, name: str) -> bytes:
    if data[:4] == _ELF or is_raw_image(data):
        return data
    found = _method(data)
    if found is None:
        raise ImageError(
            f"{name}: the payload begins with {data[:6].hex(' ')}: no compression that Linux has"
        )
    method, expand = found
    try:
        return expand(data)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, struct.error) as error:
        raise ImageError(f"{name}: {method}: {error or 'damaged'}") from error


def _method(data: bytes) -> tuple[str, Callable[[bytes], bytes]] | None:
    name = compression(data)
    return (name, _METHODS[name]) if name else None


def _stream(make: Callable[[], _Decompressor]) -> Callable[[bytes], bytes]:
    """A decompressor that stops at the stream's end: the kernel's build appends a size."""

    def expand(data: bytes) -> bytes:
        machine, pieces, total = make(), [], 0
        pending = data
        while not machine.eof:
            piece = machine.decompress(pending, _PIECE * 16)
            pending = getattr(machine, "unconsumed_tail", b"")
            if not piece and not machine.eof:
                raise EOFError("the compressed data ends too early")
            pieces.append(piece)
            total += len(piece)
            if total > UNPACKED_MAX:
                raise ValueError(f"it unpacks to more than {UNPACKED_MAX >> 20} MB")
        return b"".join(pieces)

    return expand


def _gzip() -> _Decompressor:
    return zlib.decompressobj(wbits=31)


def _zstd(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd  # asked for by images only
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    try:
        return _stream(lambda: zstd.ZstdDecompressor(options=options))(data)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error


def _lz4(data: bytes) -> bytes:
    """The legacy frame: blocks of 8 MiB, each after its size (lz4_Frame_format.md)."""
    import lz4.block

    at, pieces, total = 4, [], 0
    while at + 4 <= len(data):
        (size,) = struct.unpack_from("<I", data, at)
        if at + 4 + size > len(data):
            break  # the unpacked size, which the build appends
        try:
            piece = lz4.block.decompress(
                data[at + 4 : at + 4 + size], uncompressed_size=_LZ4_BLOCK
            )
        except lz4.block.LZ4BlockError as error:
            raise ValueError(f"block at {at:#x}: {error}") from error
        pieces.append(piece)
        total += len(piece)
        at += 4 + size
        if total > UNPACKED_MAX:
            raise ValueError(f"it unpacks to more than {UNPACKED_MAX >> 20} MB")
        if len(piece) < _LZ4_BLOCK:
            break
    if at + 4 <= len(data) and struct.unpack("<I", data[-4:])[0] != total:
        raise EOFError("the compressed data ends too early")
    return b"".join(pieces)


def _lzo(data: bytes) -> bytes:
    from engine.image.kernel.lzo import lzop_unpacked

    return lzop_unpacked(data, UNPACKED_MAX)


_METHODS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": _stream(_gzip),
    "xz": _stream(lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)),
    "zstd": _zstd,
    "bzip2": _stream(bz2.BZ2Decompressor),
    "lzma": _stream(lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE)),
    "lz4": _lz4,
    "lzo": _lzo,
}
"""Name to how it unpacks, of what CONFIG_KERNEL_* and modules offer."""
