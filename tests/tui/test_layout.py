"""Which panes are seen at which size, where, who takes turns, and bars that move."""

from itertools import combinations, pairwise

import pytest

from tui.layout import BARS, SMALL, TALL, VERY_WIDE, WIDE, Layout, Plan
from tui.panes.registry import PANES, PaneSpec, by_id, by_key

SIZES = [
    (columns, rows)
    for columns in (20, SMALL[0], WIDE - 1, WIDE, VERY_WIDE, 300)
    for rows in (2, SMALL[1], 21, TALL - 1, TALL, 60)
]


def layouts() -> list[Layout]:
    """In all the states that a program can be in."""
    return [
        Layout(hit=hit, verdict=verdict, threads=threads)
        for hit in (False, True)
        for verdict in (0, 4)
        for threads in (False, True)
    ]


def assert_tiled(plan: Plan, columns: int, rows: int) -> None:
    """Every cell below the lines belongs to one pane."""
    regions = [place.region for place in plan.places]
    assert sum(region.area for region in regions) == columns * (rows - len(plan.lines))
    assert not any(one.overlaps(other) for one, other in combinations(regions, 2))
    assert all(region.y >= len(plan.lines) for region in regions)
    assert all(region.width > 0 and region.height > 0 for region in regions)
    panes = [pane for place in plan.places for pane in place.panes]
    assert len(set(panes)) == len(panes)


@pytest.mark.parametrize("spec", PANES, ids=lambda spec: spec.id)
def test_the_focused_pane_is_seen_at_every_size(spec: PaneSpec) -> None:
    assert by_id(spec.id) is by_key(spec.key) is spec
    for layout in layouts():
        layout.focus(spec.id)
        for size in SIZES:
            plan = layout.plan(*size)
            assert spec.id in plan.shown
            assert_tiled(plan, *size)
        layout.zoomed = True
        assert layout.plan(200, 60).shown == [spec.id]


def test_narrow_shows_one_of_each_half_and_tiny_the_focused_one() -> None:
    layout = Layout()
    layout.focus("probes")
    layout.focus("memory")
    assert layout.plan(80, 21).shown == ["memory", "probes"]
    assert layout.plan(80, 21).lines == ("state",)
    assert layout.plan(20, 5).shown == ["memory"]
    layout.focus("registers")
    assert layout.plan(80, 21).lines == ()


def test_a_hit_has_room_only_while_it_lasts() -> None:
    for size in ((120, 37), (200, 47)):
        layout = Layout()
        assert "machinery" not in layout.plan(*size).shown
        layout.hit = True
        assert "machinery" in layout.plan(*size).shown
        layout.hit, layout.verdict = False, 4
        place = layout.plan(*size).place_of("machinery")
        assert place is not None
        assert place.region.height == 4
    assert "route" not in layout.plan(80, 21).lines
    layout.hit = True
    assert layout.plan(80, 21).lines == ("state", "route")


def test_more_room_shows_more_panes() -> None:
    layout = Layout()
    shown = [
        set(layout.plan(columns, rows - BARS).shown)
        for columns, rows in ((80, 24), (120, 30), (120, 40), (200, 50))
    ]
    assert all(few < many for few, many in pairwise(shown)), shown
    assert {"code", "registers", "backtrace", "memory", "events", "output"} == shown[2]
    layout.threads = True
    assert "threads" in layout.plan(200, 47).shown


def test_bars_move_and_keep_room_for_both_sides() -> None:
    layout = Layout()
    before = layout.plan(120, 37)
    bar = before.bar_beside("code", across=True)
    assert bar is not None
    assert before.bar_at(*bar.region.offset) in before.bars
    for share in (0, 5, 50, 95, 100):
        layout.shares[bar.name] = share
        assert_tiled(layout.plan(120, 37), 120, 37)
    layout.shares[bar.name] = bar.share_at(30, 0)
    code = layout.plan(120, 37).place_of("code")
    assert code is not None
    assert code.region.width == 30
    assert before.bar_beside("registers", across=False) is not None
    assert before.bar_beside("machinery", across=True) is None


def test_what_was_remembered_need_not_make_sense() -> None:
    layout = Layout()
    layout.restore(("nosuch", "probes"), {"columns": 400, "nosuch": 3})
    assert layout.focused == "probes"
    assert_tiled(layout.plan(120, 37), 120, 37)
    layout.restore((), {})
    assert layout.focused == "code"


def test_neighbours_go_round_the_half() -> None:
    layout = Layout()
    for half in (False, True):
        names = [spec.id for spec in PANES if spec.lower is half]
        layout.focus(names[0])
        assert layout.neighbour(-1) == names[-1]
        for name in (*names[1:], names[0]):
            layout.focus(layout.neighbour(1))
            assert layout.focused == name
    assert by_key("x") is None
