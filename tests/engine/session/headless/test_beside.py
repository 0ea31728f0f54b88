"""A comparison whose two runs are made at the same time says what it says in turn."""

import io
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
from msgspec.structs import asdict, replace
from sessionkit import SAMPLES
from sysroot import CHECKOUT

from engine.errors import ProbeError
from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs
from engine.session import GuestConfig, Session
from engine.session.guest.wanted_probes import Wanted
from engine.session.headless import beside
from engine.session.headless.effect import Effect, compare, compared
from engine.session.protocol.requests import DiffRequest, ProbeRequest

RECURSION = str(SAMPLES / "x86_64" / "recursion")
EACH = ProbeRequest(bodies=("ackermann",), returns=("fibonacci",))


@pytest.fixture(autouse=True)
def processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "can_be", lambda: True)


def told(effect: Effect) -> dict[str, object]:
    """All of a comparison but what reads memory."""
    runs = {
        name: {**asdict(run), "read": None, "declared": asdict(run.declared)}
        for name, run in (("plain", effect.plain), ("probed", effect.probed))
    }
    return {**asdict(effect), **runs}


def both(request: DiffRequest) -> Effect:
    """A comparison that was made both ways."""
    in_turn = compare(request, lambda session: nullcontext())
    at_once = compare(request, lambda session: nullcontext(), at_once=True)
    assert told(at_once) == told(in_turn)
    return at_once


def change(session: Session) -> None:
    """Place a probe that has the program compute another factorial."""

    def handler(kprobe: Kprobe, regs: PtRegs) -> None:
        if regs["di"] == 20:
            regs["di"] = 19

    probing = session.probes()
    (where,) = probing.verdicts.places.resolve("factorial")
    probing.place([Wanted(where, Kprobe(pre_handler=handler))])


@pytest.mark.parametrize(
    ("arch", "returns"),
    [
        ("x86_64", "trampoline"),
        pytest.param("x86_64", "watched", marks=pytest.mark.slow),
        pytest.param("aarch64", "kernel", marks=pytest.mark.slow),
        pytest.param("aarch64", "auto", marks=pytest.mark.slow),
    ],
)
def test_no_effect(arch: str, returns: str) -> None:
    config = GuestConfig(str(SAMPLES / arch / "recursion"), returns=returns)
    found = both(DiffRequest(config, EACH))
    assert (found.lines, found.cut) == ((), "")
    assert found.probed.hits > 1000
    assert found.probed.points > 20


def test_an_effect() -> None:
    config = GuestConfig(RECURSION)
    ways = [
        compared(config, change, lambda session: nullcontext(), at_once=at_once)
        for at_once in (False, True)
    ]
    assert told(ways[0]) == told(ways[1])
    assert ways[1].lines


def test_places_that_take_no_probe() -> None:
    config = GuestConfig(str(SAMPLES / "x86_64" / "words"))
    found = both(DiffRequest(config, ProbeRequest(entries=("*",))))
    assert found.probed.points > 10


def test_a_definition_that_is_refused() -> None:
    request = DiffRequest(GuestConfig(RECURSION), ProbeRequest(("p nosuch",)))
    with pytest.raises(ProbeError, match="no symbol 'nosuch'"):
        compare(request, lambda session: nullcontext(), at_once=True)


def test_a_run_whose_process_dies_is_made_again() -> None:
    ours, config = os.getpid(), GuestConfig(RECURSION)
    placed: list[int] = []

    def place(session: Session) -> None:
        placed.append(os.getpid())
        if os.getpid() != ours:
            os.kill(os.getpid(), signal.SIGKILL)

    found = compared(config, place, lambda session: nullcontext(), at_once=True)
    assert (found.lines, placed) == ((), [ours])
    assert found.probed.reports == found.plain.reports


@pytest.mark.parametrize(
    ("beside_it", "whose"), [(True, "the probed run"), (False, "the plain run")]
)
def test_a_run_that_is_cut(beside_it: bool, whose: str) -> None:
    ours, config = os.getpid(), GuestConfig(RECURSION)

    def attach(session: Session) -> nullcontext[None]:
        if (os.getpid() != ours) is beside_it:
            session.stop("timeout")
        return nullcontext()

    found = compared(config, lambda session: None, attach, at_once=True)
    assert (found.cut, found.lines) == (whose, ())


def test_a_run_that_has_waited_before_it_was_cut_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.session.headless.effect._WAITED", -1)
    ours, config = os.getpid(), GuestConfig(RECURSION)

    def attach(session: Session) -> nullcontext[None]:
        if os.getpid() != ours:
            session.stop("timeout")
        return nullcontext()

    found = compared(config, lambda session: None, attach, at_once=True)
    assert (found.cut, found.lines) == ("", ())
    assert found.probed.time == found.plain.time


class Fed:
    """The second run's side, with messages of the first in front of it."""

    def __init__(self, *messages: object) -> None:
        data = b"".join(map(pickle.dumps, messages))
        self.feed = beside._Feed(io.BytesIO(data))
        self.io, self.times = beside.FedIO(self.feed), beside.FedTimes(self.feed)


def test_the_last_answer_to_a_poll_counts() -> None:
    asked = (7, 0, 1)
    fed = Fed(
        beside._RunMessage(7, polled=(asked, 0)),
        beside._RunMessage(7, polled=(asked, 1)),
        beside._RunMessage(8, call=(("read", 0, 5), b"hello")),
        beside._RunMessage(8, polled=((8, 0, 1), 0)),
    )
    fed.io.now = lambda: 7
    assert fed.io.poll(0, 1) == 1
    assert fed.io.read(0, 5) == b"hello"
    assert fed.io.taken == 1


def test_times_are_those_of_the_first_run_where_it_has_any() -> None:
    fed = Fed(
        beside._RunMessage(time=((1, 2), 30)),
        beside._RunMessage(1, call=(("write", 1, b"x"), OSError(28, "full"))),
        beside._RunMessage(over=True),
    )
    assert fed.times.accessed(1, 2, 40) == 30
    assert fed.times.accessed(1, 3, 40) == 40
    assert fed.times.accessed(1, 3, 50) == 40
    with pytest.raises(OSError, match="full"):
        fed.io.write(1, b"x")
    fed.io.write(1, b"more")
    assert fed.io.difference == "write(1, 'more') where the plain run did nothing more"


@contextmanager
def started(
    *words: str, ignored: signal.Signals | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    """`kprobe-tui diff` of a sample, which is ended with the test.

    Args:
        words: the sample and the command's words.
        ignored: a signal that whoever starts the command has ignored.
    """
    name, *args = words
    command = [sys.executable, "-m", "tui", "diff", *args[:-1]]
    kept = None if ignored is None else (ignored, signal.signal(ignored, signal.SIG_IGN))
    try:
        made = subprocess.Popen(
            [*command, str(SAMPLES / "x86_64" / name), *args[-1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=CHECKOUT,
        )
    finally:
        if kept is not None:
            signal.signal(*kept)
    with made as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_input_that_comes_slowly_is_that_of_both() -> None:
    with started("lines", "-f", "*", "-") as process:
        assert process.stdin is not None
        for piece in (b"one two ", b"three one", b" one\nfour\n"):
            process.stdin.write(piece)
            process.stdin.flush()
            time.sleep(0.3)
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert b"no effect" in err
    assert b" of 2 lines" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "ignored"),
    [(signal.SIGTERM, None), (signal.SIGINT, None), (signal.SIGINT, signal.SIGINT)],
)
def test_a_signal_is_the_second_run_s_once_the_first_has_ended(
    number: signal.Signals, ignored: signal.Signals | None
) -> None:
    """The first run is much the shorter one; a shell ignores SIGINT for what it does not await."""
    with started("loop", "--served", "-f", "mix", "4000000", ignored=ignored) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"rounds 4000000")
        time.sleep(5)  # the first run comes to its end, on a busy machine too
        process.send_signal(number)
        _, err = process.communicate(timeout=40)
    assert process.returncode == 1, err
    assert b"the probes have an effect" in err


def test_where_there_is_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refused)
    request = DiffRequest(GuestConfig(RECURSION), EACH)
    found = compare(request, lambda session: nullcontext(), at_once=True)
    assert found.lines == ()
    assert replace(found.probed, read=None).hits > 0
