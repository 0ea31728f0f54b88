"""A disk as its driver sees it."""

import struct
from pathlib import Path

import pytest
from virtiokit import BUFFERS, NEXT, WRITE, BlockDriver

from engine.machine.clock import NO_EVENT
from engine.machine.virtioblock import LATENCY

SECTORS = 100
CONTENT = bytes(range(256)) * 2 * SECTORS
IN, OUT, FLUSH, IDENTIFY = 0, 1, 4, 8
OK, FAILED, UNKNOWN = 0, 1, 2


@pytest.fixture
def driver(tmp_path: Path) -> BlockDriver:
    image = tmp_path / "image"
    image.write_bytes(CONTENT)
    found = BlockDriver(image)
    found.start()
    return found


def test_what_is_written_is_read(driver: BlockDriver) -> None:
    assert driver.request(IN, 3, 1024) == (OK, CONTENT[1536:2560])
    assert driver.used == (1, 0, 1025)
    assert driver.request(OUT, 4, b"w" * 512)[0] == OK
    assert driver.used == (2, 0, 1)
    assert driver.request(IN, 3, 1024) == (OK, CONTENT[1536:2048] + b"w" * 512)
    assert driver.request(FLUSH, 0, 0)[0] == OK
    assert driver.request(IDENTIFY, 0, 20) == (OK, b"disk0".ljust(20, b"\0"))


@pytest.mark.parametrize(
    ("kind", "sector", "data", "status"),
    [
        (IN, SECTORS, 512, FAILED),
        (IN, SECTORS - 1, 1024, FAILED),
        (IN, (1 << 64) - 1, 512, FAILED),
        (OUT, SECTORS, b"x" * 512, FAILED),
        (OUT, 0, b"x" * 100, FAILED),
        (IN, 0, 100, FAILED),
        (IDENTIFY, 0, 19, FAILED),
        (11, 0, b"x" * 16, UNKNOWN),
        (0xFFFFFFFF, 0, 512, UNKNOWN),
    ],
)
def test_what_no_disk_does_has_a_status(
    kind: int, sector: int, data: bytes | int, status: int, driver: BlockDriver
) -> None:
    assert driver.request(kind, sector, data)[0] == status
    assert driver.request(IN, 0, 512 * SECTORS) == (OK, CONTENT)


def test_a_header_in_pieces_and_a_buffer_in_pieces(driver: BlockDriver) -> None:
    """Section 2.7.4: how a request lies in buffers is the driver's affair."""
    struct.pack_into("<I4xQ", driver.memory, BUFFERS, IN, 1)
    driver.describe(0, (BUFFERS, 7, NEXT, 1))
    driver.describe(1, (BUFFERS + 7, 9, NEXT, 2))
    driver.describe(2, (BUFFERS + 100, 0, NEXT | WRITE, 3))
    driver.describe(3, (BUFFERS + 512, 100, NEXT | WRITE, 4))
    driver.describe(4, (BUFFERS + 1024, 413, WRITE, 0))
    driver.memory[BUFFERS + 1024 + 412] = 0xEE
    driver.send()
    memory = driver.memory
    assert memory[BUFFERS + 512 : BUFFERS + 612] == CONTENT[512:612]
    assert memory[BUFFERS + 1024 : BUFFERS + 1024 + 412] == CONTENT[612:1024]
    assert memory[BUFFERS + 1024 + 412] == OK


def test_a_request_without_a_header_or_too_large_fails(driver: BlockDriver) -> None:
    driver.describe(0, (BUFFERS, 8, NEXT, 1))
    driver.describe(1, (BUFFERS + 512, 513, WRITE, 0))
    driver.send()
    assert driver.memory[BUFFERS + 1024] == FAILED
    driver.describe(0, (BUFFERS, 16, NEXT, 1))
    for number in range(1, 7):
        driver.describe(number, (0, 1 << 20, NEXT | WRITE, number + 1))
    driver.describe(7, (BUFFERS + 512, 1, WRITE, 0))
    driver.memory[BUFFERS + 512] = 0xEE
    driver.send()
    assert driver.memory[BUFFERS + 512] == FAILED


def test_the_interrupt_comes_at_its_time(driver: BlockDriver) -> None:
    device, function = driver.device, driver.device.function
    driver.request(IN, 0, 512)
    assert device.due == driver.clock.now + LATENCY + 512 + 16
    device.pass_time()
    assert not function.level
    driver.clock.spend(device.due - driver.clock.now)
    device.pass_time()
    assert (function.level, device.due) == (True, NO_EVENT)
    assert (device.read(0x38, 1), device.read(0x38, 1), function.level) == (1, 0, False)
    struct.pack_into("<H", driver.memory, 0x2000, 1)  # the driver polls
    driver.request(IN, 0, 512)
    assert device.due == NO_EVENT


def test_nothing_is_served_before_the_driver_is_ready(driver: BlockDriver) -> None:
    driver.device.write(0x14, 1, 0)
    assert driver.device.read(0x14, 1) == 0
    driver.sent = 0
    driver.memory[0x3000:0x4000] = bytes(4096)
    assert driver.request(IN, 0, 512)[0] == 0xEE
    driver.start(features=0)
    assert not driver.device.read(0x14, 1) & 8  # without VERSION_1 there is no agreement
    driver.start(features=1 << 32 | 1 << 50)
    assert not driver.device.read(0x14, 1) & 8
