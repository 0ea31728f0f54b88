"""Palette, command line, leaving, what is remembered, settings, samples: the rest of the house."""

import asyncio
from pathlib import Path
from typing import get_type_hints
from unittest.mock import create_autospec

import pytest
from controlkit import moods, sample
from flowkit import LARGE, SMALL, User, flow
from textual.binding import Binding
from textual.widgets import OptionList

from engine.session.protocol.views import RunState
from tui.app import KprobeApp
from tui.command_line import COMMANDS
from tui.controls import Controls
from tui.keymap import ACTIONS
from tui.samples import Picker
from tui.screens.help import HelpScreen
from tui.screens.palette import PaletteScreen
from tui.screens.probe_dialog import ProbeDialog
from tui.screens.verdict import VerdictScreen
from tui.session_restore import ProgramMemory
from tui.settings import Settings, load_settings


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KPROBE_TUI_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KPROBE_TUI_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path


@pytest.mark.slow
def test_every_action_can_be_done() -> None:
    for action in ACTIONS:
        parts = {
            name: create_autospec(kind, instance=True)
            for name, kind in get_type_hints(Controls).items()
        }
        action.do(Controls(**parts))
        done = [call for part in parts.values() for call in part.method_calls]
        assert len(done) == 1, action.id
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    keys = [key for action in ACTIONS for key in action.keys.split(",")]
    assert len(set(keys)) == len(keys)


def test_no_key_of_the_terminal_is_taken() -> None:
    """Ctrl-S and Ctrl-Q are the terminal's, Ctrl-Z suspends."""
    taken = {
        key: binding.action
        for item in (*KprobeApp.BINDINGS, *ProbeDialog.BINDINGS, *VerdictScreen.BINDINGS)
        if isinstance(item, Binding)
        for key, binding in ((key, item) for key in item.key.split(","))
    }
    assert "ctrl+s" not in taken
    assert taken["ctrl+q"] == "stay"
    assert taken["ctrl+z"] == "do('suspend_process')"

    async def steps(user: User) -> None:
        await user.press("ctrl+q", "ctrl+s")
        assert user.app.is_running
        assert user.app.return_code in (None, 0)
        await user.says("q quits")

    flow(steps)


def test_the_palette_finds_everything() -> None:
    async def steps(user: User) -> None:
        await user.press("ctrl+p")
        await user.until(lambda: isinstance(user.app.screen, PaletteScreen))
        await user.choices(ACTIONS[0].help)
        offered = user.offered
        for action in ACTIONS:
            assert any(action.help in text for text in offered), action.help
        await user.press("escape")
        await user.until(lambda: len(user.app.screen_stack) == 1)
        for words, wanted in (
            ("Copy the row", lambda: str(f"{user.code.cursor:x}") in user.clipboard),
            ("pane 8", lambda: user.focus == "probes"),
            ("go to fibonacci", lambda: user.code.cursor == user.address("fibonacci")),
            ("probe ackermann", lambda: user.probes and "ackermann" in user.probes[0].row.line),
        ):
            await user.press("ctrl+p")
            await user.until(lambda: isinstance(user.app.screen, PaletteScreen))
            await user.type(words)
            await user.choices(words.rpartition(" ")[2])
            await user.press("down", "enter")
            await user.until(wanted, words)

    flow(steps)


@pytest.mark.slow
def test_every_command_is_there_and_wrong_ones_say_so(tmp_path: Path) -> None:
    names = [name for spec in COMMANDS for name in spec.names]
    assert len(set(names)) == len(names)

    async def steps(user: User) -> None:
        for line, said in (
            ("nosuch", 'Undefined command: "nosuch"'),
            ("brake main", "no such word; is it break"),
            ("phase 3", "takes no argument"),
            ("set rax", 'No symbol "rax" in current context'),
            ("stepi x", 'No symbol "x" in current context'),
            ("delete 7", "No breakpoint number 7"),
            ("stop", "no probe"),
            ("probe", "missing"),
            ("handlers", "a FILE of handlers is missing"),
            ("shell ls", "the terminal is taken"),
            ("theme nosuch", "textual-dark"),
            ("source /nowhere", "/nowhere: No such file"),
            ("load /nowhere", "/nowhere: No such file"),
            ("go 0x10", "0x10"),
            ("p:demo/fib fibonacci", "placed"),
            (f"write {tmp_path / 'defs'}", "1 definitions"),
            ("stop 1", "stop at"),
            ("undo", "undone"),
            ("print 6 * 7", "$1 = 42"),
            ("x/i main", "<main>:"),
            ("info line main", "recursion.c"),
            ("help print", "print"),
            ("examine main", ""),
            ("theme textual-light", ""),
        ):
            await user.command(line)
            await user.says(said)
        assert (tmp_path / "defs").read_text() == "p:demo/fib fibonacci\n"
        assert user.focus == "memory"
        await user.command("c")
        await user.state(RunState.ENDED)
        await user.command(f"export {tmp_path / 'events'}")
        await user.says("written to")
        text = (tmp_path / "events").read_text()
        assert text.count("fib: (fibonacci+0x0") == user.view.events
        await user.command("delete 1")
        await user.until(lambda: not user.probes)
        await user.command(f"load {tmp_path / 'defs'}")
        await user.until(lambda: user.probes)
        await user.press("q")
        await user.until(lambda: not user.app.is_running or user.app.return_code == 0)

    flow(steps)


def test_leaving_asks_while_there_is_something_to_lose() -> None:
    async def steps(user: User) -> None:
        await user.press("c")
        await user.state(RunState.WAITING)
        await user.typing()  # for the program, which reads
        await user.press("escape", "q")
        await user.shows("the program is alive")
        await user.press("n", "enter")
        assert user.app.is_running
        await user.press("q", "escape")
        assert user.focus == "code"
        await user.press("q")
        await user.typing()
        await user.press("y", "enter")
        await user.until(lambda: not user.app.is_running or user.app._exit)

    app = flow(steps, guest=moods("x86_64"), args=("r",))
    assert app.return_code == 0


@pytest.mark.slow
def test_what_was_placed_is_there_the_next_time(state: Path) -> None:
    async def first(user: User) -> None:
        for line in ("p:demo/fib fibonacci n=$arg1:u32", "break ackermann"):
            await user.command(line)
        await user.until(lambda: len(user.probes) == 2)
        await user.command("disable 1")
        await user.until(lambda: not user.probes[0].row.enabled)

    async def second(user: User) -> None:
        await user.until(lambda: len(user.probes) == 2)
        assert [(p.row.line, p.row.enabled) for p in user.probes] == [
            ("p:demo/fib fibonacci n=$arg1:u32", False),
            ("ackermann", True),
        ]
        await user.press("colon", "up")
        await user.shows("disable 1")
        await user.press("escape", "c")
        await user.until(lambda: user.view.location == "ackermann+0x0")

    async def at_once(user: User) -> None:
        """Gone before anything is back."""

    flow(first, fresh=False)
    flow(at_once, fresh=False)
    flow(second, fresh=False, definitions=("p:demo/fib fibonacci n=$arg1:u32",))
    flow(at_once, fresh=True)
    saved = list((state / "state").rglob("*.json"))
    assert len(saved) == 1
    saved[0].write_text("{ no json")

    async def damaged(user: User) -> None:
        await user.says("it is damaged; nothing is placed again")
        assert not user.probes

    flow(damaged, fresh=False)
    assert ProgramMemory.load(saved[0].stem, []).histories == {}  # whole again


@pytest.mark.slow
def test_what_was_asked_of_stops_is_asked_the_next_time(state: Path) -> None:
    guest = sample("x86_64", "structs")
    lines = (
        "break deposit if amount == 200",
        "p:demo/house move_house",  # not there any more when the others are remembered
        "tbreak print_person",
        "break transfer",
        "watch -l ada.balance if ada.balance > 0",
        "catch syscall exit_group",
        "awatch alan.age",
        "catch syscall write",
    )

    def own(user: User) -> list[str]:
        return [stop.word for stop in user.view.stops if stop.word]

    async def reasons(user: User, *wanted: str) -> None:
        for reason in wanted:
            await user.command("continue")
            await user.until(lambda r=reason: user.view.reason.startswith(r), reason)

    async def first(user: User) -> None:
        for number, line in enumerate(lines, 1):
            await user.command(line)
            await user.until(lambda n=number: len(user.probes) + len(own(user)) == n, line)
        user.app.type("commands 1\nprint amount + 1\nend")
        for line in ("ignore 4 1", "disable 7", "delete 2 8"):
            await user.command(line)
        await user.until(lambda: len(user.probes) == 3)
        await reasons(user, "watchpoint 5", "breakpoint 4", "breakpoint 1")
        await user.command("ignore 4 1")
        await user.command("watch amount")
        await user.until(lambda: own(user)[-1] == "watch amount")

    async def second(user: User) -> None:
        await user.says("1 thing of the last time cannot be placed again")
        await user.says('watch amount: No symbol "amount" in current context.')
        asked = ["if amount == 200, commands", "once", "ignore 1"]
        assert [probe.only for probe in user.probes] == asked
        assert own(user) == [
            "watch -location ada.balance",
            "catch syscall exit_group",
            "awatch alan.age",
        ]
        assert [stop.on for stop in user.view.stops if stop.word] == [True, True, False]
        await reasons(user, "watchpoint 4", "breakpoint 3", "breakpoint 1: deposit")
        console = user.panes.console.lines
        await user.until(
            lambda: "$1 = 201" in [console.plain(n) for n in range(console.line_count)]
        )
        await reasons(user, "breakpoint 3", "breakpoint 3", "breakpoint 2", "catchpoint 5")
        assert len(user.probes) == 2  # one was for once

    async def third(user: User) -> None:
        await user.until(lambda: len(own(user)) == 3 and len(user.probes) == 2)
        assert "cannot be placed" not in user.said

    for steps in (first, second, third):
        flow(steps, guest=guest, fresh=False)


@pytest.mark.slow
def test_keys_of_the_settings_are_used_and_shown(state: Path) -> None:
    (state / "config.toml").write_text('theme = "textual-light"\n[keys]\ngo_on = "ctrl+g"\n')
    settings = load_settings()

    async def steps(user: User) -> None:
        assert user.app.theme == "textual-light"
        await user.press("c")
        await user.pilot.pause()
        assert user.view.state is RunState.READY
        await user.press("question_mark", "question_mark")
        assert isinstance(user.app.screen, HelpScreen)
        await user.shows("ctrl+g")
        await user.press("escape")
        assert "^g continue" in user.screen
        await user.press("ctrl+g")
        await user.state(RunState.ENDED)
        await user.until(lambda: "^g continue" not in user.screen)  # the footer comes after
        assert "r restart" in user.screen

    flow(steps, settings=settings)


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)])
def test_only_ascii_where_that_is_asked_for(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.command("b fibonacci")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        await user.press("full_stop", "full_stop")
        for keys in ("1", "2", "3", "4", "5", "6", "7", "8", "y", "escape", "question_mark"):
            await user.press(keys)
            await user.pilot.pause()
            assert user.screen.isascii(), [c for c in user.screen if not c.isascii()][:5]
        await user.press("escape", "p")
        await user.pilot.pause()
        assert user.screen.isascii()

    flow(steps, settings=Settings(ascii=True), size=size)


def test_the_picker_of_samples() -> None:
    async def run() -> str | None:
        app = Picker()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.pause()
            assert len(app.query_one(OptionList).options) >= 20
            await pilot.press("j", "j", "k", "enter")
        return app.return_value

    chosen = asyncio.run(run())
    assert chosen is not None
    assert Path(chosen).is_file()

    async def leave() -> str | None:
        app = Picker()
        async with app.run_test(size=(20, 5)) as pilot:
            await pilot.press("escape")
        return app.return_value

    assert asyncio.run(leave()) is None


def test_events_without_end_stay_bounded() -> None:
    async def steps(user: User) -> None:
        await user.command("p:demo/tick tick n=$arg1")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.until(lambda: user.view.events > 20_000)
        await user.press("j", "k", "8", "1")  # keys are heard all the while
        await user.press("ctrl+c")
        await user.state(RunState.STOPPED)

    flow(steps, guest=moods("x86_64"), args=("t",))


def test_the_palette_copies_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def chosen(user: User, words: str) -> None:
        await user.press("ctrl+p")
        await user.until(lambda: isinstance(user.app.screen, PaletteScreen))
        await user.type(words)
        await user.choices(words)
        await user.press("down", "enter")

    async def steps(user: User) -> None:
        await user.command("go fibonacci+2")
        for words, text in (
            ("Copy as a line for gdb", "break *fibonacci+0x2"),
            ("Copy as a line for a kernel", "p fibonacci+0x2"),
        ):
            await chosen(user, words)
            await user.until(lambda text=text: user.clipboard == text, words)
        for number in (1, 2):
            await chosen(user, "Screenshot")
            await user.says(f"kprobe-tui-{number}.svg")
            assert "fibonacci" in (tmp_path / f"kprobe-tui-{number}.svg").read_text()
        await chosen(user, "Export events")
        await user.typing()
        await user.type("export all")
        await user.press("enter")
        await user.says("0 events written to all")

    flow(steps)
