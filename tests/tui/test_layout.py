"""Which panes are seen at which size, and who takes turns."""

import pytest

from tui.layout import SMALL, TALL, WIDE, Layout
from tui.panes.registry import PANES, by_id, by_key


@pytest.mark.parametrize("spec", PANES, ids=lambda spec: spec.id)
def test_the_focused_pane_is_seen_at_every_size(spec: object) -> None:
    pane = next(item for item in PANES if item is spec)
    assert by_id(pane.id) is by_key(pane.key) is pane
    layout = Layout()
    layout.focus(pane.id)
    for columns in (20, SMALL[0], WIDE - 1, WIDE, 200):
        for rows in (5, SMALL[1], TALL - 1, TALL, 60):
            seen = layout.seen(columns, rows)
            assert pane.id in seen
            assert len(set(seen)) == len(seen)
            assert all(by_id(name) in PANES for name in seen)
    layout.zoomed = True
    assert layout.seen(200, 60) == [pane.id]


def test_narrow_shows_one_of_each_group_and_tiny_the_focused_one() -> None:
    layout = Layout()
    layout.focus("probes")
    layout.focus("memory")
    assert layout.seen(80, 24) == ["memory", "probes"]
    assert layout.seen(20, 5) == ["memory"]


def test_neighbours_go_round_the_group() -> None:
    layout = Layout()
    for group in (False, True):
        names = [spec.id for spec in PANES if spec.lower is group]
        layout.focus(names[0])
        assert layout.neighbour(-1) == names[-1]
        for name in (*names[1:], names[0]):
            layout.focus(layout.neighbour(1))
            assert layout.focused == name
    assert by_key("x") is None
