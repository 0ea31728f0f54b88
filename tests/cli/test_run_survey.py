"""Real command lines of Debian's sections, natively and in a guest: the same result.

Only if KPROBE_TUI_SURVEY is set, to `all` or to numbers such as `3,40-52`: the lines take hours of
processor time together, and programs that few machines have (a line without its own is skipped).
"""

import os
from pathlib import Path
from typing import Final

import pytest
from surveykit import Line, differences, in_guest, lines, missing, natively

CHOSEN: Final = os.environ.get("KPROBE_TUI_SURVEY", "")


def is_chosen(number: int) -> bool:
    ranges = (part.partition("-") for part in CHOSEN.split(","))
    return CHOSEN == "all" or any(
        int(first) <= number <= int(last or first) for first, _, last in ranges if first
    )


def test_the_list_can_be_read() -> None:
    assert len(lines()) >= 150
    assert len({line.command for line in lines()}) == len(lines())


@pytest.mark.slow
@pytest.mark.parametrize("line", lines(), ids=lambda line: f"{line.number}-{line.section}")
def test_a_line_does_what_it_does_natively(line: Line, tmp_path: Path) -> None:
    if not is_chosen(line.number):
        pytest.skip("it takes long: only if KPROBE_TUI_SURVEY chooses it")
    absent = missing(line)
    if absent:
        pytest.skip(f"KPROBE_TUI_SURVEY: no {absent}")
    tmp_path.chmod(0o755)
    folder = tmp_path / "w"
    native = natively(line, folder)
    guest = in_guest(line, folder)
    assert differences(line, native, guest) == []
