"""Probes and breakpoints are placed, edited and taken away by keys."""

from pathlib import Path

import pytest
from controlkit import sample
from flowkit import User, both, flow, place, sizes
from sysroot import SysrootUnavailable, sysroot
from textual.widgets import Input

from engine.session import GuestConfig
from engine.session.protocol.views import RunState
from tui.screens.probe_dialog import ProbeDialog


@sizes
@both
def test_each_hit_with_its_arguments_in_seven_keys(arch: str, size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.press("p", "m", "i", "x", "enter", "c")
        await user.shows("p_mix_0(state=")
        assert user.keys <= 7
        await user.state(RunState.ENDED)
        assert user.view.events == 20

    flow(steps, guest=sample(arch, "loop"), args=("20",), size=size)


@pytest.mark.sysroot
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "program"), [("x86_64", "bin/busybox"), ("aarch64", "usr/bin/sqlite3")]
)
def test_the_same_of_a_real_program(arch: str, program: str) -> None:
    try:
        root = sysroot(arch)
    except SysrootUnavailable as error:
        pytest.skip(str(error))
    path = root / program
    if not path.exists():
        pytest.skip(f"no {path}")

    async def steps(user: User) -> None:
        name = {"aarch64": "malloc"}.get(arch, "")
        if name:
            await user.press("p", *"mall", "enter", "c")
        else:  # stripped: the place at the cursor, the entry point
            await user.press("p", "enter")
            await user.press("c")
        await user.until(lambda: user.view.events > 0, "events")
        await user.shows("arg1=0x" if name else "p_")
        assert user.keys <= 7

    args = ("echo", "hello") if arch == "x86_64" else (":memory:", "select 1")
    flow(steps, config=GuestConfig(str(path), args, root=str(root)))


def test_a_probe_at_the_cursor() -> None:
    async def steps(user: User) -> None:
        await user.press("g")
        await user.typing()
        await user.type("fibonacci")
        await user.press("enter")
        await user.until(lambda: user.code.cursor == user.address("fibonacci"))
        await user.press("j", "j")
        await user.press("p")
        await user.choices("fibonacci+")
        await user.press("enter")
        await user.until(lambda: user.probes)
        assert user.probes[0].addresses == (user.code.cursor,)
        assert user.probes[0].row.line.startswith("p fibonacci+0x")

    flow(steps)


@sizes
def test_a_probe_by_a_part_of_a_name_and_an_edit_of_its_text(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.press("p", *"acker")
        await user.choices("ackermann")
        await user.press("tab")
        line = user.app.screen.query_one(Input)
        assert line.value == user.app.browser.default_definition("ackermann")
        assert line.value.startswith("p ackermann ")
        await user.type("p:demo/acker ackermann m=%di:u32 n=%nosuch")
        await user.until(lambda: "register" in user.screen or "^ " in user.screen)
        rows = user.screen.split("\n")
        text = next(n for n, row in enumerate(rows) if "n=%nosuch" in row)
        caret = next(row for row in rows[text + 1 :] if "^" in row and "^b" not in row)
        assert caret.index("^") == rows[text].index("%nosuch")
        await user.press("enter")
        assert isinstance(user.app.screen, ProbeDialog)
        await user.type("p:demo/acker ackermann m=%di:u32")
        await user.press("enter")
        await user.until(lambda: user.probes)
        assert user.probes[0].row.line == "p:demo/acker ackermann m=%di:u32"
        assert user.focus == "code"

    flow(steps, size=size)


def test_a_return_probe_and_back() -> None:
    async def steps(user: User) -> None:
        await user.press("p", *"fibo")  # and no waiting for names
        await user.press("ctrl+r")
        line = user.app.screen.query_one(Input)
        assert line.value == "r fibonacci ret=$retval:u32"
        await user.press("ctrl+r")
        assert line.value == user.app.browser.default_definition("fibonacci")
        await user.press("ctrl+r", "enter")
        await user.until(lambda: user.probes)
        assert user.probes[0].kind == "r"

    flow(steps)


def test_nothing_is_placed_by_a_name_that_is_none_or_by_leaving() -> None:
    async def steps(user: User) -> None:
        await user.press("p", *"zzz")
        await user.shows("no function of that name")
        await user.press("enter")
        assert isinstance(user.app.screen, ProbeDialog)
        await user.press("escape")
        await user.until(lambda: not isinstance(user.app.screen, ProbeDialog))
        await user.press("p", "escape")
        assert user.focus == "code"
        assert user.probes == ()

    flow(steps)


def test_a_probe_is_edited_switched_deleted_and_brought_back() -> None:
    async def steps(user: User) -> None:
        await place(user, "p:demo/fib fibonacci")
        await user.press("8")
        assert user.focus == "probes"
        await user.press("e")
        await user.until(lambda: not user.probes[0].row.enabled)
        await user.press("e")
        await user.until(lambda: user.probes[0].row.enabled)
        await user.press("b")
        await user.until(lambda: user.probes[0].row.stops)
        await user.press("E")
        await user.until(lambda: isinstance(user.app.screen, ProbeDialog))
        assert user.app.screen.query_one(Input).value == "p:demo/fib fibonacci"
        await user.type("p:demo/fib fibonacci n=$arg1:u32")
        await user.press("enter")
        await user.until(lambda: user.probes[0].row.line.endswith("u32"))
        assert (len(user.probes), user.probes[0].row.stops) == (1, True)
        await user.press("x")
        await user.until(lambda: not user.probes)
        await user.press("U")
        await user.until(lambda: user.probes)
        assert user.probes[0].row.line.endswith("u32")
        await user.press("ctrl+r")
        await user.until(lambda: not user.probes)
        await user.press("U", "U", "U")
        await user.until(lambda: user.probes and not user.probes[0].row.stops)

    flow(steps)


def test_a_definition_that_the_engine_refuses_comes_back_and_still_replaces() -> None:
    async def steps(user: User) -> None:
        await place(user, "p:demo/a factorial")
        await place(user, "p:demo/b fibonacci")
        await user.command("p:demo/a main n=%nosuch")
        await user.says("Invalid register name")
        await user.press("E")
        assert user.app.screen.query_one(Input).value == "p:demo/a main n=%nosuch"
        await user.press("escape")
        assert len(user.probes) == 2

    flow(steps)


def test_a_file_of_wrong_definitions_opens_no_dialog(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("\n".join(f"p:demo/e{n} main n=%nosuch{n}" for n in range(20)))

    async def steps(user: User) -> None:
        await user.command(f"load {lines}")
        await user.says("%nosuch19")
        assert len(user.app.screen_stack) == 1

    flow(steps)


@sizes
def test_a_breakpoint_by_key_and_by_the_margin(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        def rows() -> list[int]:
            return [0 if line.heading else line.row.address for line in user.code._lines]

        await user.command("go fibonacci")
        at = user.address("fibonacci")
        await user.press("b")
        await user.until(lambda: [p.addresses for p in user.probes] == [(at,)])
        await user.until(lambda: at in rows(), "the code is drawn")
        row = rows().index(at)
        await user.pilot.click(user.code, offset=(1, row))
        await user.until(lambda: not user.probes)
        await user.pilot.click(user.code, offset=(1, row + 1))
        await user.until(lambda: user.probes)
        assert user.probes[0].addresses[0] > at

    flow(steps, size=size)


def test_no_dialog_opens_by_itself_and_no_error_squeezes_the_panes() -> None:
    async def steps(user: User) -> None:
        places = [pane.region for pane in user.panes]
        await user.command("p:demo/x nosuch+1")
        await user.says("nosuch")
        assert len(user.app.screen_stack) == 1
        assert "E edits it" in user.said
        assert [pane.region for pane in user.panes] == places
        await user.press("j")  # the error is read: it goes with the next key
        assert user.said == ""
        await user.press("E")
        assert isinstance(user.app.screen, ProbeDialog)
        await user.type("p:demo/x fibonacci+4")
        await user.press("enter")
        await user.until(lambda: user.probes)
        await user.command("nosuch")
        await user.says("Undefined command")
        await user.command("p:demo/y ackermann")  # typed on and on
        await user.until(lambda: len(user.probes) == 2)
        assert "Undefined command" not in user.said

    flow(steps, size=(80, 24))
