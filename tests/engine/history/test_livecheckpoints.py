"""What a run has kept of itself is what a guest of the past comes to by living through it."""

import random
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from historykit import Ran, State, past, recorded, state_of
from sessionkit import SAMPLES

from engine.history import livecheckpoints
from engine.history.livecheckpoints import LiveCheckpoints
from engine.history.timeline import Moment, Timeline
from engine.probes.techniques import chosen
from engine.session import Session
from engine.session.guest.past import PastSession
from engine.session.protocol.requests import ProbeRequest, TraceOptions
from engine.session.tracing.tracing import Tracing

LOOK = 200
"""Ticks between two of them."""
GUESTS = Path(__file__).parents[2] / "data" / "guests"
FEW = ("x86_64/forkserver", "aarch64/race")
REST = [
    f"{folder.name}/{guest.name}"
    for folder in sorted(SAMPLES.iterdir())
    for guest in sorted(folder.iterdir())
    if f"{folder.name}/{guest.name}" not in FEW
]
NAMES = [*FEW, *(pytest.param(name, marks=pytest.mark.slow) for name in REST)]
GUEST_RUNS = [
    *(("amd64", kind) for kind in ("threads", "fork")),
    *(
        pytest.param(arch, kind, marks=pytest.mark.slow)
        for arch in ("amd64", "arm64")
        for kind in ("exec", "segv", "signals", "smc", "atomics", "sync", "thrsig", "mem")
    ),
]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are taken as often as it can be."""
    for name in ("_FIRST", "_SECONDS"):
        monkeypatch.setattr(livecheckpoints, name, 0.0)
    monkeypatch.setattr(livecheckpoints, "_SHARE", 0)
    monkeypatch.setattr(livecheckpoints, "_LOOK", LOOK)


def _known(session: PastSession) -> tuple[Any, ...]:
    """What a guest of the past knows of threads, processes and address spaces."""
    machine, kernel = session.machine, session.kernel
    threads = [
        (each.tid, each.comm, each.call, each.wait is None, each.cpu_time(), each.ticks())
        for each in machine.threads.values()
    ]
    processes = [
        (
            *(each.pid, each.ppid, each.exit, each.borrows, each.group, each.session),
            *(each.spent, each.ran, sorted(each.threads), sorted(each.children)),
        )
        for each in machine.processes.values()
    ]
    spaces = [
        (
            *(number, space.users, space.exe, space.argv, space.env, space.heap),
            [(module.name, module.bias) for module in space.modules.known],
        )
        for number, space in sorted(kernel.spaces.items())
    ]
    counts = machine.syscall_count, kernel.at, kernel.inputs
    return threads, processes, spaces, counts, dict(machine.comms), dict(machine.pids)


def _check(ran: Ran, most: int = 12, left_out: Collection[str] = ()) -> None:
    """Each moment by itself, in another order, and what comes behind it."""
    assert ran.live is not None
    marks = [one.mark for one in ran.live.pending]
    assert marks or ran.session.cpu.blocks() <= LOOK
    assert marks == sorted(set(marks))
    chosen = random.Random(1).sample(marks, min(most, len(marks)))
    known: dict[Moment, tuple[State, tuple[Any, ...]]] = {}
    with past(ran) as session:
        timeline = Timeline(session.kernel, session.ram)
        for mark in sorted(chosen):
            timeline.seek(mark)
            known[mark] = state_of(session, left_out), _known(session)
        timeline.end()
        end = state_of(session, left_out)
    with past(ran) as session:
        timeline = Timeline(session.kernel, session.ram, ran.live)
        for mark in chosen:
            timeline.seek(mark)
            assert not ran.live.pending
            state, there = known[mark]
            assert state_of(session, left_out) == state
            for now, then in zip(_known(session), there, strict=True):
                assert now == then
        timeline.seek_clock(ran.session.cpu.blocks() // 2)
        timeline.end()
        assert session.kernel.at == len(ran.journal)
        assert state_of(session, left_out) == end


@pytest.mark.parametrize("name", NAMES)
def test_samples(name: str) -> None:
    with recorded(SAMPLES / name, live=True) as ran:
        _check(ran)


@pytest.mark.parametrize(("arch", "kind"), GUEST_RUNS)
def test_guests(arch: str, kind: str) -> None:
    """Signals, threads, processes, programs, code that changes itself, much memory."""
    with recorded(GUESTS / arch / "guests-static", kind, isolated=False, live=True) as ran:
        _check(ran)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [(sys.executable, "-c", "print(sum(range(9999)))"), ("/bin/sh", "-c", "ls / | wc -l")]
)
def test_programs_of_this_machine(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(livecheckpoints, "_LOOK", 5 * LOOK)
    with recorded(*words, isolated=False, live=True) as ran:
        _check(ran)


@pytest.mark.parametrize(
    "name",
    [
        "x86_64/forkserver",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                *("x86_64/recursion", "aarch64/recursion", "aarch64/race"),
                *("riscv64/recursion", "ia64/recursion"),
            )
        ),
    ],
)
@pytest.mark.parametrize("technique", ["auto", "breakpoint"])
def test_without_what_probes_have_planted(name: str, technique: str) -> None:
    """Probes on each function, entry and return, are in none of them."""

    def begins(session: Session) -> None:
        tracing = Tracing(session, TraceOptions(output="/dev/null"))
        tracing.definitions.place(ProbeRequest(entries=("*",), returns=("*",)))
        tracing.start()

    with recorded(SAMPLES / name, live=True, begins=begins, technique=technique) as ran:
        assert ran.session.probing is not None
        ran.session.probing.collect()
        placed = ran.session.probing.manager.placed()
        assert sum(probe.hits for point in placed for probe in point.probes) > 20
        _check(ran, left_out=chosen("auto").scratch(ran.session.arch))


def test_a_budget_thins_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given up is the next one's."""
    monkeypatch.setattr(livecheckpoints, "_LOOK", LOOK // 10)
    with recorded(SAMPLES / "x86_64" / "forkserver", live=True) as whole:
        assert whole.live is not None
        count = len(whole.live.pending)

        budget = whole.live.store.size * 3 // 4

    def begins(session: Session) -> None:
        kept = getattr(session.kernel.going, "__self__", None)
        assert isinstance(kept, LiveCheckpoints)
        kept.budget = budget

    with recorded(SAMPLES / "x86_64" / "forkserver", live=True, begins=begins) as ran:
        assert ran.live is not None
        assert 2 <= len(ran.live.pending) < count
        assert ran.live.store.size <= budget
        _check(ran)


@pytest.mark.parametrize(
    "words",
    [
        (SAMPLES / "x86_64" / "forkserver",),
        pytest.param((SAMPLES / "ia64" / "recursion",), marks=pytest.mark.slow),
        pytest.param((GUESTS / "arm64" / "guests-static", "threads"), marks=pytest.mark.slow),
        pytest.param((GUESTS / "amd64" / "guests-static", "exec"), marks=pytest.mark.slow),
    ],
)
def test_of_a_recording(words: tuple[Path | str, ...]) -> None:
    """A run that is lived through again keeps the same."""
    with recorded(*map(str, words), isolated=False) as ran, past(ran) as present:
        kept = LiveCheckpoints(present.kernel, present.kernel)
        assert present.run().exit_code == ran.exit
        _check(Ran(ran.session, ran.journal, ran.exit, kept))


def test_none_are_kept_of_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its past is lived through from the start on."""
    monkeypatch.setattr(livecheckpoints, "_MOST", 0)
    with recorded(SAMPLES / "x86_64" / "sort", live=True) as ran:
        assert ran.live is not None
        assert ran.session.kernel.going is None
        assert not ran.live.pending
        end = ran.session.cpu.blocks()
        states = []
        for live in (None, ran.live):
            with past(ran) as session:
                timeline = Timeline(session.kernel, session.ram, live)
                timeline.seek_clock(end // 2)
                states.append((timeline.now(), state_of(session)))
        assert states[0] == states[1]
