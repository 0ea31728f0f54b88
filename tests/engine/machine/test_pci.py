"""The bus: configuration by ports, ports that move, lines that are shared."""

from pathlib import Path

import pytest
from virtiokit import BlockDriver

from engine.machine.pci import ADDRESS, DATA, LINES, PciBus
from engine.machine.virtiopci import SUBSYSTEM

ONES = 0xFFFFFFFF


class Lines(dict[int, bool]):
    """Levels of the controllers' lines."""

    def set_line(self, line: int, level: bool) -> None:
        self[line] = level


@pytest.fixture
def drivers(tmp_path: Path) -> list[BlockDriver]:
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 16))
    return [BlockDriver(image) for _ in range(3)]


def bus_of(drivers: list[BlockDriver], lines: Lines) -> PciBus:
    bus = PciBus(lines.set_line)
    for driver in drivers:
        bus.add(driver.device.function, driver.device, SUBSYSTEM)
    return bus


def config(bus: PciBus, slot: int, offset: int, size: int = 4) -> int:
    bus.write(ADDRESS, 4, 1 << 31 | slot << 11 | offset & 0xFC)
    return bus.read(DATA + (offset & 3), size)


def configure(bus: PciBus, slot: int, offset: int, value: int, size: int = 4) -> None:
    bus.write(ADDRESS, 4, 1 << 31 | slot << 11 | offset & 0xFC)
    bus.write(DATA + (offset & 3), size, value)


def test_a_bus_without_functions_is_none() -> None:
    bus = PciBus(Lines().set_line)
    bus.write(ADDRESS, 4, 1 << 31)
    assert bus.read(ADDRESS, 4) == bus.read(DATA, 4) == ONES


def test_functions_are_found_in_their_slots(drivers: list[BlockDriver]) -> None:
    bus = bus_of(drivers, Lines())
    assert config(bus, 0, 8) >> 8 == 0x060000
    assert [config(bus, slot, 0) for slot in range(1, 5)] == [0x1042_1AF4] * 3 + [ONES]
    assert [config(bus, slot, 0x3C, 1) for slot in (1, 2, 3)] == [LINES[0], LINES[1], LINES[0]]
    assert config(bus, 1, 2, 2) == 0x1042
    assert config(bus, 1, 3, 1) == 0x10
    bus.write(ADDRESS, 4, 1 << 31 | 1 << 16)
    assert bus.read(DATA, 4) == ONES  # another bus
    bus.write(ADDRESS, 4, 1 << 31 | 1 << 11 | 1 << 8)
    assert bus.read(DATA, 4) == ONES  # another function
    bus.write(ADDRESS, 4, 1 << 11)
    assert bus.read(DATA, 4) == ONES  # not enabled
    assert bus.read(DATA + 3, 2) == 0xFFFF


def test_the_size_of_the_ports_is_asked_as_always(drivers: list[BlockDriver]) -> None:
    """PCI 3.0, section 6.2.5.1: ones are written, and the bits that stay tell the size."""
    bus = bus_of(drivers, Lines())
    configure(bus, 1, 0x10, ONES)
    assert config(bus, 1, 0x10) == 0xFF81
    configure(bus, 1, 0x10, 0xD000)
    assert bus.read(0xD012, 2) == 1
    configure(bus, 1, 4, 0, 2)
    assert bus.read(0xD012, 2) == 0xFFFF
    configure(bus, 1, 0, 0)
    assert config(bus, 1, 0) == 0x1042_1AF4


def test_registers_are_reached_through_the_capability(drivers: list[BlockDriver]) -> None:
    """Virtio 1.2, section 4.1.4.9: for firmware that cannot reach the ports."""
    bus = bus_of(drivers, Lines())
    window = drivers[0].device.function.window
    configure(bus, 1, window + 8, 0x14)
    configure(bus, 1, window + 12, 1)
    configure(bus, 1, window + 16, 3, 1)
    assert config(bus, 1, window + 16, 1) == drivers[0].device.status == 3
    configure(bus, 1, window + 8, 0x80)
    assert config(bus, 1, window + 16, 1) == 0
    configure(bus, 1, window + 8, ONES)
    configure(bus, 1, window + 16, 3, 1)


def test_a_line_is_high_while_one_function_asks(drivers: list[BlockDriver]) -> None:
    lines = Lines()
    bus = bus_of(drivers, lines)
    first, third = drivers[0].device, drivers[2].device
    first.function.level = third.function.level = True
    bus.update_lines()
    assert lines == {LINES[0]: True, LINES[1]: False}
    assert config(bus, 1, 6, 2) & 8
    bus.read(0xC038, 1)
    assert lines[LINES[0]]
    configure(bus, 3, 4, 0x401, 2)  # its driver has disabled the interrupt
    assert not lines[LINES[0]]
    configure(bus, 3, 4, 1, 2)
    bus.read(0xC138, 1)
    assert not lines[LINES[0]]
