"""The probes pane driven as a user drives it, at several sizes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pytest
from msgspec.structs import replace
from panekit import SIZES, Bench, drive, until
from textual.pilot import Pilot

from engine.session.protocol import commands
from engine.session.protocol.probes import ProbeRow, ProbeView
from engine.session.protocol.views import GuestView
from tui.messages import Located
from tui.panes.probes import ProbesPane

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def probe(number: int, asked: Mapping[str, Any] = NOTHING, **changes: Any) -> ProbeView:
    view = ProbeView(
        ProbeRow(number, "p", f"p:e{number} f{number}+0", **asked),
        "p",
        f"kprobes/e{number}",
        f"f{number}+0",
        (0x1000 + number,),
        how="xol",
        hits=number,
    )
    return replace(view, **changes)


@pytest.mark.parametrize("size", SIZES)
def test_probes_and_their_keys(size: tuple[int, int]) -> None:
    pane = ProbesPane()

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        probes = [
            probe(1),
            probe(2, {"enabled": False}, technique="jump"),
            probe(3, pending=True, addresses=(), how="", kind="r"),
            probe(4, {"stops": True}, kind="b", misses=3),
        ]
        pane.show(GuestView(probes=tuple(probes)))
        await pilot.pause()
        await pilot.press("e", "x", "b", "E", "enter")
        await pilot.press("j", "e")
        await pilot.press("J", "J", "b")
        await pilot.pause()
        assert app.asked() == [
            commands.Enable((1,), False),
            commands.Delete((1,)),
            commands.StopOnHit((1,), True),
            commands.Enable((2,), True),
            commands.StopOnHit((2, 3, 4), True),
        ]
        edits = [each for each in app.heard if isinstance(each, ProbesPane.Edit)]
        assert [edit.probe.row.id for edit in edits] == [1]
        located = [(m.address, m.focus) for m in app.heard if isinstance(m, Located)]
        assert located == [(0x1001, True), (0x1002, False), (0x1004, False)]
        pane.show(GuestView(probes=tuple(probes[1:])))
        await pilot.pause()
        assert pane.source.probes[pane.lines.cursor].row.id == 4

    drive(pane, size, steps)


def test_probe_signs_need_no_colour() -> None:
    pane = ProbesPane()

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.show(
            GuestView(
                probes=(
                    probe(1),
                    probe(2, kind="r", technique="jump"),
                    probe(3, {"enabled": False}, how="boosted"),
                    probe(4, pending=True, addresses=(), how=""),
                    probe(5, gone=True, how="emulated"),
                    probe(6, {"stops": True}, kind="b", place="/bin/x:0x40"),
                )
            )
        )
        await pilot.pause()
        starts = [row[1:].strip("|> ").split("f")[0].split("/")[0] for row in app.rows()[1:7]]
        assert starts == ["*  p S ", "o  r J ", "-  p B ", "?  p   ", "x  p E ", "*# b X "]

    drive(pane, (80, 24), steps, ascii_only=True)


@pytest.mark.slow
def test_tens_of_thousands_of_probes() -> None:
    pane = ProbesPane()

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.show(GuestView(probes=tuple(probe(number) for number in range(40_000))))
        await pilot.press("G")
        await pilot.pause()
        assert "f39999+0" in "".join(app.rows())
        await pilot.press("slash", *"f20000+", "enter")
        await until(pilot, lambda: pane.lines.cursor == 20_000)

    drive(pane, (80, 24), steps)


def test_names_of_places_are_the_sources() -> None:
    pane = ProbesPane()

    async def steps(pilot: Pilot[None], app: Bench) -> None:
        pane.show(GuestView(probes=(probe(1, place="_ZN3geo6Circle4areaEv+0x4"), probe(2))))
        await pilot.pause()
        first = pane.lines.render_line(0).text
        assert "geo::Circle::area+0x4" in first
        assert "_ZN3geo" not in first
        assert all(
            name in pane.source.searchable(0, pane.lines.looks) for name in ("Circle4", "::")
        )

    drive(pane, (80, 10), steps)
