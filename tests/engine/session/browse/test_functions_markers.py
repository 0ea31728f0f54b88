"""Static probes stand among the functions of a program, and are what a probe there means."""

from pathlib import Path

from compiled import build
from controlkit import sample
from flowkit import LARGE, User, flow
from markerkit import HEADERS, ZOO

from engine.arch.plan import Mode
from engine.session.browse.browser import Browser
from engine.session.protocol.config import GuestConfig


def test_markers_stand_among_the_functions(tmp_path: Path) -> None:
    zoo = build(tmp_path, "zoo", ZOO.read_text(), "-O1", "-g", "-I", str(HEADERS))
    browser = Browser(GuestConfig(str(zoo)))
    functions = browser.functions
    rows = [functions[number] for number in range(len(functions))]
    assert [row.address for row in rows] == sorted(row.address for row in rows)
    found = [functions[number] for number in functions.matching("in:sdt")]
    assert {row.name for row in found} >= {"sdt_zoo:many", "sdt_zoo:fed", "sdt_zoo:twice"}
    assert len(functions) > len(found)
    assert [functions[n].name for n in functions.matching("sdt_zoo:fe*")] == ["sdt_zoo:fed"]
    assert all(browser.check(f"p %{row.name}").ok for row in found)
    assert not Browser(GuestConfig(str(zoo)), Mode.KERNEL).functions.matching("in:sdt")
    assert not Browser(GuestConfig(sample("x86_64", "sort"))).functions.matching("in:sdt")


def test_a_probe_at_one_is_the_markers(tmp_path: Path) -> None:
    zoo = build(tmp_path, "zoo", ZOO.read_text(), "-O1", "-g", "-I", str(HEADERS))

    async def steps(user: User) -> None:
        await user.ready()
        await user.press("V", "ampersand")
        await user.type("sdt_zoo:fed")
        await user.press("enter")
        pane = user.panes.functions
        await user.until(lambda: pane.source.count == 1, "the marker")
        await user.shows("sdt_zoo:fed")
        await user.press("enter", "p")
        await user.choices("%sdt_zoo:fed")
        await user.press("enter")
        await user.until(lambda: user.probes, "a probe")
        assert user.probes[0].row.line.startswith("p")
        assert [probe.event for probe in user.probes] == ["sdt_zoo/fed"]

    flow(steps, size=LARGE, guest=str(zoo))
