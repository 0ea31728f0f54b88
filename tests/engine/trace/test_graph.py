"""Calls of several processes: each has its stacks, though all are at the same addresses."""

from engine.probes.kretprobe import KretprobeInstance
from engine.trace.graph import Calls, GraphProbe, Stack, entry_info, exit_info
from engine.trace.staging import Staging

LOW, HIGH = 0x7000, 0x8000


class Guest:
    """Threads on stacks at one place, which call a function."""

    def __init__(self) -> None:
        self.thread = 1000
        self.rows = bytearray()
        self.staging = Staging(self.rows.extend)
        self.probe = GraphProbe(0x400000, entry_info(2))
        self.calls = Calls(
            self.staging,
            exit_info(1),
            lambda: 5,
            lambda: self.thread,
            lambda slot: Stack(LOW, HIGH, exact=True),
            None,
        )
        self.calls.process = 1000

    def run(self, thread: int) -> None:
        self.thread = thread
        self.calls.switched(thread, thread)

    def enter(self, slot: int) -> KretprobeInstance:
        instance = KretprobeInstance(self.probe, 0x400100, slot)
        assert self.calls.entered(instance)
        return instance


def test_calls_of_another_process_are_no_callers() -> None:
    guest = Guest()
    outer = guest.enter(0x7F00)
    guest.run(1001)
    child = guest.enter(0x7F80)  # above the frame of the first process's call
    assert child.data == (5, 0)
    guest.run(1000)
    inner = guest.enter(0x7E00)
    assert inner.data == (5, 1)
    guest.calls.returned(inner)
    guest.calls.returned(outer)
    guest.run(1001)
    guest.calls.returned(child)
    calls = guest.calls
    assert (calls.entries, calls.exits, calls.left, calls.pending, calls.late) == (3, 3, 0, 0, 0)


def test_calls_that_a_process_ends_in_stay_pending() -> None:
    guest = Guest()
    guest.enter(0x7F00)
    guest.run(1001)
    guest.enter(0x7F00)
    guest.enter(0x7E00)
    guest.calls.process_over(1001)
    assert guest.calls.pending == 3
    fresh = guest.enter(0x7F00)  # of the program that it has begun
    assert fresh.data == (5, 0)
    assert guest.calls.pending == 4
