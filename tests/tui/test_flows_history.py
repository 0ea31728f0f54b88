"""Rows, bookmarks and the timeline lead to moments of the recorded run."""

from pathlib import Path

import pytest
from compiled import build
from controlkit import sample
from flowkit import User, flow, place
from guestrun import run

from engine.errors import CommandError
from engine.session import GuestConfig
from engine.session.protocol.views import HistoryView, RunState
from tui.widgets.timeline import Timeline


def history(user: User) -> HistoryView:
    """The run as it is known."""
    assert user.view.history is not None
    return user.view.history


async def at(user: User, time: int, pc: int | None = None) -> None:
    """Wait until the guest stands at a moment."""
    await user.until(
        lambda: user.view.time == time and (pc is None or user.view.pc == pc),
        f"{time} {pc}",
    )


async def through_the_run(user: User) -> None:
    assert not user.app.query_one(Timeline).display
    await place(user, "probe print")
    await user.press("c")
    await user.state(RunState.ENDED)
    await user.shows("now 100%")
    end = user.view.time
    events = user.panes.events
    await user.press("6", "G", "k")
    await user.until(lambda: events.moment is not None)
    there = events.moment
    assert there is not None
    await user.press("at")
    await at(user, *there)
    assert history(user).past
    await user.shows("past ")

    await user.press("left_curly_bracket")
    await user.until(lambda: user.view.time < there[0])
    assert user.view.pc == user.address("print")
    await user.press("right_curly_bracket")
    await at(user, *there)
    assert events.moment == there, "the log shows the event"

    await user.press("m")
    await user.type("here")
    await user.press("enter")
    await user.says("bookmark here")
    await user.press("left_parenthesis", "left_parenthesis", "right_parenthesis")
    await at(user, there[0] - end // 50)
    await user.press("apostrophe")
    await user.type("he")
    await user.press("tab", "enter")
    await at(user, *there)
    for text, tick in (("25%", end // 4), ("70", 70), ("start", 0)):
        await user.press("apostrophe")
        await user.type(text)
        await user.press("enter")
        await at(user, tick)
    await user.command("goto #1")
    await at(user, events.store.moment(0)[0], user.address("print"))
    await user.command("goto nowhere")
    await user.says("there is no bookmark nowhere; there are here")
    for text in ("9" * 5000, f"#{'9' * 5000}", f"{'9' * 5000}%"):
        with pytest.raises(CommandError, match="no run is as long as that"):
            user.app.controls.history.go(text)
    await user.press("m", "enter")
    await user.says("bookmark m1")

    await user.press("7", "G", "k")
    written = user.panes.output.moment
    assert written is not None
    await user.press("at")
    await at(user, *written)
    assert "syscall" in next(
        line for line in user.screen.splitlines() if "\N{RIGHTWARDS ARROW}" in line
    )

    bar = user.app.query_one(Timeline)
    await user.pilot.click(bar, offset=(bar.size.width // 2, 0))
    await user.until(lambda: user.view.time != written[0] and user.view.state is RunState.STOPPED)
    assert 0.4 < user.view.time / end < 0.6
    await user.press("8", "at")
    await user.says("this row is of no moment of the run")
    await user.press("apostrophe")
    await user.type("end")
    await user.press("enter")
    await user.state(RunState.ENDED)


@pytest.mark.slow
def test_there_by_rows_keys_names_and_clicks() -> None:
    flow(through_the_run, config=GuestConfig(sample("x86_64", "words"), history=True))


async def another_future(user: User) -> None:
    """From the past a branch goes on; the first run is as it was, and both are compared."""
    await user.command("break deposit")
    await user.press("c")
    await user.until(lambda: user.view.location == "deposit+0x0")
    first = user.view.time
    await user.press("c")
    await user.until(lambda: user.view.time > first)
    second = user.view.time
    await user.press("R")
    await at(user, first)
    await user.command("set var grace.balance = 7777")
    await user.says("branch continues from here")
    await user.press("H")
    await user.type("fix")
    await user.press("enter")
    await user.shows("fix: now 100%")
    assert user.view.location == "deposit+0x0"
    await user.command("set var grace.balance = 7777")
    await user.command("delete")
    await user.press("c")
    await user.state(RunState.ENDED)
    await user.press("7")
    await user.shows("Grace, Harbour Road 1, 10115: 7677")
    await user.command("switch main")
    await user.shows("main: now 100%")
    assert (user.view.time, user.view.state) == (second, RunState.STOPPED)
    await user.press("c")
    await user.state(RunState.ENDED)
    await user.shows("Grace, Harbour Road 1, 10115: 4900")
    assert "7677" not in user.screen
    await user.command("diff fix")
    await user.shows("the first output that differs")
    await user.command("branch -d fix")
    await user.says("branch fix is gone")
    await user.until(lambda: not history(user).branch)


async def who_wrote(user: User) -> None:
    await user.command("break deposit")
    await user.press("c")
    await user.until(lambda: user.view.location == "deposit+0x0")
    lines = user.panes.registers.lines
    await user.press("2")
    lines.move_to(next(n for n, r in enumerate(lines.source.registers) if r.name == "rdi"))
    await user.press("W")
    await user.until(lambda: user.view.location == "transfer+0xb")
    assert history(user).past
    await user.press("W")
    await user.until(lambda: user.view.location.startswith("main"))
    await user.press("c")
    await user.until(lambda: user.view.location == "deposit+0x0")
    await user.press("5")
    await user.until(lambda: user.panes.memory.source.data(0))
    await user.press("W")
    await user.until(lambda: user.view.location == "transfer+0x1c", "the call of it")
    await user.command("first-time grace.balance == 5000")
    await user.until(lambda: user.view.time == 0)
    await user.shows("grace.balance == 5000 is true from the beginning")


@pytest.mark.slow
def test_a_branch_goes_on_from_the_past() -> None:
    flow(another_future, config=GuestConfig(sample("x86_64", "structs"), history=True))


async def who_wrote_at_the_end(user: User) -> None:
    await user.press("c")
    await user.state(RunState.ENDED)
    lines = user.panes.registers.lines
    await user.press("2")
    lines.move_to(next(n for n, r in enumerate(lines.source.registers) if r.name == "rbx"))
    await user.press("W")
    await user.until(lambda: user.view.location == "exit+0x1", "mov ebx, edi")
    await user.press("W")
    await user.until(lambda: user.view.location.startswith("main"), "pop rbx: the cursor is there")
    await user.press("c")
    await user.state(RunState.ENDED)
    await user.command("last-write $r15")
    await user.says("nothing has written to r15")


def test_who_wrote_a_register_of_a_program_that_has_ended() -> None:
    flow(who_wrote_at_the_end, config=GuestConfig(sample("x86_64", "structs"), history=True))


@pytest.mark.slow
def test_who_wrote_what_is_at_the_cursor() -> None:
    flow(who_wrote, config=GuestConfig(sample("x86_64", "structs"), history=True))


async def where_from(user: User) -> None:
    await user.command("break deposit")
    await user.press("c")
    await user.until(lambda: user.view.location == "deposit+0x0")
    first = user.view.time
    await user.press("c")
    await user.until(lambda: user.view.reason.startswith("breakpoint") and user.view.time > first)
    stood = user.view.time
    lines = user.panes.registers.lines
    await user.press("2")
    lines.move_to(next(n for n, r in enumerate(lines.source.registers) if r.name == "rsi"))
    await user.press("X")
    await user.shows("Where $rsi came from: 2 links")
    await user.shows("loaded from 0x")
    assert user.view.time == stood
    await user.press("enter")
    await user.until(lambda: user.view.location.startswith("transfer+"))
    await user.command("origin 1")
    await user.until(lambda: user.view.time == 0)


@pytest.mark.slow
def test_where_a_value_came_from() -> None:
    flow(where_from, config=GuestConfig(sample("x86_64", "structs"), history=True))


async def late_probes(user: User) -> None:
    store = user.panes.events.store
    await user.press("c")
    await user.state(RunState.ENDED)
    assert not len(store)
    await place(user, "p:chars print_char")
    await user.until(lambda: len(store) > 100)
    await user.shows("p:chars")
    count, end = len(store), store.end
    assert (store.first, count) == (0, end)
    await user.press("6", "g", "g")
    await user.until(lambda: user.panes.events.moment == store.moment(0))
    await user.press("at")
    await at(user, *store.moment(0))
    await place(user, "p:whole print")
    await user.until(lambda: store.end > end)
    await user.until(lambda: user.panes.events.moment is not None)
    assert {store.event(n).name for n in range(store.end)} == {"chars", "whole"}
    times = [store.event(n).time for n in range(store.end)]
    assert times == sorted(times)
    await user.until(lambda: user.probes[0].hits == count, "hits of the past")
    await user.command("delete 1")
    await user.until(lambda: store.end == store.counts.total() > 0 and store.end < count)
    assert {store.event(n).name for n in range(store.end)} == {"whole"}
    await user.command("delete 2")
    await user.until(lambda: not len(store))


@pytest.mark.slow
def test_a_late_probe_fills_the_log() -> None:
    flow(late_probes, config=GuestConfig(sample("x86_64", "words"), history=True))


async def phases_backwards(user: User) -> None:
    await place(user, "probe fibonacci")
    await user.press("c")
    await user.state(RunState.ENDED)
    await user.press("comma")
    await user.until(lambda: user.view.hit is not None, "the last hit")
    assert history(user).past
    last, hits = user.view.reason, user.view.time
    await user.press("comma")
    await user.until(lambda: user.view.hit and user.view.reason != last, "the phase before")
    assert user.view.time == hits
    await user.press("full_stop")
    await user.until(lambda: user.view.reason == last, "the phase again")
    await user.press("R")
    await user.until(lambda: user.view.hit is None and user.view.time < hits, "the probe before")


async def played_backwards(user: User) -> None:
    await place(user, "probe print")
    await user.press("c")
    await user.state(RunState.ENDED)
    events = user.panes.events.store
    hits = [events.moment(number)[0] for number in range(events.end)]
    await user.press("plus", "plus", "plus", "plus", "L")
    seen: list[int] = []

    def begun() -> bool:
        """All hits have been seen, and the run is at its begin."""
        if user.view.hit is not None and (not seen or seen[-1] != user.view.time):
            seen.append(user.view.time)
        return not user.app.controls.slow_motion.playing

    await user.until(begun, "the begin of the run")
    assert seen, "on a busy machine not each is seen"
    assert seen == [time for time in hits[::-1] if time in seen]
    await user.until(lambda: (user.view.time, user.view.hit) == (hits[0], None))
    await user.press("apostrophe")
    await user.type("end")
    await user.press("enter", "L")
    await user.until(lambda: user.view.hit is not None, "the last hit again")
    assert user.app.controls.slow_motion.playing
    await user.press("L")
    assert not user.app.controls.slow_motion.playing


@pytest.mark.slow
def test_hits_are_played_backwards() -> None:
    flow(played_backwards, config=GuestConfig(sample("x86_64", "recursion"), history=True))


async def played_forwards(user: User) -> None:
    """Both sides of a return probe, whose return is in the machinery's own code."""
    await place(user, "retprobe print")
    await user.press("c")
    await user.state(RunState.ENDED)
    end = user.view.time
    await user.press("apostrophe")
    await user.type("start")
    await user.press("enter")
    await user.until(lambda: history(user).past, "the start")
    await user.press("plus", "plus", "plus", "plus", "P")
    seen: list[tuple[int, str]] = []

    def begun() -> bool:
        """All hits have been seen, and the run is at its end."""
        view = user.view
        if view.hit is not None and (view.time, view.reason) not in seen:
            seen.append((view.time, view.reason))
        return not user.app.controls.slow_motion.playing

    await user.until(begun, "the end of the run")
    assert (user.view.time, user.view.state) == (end, RunState.ENDED)
    times = [time for time, _ in seen]
    assert times, "on a busy machine not each is seen"
    assert times == sorted(times)
    events = user.panes.events.store
    hits = {events.moment(number)[0] for number in range(events.end)}
    assert len(hits & set(times)) > len(hits) / 2


@pytest.mark.slow
def test_hits_of_the_past_are_played_forwards() -> None:
    flow(played_forwards, config=GuestConfig(sample("x86_64", "recursion"), history=True))


async def played_to_the_present(user: User) -> None:
    """Slow motion of the past stops where the run itself stands."""
    await place(user, "break fibonacci")
    await user.press("c")
    await user.until(lambda: user.view.at_hit, "a stop")
    first = user.view.time
    await user.press("c")
    await user.until(lambda: user.view.at_hit and user.view.time > first, "the next one")
    now = user.view.time
    await user.press("R")
    await user.until(lambda: history(user).past and user.view.time == first, "the past")
    await user.press("plus", "plus", "plus", "plus", "P")
    assert user.app.controls.slow_motion.playing
    await user.until(lambda: not user.app.controls.slow_motion.playing, "the present")
    assert (user.view.time, history(user).past) == (now, False)


@pytest.mark.slow
def test_slow_motion_stops_at_the_present() -> None:
    flow(played_to_the_present, config=GuestConfig(sample("x86_64", "recursion"), history=True))


@pytest.mark.slow
def test_phases_are_gone_back_through() -> None:
    flow(phases_backwards, config=GuestConfig(sample("x86_64", "recursion"), history=True))


DANGLING = """\
#include <cstdio>
#include <vector>
struct Shape {
    virtual ~Shape() = default;
    virtual int area(int side) { return side * id; }
    int id = 0;
    char name[40] = "";
};
struct Drawing {
    std::vector<Shape *> shapes;
    Shape *largest = nullptr;
    void add(int id)
    {
        auto *shape = new Shape;
        shape->id = id;
        shapes.push_back(shape);
        if (id == 3)
            largest = shape;
    }
    void forget(int limit)
    {
        for (auto &shape : shapes)
            if (shape && shape->id < limit) {
                delete shape;
                shape = nullptr;
            }
    }
    int area(int side) { return largest->area(side); }
};
int main()
{
    Drawing drawing;
    for (int id = 0; id < 6; id++)
        drawing.add(id);
    int sum = 0;
    for (int round = 0; round < 8; round++) {
        if (round == 5)
            drawing.forget(4);
        sum += drawing.area(round);
    }
    printf("%d\\n", sum);
}
"""


async def crash_to_free(user: User) -> None:
    keys = 0

    async def press(*these: str) -> None:
        nonlocal keys
        keys += len(these)
        await user.press(*these)

    await press("c")
    await user.state(RunState.ENDED)
    await user.shows("killed by SIGSEGV")
    crashed = user.view.pc
    await press("2", "j", "j", "j", "W")  # rax: what wrote the address that is none?
    await user.until(lambda: user.view.pc < crashed, "the addition")
    added = user.view.pc
    await press("W")  # what was added to: it was loaded
    await user.until(lambda: user.view.pc < added, "the load")
    loaded = user.view.time
    await press("enter", "W")  # where it was loaded from, and what wrote there
    await user.until(lambda: user.view.time < loaded, "the store")
    await user.shows("_int_free")
    for _ in range(2):
        await press("F")
        before = user.view.pc
        await user.until(lambda: user.view.pc != before, "the call")  # noqa: B023
    await user.shows("Drawing::forget")
    assert keys < 12


@pytest.mark.slow
def test_from_a_crash_to_the_free(tmp_path: Path) -> None:
    """A C++ program uses what it has given back: the place is found in fewer than 12 keys."""
    program = build(tmp_path, "dangling", DANGLING, "-g", "-static-pie", compiler="g++")
    flow(crash_to_free, size=(120, 40), config=GuestConfig(str(program), history=True))


def test_a_run_that_is_not_recorded_says_so() -> None:
    async def steps(user: User) -> None:
        await place(user, "probe print")
        await user.press("c")
        await user.state(RunState.ENDED)
        assert not user.app.query_one(Timeline).display
        await user.press("6", "at")
        await user.says("the run is not recorded")

    flow(steps, guest=sample("x86_64", "words"))


async def a_file(user: User) -> None:
    await user.state(RunState.ENDED)
    await user.shows("total 21")
    await place(user, "probe print")
    store = user.panes.events.store
    await user.until(lambda: len(store) > 10)
    await user.press("6", "g", "g", "at")
    await at(user, *store.moment(0))


def test_a_recording_opens(tmp_path: Path) -> None:
    run("record", "-o", "run.rec", sample("x86_64", "words"), cwd=tmp_path)
    path = str(tmp_path / "run.rec")
    flow(a_file, config=GuestConfig(path, recording=path))
