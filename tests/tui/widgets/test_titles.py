"""Titles: names of panes that take turns, remarks, and what is left out where room is scarce."""

import pytest

from tui.widgets.titles import Tab, title

TABS = (
    Tab("events", "6", "Events", "12 408"),
    Tab("output", "7", "Output"),
    Tab("probes", "8", "Probes", "3"),
)


def test_names_counts_and_remarks_at_the_end() -> None:
    made = title(TABS, "output", ("", "at the end", "2 older"), 72, False)
    text = made.content.plain
    assert text.startswith("6 Events 12 408 [7 Output] 8 Probes 3 ")
    assert text.endswith(" at the end \N{BOX DRAWINGS LIGHT HORIZONTAL} 2 older ")
    assert len(text) == 72
    assert [text[start:end] for start, end, _ in made.spans] == [
        "6 Events 12 408",
        "[7 Output]",
        "8 Probes 3",
    ]
    assert title(TABS[:1], "events", (), 30, False).content.plain.rstrip() == "6 Events"


@pytest.mark.parametrize(
    ("width", "names"), [(44, "6 Events [7 Output] 8 Probes"), (26, "6 [7 Output] 8")]
)
def test_counts_go_before_names(width: int, names: str) -> None:
    text = title(TABS, "output", ("9 lines",), width, False).content.plain
    assert text.startswith(f"{names} ")
    assert len(text) <= width


@pytest.mark.parametrize("width", range(1, 90))
@pytest.mark.parametrize("ascii_only", [False, True])
def test_remarks_are_cut_with_a_mark_and_never_wider(width: int, ascii_only: bool) -> None:
    remark = "a long remark on everything that there is"
    made = title(TABS[:1], "events", (remark,), width, ascii_only)
    text = made.content.plain
    assert len(text) <= max(width, len("6 Events "))
    assert text.isascii() or not ascii_only
    if " a " in text and remark not in text:
        assert text.rstrip().endswith("~" if ascii_only else "\N{HORIZONTAL ELLIPSIS}")
