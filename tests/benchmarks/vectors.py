"""Instructions with a VEX prefix: nanoseconds of CPU time each, in four ways.

`python tests/benchmarks/vectors.py [--runs N]`; on `src/vectors.c`. A figure is a run with many
rounds minus one with few, each the minimum of N, by the instructions between them: called within
translations (`inside`), carried out outside of them (`outside`, as where Unicorn's library is
another), by qemu-user where it is installed, and by this machine; behind them the ratio to that
and to qemu-user. A gather is of eight numbers. `--json` prints data.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cguest import compiled_from
from sessionkit import loaded

from engine.cpu import native, unicorn_lent

_SOURCE = Path(__file__).resolve().parent / "src" / "vectors.c"
_INSNS = {"search": 2, "product": 2, "bits": 3, "gather": 3, "masked": 2, "control": 2}
"""Instructions of a round."""
_ROUNDS = {"inside": 10_000_000, "outside": 5_000, "qemu": 10_000_000, "native": 100_000_000}
_FEW = 100


def _inside(program: Path, kernel: str, rounds: int) -> float:
    with loaded(program, kernel, str(rounds)) as guest:
        begin = time.process_time()
        guest.run()
        return time.process_time() - begin


def _outside(program: Path, kernel: str, rounds: int) -> float:
    with patch.object(unicorn_lent, "_led", lambda target, insns: None):
        return _inside(program, kernel, rounds)


def _elsewhere(*front: str) -> Callable[[Path, str, int], float]:
    def spent(program: Path, kernel: str, rounds: int) -> float:
        begin = getrusage(RUSAGE_CHILDREN)
        words = [*front, str(program), kernel, str(rounds)]
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
        end = getrusage(RUSAGE_CHILDREN)
        return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime

    return spent


def measured(runs: int) -> dict[str, dict[str, float]]:
    """Nanoseconds of an instruction, by kernel and way."""
    program = compiled_from(_SOURCE, "x86_64")
    ways = {"inside": _inside, "outside": _outside, "native": _elsewhere()}
    qemu = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
    if qemu is not None:
        ways["qemu"] = _elsewhere(qemu, "-cpu", "max")
    found: dict[str, dict[str, float]] = {}
    for kernel, insns in _INSNS.items():
        found[kernel] = {}
        for way, spent in ways.items():
            many, few = (
                min(spent(program, kernel, rounds) for _ in range(runs))
                for rounds in (_ROUNDS[way], _FEW)
            )
            found[kernel][way] = (many - few) / (_ROUNDS[way] - _FEW) / insns * 1e9
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not native.lends():
        sys.exit("this machine has no AVX2 to lend")
    found = measured(given.runs)
    if given.json:
        print(json.dumps(found))
        return
    for kernel, figures in found.items():
        for way, nanoseconds in figures.items():
            ratio = figures["inside"] / nanoseconds
            beside = "" if way in ("inside", "outside") else f", inside / this {ratio:.2f}"
            print(f"{kernel:<8} {way:<8} {nanoseconds:>12.1f} ns{beside}")


if __name__ == "__main__":
    main()
