"""Looking around and changing things by keys: places, searches, copies, registers, code."""

from controlkit import sample
from flowkit import User, both, flow, place, sizes
from textual.widgets import Input

from engine.session.views import RunState
from tui.screens.why import WhyScreen


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
