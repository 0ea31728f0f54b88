"""The code pane as source: pc, breakpoints, motions by lines, and code without source."""

import pytest
from controlkit import sample
from flowkit import User, flow, sizes
from sysroot import CHECKOUT

from engine.session.protocol.views import RunState


@sizes
def test_code_as_mixed_assembly_and_source(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT / "samples")

    async def steps(user: User) -> None:
        await user.command("b fibonacci")
        await user.until(lambda: user.probes)
        await user.press("c")
        await user.until(lambda: user.view.location == "fibonacci+0x0")
        assert "push    r12" in user.screen
        assert "if (n < 2)" in user.screen
        await user.press("S")
        assert "if (n < 2)" not in user.screen
        await user.press("S")
        assert "push    r12" not in user.screen
        assert "if (n < 2)" in user.screen
        lines = user.panes.code.lines
        assert lines.has_focus
        here = next(row for row in user.screen.splitlines() if "→" in row and " 13 " in row)
        assert "■" in here
        await user.press("j", "j")  # to a line further down: the cursor of the code is there
        assert lines.cursor == 14
        row = user.code.row
        assert row is not None
        assert row.line is not None
        assert row.line[1] == 15
        await user.press("b")
        await user.until(lambda: len(user.probes) == 2)
        await user.press("c")
        await user.until(lambda: user.view.line is not None and user.view.line[1] == 15)
        assert lines.cursor == 14
        await user.press("slash")
        await user.type("ackermann")
        await user.press("enter")
        await user.until(lambda: lines.cursor != 14)
        await user.command("go _start")  # made of assembly: there is no source
        await user.shows("_start:")
        assert user.code.has_focus
        await user.command("go main")
        await user.until(lambda: lines.has_focus)
        await user.press("S")
        assert user.code.has_focus
        await user.shows("main:")

    flow(steps, guest=sample("x86_64", "recursion"), size=size)


def test_without_source_files_code_stays_code() -> None:
    async def steps(user: User) -> None:
        await user.press("S", "S")
        await user.says("no source to be read here")
        assert user.code.has_focus
        await user.press("c")
        await user.state(RunState.ENDED)

    flow(steps)
