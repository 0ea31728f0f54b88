"""Processor time, the calibration number and plain tables, for the benchmark programs."""

import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

_CALIBRATION_LOOPS = 1_000_000
_STARTER = """
import json, os, signal, sys, time
report, limit, words = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
os.set_inheritable(report, False)
start = time.perf_counter()
child = os.posix_spawnp(words[0], words, os.environ)
signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
if limit < 1e9:
    signal.setitimer(signal.ITIMER_REAL, limit)
_, status, usage = os.wait4(child, 0)
wall, cpu = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
found = os.waitstatus_to_exitcode(status), cpu, wall, usage.ru_maxrss
os.write(report, json.dumps(found).encode())
"""
# A process has the peak of the one that began it: a small Python begins what is measured.


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
    words: Sequence[str],
    env: dict[str, str] | None = None,
    expected: int = 0,
    limit: float = math.inf,
) -> Spent:
    """Run a command with standard output caught and standard error dropped.

    It is killed after `limit` seconds of wall clock.

    Raises:
        RuntimeError: its exit code is another.
    """
    reading, writing = os.pipe()
    starter = (sys.executable, "-I", "-S", "-c", _STARTER, str(writing), str(limit), *words)
    with open(reading) as report:
        output = subprocess.run(
            starter,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(writing,),
            check=True,
        ).stdout
        os.close(writing)
        code, cpu, wall, peak = json.loads(report.read())
    if code != expected:
        raise RuntimeError(f"{' '.join(words)}: exit code {code}")
    return Spent(cpu, wall, peak, output)


def geometric_mean(values: Sequence[float]) -> float:
    """The mean for ratios; NaN if one could not be measured, or lies below the noise."""
    return statistics.geometric_mean(values) if values and min(values) > 0 else math.nan


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
