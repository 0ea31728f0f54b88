"""Values that open and fold in the backtrace, by keys and by mouse."""

import pytest
from controlkit import sample
from flowkit import LARGE, SMALL, User, flow

from engine.session.protocol.views import RunState

STRUCTS = sample("x86_64", "structs")


def rows(user: User) -> list[str]:
    """The lines of the backtrace, whole."""
    lines = user.panes.backtrace.lines
    return [lines.plain(number) for number in range(lines.line_count)]


def line(user: User, text: str) -> int:
    """The line that begins with a text, marks aside."""
    found = [n for n, row in enumerate(rows(user)) if row.strip(" \u25b8\u25be").startswith(text)]
    return found[0] if found else -1


async def at(user: User, text: str) -> None:
    """Put the cursor on a line, once it is there."""
    await user.until(lambda: line(user, text) >= 0, f"{text} in {rows(user)}")
    user.panes.backtrace.lines.move_to(line(user, text))


async def stopped_in(user: User, function: str) -> None:
    await user.command(f"b {function}")
    await user.until(lambda: user.probes)
    await user.press("c")
    await user.until(lambda: user.view.location == f"{function}+0x0")


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)])
def test_pointers_are_followed_and_stay_open_while_the_guest_moves(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        await stopped_in(user, "transfer")
        await user.press("3")
        await at(user, "payment = ")
        folded = len(rows(user))
        await user.press("space")
        await at(user, "from = ")
        await user.press("enter")
        await at(user, "balance = 5000")
        assert line(user, "detail = ") > line(user, "balance = ")
        open_rows = len(rows(user))
        # What the callee changes is marked where it is open, and nothing else is folded by it.
        await user.command("b deposit")
        await user.until(lambda: len(user.probes) == 2)
        await user.press("c")
        await user.until(lambda: user.view.location == "deposit+0x0")
        assert line(user, "balance = ") < 0  # another frame is looked at
        await user.press("f")
        await user.until(lambda: user.view.location.startswith("transfer+"))
        await at(user, "balance = *4700")
        assert len(rows(user)) >= open_rows - 1
        assert not [
            row for row in rows(user) if "*" in row.partition(" = ")[2][:1] and "id" in row
        ]
        await user.press("i")
        await at(user, "balance = 4700")  # not changed by this step
        await at(user, "payment = ")
        await user.press("space")
        assert len(rows(user)) <= folded + 1
        await user.press("z", "escape")

    flow(steps, guest=STRUCTS, size=size)


def test_bad_memory_says_so_in_its_place_and_the_next_run_begins_folded() -> None:
    async def steps(user: User) -> None:
        await stopped_in(user, "transfer")
        await user.press("3")
        await at(user, "payment = ")
        await user.press("space")
        await at(user, "from = ")
        await user.command("set var payment->from = 16")
        await user.until(lambda: "from = *0x10" in rows(user)[line(user, "from = ")])
        await at(user, "from = ")
        assert "<0x10 cannot be read>" in rows(user)[line(user, "from = ")]
        await user.press("space")
        await at(user, "0x10 cannot be read")
        await user.press("r")
        await user.state(RunState.READY)
        await user.press("c")
        await user.until(lambda: user.view.location == "transfer+0x0")
        await at(user, "payment = ")
        assert line(user, "from = ") < 0

    flow(steps, guest=STRUCTS)


def test_the_mouse_opens_and_v_shows_more_frames() -> None:
    async def steps(user: User) -> None:
        await stopped_in(user, "transfer")
        pane = user.panes.backtrace
        await user.press("3")
        await at(user, "payment = ")
        marks = pane.source.marks_at(line(user, "payment = "))
        place = (marks.start + 2, line(user, "payment = ") - pane.lines.scroll_offset.y)
        await user.pilot.click(pane.lines, offset=place)
        await at(user, "from = ")
        await user.pilot.click(pane.lines, offset=(place[0] + 4, place[1]))  # beside the mark
        assert line(user, "from = ") >= 0
        await user.pilot.click(pane.lines, offset=place)
        await user.until(lambda: line(user, "from = ") < 0)
        await user.press("v")
        await user.says("variables of all frames")
        await at(user, "payments = ")
        await user.press("space")
        await at(user, "[3] = {id = 1004")
        await user.press("v")
        await user.says("variables of no frame")
        assert line(user, "payments = ") < 0
        assert "transfer(payment=0x" in rows(user)[0]
        await user.press("v")
        await user.says("the frame that is looked at")
        lines = pane.lines
        lines.move_to(next(n for n, row in enumerate(rows(user)) if " main+" in row))
        await user.press("space")
        await user.until(lambda: user.view.frame == 1)
        await at(user, "payments = ")  # still open
        assert line(user, "[3] = {id = 1004") > 0
        assert user.focus == "backtrace"

    flow(steps, guest=STRUCTS)


@pytest.mark.slow
def test_displays_stand_above_the_frames() -> None:
    async def steps(user: User) -> None:
        await stopped_in(user, "transfer")
        await user.command("display *payment")
        await user.command("display/x payment->amount")
        await user.press("3")
        await at(user, "2: /x payment->amount = 0x12c")
        await at(user, "1: *payment = {id = 1001")
        assert user.panes.backtrace.lines.cursor == 0
        await user.press("enter")
        await at(user, "kind = TRANSFER")
        await user.press("c")
        await at(user, "id = *1002")
        await at(user, "2: /x payment->amount = *0xc8")
        await user.command("undisplay")
        await user.until(lambda: line(user, "1: ") < 0)

    flow(steps, guest=STRUCTS)


def test_long_arrays_come_in_pieces() -> None:
    async def steps(user: User) -> None:
        await stopped_in(user, "transfer")
        await user.command("display *(unsigned char (*)[100]) payment")
        await user.press("3")
        await user.until(lambda: '= "' in rows(user)[0], "the value")
        await at(user, "1: ")
        await user.press("enter")
        await at(user, "[31] = ")
        assert line(user, "[32] = ") < 0
        await at(user, "behind the first 32")
        await user.press("enter")
        await at(user, "[63] = ")
        await at(user, "behind the first 64")
        await user.press("space")
        await at(user, "[99] = ")
        assert line(user, "behind") < 0

    flow(steps, guest=STRUCTS)
