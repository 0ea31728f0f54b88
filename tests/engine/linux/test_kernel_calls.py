"""System calls with arguments that nobody means well with, and handlers that do not work."""

import errno
import random
import struct

import pytest
from archkit import EVERY
from sessionkit import SAMPLES, loaded, system_call

from engine.linux.ending import Exit
from engine.session import Session

CALLS = 400
LARGE = (
    *(0, 1, 8, 4095, 4096, 10**9 - 1, 10**9, (1 << 31) - 1, 1 << 31, (1 << 32) - 1),
    *(1 << 40, (1 << 47) - 4096, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 100, (1 << 64) - 1),
)
NEVER = ("exit", "exit_group", "rt_sigreturn")
PATHS = (b"/tmp/a\0", b"/proc/self/maps\0", b"/dev/null\0", b".\0", b"\0", b"\xff\x1b\n\0")


def call(session: Session, name: str, *arguments: int) -> int:
    """The result of a call by name, as the guest gets it."""
    calls = session.arch.linux.syscalls
    number = next(number for number, known in calls.items() if known == name)
    return system_call(session, number, *arguments)


def room(session: Session) -> int:
    """Some of the guest's stack."""
    return (session.cpu.read_register(session.arch.roles.sp) - 4096) & -8


def timespec(session: Session, seconds: int, nanoseconds: int = 0) -> int:
    at = room(session)
    session.memory.write(at, struct.pack("<4q", seconds, nanoseconds, seconds, nanoseconds))
    return at


@pytest.mark.parametrize("arch", EVERY)
def test_a_sleep_until_the_end_of_time(arch: str) -> None:
    with loaded(SAMPLES / arch / "recursion") as guest:
        session = guest.session
        at = timespec(session, (1 << 63) - 1, 10**9 - 1)
        for _ in range(3):
            session.clock.jump(1 << 100)
            assert call(session, "nanosleep", at, 0) in (0, -errno.EINTR)
            assert call(session, "clock_gettime", 1, at + 64) == 0
            assert call(session, "clock_gettime", 0, at + 64) == 0
        for name, *arguments in (
            ("clock_nanosleep", 1, 0, at, 0),
            ("clock_nanosleep", 0, 1, at, at + 64),
            ("setitimer", 0, at, at + 64),
            ("getitimer", 0, at + 64),
            ("ppoll", 0, 0, at, 0, 8),
            ("pselect6", 0, 0, 0, 0, at, 0),
            ("rt_sigtimedwait", at + 64, 0, at, 8),
            ("futex", at + 128, 0, 0, at, 0, 0),
        ):
            call(session, name, *arguments)
        session.process.post_expired()
        assert not session.machine.failures


@pytest.mark.parametrize("arch", EVERY)
def test_no_argument_breaks_a_handler(arch: str) -> None:
    rng = random.Random(5)
    with loaded(SAMPLES / arch / "recursion") as guest:
        session = guest.session
        at = room(session)
        places = [at + 64 * index for index in range(len(PATHS) + 8)]
        for place, path in zip(places, PATHS, strict=False):
            session.memory.write(place, path)
        for place in places[len(PATHS) :]:
            words = [rng.choice(LARGE) for _ in range(8)]
            session.memory.write(place, struct.pack("<8Q", *words))
        names = sorted(set(session.arch.linux.syscalls.values()) - {*NEVER})
        pools = (LARGE, places, places, range(4), range(64))
        for _ in range(CALLS):
            name = rng.choice(names)
            if name in ("munmap", "brk", "mremap", "mprotect", "mmap"):
                continue  # of what all others use
            session.stop("timeout")  # whoever blocks hears of it
            call(session, name, *[rng.choice(rng.choice(pools)) for _ in range(6)])
            session.kernel.hear()
            session.machine.exit = session.process.exit = None
        assert not session.machine.failures


def test_a_handler_that_fails_fails_its_call_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with loaded(SAMPLES / "x86_64" / "recursion") as guest:
        session = guest.session

        def broken() -> int:
            raise KeyError(0x1234)

        with monkeypatch.context() as patch:
            patch.setattr(session.clock, "realtime", broken)
            at = room(session)
            assert call(session, "clock_gettime", 0, at) == -errno.EIO
            assert call(session, "clock_gettime", 0, at + 8) == -errno.EIO
        assert call(session, "getpid") == 1000
        remark = session.report(Exit(code=0)).remarks[0]

    assert remark.lines[0].startswith("the engine failed in system calls")
    assert remark.lines[1].startswith(f"clock_gettime(0x0, {at:#x}): KeyError(4660) at ")
    assert "test_kernel_calls.py:" in remark.lines[1]
    assert remark.lines[1].endswith(" (2 times)")
