"""Raw images with changes above them, against a file that is written."""

import os
import random
from pathlib import Path

import pytest

from engine.errors import CommandError, ImageError
from engine.machine.rawdisk import BLOCK, SECTOR, ChangeBudget, HostImage, RawDisk


def image(folder: Path, data: bytes) -> Path:
    path = folder / "image"
    path.write_bytes(data)
    return path


def disk(path: Path, most: int = 1 << 20) -> RawDisk:
    return RawDisk(HostImage(str(path)), ChangeBudget(most))


def test_reads_and_writes_are_those_of_a_file(tmp_path: Path) -> None:
    source = random.Random(1)
    before = source.randbytes(10 * BLOCK + 3 * SECTOR)
    path = image(tmp_path, before)
    made, plain = disk(path), bytearray(before)
    for _ in range(400):
        start = source.randrange(len(plain) // SECTOR) * SECTOR
        size = source.randrange((len(plain) - start) // SECTOR + 1) * SECTOR
        size = min(size, source.choice((SECTOR, 3 * SECTOR, 5 * BLOCK)))
        if source.random() < 0.4:
            data = source.randbytes(size)
            made.write(start, data)
            plain[start : start + size] = data
        else:
            assert made.read(start, size) == plain[start : start + size]
    assert made.read(0, len(plain)) == plain
    assert path.read_bytes() == before


def test_a_large_sparse_image_is_no_matter(tmp_path: Path) -> None:
    path = image(tmp_path, b"")
    os.truncate(path, 1 << 42)
    made = disk(path)
    made.write((1 << 42) - SECTOR, b"x" * SECTOR)
    assert made.read((1 << 42) - BLOCK, BLOCK) == bytes(BLOCK - SECTOR) + b"x" * SECTOR
    assert len(made.changes) == 1


def test_an_image_that_shrinks_has_zeros_there(tmp_path: Path) -> None:
    path = image(tmp_path, b"x" * 4 * SECTOR)
    made = disk(path)
    os.truncate(path, SECTOR)
    assert made.read(0, 2 * SECTOR) == b"x" * SECTOR + bytes(SECTOR)


def test_changes_are_limited_over_all_disks(tmp_path: Path) -> None:
    path = image(tmp_path, bytes(64 * BLOCK))
    budget = ChangeBudget(3 * BLOCK)
    one, two = RawDisk(HostImage(str(path)), budget), RawDisk(HostImage(str(path)), budget)
    one.write(0, bytes(2 * BLOCK))
    one.write(0, bytes(2 * BLOCK))
    two.write(SECTOR, bytes(SECTOR))
    with pytest.raises(CommandError, match=r"image: the guest has changed more than .*--disk-mem"):
        two.write(5 * BLOCK, bytes(SECTOR))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (bytes(700), "700 bytes are no disk: sectors have 512"),
        (b"QFI\xfb" + bytes(508), "an image in the format qcow2; raw: qemu-img convert -O raw"),
        (bytes(64) + b"\x7f\x10\xda\xbe" + bytes(444), "VDI"),
    ],
)
def test_what_is_no_raw_image_is_refused(data: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=said):
        disk(image(tmp_path, data))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path, "neither a file nor a block device"),
        (tmp_path / "none", "No such file"),
        (tmp_path / "pipe", "neither a file nor a block device"),
        (Path("/dev/zero"), "neither a file nor a block device"),
    ):
        with pytest.raises(ImageError, match=rf"{path}: .*({said})"):
            disk(path)
