"""Real programs behave under the emulator as they do on a real kernel."""

from pathlib import Path

import pytest
from goldenruns import (
    GoldenLine,
    GuestUnavailable,
    golden_folder,
    golden_lines,
    mismatch,
    place,
    run_line,
    unique_names,
)

ELSEWHERE = {
    ("riscv64", "guests-static:exec"),
    ("riscv64", "busybox:timeout -s KILL 1 busybox sleep 5"),
    ("riscv64", "busybox:sh -c busybox seq 1 500 | busybox sort -r | busybox head -3; echo $?"),
}
"""Taken from an emulator of programs alone: the program that they exec was the host's to run."""
UNBUILT = {"hello-go", "mksh-static", "lksh"}
"""Programs that nothing here builds: they run where the golden folder is given."""


def _at_hand(line: GoldenLine) -> bool:
    program = line.program.rsplit("/", 1)[-1]
    foreign = program == "hello-rs" and line.arch != "amd64"
    return golden_folder() is not None or not (program in UNBUILT or foreign)


LINES = [
    line
    for line in golden_lines()
    if (line.arch, line.id) not in ELSEWHERE and (line.needs == "process" or _at_hand(line))
]


FIRST = {line.program: line for line in reversed(LINES) if line.arch == "amd64"}
"""One line of each program."""


def _marks(line: GoldenLine) -> list[pytest.MarkDecorator]:
    """Other architectures' packages, threads and processes are slow tests, and so are the other
    lines of a program from a package; of riscv64 all."""
    found = [pytest.mark.sysroot] if line.needs_sysroot else []
    special = line.needs_sysroot or line.needs != "process"
    if (special and FIRST.get(line.program) is not line) or line.arch == "riscv64":
        found.append(pytest.mark.slow)
    return found


SCHEDULED = [line for line in LINES if line.needs != "process"]
SEEDS = range(1, 11)
"""Of the order in which threads run."""


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=name, marks=_marks(line))
        for line, name in zip(LINES, unique_names(LINES), strict=True)
    ],
)
def test_golden_line(line: GoldenLine, tmp_path: Path) -> None:
    _compare(line, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=name, marks=[pytest.mark.sysroot] if line.needs_sysroot else [])
        for line, name in zip(SCHEDULED, unique_names(SCHEDULED), strict=True)
    ],
)
def test_in_any_order_of_threads(line: GoldenLine, seed: int, tmp_path: Path) -> None:
    _compare(line, tmp_path, "--seed", str(seed))


def _compare(line: GoldenLine, tmp_path: Path, *options: str) -> None:
    try:
        where = place(line)
    except GuestUnavailable as reason:
        pytest.skip(str(reason))

    done = run_line(line, where, tmp_path / "data", *options)

    if difference := mismatch(line, done.returncode, done.stdout, done.stderr):
        pytest.fail(difference, pytrace=False)
