"""Registers of a virtio device, and its capabilities."""

import struct
from pathlib import Path

import pytest
from virtiokit import BlockDriver


@pytest.fixture
def driver(tmp_path: Path) -> BlockDriver:
    image = tmp_path / "image"
    image.write_bytes(bytes(3 << 20))
    return BlockDriver(image)


def capabilities(driver: BlockDriver) -> dict[int, tuple[int, int, int]]:
    """Bar, offset and length by the kind: virtio 1.2, section 4.1.4."""
    space = driver.device.function.space
    assert space[6] & 0x10
    found, at = {}, space[0x34]
    while at:
        kind, following, size, number, bar, offset, length = struct.unpack_from(
            "<5B3x2I", space, at
        )
        assert kind == 9
        assert at + size <= 256
        found[number] = bar, offset, length
        at = following
    return found


def test_each_part_has_its_place(driver: BlockDriver) -> None:
    assert capabilities(driver) == {
        1: (0, 0, 0x38), 2: (0, 0x3C, 2), 3: (0, 0x38, 1), 4: (0, 0x40, 0x40), 5: (0, 0, 0)
    }  # fmt: skip
    assert driver.device.function.get(0, 4) == 0x1042_1AF4


def test_the_disk_says_how_large_it_is(driver: BlockDriver) -> None:
    device = driver.device
    assert device.read(0x40, 4) | device.read(0x44, 4) << 32 == 3 << 11
    assert (device.read(0x48, 4), device.read(0x4C, 4), device.read(0x54, 4)) == (65536, 62, 512)
    assert device.read(0x7C, 4) == 0


def test_registers_are_read_as_they_were_written(driver: BlockDriver) -> None:
    device = driver.device
    device.write(0x18, 2, 16)
    for wrong in (0, 3, 128, 0xFFFF):
        device.write(0x18, 2, wrong)
    assert (device.read(0x12, 2), device.read(0x18, 2), device.read(0x10, 2)) == (1, 16, 0xFFFF)
    for at in range(0x20, 0x38, 4):
        device.write(at, 4, 0xA0000000 + at)
        assert device.read(at, 4) == 0xA0000000 + at
    assert device.read(0x21, 2) == 0x0000
    device.write(0x16, 2, 1)  # a queue that there is not has no size
    assert (device.read(0x18, 2), device.read(0x20, 4)) == (0, 0)
    device.write(0, 4, 0)
    low = device.read(4, 4)
    device.write(0, 4, 1)
    assert (low, device.read(4, 4)) == (1 << 28 | 1 << 9 | 1 << 6 | 1 << 2 | 1 << 1, 1)
    device.write(0, 4, 2)
    assert device.read(4, 4) == 0
