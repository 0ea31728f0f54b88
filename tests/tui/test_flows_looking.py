"""Looking around and changing things by keys: places, searches, copies, registers, code."""

from pathlib import Path

import archkit
import pytest
from assembling import assembles
from controlkit import sample
from flowkit import User, flow, place, sizes
from textual.widgets import Input
from truekit import session

from engine.session.protocol.views import RunState
from tui.screens.verdict import VerdictScreen


@sizes
def test_why(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await user.command("go fibonacci")
        await user.press("y")
        assert isinstance(user.app.screen, VerdictScreen)
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
        assert user.panes.events.lines.cursor == 99

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
        await user.says('Function "facto" not defined')
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


@pytest.mark.slow
@sizes
def test_every_pane_is_searched(size: tuple[int, int]) -> None:
    words = ("cmp", "rsp", "main", "probe", "sp", "fib", "fib", "fi")

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
                    user.focus == before and not isinstance(user.app.focused, Input)
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


@assembles
@pytest.mark.parametrize("arch", archkit.ASSEMBLED)
def test_assemble_and_patch(arch: str) -> None:
    async def steps(user: User) -> None:
        await user.command("go fibonacci")
        old = user.code.row
        await user.press("A")
        line = user.app.screen.query_one("MessageLine Input", Input)
        assert old is not None
        assert line.value.startswith(old.mnemonic)
        await user.type("nosuch")
        await user.press("enter")
        await user.until(lambda: "nosuch" in user.said)
        await user.press("A")
        await user.type(archkit.SEVEN[arch])
        await user.press("enter")
        await user.until(lambda: user.view.undo)
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.press("7")
        await user.shows("fibonacci(15) = 7")

    flow(steps, guest=sample(arch, "recursion"))


@pytest.mark.parametrize("arch", sorted({*archkit.COMPILED} - {*archkit.ASSEMBLED}))
def test_where_nobody_assembles_it_is_said(arch: str) -> None:
    async def steps(user: User) -> None:
        await user.command("go fibonacci")
        await user.press("A")
        await user.type("nop")
        await user.press("enter")
        await user.until(lambda: user.said == f"no assembler for {arch}")

    flow(steps, guest=sample(arch, "recursion"))


def test_what_is_typed_takes_the_place_of_the_old_value() -> None:
    def value(user: User, name: str) -> int:
        return next(r.value for r in user.view.registers if r.name == name)

    async def steps(user: User) -> None:
        await user.command("advance fibonacci")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        assert value(user, "rdi") == 15
        lines = user.panes.registers.lines
        await user.press("2")
        lines.move_to(next(n for n, r in enumerate(lines.source.registers) if r.name == "rdi"))
        await user.press("equals_sign", "9", "enter")
        await user.until(lambda: value(user, "rdi") == 9)
        await user.press("equals_sign", "end", "0", "enter")
        await user.until(lambda: value(user, "rdi") == 0x90)
        await user.press("equals_sign", "enter")
        await user.until(lambda: user.said == "rdi = 0x90")
        await user.press("5")
        await user.until(lambda: user.panes.memory.source.data(0))
        word, sp = user.panes.memory.source.data(0), value(user, "rsp")
        assert word == session(user).seen.memory.read(sp, 8)
        await user.press("equals_sign", "1", "1", "enter")
        await user.says(f"1 bytes at {sp:#x}")
        assert session(user).seen.memory.read(sp, 8) == b"\x11" + word[1:]
        await user.press("1")
        await user.press("A", "n", "o", "p", "enter")
        await user.says("nop at")
        await user.press("slash", "a", "c", "k", "enter", "slash", "f", "i", "b", "enter")
        assert user.code.pattern == "fib"

    flow(steps)


def test_registers_and_memory_are_set() -> None:
    async def steps(user: User) -> None:
        await user.command("advance fibonacci")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        await user.command("set rdi=10")
        await user.until(
            lambda: any(r.value == 10 for r in user.view.registers if r.name == "rdi")
        )
        await user.press("2")
        lines = user.panes.registers.lines
        lines.move_to(next(n for n, r in enumerate(lines.source.registers) if r.name == "rbx"))
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


def test_arguments_and_variables_of_frames() -> None:
    async def steps(user: User) -> None:
        await user.command("b ackermann")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.until(lambda: user.view.location == "ackermann+0x0")
        await user.press("3", "z")
        await user.shows("m = 2  int")  # of the frame that is looked at
        await user.shows("1 optimized out")  # inner
        lines = user.panes.backtrace.lines
        one = lines.line_count
        await user.press("v")
        await user.shows("argc = ")
        assert lines.line_count > one
        await user.press("v")
        await user.shows("ackermann(m=2, n=3)")
        assert lines.line_count < one
        await user.press("u")
        assert user.app.browser.locate(user.code.cursor).startswith("main+")
        await user.press("d", "3", "v")
        await user.until(lambda: lines.line_count == one)

    flow(steps)


def test_system_calls_by_command_and_again_after_a_restart() -> None:
    async def steps(user: User) -> None:
        await user.command("syscalls nosuch")
        await user.says("no system call matches")
        await user.press("colon")
        await user.type("syscalls wri")
        await user.press("tab", "enter")
        await user.says("system calls recorded: write")
        await user.press("c")
        await user.state(RunState.ENDED)
        first = user.view.events
        assert first
        await user.press("6")
        await user.shows("sys_enter_write(")
        await user.press("r")
        await user.state(RunState.READY)
        await user.command("syscalls/sys_exit_exit*")
        await user.says("exit*")
        await user.command("syscalls !write")
        await user.says("recorded: sys_exit_exit*")
        await user.press("c")
        await user.state(RunState.ENDED)
        assert user.view.events < first

    flow(steps)


@pytest.mark.slow
def test_a_snapshot_keeps_what_was_recorded_before_it(tmp_path: Path) -> None:
    file = tmp_path / "rows"

    async def steps(user: User) -> None:
        await user.command(f"snapshot {file}")
        await user.says("no snapshot was taken")
        await place(user, "p:demo/fib fibonacci n=%di:u32")
        await user.command("trigger demo/fib snapshot:1 if n == 5")
        await user.until(lambda: user.probes[0].row.rules.triggers)
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.command(f"snapshot {file}")
        await user.says("written")
        rows = file.read_text().splitlines()
        assert 0 < len(rows) < user.view.events
        assert all("fib: (fibonacci+0x0" in row for row in rows)
        assert not any("n=1" in row.split()[-1:] for row in rows)

    flow(steps)


def test_registers_stand_side_by_side_where_there_is_room() -> None:
    async def steps(user: User) -> None:
        await user.press("2", "z")
        lines = user.panes.registers.lines
        await user.until(lambda: lines.line_count < len(lines.source.registers))
        assert lines.line_count * 3 >= len(lines.source.registers)
        row = user.screen.split("\n")[2]
        assert "rip" in row
        assert "0x" in row[len(row) // 2 :]
        await user.press("j", "l")
        second = lines.source.register
        assert second is lines.source.registers[lines.line_count + 1]
        await user.press("equals_sign")
        await user.type("0x77")
        await user.press("enter")
        await user.until(
            lambda: any(r.value == 0x77 and r.name == second.name for r in user.view.registers)
        )
        await user.press("h", "h")
        assert lines.source.register is lines.source.registers[1]
        await user.press("z")
        await user.until(lambda: lines.line_count == len(lines.source.registers))
        assert lines.source.register is lines.source.registers[1]

    flow(steps, size=(120, 20))


def test_a_return_names_the_event_of_its_entry() -> None:
    async def steps(user: User) -> None:
        await place(user, "p:demo/fac factorial n=$arg1:u32")
        await place(user, "r:demo/done factorial ret=$retval")
        await user.press("c")
        await user.state(RunState.ENDED)
        await user.press("6", "z")
        await user.shows("done(ret=")
        row = next(row for row in user.screen.split("\n") if "done(ret=" in row)
        assert "of #1" in row

    flow(steps)
