"""What a guest's kernel answers about itself, against programs that ask it in a guest."""

from collections.abc import Iterator

import pytest
from sessionkit import SAMPLES, loaded

from engine.linux.world import Answers, Questions, entries_below
from engine.linux.world import names as known


@pytest.fixture(scope="module")
def questions() -> Iterator[Questions]:
    with loaded(SAMPLES / "x86_64" / "recursion") as guest:
        yield Questions(guest.session.thread)


def named(answers: Answers) -> list[str]:
    return sorted(
        [*answers.there, *(name for names in answers.refused.values() for name in names)]
    )


def test_every_name_has_one_answer(questions: Questions) -> None:
    assert named(questions.prctl()) == sorted(known.PRCTL)
    assert named(questions.futex()) == sorted(known.FUTEX)
    assert named(questions.fcntl()) == sorted(known.FCNTL)
    assert named(questions.madvise()) == sorted(known.MADVISE)
    assert named(questions.socket_options()) == sorted(known.SOCKET_OPTIONS)
    assert named(questions.tcp_options()) == sorted(known.TCP_OPTIONS)
    assert named(questions.seccomp()) == sorted(known.SECCOMP_ACTIONS)
    assert named(questions.clocks()) == sorted(known.CLOCKS)


def test_what_is_there_and_what_is_not(questions: Questions) -> None:
    prctl = questions.prctl()
    assert {"PR_SET_NAME", "PR_SET_SECCOMP", "PR_SET_NO_NEW_PRIVS"} <= set(prctl.there)
    assert "PR_CAPBSET_DROP" in prctl.refused["EPERM"]
    assert "PR_SVE_SET_VL" in prctl.refused["EINVAL"]
    assert questions.futex() == Answers([*known.FUTEX], {})
    assert "F_SETLKW" in questions.fcntl().there
    assert "F_NOTIFY" in questions.fcntl().refused["EINVAL"]
    assert questions.seccomp().refused == {"EOPNOTSUPP": ["USER_NOTIF"]}
    assert questions.namespaces() == Answers([], {"EPERM": [*known.NAMESPACES]})
    families = questions.families()
    assert "AF_INET (STREAM DGRAM)" in families.there
    assert "AF_PACKET" in families.refused["EPERM"]
    assert "SO_REUSEADDR" in questions.socket_options().there
    assert "TCP_REPAIR" in questions.tcp_options().refused["ENOPROTOOPT"]


def test_requests_by_kind_of_file(questions: Questions) -> None:
    ioctl = questions.ioctl()
    assert {"TCGETS", "TIOCGWINSZ"} <= set(ioctl["terminals"])
    assert "TIOCGPTN" in ioctl["masters of them"]
    assert "TIOCGPTN" not in ioctl["terminals"]
    assert ioctl["pipes"] == ["FIONREAD", "FIONBIO", "FIONCLEX", "FIOCLEX", "FIOASYNC"]
    assert "SIOCGIFCONF" in ioctl["sockets of AF_INET"]
    assert "TCGETS" not in ioctl["files"]


def test_trees_that_the_kernel_makes() -> None:
    with loaded(SAMPLES / "x86_64" / "recursion") as guest:
        fs = guest.session.fs
        proc, dev = entries_below(fs, b"/proc", "PID"), entries_below(fs, b"/dev", "N")
        own = entries_below(fs, b"/proc/%d" % guest.session.process.pid, "N")
    assert {"PID", "self", "meminfo", "sys/kernel/osrelease"} <= set(proc)
    assert {"null", "urandom", "pts/ptmx", "shm/"} <= set(dev)
    assert {"maps", "fd/N", "task/N", "net/tcp", "ns/pid"} <= set(own)
