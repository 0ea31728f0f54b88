"""gdb's words behind the colon: short answers, long ones, blocks, completion, frames."""

from controlkit import sample
from flowkit import SMALL, User, flow
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.events import Paste
from textual.geometry import Size
from textual.widgets import Input, Static

from engine.session.protocol.views import RunState
from tui.panes.console import ConsoleRows, folded


def test_a_session_of_words() -> None:
    async def steps(user: User) -> None:
        await user.command("break fibonacci if n == 5")
        await user.says("Breakpoint 1 at")
        await user.command("run")
        await user.state(RunState.STOPPED)
        await user.says("Breakpoint 1, fibonacci (n=n@entry=5)")
        await user.command("print n * 2")
        await user.until(lambda: user.said == "$1 = 10")
        assert user.focus == "code", "what is short does not move the focus"
        await user.command("up")
        await user.says("#1  0x")
        caller = user.view.frames[1].pc
        await user.until(lambda: user.code.cursor == caller, "the code of the frame")
        await user.until(lambda: user.panes.backtrace.lines.cursor == 1)
        await user.press("u")
        await user.until(lambda: user.view.frame == 2)
        await user.command("print n")
        await user.until(lambda: user.said == "$2 = 7")
        await user.command("bt")
        await user.until(lambda: user.focus == "console")
        await user.says("12 lines in the console")
        await user.shows(":bt")
        await user.shows("#0  fibonacci (n=n@entry=5)")
        await user.press("G")
        await user.shows("#11 ")
        await user.press("1")
        await user.command("commands 1")
        for line in ("silent", "print n + 1000", "end"):
            await user.type(line)
            await user.press("enter")
        await user.until(lambda: "commands" in user.probes[0].only)
        await user.press("c")
        await user.until(
            lambda: (
                "$3 = 1005"
                in user.panes.console.source.plain(
                    user.panes.console.source.count - 1, user.panes.console.lines.looks
                )
            )
        )
        await user.press("8", "z")
        await user.shows("stops if n == 5, commands")

    flow(steps)


def test_completion_knows_words_and_variables() -> None:
    async def steps(user: User) -> None:
        await user.command("b fibonacci")
        await user.press("c")
        await user.state(RunState.STOPPED)
        line = user.app.screen.query_one("MessageLine Input", Input)
        await user.press("colon")
        await user.until(lambda: "print" in user.app.words)
        for typed, wanted in (
            ("tb", "tbreak"),
            ("info loc", "info locals"),
            ("print acker", "print ackermann"),
            ("until facto", "until factorial"),
            ("trig", "trigger"),
        ):
            await user.type(typed)
            await user.press("tab")
            await user.until(lambda wanted=wanted: line.value == wanted, wanted)
        await user.press("escape")
        await user.press("c")
        await user.command("print 1")
        await user.until(lambda: user.said.startswith(("$1 = 1", "the program is running")))

    flow(steps)


def test_choices_are_listed_and_the_history_is_searched() -> None:
    async def steps(user: User) -> None:
        line = user.app.screen.query_one("MessageLine Input", Input)
        offered = user.app.screen.query_one("MessageLine .offered", Static)
        await user.command("print 11")
        await user.says("$1 = 11")
        await user.command("info line fibonacci")
        await user.press("colon")
        await user.type("b f")
        await user.press("tab")
        await user.until(lambda: "factorial" in str(offered.render()))
        assert "fibonacci" in str(offered.render())
        assert line.value == "b f"
        await user.press("tab")
        assert line.value == "b factorial"
        await user.press("tab")
        assert line.value == "b fibonacci"
        await user.press("escape", "colon", "ctrl+r")
        await user.type("11")
        await user.until(lambda: "> print 11" in str(offered.render()))
        await user.press("enter")
        await user.says("$2 = 11")
        await user.press("colon", "ctrl+r", "escape")
        await user.until(lambda: not offered.display)
        assert line.has_focus

    flow(steps)


def test_all_lines_of_what_is_pasted_are_carried_out() -> None:
    async def steps(user: User) -> None:
        await user.press("colon")
        line = user.app.screen.query_one("MessageLine Input", Input)
        text = "print 1\ndefine twice\nprint 2\nend\ntwice\nprint 3"
        line.post_message(Paste(text))
        await user.until(lambda: line.value == "print 3")
        await user.press("enter")
        await user.says("$3 = 3")

    flow(steps)


@given(st.text(st.sampled_from("ab c,日")), st.integers(16, 40), st.integers(16, 40))
def test_what_does_not_fit_goes_on_below(text: str, width: int, later: int) -> None:
    first, *others = folded(text, width)
    assert first + "".join(others) == text
    assert cell_len(first) <= width
    assert all(cell_len(piece) <= max(width - 4, 16) for piece in others)
    rows, fresh = ConsoleRows(), ConsoleRows()
    rows.arrange(Size(width + 3, 10))
    rows.add(text)
    rows.add("end", asked=True)
    rows.arrange(Size(later + 3, 10))
    assert rows.asked_last == rows.count - 1
    fresh.arrange(Size(later + 3, 10))
    fresh.add(text)
    fresh.add("end", asked=True)
    assert list(rows._lines) == list(fresh._lines)


def test_a_long_value_is_seen_whole() -> None:
    async def steps(user: User) -> None:
        await user.command("break transfer")
        await user.command("run")
        await user.state(RunState.STOPPED)
        await user.command("print *payment")
        await user.press("C")
        await user.shows("$1 = {id = 1001, from = ")
        await user.press("G")
        await user.shows("     reference = ")
        await user.pilot.resize_terminal(200, 50)
        await user.press("z")
        await user.until(
            lambda: any(
                "$1 = {id = 1001" in line and "reference =" in line
                for line in user.screen.splitlines()
            )
        )

    flow(steps, guest=sample("x86_64", "structs"), size=SMALL)


def test_an_answer_shown_before_the_console_has_its_width_is_in_sight() -> None:
    async def steps(user: User) -> None:
        console = user.panes.console
        for number in range(30):
            console.printed(f"{number}: " + "a long line that is folded in a narrow pane " * 2)
        console.typed("bt")
        console.printed("\n".join(f"#{number}" for number in range(4)))
        console.show_answer()  # while another pane is in front
        wide = console.source.count
        user.app.body.show_pane("console")
        await user.until(lambda: console.source.count > wide, "folded for its own width")
        await user.until(lambda: "#3" in user.screen)
        assert ":bt" in user.screen
        assert console.source.plain(console.lines.cursor, console.lines.looks) == ":bt"

    flow(steps, size=(100, 30))
