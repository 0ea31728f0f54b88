"""System calls as `help world` sorts them, against what guests get that make them."""

import errno

import pytest
from archkit import EVERY
from sessionkit import SAMPLES, loaded, system_call

from engine import arch as architectures
from engine.linux.world import Questions, sort_calls
from engine.session import Session

ENDS = frozenset({"exit", "exit_group", "rt_sigreturn"})
"""Calls that do not come back here."""
WAITS = frozenset({"pause", "fork", "vfork", "clone"})
"""Calls whose arguments cannot be wrong: they would wait, or make another process."""
TELLS_ENOSYS = frozenset({"futex", "modify_ldt"})
"""Calls that say ENOSYS of an operation that nobody knows, as Linux does."""
NONSENSE = (1 << 64) - 1


def made(session: Session, number: int) -> int:
    """The result of a call by number with arguments that are all -1."""
    return system_call(session, number, *[NONSENSE] * len(session.arch.linux.arguments))


@pytest.mark.parametrize("arch", EVERY)
def test_every_call_is_sorted_once(arch: str) -> None:
    linux = architectures.by_name(arch).linux
    calls = sort_calls(linux)
    listed = [name for names in (*calls.served.values(), calls.never, calls.missing)
              for name in names]  # fmt: skip
    assert sorted(listed) == sorted(set(linux.syscalls.values()))
    assert all((calls.served["files"], calls.never, calls.missing))


@pytest.mark.parametrize("arch", EVERY)
def test_a_guest_gets_what_is_listed(arch: str) -> None:
    """Carried out: not ENOSYS. Never: the errno that is told. Missing, and no name: ENOSYS."""
    linux = architectures.by_name(arch).linux
    calls = sort_calls(linux)
    numbers = {name: number for number, name in linux.syscalls.items()}
    served = {name for names in calls.served.values() for name in names}
    with loaded(SAMPLES / arch / "recursion") as guest:
        session = guest.session
        for name in calls.missing:
            assert made(session, numbers[name]) == -errno.ENOSYS, name
        highest = max(linux.syscalls)
        gaps = set(range(min(linux.syscalls), highest + 40)) - linux.syscalls.keys()
        for number in gaps:
            assert made(session, number) == -errno.ENOSYS, number
        for name in sorted(served - ENDS - WAITS - TELLS_ENOSYS):
            assert made(session, numbers[name]) != -errno.ENOSYS, name
        for name in calls.never:
            assert made(session, numbers[name]) < 0, name


def test_refusals_have_the_errno_that_linux_gives_an_unprivileged_user() -> None:
    with loaded(SAMPLES / "x86_64" / "recursion") as guest:
        questions = Questions(guest.session.thread)
        told = {
            name: questions.refusal(name) for name in sort_calls(guest.session.arch.linux).never
        }
    others = {"pkey_alloc": "ENOSPC", "pkey_free": "EINVAL", "setns": "EINVAL"}
    assert {name: code for name, code in told.items() if code != "EPERM"} == others
    assert {"mount", "reboot", "bpf", "chroot", "settimeofday"} <= told.keys()
