"""Bounds of extended attributes; what they do is compared with a kernel in test_differential."""

import errno
import os

from fskit import Process

from engine.linux.fs.data import Budget


def test_a_file_holds_a_bounded_amount() -> None:
    process = Process()
    fd = process.open("/tmp/f", os.O_CREAT | os.O_RDWR)
    value = process.put(bytes(60000))

    results = [process.call("fsetxattr", fd, f"user.{n}", value, 60000, 0) for n in range(3)]

    assert results == [0, 0, -errno.ENOSPC]


def test_they_are_charged_to_the_overlay_until_their_file_is_gone() -> None:
    budget = Budget(space=100_000)
    process = Process(budget=budget)
    fd = process.open("/tmp/f", os.O_CREAT | os.O_RDWR)
    value = process.put(bytes(60000))
    assert process.call("fsetxattr", fd, "user.a", value, 60000, 0) == 0
    other = process.open("/tmp/g", os.O_CREAT | os.O_RDWR)
    assert process.call("fsetxattr", other, "user.a", value, 60000, 0) == -errno.ENOSPC

    assert budget.used == 60000 + len("user.a") + 1
    process.call("unlink", "/tmp/f")
    process.call("close", fd)
    assert budget.used == 0
