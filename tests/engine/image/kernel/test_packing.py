"""Images come out of every wrapper that Linux puts them into, and damage is told."""

import bz2
import gzip
import lzma
import shutil
import struct
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import lz4.block
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ImageError
from engine.image.kernel.lzo import lzop_unpacked
from engine.image.kernel.packing import unpacked
from engine.image.kernel.recognition import is_packed

KERNEL = b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 700 + b"the end" * 9000


def _lz4(data: bytes) -> bytes:
    out = b"\x02\x21\x4c\x18"
    for at in range(0, len(data), 8 << 20):
        block = lz4.block.compress(data[at : at + (8 << 20)], store_size=False)
        out += struct.pack("<I", len(block)) + block
    return out


def _lzma(data: bytes) -> bytes:
    return lzma.compress(data, lzma.FORMAT_ALONE)


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "lzma": _lzma,
    "bzip2": bz2.compress,
    "zstd": zstd.compress,
    "lz4": _lz4,
}


def _appended(packed: bytes) -> bytes:
    """As the kernel's build has it: with the unpacked size behind."""
    return packed + struct.pack("<I", len(KERNEL))


def _bzimage(payload: bytes) -> bytes:
    head = bytearray(0x400)
    head[0x1F1] = 1
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x206, 0x20F)
    struct.pack_into("<II", head, 0x248, 16, len(payload))
    return bytes(head) + bytes(16) + payload + b"tail"


def _zboot(payload: bytes) -> bytes:
    head = bytearray(0x400)
    head[:2] = b"MZ"
    head[4:8] = b"zimg"
    struct.pack_into("<II", head, 8, len(head), len(payload))
    return bytes(head) + payload


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrap", [bytes, _appended, _bzimage, _zboot])
def test_every_compression_and_wrapper(way: str, wrap: Callable[[bytes], bytes]) -> None:
    packed = wrap(WAYS[way](KERNEL))
    assert is_packed(packed[:1024])
    assert unpacked(packed, "vmlinuz") == KERNEL


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", [0.3, 0.9])
def test_what_is_cut_short_is_told(way: str, part: float) -> None:
    packed = WAYS[way](KERNEL)
    with pytest.raises(ImageError, match="img"):
        unpacked(packed[: int(len(packed) * part)], "img")


def test_a_payload_behind_the_file_is_told() -> None:
    packed = _bzimage(gzip.compress(KERNEL))
    with pytest.raises(ImageError, match="cut short"):
        unpacked(packed[:2000], "vmlinuz")


def test_what_unpacks_to_no_kernel_is_told() -> None:
    with pytest.raises(ImageError, match="no kernel image"):
        unpacked(gzip.compress(b"hello"), "x.gz")


@pytest.mark.parametrize("way", WAYS)
@settings(deadline=None)
@given(at=st.integers(0, 10_000), byte=st.integers(1, 255))
def test_damage_is_never_anything_but_an_image_error(way: str, at: int, byte: int) -> None:
    packed = bytearray(_bzimage(WAYS[way](KERNEL[:60_000])))
    packed[at % len(packed)] ^= byte
    with suppress(ImageError):
        unpacked(bytes(packed), "img")


def test_lzo_is_what_lzop_says(tmp_path: Path) -> None:
    if shutil.which("lzop") is None:
        pytest.skip("no lzop on this machine")
    real = Path("/bin/bash").read_bytes()[:400_000] + KERNEL
    (tmp_path / "x").write_bytes(real)
    for level in ("-1", "-9"):
        packed = subprocess.run(
            ["lzop", level, "-c", tmp_path / "x"], check=True, capture_output=True
        ).stdout
        assert lzop_unpacked(packed, 1 << 30) == real
        assert unpacked(packed, "img") == real
        with pytest.raises((ValueError, EOFError)):
            lzop_unpacked(packed[: len(packed) // 2], 1 << 30)
        with pytest.raises(ValueError, match="more than"):
            lzop_unpacked(packed, 1000)


def _riscv(front: bytes = b"MZ") -> bytes:
    """The beginning of RISC-V's Image."""
    return front.ljust(48, b"\0") + b"RISCV\0\0\0RSC\x05" + bytes(4096)


@pytest.mark.parametrize("way", ["plain", "gzip", "zboot"])
def test_an_image_for_riscv_is_told_as_that(way: str) -> None:
    packed = {
        "plain": _riscv(),
        "gzip": gzip.compress(_riscv()),
        "zboot": _zboot(gzip.compress(_riscv(b"\x6f\0\0\0"))),
    }[way]
    assert is_packed(packed[:1024])
    with pytest.raises(ImageError, match="kernels for EM_RISCV are not supported; supported are"):
        unpacked(packed, "Image")
