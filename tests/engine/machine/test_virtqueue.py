"""Queues of guests that mean harm: each is refused, and none is walked for ever."""

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from virtiokit import (
    AVAILABLE,
    BUFFERS,
    INDIRECT,
    INNER,
    MEMORY,
    NEXT,
    TABLE,
    USED,
    WRITE,
    BlockDriver,
)

NEEDS_RESET = 0x40


@pytest.fixture
def driver(tmp_path: Path) -> BlockDriver:
    image = tmp_path / "image"
    image.write_bytes(bytes(64 << 10))
    found = BlockDriver(image)
    found.start()
    return found


def loop(driver: BlockDriver) -> None:
    driver.describe(0, (BUFFERS, 16, NEXT, 1))
    driver.describe(1, (BUFFERS, 16, NEXT, 0))
    driver.send()


def outside(driver: BlockDriver) -> None:
    driver.describe(0, (MEMORY - 8, 16, NEXT, 1))
    driver.send()


def around(driver: BlockDriver) -> None:
    driver.describe(0, ((1 << 64) - 8, 16, 0, 0))
    driver.send()


def beyond_the_table(driver: BlockDriver) -> None:
    driver.describe(0, (BUFFERS, 16, NEXT, 9))
    driver.send()


def unknown_head(driver: BlockDriver) -> None:
    driver.send(0xFFFF)


def inner_in_inner(driver: BlockDriver) -> None:
    driver.describe(0, (INNER, 32, INDIRECT, 0))
    driver.describe(0, (INNER, 32, INDIRECT, 0), INNER)
    driver.send()


def inner_of_odd_size(driver: BlockDriver) -> None:
    driver.describe(0, (INNER, 33, INDIRECT, 0))
    driver.send()


def inner_too_large(driver: BlockDriver) -> None:
    driver.describe(0, (INNER, 16 * 65, INDIRECT, 0))
    driver.send()


def inner_outside(driver: BlockDriver) -> None:
    driver.describe(0, (MEMORY - 16, 32, INDIRECT, 0))
    driver.describe(0, (BUFFERS, 16, NEXT, 1), MEMORY - 16)
    driver.send()


def inner_loop(driver: BlockDriver) -> None:
    driver.describe(0, (INNER, 32, INDIRECT, 0))
    driver.describe(0, (BUFFERS, 16, NEXT, 1), INNER)
    driver.describe(1, (BUFFERS, 16, NEXT, 0), INNER)
    driver.send()


def wrong_order(driver: BlockDriver) -> None:
    driver.describe(0, (BUFFERS, 16, WRITE | NEXT, 1))
    driver.describe(1, (BUFFERS, 16, 0, 0))
    driver.send()


def no_status(driver: BlockDriver) -> None:
    driver.describe(0, (BUFFERS, 16, 0, 0))
    driver.send()


def too_many(driver: BlockDriver) -> None:
    struct.pack_into("<H", driver.memory, AVAILABLE + 2, 9)
    driver.device.write(0x3C, 2, 0)


@pytest.mark.parametrize(
    "harm",
    [
        *(loop, outside, around, beyond_the_table, unknown_head, inner_in_inner),
        *(inner_of_odd_size, inner_too_large, inner_outside, inner_loop, wrong_order),
        *(no_status, too_many),
    ],
)
def test_a_malformed_queue_stops_the_device(
    harm: Callable[[BlockDriver], None], driver: BlockDriver
) -> None:
    """Section 2.1.1: the device asks to be reset, and does nothing until it is."""
    harm(driver)
    assert driver.device.read(0x14, 1) & NEEDS_RESET
    assert driver.device.function.level
    assert driver.device.read(0x38, 1) == 2
    assert not driver.device.function.level
    assert driver.used[0] == 0
    driver.sent = 0
    driver.start()
    assert driver.request(0, 0, 512) == (0, bytes(512))


@pytest.mark.parametrize("place", [0x20, 0x28, 0x30])
@pytest.mark.parametrize("address", [MEMORY - 8, MEMORY, (1 << 64) - 2, 1 << 40])
def test_rings_outside_the_memory_stop_the_device(
    place: int, address: int, driver: BlockDriver
) -> None:
    driver.device.write(0x14, 1, 0)
    driver.device.write(8, 4, 1)
    driver.device.write(0xC, 4, 1)
    driver.device.write(0x14, 1, 11)
    for at, value in ((0x20, TABLE), (0x28, AVAILABLE), (0x30, USED), (place, address)):
        driver.device.write(at, 4, value & 0xFFFFFFFF)
        driver.device.write(at + 4, 4, value >> 32)
    driver.device.write(0x1C, 2, 1)
    driver.device.write(0x14, 1, 15)
    driver.describe(0, (BUFFERS, 16, NEXT, 1))
    driver.describe(1, (BUFFERS + 512, 513, WRITE, 0))
    driver.send()
    if address != MEMORY - 8 or place == 0x20:
        assert driver.device.read(0x14, 1) & NEEDS_RESET


def test_a_request_may_lie_in_a_table_of_its_own(driver: BlockDriver) -> None:
    driver.describe(3, (INNER, 48, INDIRECT, 0))
    driver.describe(0, (BUFFERS, 16, NEXT, 2), INNER)
    driver.describe(2, (BUFFERS + 512, 512, NEXT | WRITE, 1), INNER)
    driver.describe(1, (BUFFERS + 2048, 1, WRITE, 0), INNER)
    driver.memory[BUFFERS + 2048] = 0xEE
    driver.send(3)
    assert driver.memory[BUFFERS + 2048] == 0
    assert driver.used == (1, 3, 513)


def test_rings_go_round(driver: BlockDriver) -> None:
    for number in range(70_000):
        driver.sent = number  # the driver's own index goes round, too
        if number % 997 == 0 or number > 65_500:
            struct.pack_into("<H", driver.memory, AVAILABLE + 2, number & 0xFFFF)
            driver.device.queue.seen = driver.device.queue.done = number & 0xFFFF
            assert driver.request(0, 0, 512)[0] == 0
            assert driver.used[0] == (number + 1) & 0xFFFF


def test_random_queues_are_served_or_refused(driver: BlockDriver) -> None:
    """Half sensible requests, by the number; nothing but the limit of changes is raised."""
    source = random.Random(7)
    served = refused = 0
    for _ in range(3000):
        memory = driver.memory
        for table in (TABLE, INNER):
            for number in range(8):
                address = source.choice((BUFFERS, INNER, USED, AVAILABLE, TABLE, MEMORY - 600))
                address = source.getrandbits(64) if source.random() < 0.02 else address
                size = source.choice((1, 16, 48, 512, 513, 1024, source.getrandbits(32)))
                size = source.choice((16, 512)) if source.random() < 0.8 else size
                flags = source.choice((0, NEXT, NEXT | WRITE, WRITE, source.getrandbits(4)))
                driver.describe(number, (address, size, flags, source.randrange(9)), table)
        kind = source.choice((0, 1, 4, 8, source.getrandbits(32)))
        struct.pack_into("<I4xQ", memory, BUFFERS, kind, source.randrange(130))
        driver.device.queue.seen = driver.sent = source.getrandbits(16)
        driver.send(source.randrange(9))
        if driver.device.read(0x14, 1) & NEEDS_RESET:
            refused += 1
            driver.start()
        else:
            served += 1
    assert served > 100
    assert refused > 100
    assert len(driver.disk.changes) <= 16
