"""What threads and processes cost: a switch, a fork, hits with one thread and with eight.

`python tests/benchmarks/processes.py [--arch A] [--runs N] [--quick] [--json]`. Figures are CPU
time, each the minimum of N runs; that of a run without what is measured is taken off.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.session import GuestConfig
from engine.session.tracing.tracing import Tracing
from tests.benchmarks.guestcpu import cpu_of_run
from tests.benchmarks.measuring import heading, machine, table

_SOURCE: Final = Path(__file__).parent / "src" / "processes.c"
_COMPILERS: Final = {
    "x86_64": "gcc",
    "aarch64": "aarch64-linux-gnu-gcc",
    "riscv64": "riscv64-linux-gnu-gcc",
}
_THREADS: Final = 8


def run(path: Path, *args: object, events: Sequence[str] = (), technique: str = "auto") -> float:
    """CPU seconds of one run of the program, loading not included."""
    words = tuple(map(str, args))
    config = GuestConfig(str(path), args=words, isolated=True, technique=technique)

    def prepare(tracing: Tracing) -> None:
        for event in events:
            tracing.definitions.define(event)

    return cpu_of_run(config, prepare if events else None)


def measure(path: Path, runs: int, scale: int) -> dict[str, float]:
    """The figures by name; seconds, or hits a second."""

    def least(*args: object, events: Sequence[str] = (), technique: str = "auto") -> float:
        return min(run(path, *args, events=events, technique=technique) for _ in range(runs))

    yields, forks, hits = 20_000 * scale, 40 * scale, 100_000 * scale
    found: dict[str, float] = {}
    alone, both = least("yield", 2 * yields, 1), least("yield", yields, 2)
    found["thread switch, us"] = (both - alone) / (2 * yields) * 1e6
    plain = least("fork", 0)
    found["fork, exit and wait, 2 MB, ms"] = (least("fork", forks) - plain) / forks * 1e3
    large, first = least("fork", 0, 400), least("fork", 1, 400)
    found["the first of 400 MB, ms"] = (first - large) * 1e3
    found["the next of 400 MB, ms"] = (least("fork", 11, 400) - first) / 10 * 1e3
    with_probe = least("fork", forks, events=("p work",)) - least("fork", 0, events=("p work",))
    found["that of 2 MB with a probe, ms"] = with_probe / forks * 1e3
    for technique in ("breakpoint", "jump"):
        for threads in (1, _THREADS):
            words = ("calls", hits // threads, threads)
            more = least(*words, events=("p work",), technique=technique) - least(*words)
            found[f"hits a second, {technique}, {threads} threads"] = hits / more
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", choices=sorted(_COMPILERS), default="x86_64")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "processes"
        words = [_COMPILERS[options.arch], "-O1", "-static", "-pthread", "-o", str(path)]
        subprocess.run([*words, str(_SOURCE)], check=True)
        facts = machine()
        found = measure(path, 1 if options.quick else options.runs, 1 if options.quick else 4)
    if options.json:
        print(json.dumps({**facts, **found}))
        return
    print(heading(facts))
    print(
        table(("what", options.arch), [(name, f"{value:,.1f}") for name, value in found.items()])
    )


if __name__ == "__main__":
    main()
