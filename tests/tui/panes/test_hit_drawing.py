"""The machinery of a probe in a bundle: template and slots, break, copy, boost."""

import pytest
from controlkit import sample
from flowkit import SIZES, SMALL, User, flow
from rich.style import Style

from engine.session.protocol.views import DetourPart, DetourView, HitView, RunState
from tui.panes.hit_drawing import Pen, draw_detour

GUEST = sample("ia64", "recursion")


async def at(user: User, place: str, phases: int) -> list[str]:
    """Break at a place, carry phases of the first hit out; the lines of the machinery."""
    await user.command(f"b {place}")
    await user.press("c")
    await user.state(RunState.STOPPED)
    for number in range(phases):
        await user.press("full_stop")
        await user.until(lambda: user.view.hit and len(user.view.hit.done) == number + 1)  # noqa: B023
    await user.press("4", "z")
    await user.shows("template")
    return user.screen.split("\n")


def line(lines: list[str], *texts: str) -> int:
    """Number of the line that has all these texts in this order; they fit on the screen."""
    for number, found in enumerate(lines):
        places = [found.find(text) for text in texts]
        if places == sorted(places) and places[0] >= 0:
            return number
    raise AssertionError((texts, lines))


@pytest.mark.parametrize("size", SIZES)
def test_a_boosted_hit(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        lines = await at(user, "fibonacci", 3)
        site = line(lines, "site", "4000000000000580", "template 00, MII")
        assert line(lines, "0 M", "break.m 0x81000  for  alloc r33=ar.pfs,5,4,0") == site + 1
        assert line(lines, "1 I", "mov r34=b0") == site + 2
        assert line(lines, "2 I", "mov r8=r32") == site + 3
        assert line(lines, "copy", "template 00, MII") == site + 4
        assert line(lines, "0 M", "alloc r33=ar.pfs,5,4,0  stepped") == site + 5
        assert line(lines, "1 I", "mov r34=b0  runs on at full speed") == site + 6
        assert line(lines, "boost", "template 05, MLX;") == site + 8
        assert line(lines, "1 LX", "brl.many 0x4000000000000590") == site + 10

    flow(steps, guest=GUEST, size=size)


@pytest.mark.parametrize("size", SIZES)
def test_a_branch_that_is_put_right(size: tuple[int, int]) -> None:
    async def steps(user: User) -> None:
        lines = await at(user, "fibonacci+0x32", 4)  # the call, in its slot
        assert line(lines, "2 B", "break.b 0x81000  for  br.call.sptk.many b0=0x40000000000005")
        assert line(lines, "2 B", "br.call.sptk.many b0=0x2000000f", "stepped")
        assert line(lines, "0 M", "nop.m 0x0  not executed")
        if size != SMALL:
            assert line(lines, "fix-up", "pc moves", "the return address becomes the original's")
        await user.press("full_stop")
        await user.until(lambda: user.view.hit and len(user.view.hit.done) == 5)
        await user.shows("! pc")
        lines = user.screen.split("\n")
        assert line(lines, "! pc", "2000000f", "4000000000000580")
        assert line(lines, "! b0", "0x2000000f", "0x40000000000005c0")

    flow(steps, guest=GUEST, size=size)


@pytest.mark.parametrize("name", ["save", "trampoline", "out of line"])
def test_the_name_of_a_part_stands_apart_from_its_address(name: str) -> None:
    """Names of up to eleven letters are longer than their column."""
    part = DetourPart(name, 0xFFFF_FFFF_C020_1000, 327, ((0xFFFF_FFFF_C020_1000, "nop"),))
    detour = DetourView(b"\x90", "call", "", (part,), None)
    hit = HitView(
        address=0x1000,
        probes=("e",),
        route=("save",),
        done=(),
        original=b"\x90",
        planted=b"\xe9",
        detour=detour,
        place="f",
        next="",
        how="detour",
        reason="",
        insn="nop",
    )
    rows = draw_detour(hit, Pen(lambda look: Style(), True, 80))
    assert any(f"{name} " in row.plain and " ffffffffc0201000" in row.plain for row in rows)
