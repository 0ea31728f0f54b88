"""Registers and phases in a row each, for terminals without room for their panes."""

import asyncio

import pytest
from textual.app import App, ComposeResult
from textual.content import Content

from engine.session.protocol.views import GuestView, HitView, PhaseView, RegisterView
from tui.widgets.state_lines import TextRow, registers_line, route_line

REGISTERS = (
    RegisterView("rax", 15),
    RegisterView("rbx", 3, origin="insn", old=2),
    RegisterView("rsp", 0x7FFE0000),
    RegisterView("rip", 0x400720, origin="machinery"),
    RegisterView("eflags", 0x246, group="flags", meaning="PF ZF IF"),
    RegisterView("xmm0", 1, group="vector"),
)
ROUTE = ("armed", "trap", "pre-handlers", "out of line", "fix-up", "post-handlers", "resume")


def test_pc_sp_flags_come_first_then_what_has_changed() -> None:
    draw = registers_line("rip", "rsp")
    text = draw(GuestView(registers=REGISTERS), 80, False).plain
    assert text.split() == [
        "rip!0x400720", "rsp", "0x7ffe0000", "eflags", "PF", "ZF", "IF", "rbx*0x3", "rax", "0xf",
    ]  # fmt: skip
    short = draw(GuestView(registers=REGISTERS), 40, False).plain
    assert short.split()[-1] == "\N{HORIZONTAL ELLIPSIS}"
    assert len(short) <= 40


@pytest.mark.parametrize("done", range(len(ROUTE) + 1))
@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_the_phase_at_hand_is_always_seen(done: int, width: int) -> None:
    phases = tuple(PhaseView(name, "", 0, 0) for name in ROUTE[:done])
    hit = HitView(1, "f+0x0", (), ROUTE, phases, "", "boosted", "", b"", b"", "push")
    text = route_line(GuestView(hit=hit), width, False).plain
    assert len(text) <= width
    assert not done or width < 40 or f"[{ROUTE[done - 1]}]" in text
    assert (ROUTE[-1] in text) or "\N{HORIZONTAL ELLIPSIS}" in text
    assert route_line(GuestView(), width, False).plain == ""


class _Row(App[None]):
    def compose(self) -> ComposeResult:
        yield TextRow()


def test_a_row_is_painted_when_its_text_is_another_one() -> None:
    async def rows() -> list[str]:
        app, seen = _Row(), list[str]()
        async with app.run_test(size=(10, 2)) as pilot:
            row = app.query_one(TextRow)
            for text in ("first", "second", "second", "first"):
                row.draw(Content(text))
                await pilot.pause()
                strips = app.screen._compositor.render_strips(app.size)
                seen.append(strips[0].text.strip())
        return seen

    assert asyncio.run(rows()) == ["first", "second", "second", "first"]
