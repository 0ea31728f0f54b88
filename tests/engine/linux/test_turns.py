"""Kinds of turns: each is a function of its seed, and what was recorded can be run again."""

from pathlib import Path

import pytest
from archkit import FIRST_COMPILED
from compiled import build
from sysroot import CHECKOUT

from engine.linux.ending import Exit
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.linux.schedule import Choice, Schedule, ScheduleError, Why
from engine.linux.turns import (
    Chosen,
    Lengths,
    OwnChoice,
    Priorities,
    Recorded,
    TurnKind,
    own_choices,
    turns_of,
)
from engine.session.guest.session import Session
from engine.session.protocol.config import PLAIN, GuestConfig

SAMPLES = CHECKOUT / "samples" / "bin"
KINDS: tuple[TurnKind, ...] = (PLAIN, Lengths(1, 20), Priorities(3, 900))


How = tuple[Exit | None, bytes, int, int, int]
"""The end of a run, its output, clock and switches."""


def went(program: Path, turns: TurnKind, seed: int = 1) -> tuple[How, tuple[Choice, ...]]:
    """How a run went, and its schedule."""
    config = GuestConfig(guest=str(program), seed=seed, turns=turns, count_blocks=True)
    output: list[bytes] = []
    streams = (FeedStream(ended=True), SinkStream(output.append), SinkStream(output.append))
    session, choices = Session(config, streams), list[Choice]()
    try:
        scheduler = session.kernel.scheduler
        scheduler.chosen = choices.append
        end = session.kernel.run()
        how: How = (
            end,
            b"".join(output),
            session.cpu.blocks(),
            scheduler.switches,
            scheduler.digest,
        )
        return how, tuple(choices)
    finally:
        session.close()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("10-300", Lengths(10, 300)),
        ("1-1", Lengths(1, 1)),
        ("priority:3/5000", Priorities(3, 5000)),
        ("0-3", None),
        ("30-3", None),
        ("priority:0/10", None),
        ("10", None),
        ("", None),
    ],
)
def test_texts(text: str, kind: TurnKind | None) -> None:
    assert turns_of(text) == kind
    if kind is not None:
        assert str(kind) == text


@pytest.mark.parametrize("arch", FIRST_COMPILED)
@pytest.mark.parametrize("sample", ["race", "deadlock", "pipeline"])
def test_a_recorded_schedule_is_run_again(sample: str, arch: str) -> None:
    program = SAMPLES / arch / sample
    for kind in KINDS:
        how, choices = went(program, kind)
        assert choices
        again = went(program, Recorded(Schedule(choices)), seed=1)
        assert again == (how, choices)
        # By the threads' own ticks it is the same schedule.
        chosen = Chosen(own_choices(choices, 1000))
        assert went(program, chosen) == (how, choices)


def test_seeds_differ() -> None:
    program = SAMPLES / "x86_64" / "race"
    for kind in KINDS[1:]:
        found = {went(program, kind, seed)[1] for seed in range(6)}
        assert len(found) > 1, kind
        assert went(program, kind, 3) == went(program, kind, 3)


def test_who_spins_does_not_keep_others_out(tmp_path: Path) -> None:
    """A thread of the highest priority that waits by yielding, or not even that."""
    source = r"""
    #include <pthread.h>
    #include <sched.h>
    static volatile int ready[2];
    static void *say(void *unused) { ready[0] = 1; while (!ready[1]); return unused; }
    int main(void) {
        pthread_t thread;
        pthread_create(&thread, 0, say, 0);
        while (!ready[0]) sched_yield();
        ready[1] = 1;
        pthread_join(thread, 0);
        return 7;
    }"""
    program = build(tmp_path, "spin", source, "-static", "-pthread")
    for seed in range(6):
        how, choices = went(program, Priorities(2, 2000), seed)
        assert how[0] == Exit(7)
        assert len(choices) < 20


def test_a_schedule_that_does_not_fit_names_its_line() -> None:
    program = SAMPLES / "x86_64" / "race"
    _, choices = went(program, Lengths(30, 60))
    forced = next(at for at, each in enumerate(choices) if each.why is Why.PREEMPTED)
    tick, thread, why = choices[forced].tick, choices[forced].thread, choices[forced].why

    def refused(at: int, *more: Choice) -> str:
        changed = Schedule((*choices[:at], *more), "s")
        with pytest.raises(ScheduleError, match=rf"^s: line {at + 1}: ") as caught:
            went(program, Recorded(changed))
        return str(caught.value)

    assert "thread 9 cannot run then" in refused(forced, Choice(tick, 9, why))
    assert "does not fit: thread" in refused(forced, Choice(tick, thread, Why.WAITS))
    assert " does not fit: thread 100" in refused(forced, Choice(1 << 40, thread, why))
    assert "it is at its end, and thread " in refused(len(choices) - 1)


def test_choices_are_told_by_the_time_of_the_thread_that_is_left() -> None:
    found = own_choices(
        (
            Choice(10, 2, Why.WAITS),
            Choice(14, 1, Why.PREEMPTED),
            Choice(20, 2, Why.YIELDS),
            Choice(21, 1, Why.ENDS),
        ),
        1,
    )
    assert found == (
        OwnChoice(1, 10, Why.WAITS, 2),
        OwnChoice(2, 4, Why.PREEMPTED, 1),
        OwnChoice(1, 16, Why.YIELDS, 2),
        OwnChoice(2, 5, Why.ENDS, 1),
    )


def test_a_choice_that_is_left_out_moves_no_other() -> None:
    """The thread runs on; another one's place stays where it was in its own time."""
    program = SAMPLES / "x86_64" / "race"
    first = OwnChoice(1001, 15, Why.PREEMPTED, 1002)
    second = OwnChoice(1001, 100, Why.PREEMPTED, 1002)
    nobody = OwnChoice(1001, 200, Why.PREEMPTED, 4711)
    ticks = [
        [choice.tick for choice in went(program, Chosen(few))[1] if choice.why is Why.PREEMPTED]
        for few in ((first, second), (second,), (second, nobody), ())
    ]
    started = ticks[0][0] - 15
    assert ticks[1] == [started + 100]
    assert ticks[2][0] == started + 100
    assert ticks[3] == []
