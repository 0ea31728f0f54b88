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


def test_what_is_removed_or_made_shorter_is_room_again() -> None:
    budget = Budget(space=1_000_000)
    process = Process(budget=budget)
    fd = process.open("/tmp/f", os.O_CREAT | os.O_RDWR)
    value = process.put(bytes(60000))
    for _ in range(4):
        for name in ("user.a", "user.b"):
            assert process.call("fsetxattr", fd, name, value, 60000, 0) == 0
        assert process.call("fsetxattr", fd, "user.a", value, 10, 0) == 0
        assert process.call("fremovexattr", fd, "user.b") == 0
    assert budget.used == 10 + len("user.a") + 1
