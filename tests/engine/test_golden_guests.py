"""Real programs behave under the emulator as they do on a real kernel."""

from pathlib import Path

import pytest
from goldenruns import (
    GoldenLine,
    GuestUnavailable,
    golden_lines,
    mismatch,
    place,
    run_line,
    unique_names,
)

LINES = golden_lines("process")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=name, marks=[pytest.mark.sysroot] if line.needs_sysroot else [])
        for line, name in zip(LINES, unique_names(LINES), strict=True)
    ],
)
def test_golden_line(line: GoldenLine, tmp_path: Path) -> None:
    try:
        where = place(line)
    except GuestUnavailable as reason:
        pytest.skip(str(reason))

    done = run_line(line, where, tmp_path / "data")

    if difference := mismatch(line, done.returncode, done.stdout, done.stderr):
        pytest.fail(difference, pytrace=False)
