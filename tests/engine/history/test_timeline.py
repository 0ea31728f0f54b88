"""Seeks, in any order, come to the states that a run from the start goes through."""

import random
import sys
from pathlib import Path

import pytest
from historykit import Ran, State, past, recorded, state_of
from sessionkit import SAMPLES

from engine.cpu.base import Stop
from engine.history.timeline import HistoryError, Moment, Timeline

GUESTS = Path(__file__).parents[2] / "data" / "guests"
FEW = ("x86_64/forkserver", "aarch64/race", "ia64/recursion")
REST = [
    f"{folder.name}/{guest.name}"
    for folder in sorted(SAMPLES.iterdir())
    for guest in sorted(folder.iterdir())
    if f"{folder.name}/{guest.name}" not in FEW
]
NAMES = [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in REST)]
KINDS = ("threads", "exec", "smc")
MORE = ("segv", "signals", "fork", "atomics", "sync", "thrsig", "mem")
GUEST_RUNS = [
    *(("amd64", kind) for kind in KINDS),
    *(pytest.param("amd64", kind, marks=pytest.mark.slow) for kind in MORE),
    *(pytest.param("arm64", kind, marks=pytest.mark.slow) for kind in (*KINDS, *MORE)),
]


def _forward(ran: Ran, count: int, choose: random.Random) -> dict[Moment, State]:
    """States at random moments of a run from the start, in no checkpoint's reach."""
    known: dict[Moment, State] = {}
    with past(ran) as session:
        end = ran.session.cpu.blocks()
        kernel, timeline = session.kernel, Timeline(session.kernel, session.ram)
        for clock in sorted(choose.sample(range(1, max(end, 2)), min(count, max(end - 1, 1)))):
            while session.cpu.coming() < clock and session.machine.exit is None:
                kernel.limit = clock - 1
                kernel.resume()
            for _ in range(choose.randrange(4)):
                if session.machine.exit is None:
                    kernel.step()
            if session.machine.exit is not None:
                break
            known[timeline.now()] = state_of(session)
    return known


def _check(ran: Ran, count: int, seed: int = 1) -> None:
    choose = random.Random(seed)
    known = _forward(ran, count, choose)
    assert known
    with past(ran) as session:
        timeline = Timeline(session.kernel, session.ram)
        order = [*known, *known]
        choose.shuffle(order)
        for moment in order:
            timeline.seek(moment)
            assert state_of(session) == known[moment], moment
        timeline.end()
        assert session.kernel.at == len(ran.journal)
        assert state_of(session).memory == state_of(ran.session).memory


@pytest.mark.parametrize("name", NAMES)
def test_samples(name: str) -> None:
    with recorded(SAMPLES / name) as ran:
        _check(ran, 6)


@pytest.mark.parametrize(("arch", "kind"), GUEST_RUNS)
def test_guests(arch: str, kind: str) -> None:
    """Signals, threads, processes, programs, code that changes itself, much memory."""
    with recorded(GUESTS / arch / "guests-static", kind, isolated=False) as ran:
        _check(ran, 6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [(sys.executable, "-c", "print(sum(range(9999)))"), ("/bin/sh", "-c", "ls / | wc -l")]
)
def test_programs_of_this_machine(words: tuple[str, ...]) -> None:
    with recorded(*words, isolated=False) as ran:
        _check(ran, 8)


def test_forward_back_and_forward() -> None:
    """The first instructions one by one, then the same states from behind."""
    with recorded(SAMPLES / "x86_64" / "structs") as ran, past(ran) as session:
        timeline = Timeline(session.kernel, session.ram)
        seen: list[tuple[Moment, State]] = []
        for _ in range(43):
            seen.append((timeline.now(), state_of(session)))
            session.kernel.step()
        moments = [moment for moment, _ in seen]
        assert moments == sorted(set(moments))
        for moment, state in reversed(seen[::7]):
            timeline.seek(moment)
            assert state_of(session) == state
        for moment, state in seen[::7]:
            timeline.seek(moment)
            assert state_of(session) == state


def test_ticks() -> None:
    with recorded(SAMPLES / "x86_64" / "words") as ran, past(ran) as session:
        timeline = Timeline(session.kernel, session.ram)
        end = ran.session.cpu.blocks()
        for clock in (end // 2, 3, end - 1, end // 3):
            timeline.seek_clock(clock)
            assert timeline.now().clock == clock
        timeline.start()
        assert timeline.now() == Moment(1, 0, session.machine.current.pc())


def test_somebody_wants_to_be_heard_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that is halted in the middle of a tick goes on to the instruction."""
    with recorded(SAMPLES / "x86_64" / "structs") as ran, past(ran) as session:
        timeline = Timeline(session.kernel, session.ram)
        timeline.seek_clock(3)
        session.kernel.step()
        session.kernel.step()
        there = timeline.now()
        assert there.clock == 3
        timeline.start()
        run = session.cpu.run_to
        halts = iter([session.cpu.halt])

        def run_to(address: int) -> Stop | None:
            next(halts, lambda: None)()
            return run(address)

        monkeypatch.setattr(session.cpu, "run_to", run_to)
        timeline.seek(there)
        assert timeline.now() == there
        assert next(halts, None) is None


def test_a_moment_that_never_was() -> None:
    with recorded(SAMPLES / "x86_64" / "words") as ran, past(ran) as session:
        timeline = Timeline(session.kernel, session.ram)
        timeline.seek_clock(500)
        moment = timeline.now()
        with pytest.raises(HistoryError, match="was never at 0x10 in tick 500"):
            timeline.seek(moment._replace(pc=0x10))
        timeline.seek(moment)
        assert timeline.now() == moment


def test_a_seek_knows_how_far_it_is() -> None:
    with recorded(SAMPLES / "x86_64" / "sort") as ran, past(ran) as session:
        timeline = Timeline(session.kernel, session.ram)
        end, parts = ran.session.cpu.blocks(), list[float | None]()
        assert timeline.how_far is None

        def looks() -> bool:
            parts.append(timeline.how_far)
            return False

        timeline.approach(len(session.kernel.journal), end, looks)
        assert timeline.how_far is None
        known = [part for part in parts if part is not None]
        assert known == sorted(known)
        assert known
        assert 0 <= known[0] <= known[-1] <= 1
