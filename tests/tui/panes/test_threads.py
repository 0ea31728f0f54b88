"""The pane of threads and processes: alone, and in an interface over threads that race."""

from collections.abc import Sequence

import pytest
from controlkit import sample
from flowkit import LARGE, SMALL, User, flow
from msgspec.structs import replace
from panekit import SIZES, Bench, drive
from textual.pilot import Pilot

from engine.session.protocol.commands import (
    ChooseGoroutine,
    ChooseThread,
    ListGoroutines,
    StepAlone,
)
from engine.session.protocol.views import (
    GoroutinesView,
    GoroutineView,
    GuestView,
    RunState,
    ThreadView,
)
from tui.messages import Say
from tui.panes.threads import ThreadsPane
from tui.render import thread_look

THREADS = (
    ThreadView(
        1000, 1000, 1, 0, "server", "S", "wait4", "a child", ticks=1234, location="main+0x4"
    ),
    ThreadView(1001, 1000, 1, 1, "worker", "R", ticks=7, pc=1, location="work+0x0", runs=True),
    ThreadView(
        1002, 1000, 1, 1, "a\x1b[2Jb", "S", "futex", "lock", 1001, 1, "lock+0x8", 5, shown=True
    ),
    ThreadView(1003, 1003, 1000, 1, "child", "T", pc=1, location="main+0x8"),
    ThreadView(1004, 1004, 1000, 1, "gone", "Z", waits="exited with 3"),
)


def view(threads: Sequence[ThreadView] = THREADS, *, alone: bool = False) -> GuestView:
    return GuestView(RunState.STOPPED, listed=tuple(threads), thread=1002, alone=alone)


def test_each_thread_has_its_line() -> None:
    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.show(view())
        await pilot.pause()
        rows = [row.strip("│┃ ") for row in app.rows()[1:6]]
        assert rows[0] == "1000 S 1 234 server     wait4() a child at main+0x4"
        assert rows[1].startswith("*1001 R     7   worker")
        assert rows[1].endswith("work+0x0")
        assert "►→ 1002 S" in rows[2].replace(" →", "→")
        assert "futex() lock, held by 1001 worker at lock+0x8" in rows[2]
        assert r"a\33[2Jb" in rows[2]
        assert rows[4].endswith("gone     exited with 3")
        assert "5 ─ 2 wait" in app.rows()[0]
        pane.show(view(alone=True))
        await pilot.pause()
        assert "steps one" in app.rows()[0]

    pane = ThreadsPane()
    drive(pane, (80, 24), steps)


@pytest.mark.parametrize("size", SIZES)
def test_keys(size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.show(view())
        await pilot.pause()
        await pilot.press("enter", "L")
        assert app.asked() == [ChooseThread(1002), StepAlone(on=True)]
        pane.show(view(alone=True))
        await pilot.press("L", "j", "j", "enter")
        assert app.asked()[2:] == [StepAlone(on=False)]
        (said,) = [message.text for message in app.heard if isinstance(message, Say)]
        assert said == "1004 has ended: exited with 3"

    pane = ThreadsPane()
    drive(pane, size, steps)


GOROUTINES = GoroutinesView(
    (
        GoroutineView(1, "running", "running", "main.f", "main.f", "/a/f.go", 7, 1001),
        GoroutineView(
            17,
            "waiting",
            "chan receive",
            "runtime.gopark",
            "main.\x1b[2J",
            "/a/f.go",
            9,
            created="main.main",
            shown=True,
        ),
    ),
    left_out=3,
    why="3 cannot be read",
)


@pytest.mark.parametrize("size", SIZES[:2])
def test_goroutines_stand_in_place_of_threads(size: tuple[int, int]) -> None:
    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.show(view())
        await pilot.press("v")
        assert app.asked() == []
        pane.show(replace(view(), is_go=True))
        await pilot.press("v")
        assert app.asked() == [ListGoroutines(on=True)]
        pane.show(replace(view(), is_go=True, goroutines=GOROUTINES))
        await pilot.pause()
        rows = [row.strip("│┃ ") for row in app.rows()[1:4]]
        assert rows[0] == "* 1 running      main.f f.go:7 on 1001"
        assert rows[1].endswith(r"17 chan receive main.\33[2J f.go:9 by main.main")
        assert rows[2] == "► 3 more not listed: 3 cannot be read"[2:]
        assert "goroutines ─ 1 wait" in app.rows()[0]
        await pilot.press("enter", "j", "enter", "v")
        assert app.asked()[1:] == [ChooseGoroutine(17), ListGoroutines(on=False)]
        pane.show(replace(view(), is_go=True))
        await pilot.pause()
        assert "1000 S" in app.rows()[1]
        await pilot.press("enter")
        assert app.asked()[3:] == [ChooseThread(1002)]

    pane = ThreadsPane()
    drive(pane, size, steps)


def test_the_cursor_stays_with_its_thread() -> None:
    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.show(view())
        await pilot.press("k")
        pane.show(view(THREADS[1:]))
        assert pane.source.threads[pane.lines.cursor].tid == 1001
        pane.show(view(()))
        await pilot.press("enter", "ampersand")
        assert not app.asked()

    pane = ThreadsPane()
    drive(pane, (80, 24), steps)


def test_looks_of_threads() -> None:
    assert thread_look(1000) == ""
    looks = [thread_look(tid) for tid in range(1001, 1006)]
    assert len(set(looks)) == 5
    assert thread_look(1006) == looks[0]


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)])
def test_a_race_thread_by_thread(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.ready()
        await user.command("break think")
        await user.command("sched sched_s*")
        await user.press("c")
        await user.state(RunState.STOPPED)
        await user.press("T")
        assert user.focus == "threads"
        await user.press("j", "enter")
        await user.says("thread 1002 (race) of process 1000")
        await user.until(lambda: user.view.location == "rt_clone+0xf", "the thread chosen")
        assert user.panes.code.code.cursor == user.view.pc
        await user.press("L", "i")
        await user.until(lambda: user.view.location == "rt_clone+0x12", "a step of that thread")
        assert user.view.alone
        await user.shows("steps one")
        await user.command("thread 1001")
        await user.until(lambda: user.view.thread == 1001, "the other thread")
        await user.press("ampersand")
        await user.says("events of thread 1001 alone")
        assert user.panes.events.store.line_count == 1
        await user.press("ampersand")
        await user.until(lambda: user.panes.events.store.line_count == 2, "all events")
        await user.command("set scheduler-locking off")
        await user.until(lambda: not user.view.alone, "all run")
        for line, said in (
            ("thread 9", "there is no thread 9; there are 1000 1001 1002"),
            ("thread x", "x: not a number"),
            ("thread 1 2", "thread N"),
            ("info", "must be followed by one of"),
            ("set scheduler-locking", "set scheduler-locking on|step|off"),
            ("sched nosuch", "no event matches"),
        ):
            await user.command(line)
            await user.says(said)
            await user.press("escape")
        await user.command("pane reg")
        assert user.focus == "registers"
        await user.command("thread")
        await user.says("thread 1001 (race) of process 1000")

    flow(steps, guest=sample("x86_64", "race"), size=size)
