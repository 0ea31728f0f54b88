"""Guests that abuse signal delivery and return from handlers."""

from collections.abc import Callable

import pytest
from guestrun import Outcome

Attack = Callable[..., Outcome]


def test_a_fault_for_ever_ends_with_the_time_limit(attack: Attack) -> None:
    done = attack("signals", "loop", options=("--timeout", "1"))

    assert done.code == 124
    assert "time limit (--timeout)" in done.err


def test_a_fault_for_ever_ends_with_the_block_limit(attack: Attack) -> None:
    done = attack("signals", "loop", options=("--max-blocks", "500"))

    assert done.code == 124
    assert "block limit (--max-blocks)" in done.err


@pytest.mark.slow
def test_handlers_that_nest_use_up_the_stack(attack: Attack) -> None:
    done = attack("signals", "nested")

    assert done.code == 139
    assert "no room for a signal frame" in done.err


KILLED = {
    "twice": "write at 0x8, where nothing is mapped",
    "blocked": "write at 0x8, where nothing is mapped",
    "ignored": "write at 0x8, where nothing is mapped",
    "nowhere 0x10": "execute at 0x10, where nothing is mapped",
    "nowhere 0x10 too": "execute at 0x10, where nothing is mapped",
    "nowhere 0x8000000000000000": "execute at 0x8000000000000000",
    "alternate": "no room for a signal frame",
    "badsp 0x10": "no room for a signal frame",
    "badsp 0x8000000000000000": "no room for a signal frame",
    "badsp -8": "no room for a signal frame",
    "badpc 0x10": "execute at 0x10",
    "badpc 0x8000000000000000": "execute at 0x8000000000000000",
    "badpc -4096": "execute at 0xfffffffffffff000",
    "garbage 0": "SIGSEGV",
    "garbage 1": "SIGSEGV",
    "garbage 2": "SIGSEGV",
    "garbage 3": "rt_sigreturn without a signal frame",
    "garbage 4": "rt_sigreturn without a signal frame",
    "garbage 5": "rt_sigreturn without a signal frame",
}


@pytest.mark.parametrize("mode", KILLED)
def test_what_cannot_go_on_is_killed_and_told(attack: Attack, mode: str) -> None:
    done = attack("signals", *mode.split())

    assert done.code == 139
    assert KILLED[mode] in done.err


@pytest.mark.parametrize("seed", range(1, 7))
def test_damaged_frames_never_hurt_the_engine(attack: Attack, seed: int) -> None:
    done = attack("signals", "damaged", seed, options=("--timeout", "5"))

    assert done.code in (0, 124, 132, 133, 135, 139)


def test_noise_as_a_frame_never_hurts_the_engine(attack: Attack, arch: str) -> None:
    for seed in (3, 4):
        assert attack("signals", "garbage", 2, seed).code in (132, 133, 135, 139)


def test_the_alternate_stack_is_not_changed_while_in_use(attack: Attack) -> None:
    assert attack("signals", "change").facts == {"on it": -1, "off it": 0}


def test_the_queue_of_signals_is_limited(attack: Attack) -> None:
    done = attack("signals", "queue")

    assert 0 < done.facts["queued"] < 5000
    assert done.facts["queue"] == -11


def test_sigkill_cannot_be_caught_or_blocked(attack: Attack) -> None:
    done = attack("signals", "limits")

    assert done.code == 137
    assert done.facts["catch SIGKILL"] == done.facts["catch SIGSTOP"] == -22
    assert "0xfffffffffffbfeff" in done.out
