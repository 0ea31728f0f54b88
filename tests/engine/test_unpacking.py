"""What files may unpack to: recordings have a test of their own, here are images and sections."""

import gzip
import subprocess
import zlib
from pathlib import Path

import pytest

from engine.errors import CommandError, ImageError
from engine.image import ElfImage
from engine.image.kernel.packing import unpacked
from engine.image.sections import debug_bytes
from engine.unpacking import beyond_limit, unpack_limit

GUEST = Path("samples/bin/x86_64/structs")


@pytest.mark.parametrize(
    ("allowed", "limit"),
    [("", 356), ("200", 356), ("1000", 1000), ("2K", 2048), ("3m", 3 << 20), ("1G", 1 << 30)],
)
def test_limit(monkeypatch: pytest.MonkeyPatch, allowed: str, limit: int) -> None:
    """What is packed may unpack to a number of times its size; the user allows more."""
    monkeypatch.setenv("KPROBE_TUI_UNPACK_MAX", allowed)
    assert unpack_limit(8, 100) == limit
    assert unpack_limit(8, 100, 50) == max(limit if limit > 356 else 50, 200 * (allowed == "200"))


@pytest.mark.parametrize("allowed", ["x", "1X", "1GG", "-1", "1.5G", "²", "G"])
def test_a_limit_that_is_none(monkeypatch: pytest.MonkeyPatch, allowed: str) -> None:
    monkeypatch.setenv("KPROBE_TUI_UNPACK_MAX", allowed)
    with pytest.raises(CommandError, match="KPROBE_TUI_UNPACK_MAX"):
        unpack_limit(8, 100)


def test_the_way_out_is_named() -> None:
    assert "KPROBE_TUI_UNPACK_MAX=3601M" in beyond_limit((3600 << 20) + 1, 1 << 20)


def test_a_kernel_image_that_is_a_bomb() -> None:
    """A gzip file of 200 KB that unpacks to 200 MB of zeros."""
    packed = gzip.compress(b"\x7fELF" + bytes(200 << 20), 6)
    with pytest.raises(ImageError, match="KPROBE_TUI_UNPACK_MAX"):
        unpacked(packed, "Image.gz")


def test_a_debug_section_that_is_a_bomb(tmp_path: Path) -> None:
    """Its file is opened without it, and the damage says why."""
    content = b"ZLIB" + (200 << 20).to_bytes(8, "big") + zlib.compress(bytes(200 << 20), 9)
    (tmp_path / "bomb").write_bytes(content)
    words = ("--remove-section", ".debug_info", "--add-section")
    section = f".zdebug_info={tmp_path / 'bomb'}"
    subprocess.run(["objcopy", *words, section, GUEST, tmp_path / "a"], check=True)
    image = ElfImage.open(str(tmp_path / "a"))
    assert debug_bytes(image, ".debug_info") == b""
    assert any("KPROBE_TUI_UNPACK_MAX=200M" in line for line in image.damage.found())
