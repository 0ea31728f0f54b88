"""Pseudo-terminals by number; what they do is compared with a kernel in test_differential."""

import errno
import os
import struct

from fskit import SIZE, Process

BUF = SIZE // 2
TIOCGPTN = 0x80045430


def master(process: Process) -> tuple[int, int]:
    """A descriptor of a new master, and the number of its slave."""
    fd = process.open("/dev/ptmx", os.O_RDWR)
    assert fd >= 0
    assert process.call("ioctl", fd, TIOCGPTN, BUF) == 0
    return fd, struct.unpack("<i", process.memory.read(BUF, 4))[0]


def test_a_number_is_free_again_after_its_master() -> None:
    process = Process()
    first, one = master(process)
    _, two = master(process)
    assert process.ls("/dev/pts") == [b"1", b"2", b"ptmx"]
    process.call("close", first)
    assert process.ls("/dev/pts") == [b"2", b"ptmx"]
    assert (one, two, master(process)[1]) == (1, 2, 1)


def test_they_run_out() -> None:
    process = Process()
    found = [master(process)[1] for _ in range(255)]

    assert found == list(range(1, 256))
    assert process.open("/dev/ptmx", os.O_RDWR) == -errno.ENOSPC


def test_the_ends_hold_a_bounded_amount() -> None:
    process = Process()
    fd, number = master(process)
    process.call("ioctl", fd, 0x40045431, process.put(struct.pack("<i", 0)))
    slave = process.open(f"/dev/pts/{number}", os.O_RDWR)
    for end in (fd, slave):
        flags = process.call("fcntl", end, 3, 0)
        process.call("fcntl", end, 4, flags | 0o4000)
        total = 0
        while (done := process.write(end, bytes(3999) + b"\n")) > 0 and total < 100_000:
            total += done
        assert done == -errno.EAGAIN
        assert 0 < total < 40000
