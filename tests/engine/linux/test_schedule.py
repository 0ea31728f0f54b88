"""Schedules as text."""

import pytest

from engine.linux.schedule import Choice, Schedule, ScheduleError, Why, header, parse

CHOICES = (
    Choice(16, 1001, Why.WAITS),
    Choice(46, 1002, Why.PREEMPTED),
    Choice(46, 1001, Why.YIELDS),
    Choice(90, 1000, Why.ENDS),
)


def text(seed: int = 7, randomness: int = 7) -> list[str]:
    lines = header("a guest", seed, randomness, "1-30") + "".join(f"{each}\n" for each in CHOICES)
    return lines.splitlines(keepends=True)


def test_what_is_written_can_be_read() -> None:
    assert parse(text(), "s") == Schedule(CHOICES, "s", (6, 7, 8, 9, 10), 7)


def test_the_header_names_guest_seed_and_turns() -> None:
    lines = [line.strip() for line in text(7, 3)]
    for wanted in ("# guest: a guest", "# seed: 7", "# random seed: 3", "# turns: 1-30"):
        assert wanted in lines
    assert parse(lines, "s").seed == 3
    assert not any("random" in line for line in text())


def test_comments_and_empty_lines_may_be_anywhere() -> None:
    found = parse(["16 1001 waits\n", "\n", "  # why?\n", " 46  1002\tpreempted\n"], "s")
    assert found.choices == CHOICES[:2]
    assert found.seed is None
    assert [found.where(at) for at in range(3)] == ["s: line 1", "s: line 4", "s: line 5"]
    assert parse([], "s").where(0) == "s: line 1"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("16 1001", "is not TICK THREAD WHY"),
        ("16 1001 sleeps", "WHY being one of preempted, yields, waits, stops, ends"),
        ("-1 1001 waits", "is not TICK"),
        ("16 1001 waits 4", "is not TICK"),
        ("\udcff\0", "is not TICK"),
        ("15 1000 ends", "tick 15 is before that of the line in front of it, 16"),
    ],
)
def test_a_wrong_line_is_named(line: str, why: str) -> None:
    with pytest.raises(ScheduleError, match=r"some\.file: line 3: ") as caught:
        parse(["# c\n", "16 1001 waits\n", line], "some.file")
    assert why in str(caught.value)
