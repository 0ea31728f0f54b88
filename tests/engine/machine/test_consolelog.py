"""The log of a console: what was typed comes again in its time, what was written goes out once."""

import pytest

from engine.cpu.unicorn_system import MachineRecord
from engine.machine import consolelog
from engine.machine.clock import MachineClock
from engine.machine.consolelog import ConsoleLog, ConsoleTyped


class Typist:
    """Types lines, one at a time that is asked for."""

    def __init__(self, *lines: bytes) -> None:
        self.lines = list(lines)
        self.asked = 0

    @property
    def over(self) -> bool:
        """True once all is typed."""
        return not self.lines

    def take(self, nanoseconds: int) -> bytes:
        """Give the next line; an empty one is nothing yet."""
        self.asked += 1
        return self.lines.pop(0) if self.lines else b""


def logged(*lines: bytes) -> tuple[ConsoleLog, MachineClock, Typist, bytearray]:
    """A log of a console at which lines are typed, and what was written there."""
    typist, written = Typist(*lines), bytearray()
    log = ConsoleLog(typist, written.extend)
    clock = MachineClock(MachineRecord())
    log.attach(clock, lambda: None)
    return log, clock, typist, written


def test_what_was_typed_comes_again_when_it_came() -> None:
    log, clock, typist, _ = logged(b"", b"one\n", b"", b"two\n", b"three\n")
    start, state = log.position, clock.state()
    found = []
    for _ in range(4):
        clock.spend(100)
        found.append(log.take(0))
    assert found == [b"", b"one\n", b"", b"two\n"]
    for _ in range(2):
        log.position = start
        clock.restore(state)
        again = []
        for _ in range(4):
            clock.spend(100)
            assert not log.over
            again.append(log.take(0))
        assert again == found
    assert typist.asked == 4
    clock.spend(100)
    assert log.take(0) == b"three\n"
    assert log.over


def test_nothing_new_comes_in_the_past() -> None:
    """The machine had asked in vain at a later moment: what is typed now comes behind that."""
    log, clock, typist, _ = logged(b"", b"", b"late\n")
    state = clock.state()
    for _ in range(2):
        clock.spend(100)
        assert log.take(0) == b""
    clock.restore(state)
    clock.spend(150)
    assert log.take(0) == b""
    assert typist.asked == 2
    clock.spend(100)
    assert log.take(0) == b"late\n"


def test_what_is_written_goes_out_once() -> None:
    log, _, _, written = logged()
    log.put(b"ab")
    place = log.position
    log.put(b"cd")
    log.position = place
    log.put(b"c")
    assert written == b"abcd"
    log.put(b"def")
    assert written == b"abcdef"


def test_another_history_forgets_what_came_later() -> None:
    log, clock, _, written = logged(b"one\n", b"two\n", b"three\n")
    log.take(0)
    place, state = log.position, clock.state()
    clock.spend(100)
    log.take(0)
    log.put(b"x")
    log.position = place[0], place[1]
    clock.restore(state)
    log.begin_again()
    log.put(b"y")
    clock.spend(50)
    assert log.take(0) == b"three\n"
    assert written == b"xy"


def test_more_than_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it still comes, and the log says that it does not know all."""
    monkeypatch.setattr(consolelog, "_TYPED_MOST", 5)
    log, clock, _, _ = logged(b"one\n", b"two\n")
    assert (log.take(0), log.whole) == (b"one\n", True)
    clock.spend(10)
    assert (log.take(0), log.whole) == (b"two\n", False)


def test_a_machine_that_asks_twice_at_a_moment_gets_it_where_it_waited() -> None:
    told: list[ConsoleTyped] = []
    log = ConsoleLog(Typist(b"", b"one\n", b"two\n"), lambda data: None, tell=told.append)
    clock = MachineClock(MachineRecord())
    log.attach(clock, lambda: None)
    clock.spend(100)
    assert (log.take(0), log.take(7)) == (b"", b"one\n")
    assert told == [ConsoleTyped(100, True, b"one\n")]
    again = ConsoleLog(Typist(b"more\n"), lambda data: None, told)
    again.attach(clock, lambda: None)
    assert (again.take(0), again.take(3)) == (b"", b"one\n")
    assert not again.over
    assert again.take(0) == b"more\n"


def test_where_input_ends_and_where_the_machine_is_stopped() -> None:
    told: list[ConsoleTyped] = []
    halted: list[int] = []

    class Silent(Typist):
        """Nobody types, and somebody could."""

        @property
        def over(self) -> bool:
            """Nobody has ended the input."""
            return False

    log = ConsoleLog(given := Silent(), lambda data: None, tell=told.append)
    clock = MachineClock(MachineRecord())
    log.attach(clock, lambda: halted.append(clock.now))
    assert log.take(5) == b""
    clock.spend(10)
    log.stopping = True
    assert log.take(5) == b""
    assert told == [ConsoleTyped(10, True, b"", stops=True)]
    assert halted == [10]
    again = ConsoleLog(given, lambda data: None, [ConsoleTyped(4, True, b""), *told])
    other = MachineClock(MachineRecord())
    again.attach(other, lambda: halted.append(-other.now))
    other.spend(4)
    assert (again.take(0), again.over) == (b"", False)
    assert (again.take(1), again.over) == (b"", True)
    other.spend(6)
    assert (again.take(0), halted) == (b"", [10])
    assert (again.take(1), halted) == (b"", [10, -10])
