"""Every flow of the interface by keys: placing, running, slow motion, looking around."""

import shutil
import subprocess
from pathlib import Path

import pytest
from controlkit import ARCHES, moods, sample
from flowkit import LARGE, SIZES, SMALL, User, flow
from sysroot import SysrootUnavailable, sysroot
from textual.widgets import Input

from engine.session import GuestConfig
from engine.session.views import RunState
from tui.layout import PANES
from tui.screens.help import HelpScreen
from tui.screens.place import PlaceScreen
from tui.screens.why import WhyScreen

sizes = pytest.mark.parametrize("size", SIZES)
both = pytest.mark.parametrize("arch", ARCHES)


async def place(user: User, line: str) -> None:
    """Place a definition by typing it."""
    count = len(user.probes)
    await user.command(line)
    await user.until(lambda: len(user.probes) == count + 1, line)


# -- placing --------------------------------------------------------------------------------


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
        assert user.probes[0].definition.startswith("p fibonacci+0x")

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
        await user.until(lambda: "register" in user.screen or "^" in user.screen)
        rows = user.screen.split("\n")
        text = next(n for n, row in enumerate(rows) if "n=%nosuch" in row)
        caret = next(row for row in rows[text + 1 :] if "^" in row)
        assert caret.index("^") == rows[text].index("%nosuch")
        await user.press("enter")
        assert isinstance(user.app.screen, PlaceScreen)
        await user.type("p:demo/acker ackermann m=%di:u32")
        await user.press("enter")
        await user.until(lambda: user.probes)
        assert user.probes[0].definition == "p:demo/acker ackermann m=%di:u32"
        assert user.focus == "code"

    flow(steps, size=size)


def test_a_return_probe_and_back() -> None:
    async def steps(user: User) -> None:
        await user.press("p", *"fibo")
        await user.choices("fibonacci")
        await user.press("ctrl+r")
        line = user.app.screen.query_one(Input)
        assert line.value == "r fibonacci ret=$retval"
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
        assert isinstance(user.app.screen, PlaceScreen)
        await user.press("escape")
        await user.until(lambda: not isinstance(user.app.screen, PlaceScreen))
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
        await user.until(lambda: not user.probes[0].enabled)
        await user.press("e")
        await user.until(lambda: user.probes[0].enabled)
        await user.press("b")
        await user.until(lambda: user.probes[0].stops)
        await user.press("E")
        await user.until(lambda: isinstance(user.app.screen, PlaceScreen))
        assert user.app.screen.query_one(Input).value == "p:demo/fib fibonacci"
        await user.type("p:demo/fib fibonacci n=$arg1:u32")
        await user.press("enter")
        await user.until(lambda: user.probes[0].definition.endswith("u32"))
        assert (len(user.probes), user.probes[0].stops) == (1, True)
        await user.press("x")
        await user.until(lambda: not user.probes)
        await user.press("U")
        await user.until(lambda: user.probes)
        assert user.probes[0].definition.endswith("u32")
        await user.press("ctrl+r")
        await user.until(lambda: not user.probes)
        await user.press("U", "U", "U")
        await user.until(lambda: user.probes and not user.probes[0].stops)

    flow(steps)


def test_a_definition_that_the_engine_refuses_comes_back_and_still_replaces() -> None:
    async def steps(user: User) -> None:
        await place(user, "p:demo/a factorial")
        await place(user, "p:demo/b fibonacci")
        await user.command("p:demo/a main n=%nosuch")
        await user.until(lambda: isinstance(user.app.screen, PlaceScreen))
        assert user.app.screen.query_one(Input).value == "p:demo/a main n=%nosuch"
        await user.press("escape")
        assert len(user.probes) == 2

    flow(steps)


def test_a_file_of_wrong_definitions_opens_one_dialog(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("\n".join(f"p:demo/e{n} main n=%nosuch{n}" for n in range(20)))

    async def steps(user: User) -> None:
        await user.command(f"source {lines}")
        await user.until(lambda: isinstance(user.app.screen, PlaceScreen))
        await user.press("escape")
        await user.until(lambda: len(user.app.screen_stack) == 1)

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


# -- running --------------------------------------------------------------------------------


@sizes
@both
def test_run_step_over_and_to_the_cursor(arch: str, size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.command("b main")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.until(lambda: user.view.location == "main+0x0")
        await user.says("breakpoint 1: main")
        start = user.view.pc
        await user.press("i")
        await user.until(lambda: user.view.pc != start)
        second = user.view.pc
        await user.press("o")
        await user.until(lambda: user.view.pc != second)
        await user.command("go fibonacci")
        await user.press("greater_than_sign")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        await user.press("f")
        await user.until(lambda: user.view.reason == "finished")
        assert user.view.location.startswith("main+")
        line = user.view.line
        await user.press("n")
        await user.until(lambda: user.view.line != line)
        await user.press("s")
        await user.until(lambda: user.view.location.partition("+")[0] != "fibonacci")
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.says("exited with 0")
        await user.press("r")
        await user.state(RunState.READY)
        assert user.view.location.startswith("_start")

    flow(steps, guest=sample(arch, "recursion"), size=size)


def test_a_loop_is_stopped_with_ctrl_c() -> None:
    async def steps(user: User) -> None:
        await user.press("c")
        await user.state(RunState.RUNNING)
        await user.press("ctrl+c")
        await user.state(RunState.STOPPED)
        await user.press("ctrl+c")
        await user.says("not running")

    flow(steps, guest=moods("x86_64"), args=("s",))


def test_what_the_guest_reads_is_typed_in_its_pane() -> None:
    async def steps(user: User) -> None:
        await user.press("c")
        await user.state(RunState.WAITING)
        assert "in read()" in user.screen
        await user.press("7", "enter")
        await user.until(lambda: isinstance(user.app.focused, Input), "an input")
        await user.type("hello")
        await user.press("enter")
        await user.state(RunState.ENDED)
        await user.shows("result 6")

    flow(steps, guest=moods("x86_64"), args=("r",))


def test_a_guest_that_is_killed() -> None:
    async def steps(user: User) -> None:
        await user.press("c")
        await user.state(RunState.ENDED)
        assert "SIGSEGV" in user.screen
        await user.press("3")
        await user.press("r", "c")
        await user.state(RunState.ENDED)
        assert user.view.exit_code == 139

    flow(steps, guest=sample("aarch64", "crash"))


@sizes
def test_slow_motion_by_hand(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.command("b fibonacci")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        await user.press("4", "z")
        names = []
        for _ in range(12):
            hit = user.view.hit
            done = len(hit.done) if hit is not None and hit.next else 0
            await user.press("full_stop")
            await user.until(
                lambda done=done: (
                    user.view.hit is not None  # type: ignore[misc]
                    and len(user.view.hit.done) > done
                )
            )
            hit = user.view.hit
            assert hit is not None
            names.append(hit.done[-1].name)
            if not hit.next:
                break
        assert names[:3] == ["armed", "trap", "pre-handlers"]
        assert names[-1] == "resume"
        assert "resume" in user.screen
        await user.press("z")
        await user.press("full_stop")
        await user.until(lambda: user.view.hit is None)

    flow(steps, size=size)


def test_slow_motion_played() -> None:
    async def steps(user: User) -> None:
        await user.command("b fibonacci")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        await user.press("plus", "plus", "plus", "plus", "P")
        await user.until(lambda: user.view.hit is not None and not user.view.hit.next)
        await user.press("P")
        assert user.app.playing_text == ""
        await user.press("minus")
        await user.says("phases a second")

    flow(steps)


# -- looking --------------------------------------------------------------------------------


@sizes
def test_why(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.command("go fibonacci")
        await user.press("y")
        assert isinstance(user.app.screen, WhyScreen)
        await user.shows("boundary")
        await user.press("j", "k", "escape")
        assert user.focus == "code"

    flow(steps, size=size)


def test_go_to_an_address_a_symbol_a_line_an_event() -> None:
    async def steps(user: User) -> None:
        async def go(text: str) -> None:
            await user.press("g", text[0])
            await user.typing()
            await user.type(text)
            await user.press("enter")
            await user.pilot.pause()

        at = user.address("fibonacci")
        for text in (f"{at:#x}", "fibonacci", "recursion.c:13"):
            await user.command("go main")
            await user.until(lambda: user.code.cursor == user.address("main"))
            await go(text)
            await user.until(lambda: user.code.cursor >= at, text)
            assert user.app.browser.locate(user.code.cursor).startswith("fibonacci+")
        await go("nosuch")
        await user.says("nosuch")
        await place(user, "p:demo/fib fibonacci")
        await user.press("c")
        await user.state(RunState.ENDED)
        await go("#100")
        await user.until(lambda: user.focus == "events")
        assert user.pane("events").lines.cursor == 99

    flow(steps)


def test_completion_of_places_and_the_history_of_lines() -> None:
    async def steps(user: User) -> None:
        await user.press("g", "f", "i", "b", "o")
        await user.typing()
        line = user.app.screen.query_one("MessageLine Input", Input)
        await user.until(lambda: line.value == "fibo")
        await user.press("tab")
        await user.until(lambda: line.value == "fibonacci")
        await user.press("escape")
        await user.command("break facto")
        await user.says("facto")
        await user.press("colon")
        await user.type("break facto")
        await user.press("tab")
        await user.until(lambda: line.value == "break factorial")
        await user.press("enter")
        await user.until(lambda: user.probes)
        await user.press("colon", "up")
        assert line.value == "break factorial"
        await user.press("up")
        assert line.value == "break facto"
        await user.press("down", "down")
        assert line.value == ""
        await user.press("escape")
        assert user.focus == "code"

    flow(steps)


@sizes
def test_every_pane_is_searched(size: tuple[int, int]) -> None:
    words = ("cmp", "rsp", "main", "probe", "0000", "fib", "fib", "fi")

    async def steps(user: User) -> None:
        await place(user, "p:demo/fib fibonacci")
        await user.command("b ackermann")
        await user.press("c")
        await user.until(lambda: user.view.location == "ackermann+0x0")
        for number, word in enumerate(words, 1):
            await user.press(str(number))
            before = user.focus
            await user.press("slash")
            await user.type(word)
            await user.press("enter")
            await user.until(
                lambda before=before: (
                    user.focus == before  # type: ignore[misc]
                    and not isinstance(user.app.focused, Input)
                )
            )
            await user.press("n", "N")
            assert "not found" not in user.said, before
            assert user.view.reason == "breakpoint 2: ackermann", "no key of the search moves it"
            await user.press("escape", "slash", "escape")
            assert user.focus == before
        line = user.view.line
        await user.press("1", "n")
        await user.until(lambda: user.view.line != line)  # and now it steps again

    flow(steps, size=size)


def test_copies() -> None:
    async def steps(user: User) -> None:
        await place(user, "p:demo/fib fibonacci n=$arg1:u32")
        await user.command("go fibonacci")
        await user.press("Y")
        await user.until(lambda: f"{user.code.cursor:x}" in user.clipboard)
        await user.press("ctrl+k")
        await user.until(lambda: user.clipboard == "p:demo/fib fibonacci n=$arg1:u32")
        await user.press("j", "ctrl+k")
        await user.until(lambda: user.clipboard.startswith("p fibonacci+0x"))
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.press("6", "g", "g", "J", "J", "Y")
        await user.until(lambda: user.clipboard.count("fib: (fibonacci+0x0") == 3)

    flow(steps)


@both
def test_assemble_and_patch(arch: str) -> None:
    async def steps(user: User) -> None:
        await user.command("go fibonacci")
        old = user.code.row
        await user.press("A")
        line = user.app.screen.query_one("MessageLine Input", Input)
        assert line.value.startswith(old.mnemonic)
        await user.type("nosuch")
        await user.press("enter")
        await user.until(lambda: "nosuch" in user.said)
        await user.press("A")
        await user.type({"x86_64": "mov eax, 7; ret", "aarch64": "mov w0, #7; ret"}[arch])
        await user.press("enter")
        await user.until(lambda: user.view.undo)
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.press("7")
        await user.shows("fibonacci(15) = 7")

    flow(steps, guest=sample(arch, "recursion"))


def test_registers_and_memory_are_set() -> None:
    async def steps(user: User) -> None:
        await user.command("until fibonacci")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        await user.command("set rdi=10")
        await user.until(
            lambda: any(r.value == 10 for r in user.view.registers if r.name == "rdi")
        )
        await user.press("2")
        lines = user.pane("registers").lines
        lines.move_to(next(n for n, r in enumerate(lines._rows) if r.name == "rbx"))
        await user.press("equals_sign")
        await user.type("0x1234")
        await user.press("enter")
        await user.until(
            lambda: any(r.value == 0x1234 for r in user.view.registers if r.name == "rbx")
        )
        await user.press("U")
        await user.says("undone: rbx")
        await user.press("5", "equals_sign")
        await user.type("zz")
        await user.press("enter")
        await user.says("not hex")
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.press("7")
        await user.shows("fibonacci(15) = 55")

    flow(steps)


# -- panes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [SMALL, LARGE, (20, 5)])
def test_panes_by_number_tab_brackets_and_zoom(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        assert sorted(spec.number for spec in PANES) == list(range(10))
        for spec in PANES:
            await user.press(str(spec.number))
            assert user.focus == spec.id
            assert user.pane(spec.id).region.area > 0
        await user.press("right_square_bracket")
        assert user.focus == "events"
        await user.press("left_square_bracket")
        assert user.focus == PANES[-1].id
        await user.press("z")
        shown = [spec.id for spec in PANES if user.pane(spec.id).region.area]
        assert shown == [PANES[-1].id]
        await user.press("z", "1")
        await user.press("tab")
        await user.press("shift+tab")
        assert user.focus == "code"

    flow(steps, size=size)


def test_a_terminal_that_becomes_tiny_and_large_again() -> None:
    async def steps(user: User) -> None:
        await place(user, "p:demo/fib fibonacci")
        for size in ((20, 5), (1, 1), (120, 40), (20, 5), (80, 24)):
            await user.pilot.resize_terminal(*size)
            await user.press("p", "escape", "question_mark", "escape", "colon", "escape")
            await user.press("y", "escape", "slash", "escape", "6", "1")
        await user.press("c")
        await user.state(RunState.ENDED)
        assert user.view.events > 20

    flow(steps)


def test_help_is_of_the_focused_pane() -> None:
    async def steps(user: User) -> None:
        for pane, words in (("1", "follow the branch"), ("8", "Sign, kind"), ("2", "set the reg")):
            await user.press(pane, "question_mark")
            assert isinstance(user.app.screen, HelpScreen)
            await user.shows(words)
            await user.press("escape")
            assert len(user.app.screen_stack) == 1

    flow(steps)


def test_a_stripped_program(tmp_path: Path) -> None:
    strip = shutil.which("strip")
    if strip is None:
        pytest.skip("no strip")
    program = tmp_path / "stripped"
    shutil.copy(sample("x86_64", "recursion"), program)
    subprocess.run([strip, "-s", str(program)], check=True)

    async def steps(user: User) -> None:
        await user.press("p")
        await user.choices("0x")
        await user.press("enter")
        await user.until(lambda: user.probes)
        await user.press("j", "b", "y", "escape", "c")
        await user.until(lambda: user.view.reason.startswith("breakpoint"))
        await user.press("c")
        await user.state(RunState.ENDED)
        assert user.view.events == 1
        await user.press("7")
        await user.shows("fibonacci(15) = 610")

    flow(steps, guest=str(program))


def test_a_dialog_that_is_left_while_names_are_looked_up() -> None:
    async def steps(user: User) -> None:
        for _ in range(5):
            await user.press("p", "f", "escape")
            await user.press("p", *"p main x=", "escape", "j")
        await user.until(lambda: all(work.is_finished for work in user.app.workers))
        assert len(user.app.screen_stack) == 1

    flow(steps)


def test_keys_wait_for_the_dialog_that_a_key_opens() -> None:
    async def steps(user: User) -> None:
        here = user.code.cursor
        await user.press(
            *"pjjj", "escape", *"pmain", "enter", "colon", *"b fibonacci", "enter", "j"
        )
        await user.until(lambda: len(user.probes) == 2)
        assert [probe.kind for probe in user.probes] == ["p", "b"]
        assert user.code.cursor != here  # the last key came back to the code

    flow(steps)
