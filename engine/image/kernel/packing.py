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
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from engine.errors import ImageError
from engine.hostlimits import because_of
from engine.image.headers import Buffer
from engine.image.kernel.recognition import (
    compression,
    is_boot_image,
    is_raw_image,
    is_riscv_image,
    is_zboot,
    unsupported,
)
from engine.image.kernel.scratch import joined
from engine.unpacking import beyond_limit, unpack_limit

UNPACKED_MAX: Final = 3 << 28
"""Bytes that an image may unpack to; no kernel comes near."""
_SPARE: Final = 64 << 20
"""Bytes that an image may unpack to however small it is."""

_PAYLOAD_SINCE: Final = 0x208  # version of the boot protocol
_ELF: Final = b"\x7fELF"
_DEPTH: Final = 3
_PIECE: Final = 1 << 22
_HEAD: Final = 1024
_WINDOW_LOG: Final = 28
"""Of zstd; the kernel's build takes 27 at most."""
_MEMORY_MAX: Final = 1 << 29
"""Bytes that a decompressor may take for itself."""
_BOOT_HEADER: Final = 0x250
_LZ4_BLOCK: Final = 8 << 20


_Payload = bytes | memoryview
_Expand = Callable[[_Payload, int], Iterator[bytes]]
"""Unpacks a payload piece by piece; the number is that of the bytes which are wanted at most."""


class _Decompressor(Protocol):
    """The common part of zlib, bz2 and lzma."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: _Payload, max_length: int = ..., /) -> bytes: ...


def unpacked(data: Buffer, name: str) -> Buffer:
    """The ELF file or raw Image inside of all wrappers.

    Args:
        data: the whole file.
        name: of the file, for messages.

    Raises:
        ImageError: it is damaged, compressed in a way that is not known, or no kernel image.
    """
    for _ in range(_DEPTH):
        if _is_plain(data):
            return data
        if is_riscv_image(data[:_HEAD]) and not is_zboot(data[:_HEAD]):
            raise unsupported(name, "EM_RISCV")
        payload = _payload(data, name)
        if payload is None:
            break
        data = decompressed(payload, name)
    if _is_plain(data):
        return data
    raise ImageError(f"{name}: what was unpacked is no kernel image (neither ELF nor an Image)")


def unpacked_head(data: Buffer, name: str) -> bytes:
    """The beginning of what is inside of one wrapper at most; little is unpacked for it.

    Raises:
        ImageError: as `unpacked`.
    """
    if _is_plain(data):
        return data[:_HEAD]
    payload = _payload(data, name)
    if payload is None:
        return data[:_HEAD]
    found = b""
    for piece in _pieces(payload, name):
        found += piece[: _HEAD - len(found)]
        if len(found) == _HEAD:
            break
    return found


def _is_plain(data: Buffer | memoryview) -> bool:
    head = bytes(data[:_HEAD])
    return head[:4] == _ELF or is_raw_image(head)


def _payload(data: Buffer, name: str) -> memoryview | None:
    """The inside of a wrapper, maybe compressed; None where there is none."""
    head = data[:_HEAD]
    if is_boot_image(head):
        return _bzimage_payload(data, name)
    if is_zboot(head):
        at, size = struct.unpack_from("<II", head.ljust(16, b"\0"), 8)
        return _cut(data, at, size, f"{name}: EFI zboot header")
    return memoryview(data) if compression(head) else None


def _cut(data: Buffer, at: int, size: int, what: str) -> memoryview:
    if at + size > len(data):
        raise ImageError(
            f"{what}: the payload of {size} bytes at {at:#x} ends behind the file"
            f" ({len(data)} bytes): is it cut short?"
        )
    return memoryview(data)[at : at + size]


def _bzimage_payload(data: Buffer, name: str) -> memoryview:
    if len(data) < _BOOT_HEADER:
        raise ImageError(f"{name}: bzImage header: the file ends after {len(data)} bytes")
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


def decompressed(payload: memoryview, name: str) -> Buffer:
    """The whole content of something compressed.

    Raises:
        ImageError: it is damaged, or compressed in a way that is not known.
    """
    try:
        return joined(_pieces(payload, name))
    except OSError as error:
        raise ImageError(f"{name}: no room for what is in it: {because_of(error)}") from error
    except MemoryError as error:
        raise ImageError(f"{name}: no memory for what is in it") from error


def _pieces(payload: memoryview, name: str) -> Iterator[bytes]:
    """The payload, decompressed piece by piece."""
    if _is_plain(payload):
        yield bytes(payload)
        return
    head = bytes(payload[:_HEAD])
    method = compression(head)
    if not method:
        raise ImageError(
            f"{name}: the payload begins with {head[:6].hex(' ')}: no compression that Linux has"
        )
    total, limit = 0, unpack_limit(len(payload), _SPARE, UNPACKED_MAX)
    try:
        for piece in _METHODS[method](payload, limit):
            total += len(piece)
            if total > limit:
                raise ValueError(beyond_limit(None, limit))
            yield piece
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, struct.error) as error:
        raise ImageError(f"{name}: {method}: {error or 'damaged'}") from error


def _stream(make: Callable[[], _Decompressor]) -> _Expand:
    """A decompressor that stops at the stream's end: the kernel's build appends a size."""

    def expand(data: _Payload, limit: int) -> Iterator[bytes]:
        machine = make()
        pending, size = data, _HEAD  # the first piece is small: it may be all that is wanted
        while not machine.eof:
            piece = machine.decompress(pending, size)
            pending, size = getattr(machine, "unconsumed_tail", b""), _PIECE
            if not piece and not machine.eof:
                raise EOFError("the compressed data ends too early")
            yield piece

    return expand


def _gzip() -> _Decompressor:
    return zlib.decompressobj(wbits=31)


def _zstd(data: _Payload, limit: int) -> Iterator[bytes]:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd  # asked for by images only
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    try:
        yield from _stream(lambda: zstd.ZstdDecompressor(options=options))(data, limit)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error


def _lz4(data: _Payload, limit: int) -> Iterator[bytes]:
    """The legacy frame: blocks of 8 MiB, each after its size (lz4_Frame_format.md)."""
    import lz4.block

    at, total = 4, 0
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
        yield piece
        total += len(piece)
        at += 4 + size
        if len(piece) < _LZ4_BLOCK:
            break
    if at + 4 <= len(data) and struct.unpack("<I", data[-4:])[0] != total:
        raise EOFError("the compressed data ends too early")


def _lzo(data: _Payload, limit: int) -> Iterator[bytes]:
    from engine.image.kernel.lzo import lzop_unpacked

    yield lzop_unpacked(bytes(data), limit)


_METHODS: Final[dict[str, _Expand]] = {
    "gzip": _stream(_gzip),
    "xz": _stream(lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _MEMORY_MAX)),
    "zstd": _zstd,
    "bzip2": _stream(bz2.BZ2Decompressor),
    "lzma": _stream(lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, _MEMORY_MAX)),
    "lz4": _lz4,
    "lzo": _lzo,
}
"""Name to how it unpacks, of what CONFIG_KERNEL_* and modules offer."""
