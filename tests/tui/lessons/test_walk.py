"""The way through a lesson: steps that are done, were done before, are skipped, gone back to."""

from msgspec.structs import replace

from engine.session.protocol.probes import ProbeRow, ProbeView
from engine.session.protocol.views import GuestView, RunState
from tui.lessons import Lesson, Setup, Step
from tui.lessons.checks import Seen
from tui.lessons.walk import LessonWalk, Standing

PLACED = ProbeView(ProbeRow(1, "p", "p f"), "p", "g/e", "f+0x0", hits=3, misses=1)
LESSON = Lesson(
    1,
    "name",
    "title",
    "about",
    Setup("x86_64/recursion"),
    (
        Step("text 1", "do 1", ("probe p f",), "right 1"),
        Step("text 2", "do 2", ("hits f 4", "state ended"), "right 2"),
        Step("text 3", "do 3"),
    ),
)


def seen(*probes: ProbeView, state: RunState = RunState.STOPPED) -> Seen:
    return Seen(GuestView(state=state, probes=probes))


def test_a_step_is_done_when_all_its_conditions_come_true() -> None:
    walk = LessonWalk(LESSON)
    assert walk.look(seen())
    assert (walk.at, walk.standing) == (0, Standing.WANTED)
    assert not walk.look(seen())
    assert walk.look(seen(PLACED))
    assert (walk.at, walk.right) == (1, "right 1")
    walk.look(seen(PLACED, state=RunState.ENDED))
    assert walk.at == 1, "three hits are not four"
    walk.look(seen(replace(PLACED, hits=4)))
    assert walk.at == 1, "it has not ended"
    walk.look(seen(replace(PLACED, hits=4), state=RunState.ENDED))
    assert (walk.at, walk.right) == (2, "right 2")


def test_what_was_done_before_waits_for_the_learner() -> None:
    walk = LessonWalk(LESSON)
    assert walk.look(seen(PLACED))
    assert (walk.at, walk.standing) == (0, Standing.ALREADY)
    assert not walk.look(seen(PLACED))
    walk.skip()
    assert (walk.at, walk.right, walk.standing) == (1, "right 1", Standing.FRESH)


def test_what_was_done_before_and_undone_is_to_be_done() -> None:
    walk = LessonWalk(LESSON)
    walk.look(seen(PLACED))
    walk.look(seen())
    assert walk.standing is Standing.WANTED
    walk.look(seen(PLACED))
    assert walk.at == 1


def test_skipping_praises_nothing_and_ends_behind_the_last_step() -> None:
    walk = LessonWalk(LESSON)
    walk.look(seen())
    for at in (1, 2, 3, 3):
        walk.skip()
        assert (walk.at, walk.right) == (at, "")
    assert walk.step is None
    assert not walk.look(seen(PLACED))
    walk.back()
    assert walk.step is LESSON.steps[2]
    assert not walk.look(seen(PLACED)), "a step without conditions is only read"
    walk.restart()
    walk.back()
    assert walk.step is LESSON.steps[0]
