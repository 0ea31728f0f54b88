"""Watched memory: a hit, an access beside what is watched, and a run without either.

`python tests/benchmarks/watch.py [--runs N]`; figures are CPU time, each the minimum of N runs, on
`src/watch.c`. `--json` prints the same as data.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cguest import compiled_from
from sessionkit import loaded

from engine.guest.watched import WatchedRange
from engine.session.guest.watchpoints import Watch, WatchEvent

_SOURCE = Path(__file__).resolve().parent / "src" / "watch.c"
_ROUNDS, _HITS = 1_000_000, 5_000
_STORES = 2
"""To the page of what is watched, in a round; loads are not refused."""


def _seconds(arch: str, rounds: int, first: int, count: int) -> float:
    """CPU time of a run that watches some words, from one on."""
    seen: list[WatchEvent] = []
    with loaded(compiled_from(_SOURCE, arch), str(rounds)) as guest:
        main = guest.session.modules.main
        assert main is not None
        base = main.symbols.find_all("words")[0].address
        ranges = [WatchedRange(base + 8 * word, 8) for word in range(first, first + count)]
        if ranges:
            guest.session.watchpoints.add([Watch(seen.append, ranges)])
        begin = time.process_time()
        guest.run()
        return time.process_time() - begin


def measured(arch: str, runs: int) -> dict[str, float]:
    """Nanoseconds by what they are of."""

    def least(rounds: int, first: int = 0, count: int = 0) -> float:
        return min(_seconds(arch, rounds, first, count) for _ in range(runs))

    plain, elsewhere = least(_ROUNDS), least(_ROUNDS, 4000, 50)
    beside, many = least(_ROUNDS, 100, 1), least(_ROUNDS, 100, 400)
    hits = least(2 * _HITS, 3, 1) - least(_HITS, 3, 1)
    return {
        "round, nothing watched": plain / _ROUNDS * 1e9,
        "round, other pages watched": elsewhere / _ROUNDS * 1e9,
        "access beside 1 range": (beside - plain) / (_STORES * _ROUNDS) * 1e9,
        "access beside 400 ranges": (many - plain) / (_STORES * _ROUNDS) * 1e9,
        "hit": hits / _HITS * 1e9,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = {arch: measured(arch, given.runs) for arch in ("x86_64", "aarch64", "riscv64")}
    if given.json:
        print(json.dumps(found))
        return
    for arch, figures in found.items():
        for what, nanoseconds in figures.items():
            print(f"{arch:<8} {what:<28} {nanoseconds:>12.1f} ns")


if __name__ == "__main__":
    main()
