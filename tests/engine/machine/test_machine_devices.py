"""The devices of a machine, by what their manuals say of each."""

from datetime import UTC, datetime

import pytest

from engine.cpu.unicorn_system import MachineRecord
from engine.machine.clock import NO_EVENT, MachineClock
from engine.machine.interrupts import InterruptControllers
from engine.machine.realtime import RealTimeClock
from engine.machine.serial import SerialPort
from engine.machine.timer import GATE, HERTZ, SECOND, IntervalTimer


def controllers(mask: int = 0) -> InterruptControllers:
    """Both, set up as Linux does: vectors 0x30 and 0x38."""
    pair = InterruptControllers()
    for port, base, cascade in ((0x20, 0x30, 4), (0xA0, 0x38, 2)):
        pair.write(port, 0x11)
        for value in (base, cascade, 1):
            pair.write(port + 1, value)
    pair.write(0x21, mask & 0xFF)
    pair.write(0xA1, mask >> 8)
    return pair


def test_the_lowest_line_comes_first_and_keeps_higher_ones_waiting() -> None:
    pair = controllers()
    pair.set_line(4, True)
    pair.set_line(1, True)
    assert pair.acknowledge() == 0x31
    assert not pair.waits  # line 4 is served once line 1 is done
    pair.write(0x20, 0x20)
    assert pair.waits
    assert pair.acknowledge() == 0x34


def test_lines_of_the_second_controller_come_through_the_first() -> None:
    pair = controllers()
    pair.set_line(8, True)
    pair.set_line(14, True)
    assert pair.waits
    assert pair.acknowledge() == 0x38
    assert not pair.waits
    for port in (0xA0, 0x20):
        pair.write(port, 0x20)
    assert pair.waits
    assert pair.acknowledge() == 0x3E
    pair.write(0x20, 0x0B)
    pair.write(0xA0, 0x0B)
    assert (pair.read(0x20), pair.read(0xA0)) == (4, 0x40)


def test_a_masked_line_waits_until_it_is_unmasked() -> None:
    pair = controllers(mask=0x10)
    pair.set_line(4, True)
    assert not pair.waits
    assert pair.read(0x21) == 0x10
    pair.write(0x21, 0)
    assert pair.waits


def test_a_line_that_stays_high_requests_once() -> None:
    pair = controllers()
    pair.set_line(3, True)
    assert pair.acknowledge() == 0x33
    pair.write(0x20, 0x63)  # a specific end of interrupt
    pair.set_line(3, True)
    assert not pair.waits
    pair.pulse(3)
    assert pair.waits


def test_nothing_waits_and_one_is_asked_for_all_the_same() -> None:
    assert controllers().acknowledge() == 0x37


def timers() -> tuple[MachineClock, IntervalTimer, list[int]]:
    clock = MachineClock(MachineRecord())
    ticks: list[int] = []
    return clock, IntervalTimer(clock, lambda: ticks.append(clock.now)), ticks


@pytest.mark.parametrize("count", [2, 100, 1193, 4772, 65535, 0])
def test_the_timer_ticks_at_its_rate(count: int) -> None:
    clock, timer, ticks = timers()
    for port, value in ((0x43, 0x34), (0x40, count & 0xFF), (0x40, count >> 8)):
        timer.write(port, value)
    for _ in range(50):
        clock.wait()
        timer.pass_time()
    period = (count or 65536) * SECOND / HERTZ
    assert len(ticks) == 50
    assert all(abs(at - (n + 1) * period) < 2 for n, at in enumerate(ticks))


def test_a_count_runs_once() -> None:
    clock, timer, ticks = timers()
    for port, value in ((0x43, 0x38), (0x40, 0xA9), (0x40, 0x04)):  # mode 4
        timer.write(port, value)
    clock.wait()
    timer.pass_time()
    assert ticks == [clock.now]
    assert clock.event == NO_EVENT


def test_a_latched_count_stays() -> None:
    clock, timer, _ = timers()
    for port, value in ((0x43, 0x34), (0x40, 0xFF), (0x40, 0xFF)):
        timer.write(port, value)
    clock.spend(SECOND * 1000 // HERTZ)
    timer.write(0x43, 0)
    clock.spend(SECOND * 5000 // HERTZ)
    latched = timer.read(0x40) | timer.read(0x40) << 8
    later = timer.read(0x40) | timer.read(0x40) << 8
    assert 0xFFFF - latched in (999, 1000)
    assert latched - later in (4999, 5000, 5001)


def test_the_gate_starts_the_third_counter() -> None:
    """As Linux measures the processor: pit_calibrate_tsc of arch/x86/kernel/tsc.c."""
    clock, timer, _ = timers()
    timer.write(GATE, 0)
    for port, value in ((0x43, 0xB0), (0x42, 0xA9), (0x42, 0x04)):
        timer.write(port, value)
    timer.write(GATE, 1)
    assert not timer.read(GATE) & 0x20
    clock.spend(SECOND * 0x4A9 // HERTZ + 2)
    assert timer.read(GATE) & 0x21 == 0x21


def test_the_real_time_clock_counts_on() -> None:
    clock = MachineClock(MachineRecord())
    cmos = RealTimeClock(clock, datetime(2027, 12, 31, 23, 59, 58, tzinfo=UTC))

    def read() -> list[int]:
        found = []
        for index in (0x32, 9, 8, 7, 4, 2, 0):
            cmos.write(0x70, index)
            found.append(cmos.read(0x71))
        return found

    assert read() == [0x20, 0x27, 0x12, 0x31, 0x23, 0x59, 0x58]
    clock.spend(3 * SECOND)
    assert read() == [0x20, 0x28, 0x01, 0x01, 0x00, 0x00, 0x01]
    cmos.write(0x70, 0x40)
    cmos.write(0x71, 0x99)
    assert cmos.read(0x71) == 0x99


def serials() -> tuple[SerialPort, list[bytes], list[bool]]:
    sent: list[bytes] = []
    levels: list[bool] = [False]
    return SerialPort(sent.append, levels.append), sent, levels


def test_the_serial_port_says_when_it_is_empty_and_when_something_came() -> None:
    port, sent, levels = serials()
    port.write(0x3FC, 8)  # the interrupt's line is on
    port.write(0x3F9, 3)
    assert levels[-1]
    assert port.read(0x3FA) & 0xF == 2
    assert not levels[-1]
    port.write(0x3F8, 0x41)
    assert sent == [b"A"]
    assert levels[-1]
    assert port.read(0x3FA) & 0xF == 2
    port.give(b"xy")
    assert levels[-1]
    assert port.read(0x3FA) & 0xF == 4
    assert port.read(0x3FD) & 1
    assert (port.read(0x3F8), port.read(0x3F8)) == (ord("x"), ord("y"))
    assert not levels[-1]
    assert port.read(0x3FA) & 0xF == 1
    assert port.listens


def test_the_serial_port_loops_back_and_keeps_its_divisor_apart() -> None:
    port, sent, _ = serials()
    port.write(0x3FB, 0x83)
    port.write(0x3F8, 1)
    port.write(0x3FB, 3)
    port.write(0x3FC, 0x10 | 0xA)
    port.write(0x3F8, 0x55)
    assert not sent
    assert port.read(0x3F8) == 0x55
    assert port.read(0x3FE) & 0xF0 == 0x90  # as autoconfig of drivers/tty/serial/8250 looks for
    for value in range(20):
        port.write(0x3F8, value)
    assert [port.read(0x3F8) for _ in range(18)] == [*range(16), 0, 0]
    port.write(0x3FB, 0x83)
    assert (port.read(0x3F8), port.read(0x3F9)) == (1, 0)


def test_a_line_with_a_level_asks_until_it_falls() -> None:
    """Two functions share it: the second one's request is not lost at the end of the first."""
    pair = controllers()
    pair.trigger_by_level(11)
    assert (pair.read_levels(0x4D0), pair.read_levels(0x4D1)) == (0, 8)
    pair.set_line(11, True)
    for _ in range(2):
        assert pair.waits
        assert pair.acknowledge() == 0x3B
        assert not pair.waits
        for port in (0xA0, 0x20):
            pair.write(port, 0x20)
        assert pair.waits
    pair.set_line(11, False)
    assert not pair.waits
    pair.write_levels(0x4D0, 0xFF)
    assert pair.read_levels(0x4D0) == 0xF8  # timer, keyboard and cascade have no level
