"""System calls about sockets: what a wait is, and what is told."""

import errno
import struct

from fskit import Process

from engine.linux.wait import Wait

BUF = 0x200000


def pair(process: Process) -> tuple[int, int]:
    assert process.call("socketpair", 1, 1, 0, BUF) == 0
    one, other = struct.unpack("<ii", process.memory.read(BUF, 8))
    return one, other


def test_a_time_out_ends_a_wait_and_forbids_its_restart() -> None:
    process = Process()
    one, _ = pair(process)
    wait = process.start("recvfrom", one, BUF, 9, 0, 0, 0)
    assert isinstance(wait, Wait)
    assert wait.deadline is None
    assert wait.restart
    assert process.call("setsockopt", one, 1, 20, struct.pack("<qq", 2, 0), 16) == 0
    for name, more in (("recvfrom", (0, 0, 0)), ("read", ())):
        wait = process.start(name, one, BUF, 9, *more)
        assert isinstance(wait, Wait)
        assert wait.deadline == process.clock.now + 2 * 10**9
        assert wait.timeout_result == -errno.EAGAIN
        assert not wait.restart


def test_what_is_done_counts_when_a_wait_is_cut_short() -> None:
    process = Process()
    one, other = pair(process)
    for name, more in (("sendto", (0, 0, 0)), ("write", ())):
        wait = process.start(name, one, 0x1000, 1 << 20, *more)
        assert isinstance(wait, Wait)
        assert wait.partial is not None
        sent = wait.partial()
        assert 0 < sent < 1 << 20
        while process.call("recvfrom", other, BUF, 1 << 20, 0x40, 0, 0) > 0:
            pass
    process.write(one, b"some")
    wait = process.start("recvfrom", other, BUF, 9, 0x100, 0, 0)
    assert isinstance(wait, Wait)
    assert wait.partial is not None
    assert wait.partial() == 4


def test_who_waits_to_receive_is_woken_and_not_asked() -> None:
    process = Process()
    one, other = pair(process)
    sleepers = process.files.get(one).sleepers
    for name, more in (("recvfrom", (0, 0, 0)), ("read", ())):
        wait = process.start(name, one, BUF, 9, *more)
        assert isinstance(wait, Wait)
        assert wait.woken_by_calls
        assert wait.poll() is None
        assert sleepers == {process: None}
        before = process.wakes
        process.write(other, b"x")
        assert process.wakes == before + 1
        assert wait.poll() == 1
        assert not sleepers
    wait = process.start("recvfrom", one, BUF, 9, 0, 0, 0)
    assert isinstance(wait, Wait)
    assert wait.leave is not None
    wait.leave()
    assert not sleepers


def test_an_option_that_is_not_there_is_told() -> None:
    process = Process()
    one, _ = pair(process)
    assert process.call("setsockopt", one, 1, 999, bytes(4), 4) == -errno.ENOPROTOOPT
    assert process.reports == ["socket option 999 of level 1"]


def test_urgent_data_is_told() -> None:
    process = Process()
    one, _ = pair(process)
    assert process.call("sendto", one, BUF, 1, 1, 0, 0) == -errno.EOPNOTSUPP
    assert process.reports == ["urgent data (MSG_OOB)"]
