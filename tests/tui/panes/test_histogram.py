"""Filters, triggers and histograms from the interface."""

from functools import partial
from pathlib import Path

import pytest
from controlkit import moods
from flowkit import LARGE, SMALL, User, flow
from textual.widgets import Input

from engine.session.protocol.views import RunState

FIB = ("p:demo/fib fibonacci n=$arg1:u32",)


@pytest.mark.parametrize("size", [LARGE, (20, 5)])
def test_hits_are_counted_by_a_field(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.until(lambda: user.probes)
        await user.press("0")
        assert user.focus == "histogram"
        assert "no histograms" in user.screen
        await user.press("1")
        await user.command("hist fib n:sort=n.descending if n > 12")
        await user.until(lambda: user.focus == "histogram")
        await user.press("c")
        await user.state(RunState.ENDED)
        lines = user.panes.histogram.lines
        (text,) = user.view.histograms
        assert [lines.plain(n) for n in range(lines.line_count)] == text.split("\n")
        assert [line for line in text.split("\n") if line.startswith("{")] == [
            "{ n:         15 } hitcount:          1",
            "{ n:         14 } hitcount:          1",
            "{ n:         13 } hitcount:          1",
        ]
        await user.press("slash")
        await user.type("Entries")
        await user.press("enter")
        await user.until(lambda: "Entries: 3" in lines.plain(lines.cursor))
        await user.shows("Entries: 3")
        await user.press("Y")
        assert user.clipboard.strip() == "Entries: 3"
        await user.press("x")
        await user.until(lambda: not user.view.histograms)
        assert lines.line_count == 0
        assert user.probes[0].row.rules.triggers == ()
        await user.press("U")
        await user.until(lambda: user.view.histograms)

    flow(steps, size=size, definitions=FIB)


def test_a_narrow_terminal_has_its_tab_when_there_is_one() -> None:
    async def steps(user: User) -> None:
        await user.until(lambda: user.probes)
        assert "0 Hist" not in user.screen
        await user.command("trigger demo/fib hist:keys=n")
        await user.shows("[0 Hist]")
        await user.press("6")
        await user.shows(" 0 Hist ")
        await user.command("trigger demo/fib !hist:keys=n")
        await user.until(lambda: "0 Hist" not in user.screen)

    flow(steps, size=SMALL, definitions=FIB)


def test_a_filter_by_command_and_by_key() -> None:
    async def steps(user: User) -> None:
        await user.until(lambda: user.probes)
        await user.command("filter fib n > 13")
        await user.says("demo/fib is recorded if n > 13")
        await user.press("c")
        await user.state(RunState.ENDED)
        assert user.view.events == 2
        await user.press("8", "F")
        await user.typing()
        line = user.app.focused
        assert isinstance(line, Input)
        assert line.value == "n > 13"
        await user.type("n > 14 && m")
        await user.press("enter")
        await user.says("error")
        assert user.probes[0].row.rules.filter == "n > 13"
        await user.press("F")
        await user.type("n > 14")
        await user.press("enter")
        await user.until(lambda: user.probes[0].row.rules.filter == "n > 14")
        await user.press("r")
        await user.state(RunState.READY)
        await user.press("c")
        await user.until(lambda: user.view.state is RunState.ENDED and user.view.events == 1)
        await user.press("F")
        await user.type("")
        await user.press("enter")
        await user.until(lambda: user.probes[0].row.rules.filter == "")
        assert user.focus == "probes"

    flow(steps, definitions=FIB)


def test_what_is_wrong_and_what_tab_makes_of_it() -> None:
    async def steps(user: User) -> None:
        await user.until(lambda: user.probes)
        for line, said in (
            ("hist fib", "a FIELD is missing"),
            ("hist nosuch n", "there are demo/fib"),
            ("hist fib nosuch", "Couldn't find field"),
            ("filter fib n >", "^"),
        ):
            await user.command(line)
            await user.says(said)
        await user.press("colon")
        for typed, made in (
            ("hist f", "hist demo/fib"),
            ("hist demo/fib keys=n.hex,o", "hist demo/fib keys=n.hex,other"),
        ):
            await user.type(typed)
            await user.press("tab")
            box = user.app.focused
            assert isinstance(box, Input)
            await user.until(partial(_holds, box, made), made)
        await user.press("escape")

    flow(steps, definitions=("p:demo/fib fibonacci n=$arg1:u32 other=%si:u32",))


def _holds(box: Input, text: str) -> bool:
    return box.value == text


def test_tables_are_told_while_the_program_runs() -> None:
    async def steps(user: User) -> None:
        await user.command("p:demo/tick tick n=$arg1")
        await user.until(lambda: user.probes)
        await user.command("hist tick common_pid")
        await user.press("c")
        await user.until(lambda: user.view.histograms and "{ " in user.view.histograms[0])
        first = user.view.histograms
        await user.until(lambda: user.view.histograms != first)
        await user.press("ctrl+c")
        await user.state(RunState.STOPPED)
        await user.until(
            lambda: f"Hits: {user.probes[0].hits}\n" in user.view.histograms[0], "all hits"
        )

    flow(steps, guest=moods("x86_64"), args=("t",), size=LARGE)


def test_they_are_there_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBE_TUI_STATE", str(tmp_path))

    async def first(user: User) -> None:
        await user.until(lambda: user.probes)
        await user.command("filter fib n > 14")
        await user.command("hist fib n")
        await user.until(lambda: user.view.histograms)

    async def second(user: User) -> None:
        await user.until(lambda: user.view.histograms)
        assert user.probes[0].row.rules.filter == "n > 14"
        assert user.probes[0].row.rules.triggers == ("hist:keys=n",)

    flow(first, fresh=False, definitions=FIB)
    flow(second, fresh=False)


def test_a_histogram_makes_events_that_have_one() -> None:
    async def steps(user: User) -> None:
        await user.until(lambda: user.probes)
        await user.command("s:top u32 num; int task")
        text = "hist:keys=common_pid:num=n:onmax($num).top($num,common_pid)"
        text += ":onmax($num).save(common_pid)"
        await user.command(f"trigger demo/fib {text}")
        await user.until(lambda: user.view.histograms)
        await user.command("trigger synthetic/top hist:keys=num:vals=task:sort=num")
        await user.until(lambda: len(user.view.histograms) == 2)
        await user.press("c")
        await user.state(RunState.ENDED)
        first, second = user.view.histograms
        assert "\tmax:         15  common_pid:       1000" in first
        assert "{ num:         15 } hitcount:          1  task:       1000" in second
        lines = user.panes.histogram.lines
        shown = [lines.plain(n) for n in range(lines.line_count)]
        assert "        max:         15  common_pid:       1000" in shown

    flow(steps, size=LARGE, definitions=FIB)
