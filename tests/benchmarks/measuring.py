"""Processor time, the calibration number and plain tables, for the benchmark programs."""

import math
import os
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

_CALIBRATION_LOOPS = 1_000_000


@dataclass(frozen=True, slots=True)
class Spent:
    """What a process used: seconds and KiB."""

    cpu: float
    wall: float
    peak: int
    output: bytes


def calibration() -> float:
    """CPU seconds of a fixed pure Python loop: how fast this machine is at the moment."""
    best = math.inf
    for _ in range(3):
        start = time.process_time()
        total = 0
        for number in range(_CALIBRATION_LOOPS):
            total += number & 7
        best = min(best, time.process_time() - start)
    return best


def run_process(
    words: Sequence[str], env: dict[str, str] | None = None, expected: int = 0
) -> Spent:
    """Run a command with standard output caught and standard error dropped.

    Raises:
        RuntimeError: its exit code is another.
    """
    reading, writing = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, writing, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_CLOSE, reading),
    ]
    start = time.perf_counter()
    environment = {**os.environ, **(env or {})}
    child = os.posix_spawnp(words[0], list(words), environment, file_actions=actions)
    os.close(writing)
    with open(reading, "rb") as stream:
        output = stream.read()
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    if code != expected:
        raise RuntimeError(f"{' '.join(words)}: exit code {code}")
    return Spent(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss, output)


def geometric_mean(values: Sequence[float]) -> float:
    """The mean for ratios; NaN for none."""
    return statistics.geometric_mean(values) if values else math.nan


def machine() -> dict[str, object]:
    """What a reader must know to compare figures."""
    return {
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
        "calibration_s": round(calibration(), 4),
    }


def heading(facts: dict[str, object]) -> str:
    """The facts of `machine` as one line."""
    return ", ".join(f"{key} {value}" for key, value in facts.items())


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = []
    for row in (head, *rows):
        first, *others = (
            text.rjust(width) if column else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join((first, *others)).rstrip())
    return "\n".join(lines)


def verdict(value: float, reach: float, aim: float) -> str:
    """Where a figure stands between what must be reached and what is aimed at."""
    if math.isnan(value):
        return "not measured"
    return "aim met" if value <= aim else "reached" if value <= reach else "MISSED"
