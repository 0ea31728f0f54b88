"""How fast guests run: the engine against bare Unicorn, qemu-user and the real machine.

`python tests/benchmarks/run_speed.py [--arch A] [--kernel K] [--runs N] [--quick] [--json]`.
A figure is the CPU time of a run with many rounds minus that of one with none, each the minimum
of N runs; the runs of all ways of one kernel alternate, so that they meet the same disturbances.
"""

import argparse
import gc
import json
import math
import multiprocessing
import platform
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from goldenruns import GuestUnavailable, build_bench

from engine import arch as architectures
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Session
from tests.benchmarks import measuring
from tests.benchmarks.raw_unicorn import RawGuest, host_code_works

_ARCHES: Final = ("x86_64", "aarch64")
ROUNDS = {
    "intloop": 25_000_000,
    "recursion": 2_000,
    "memstr": 100_000,
    "float": 10_000,
    "qsort": 1_200,
}
_QUICK: Final = 5

OURS, CLOCK, BARE, BEST, QEMU, NATIVE = "ours", "clock", "bare", "best", "qemu", "native"
WAYS: Final = (NATIVE, QEMU, BARE, BEST, OURS, CLOCK)
# (what, compared with what, reach, aim, reach for the worst row)
TARGETS: Final = (
    (OURS, BEST, 1.05, 1.0, math.inf),
    (OURS, QEMU, 3.5, 2.5, math.inf),
    (CLOCK, BEST, 1.15, 1.1, 1.6),
    (CLOCK, OURS, 1.15, 1.1, 1.6),
    (OURS, BARE, math.inf, math.inf, math.inf),
    (OURS, NATIVE, math.inf, math.inf, math.inf),
)

Way = Callable[[str, int], tuple[float, bytes]]


def _ours(program: Path, clock: bool) -> Way:
    def run(kernel: str, rounds: int) -> tuple[float, bytes]:
        output = bytearray()
        sink = SinkStream(output.extend)
        config = GuestConfig(
            guest=str(program), args=(kernel, str(rounds)), isolated=True, count_blocks=clock
        )
        session = Session(config, (FeedStream(ended=True), sink, sink))
        try:
            start = time.process_time()
            session.run()
            spent = time.process_time() - start
        finally:
            session.close()
        return spent, bytes(output)

    return run


def _raw(program: Path, arch: str, hwcap: int, best: bool) -> Way:
    # In a process of its own: what the engine changes in Unicorn's functions holds for all of one.
    workers = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))

    def run(kernel: str, rounds: int) -> tuple[float, bytes]:
        words = [kernel, str(rounds)]
        return workers.submit(_raw_run, program, words, arch, hwcap, best).result()

    return run


def _raw_run(
    program: Path, words: list[str], arch: str, hwcap: int, best: bool
) -> tuple[float, bytes]:
    guest = RawGuest(program, words, arch, hwcap, best=best)
    spent = guest.run()
    gc.collect()
    return spent, bytes(guest.output)


def _process(*words: str) -> Way:
    def run(kernel: str, rounds: int) -> tuple[float, bytes]:
        spent = measuring.run_process([*words, kernel, str(rounds)])
        return spent.cpu, spent.output

    return run


def ways(arch: str, wanted: tuple[str, ...]) -> dict[str, Way]:
    """The ways that this machine has to run a program of an architecture."""
    program = build_bench(arch)
    hwcap = architectures.by_name(arch).linux.hwcap[0]
    found = {
        OURS: _ours(program, False),
        CLOCK: _ours(program, True),
        BARE: _raw(program, arch, hwcap, False),
        BEST: _raw(program, arch, hwcap, True),
    }
    qemu = shutil.which(f"qemu-{arch}") or shutil.which(f"qemu-{arch}-static")
    if qemu:
        found[QEMU] = _process(qemu, str(program))
    if platform.machine() == arch:
        found[NATIVE] = _process(str(program))
    return {name: found[name] for name in WAYS if name in found and name in wanted}


def measure(kernel: str, rounds: int, chosen: Mapping[str, Way], runs: int) -> dict[str, float]:
    """CPU seconds of a kernel's rounds in each way.

    Raises:
        RuntimeError: the ways disagree about the result.
    """
    best = {(name, size): math.inf for name in chosen for size in (0, rounds)}
    results: dict[int, bytes] = {}
    for _ in range(runs):
        for name, way in chosen.items():
            for size in (0, rounds):
                spent, output = way(kernel, size)
                if results.setdefault(size, output) != output:
                    raise RuntimeError(f"{name}: {kernel} {size} gave {output!r}")
                best[name, size] = min(best[name, size], spent)
            gc.collect()  # an emulator and its callbacks refer to each other
    return {name: best[name, rounds] - best[name, 0] for name in chosen}


def ratios(times: Mapping[str, Mapping[str, float]], what: str, other: str) -> list[float]:
    """Of all kernels that were run both ways."""
    rows = [row for row in times.values() if what in row and other in row]
    return [row[what] / max(row[other], 1e-6) for row in rows]


def show(arch: str, times: Mapping[str, Mapping[str, float]]) -> None:
    """Print the table of an architecture."""
    names = [name for name in WAYS if any(name in row for row in times.values())]
    pairs = [(a, b) for a, b, *_ in TARGETS if a in names and b in names]
    head = [f"{arch}, CPU ms", *names, *(f"{a}/{b}" for a, b in pairs)]
    rows = [
        [
            f"{kernel} {ROUNDS[kernel]:,}",
            *(f"{row[name] * 1e3:.0f}" for name in names),
            *(f"{row[a] / max(row[b], 1e-6):.2f}" for a, b in pairs),
        ]
        for kernel, row in times.items()
    ]
    means = [f"{measuring.geometric_mean(ratios(times, a, b)):.2f}" for a, b in pairs]
    rows.append(["geometric mean", *([""] * len(names)), *means])
    print(measuring.table(head, rows), end="\n\n", flush=True)


def judge(times: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[dict[str, object]]:
    """Compare the ratios of all architectures with the numbers to reach."""
    found: list[dict[str, object]] = []
    for what, other, reach, aim, worst_reach in TARGETS:
        values = [value for rows in times.values() for value in ratios(rows, what, other)]
        if not values or reach == math.inf:
            continue
        mean, worst = measuring.geometric_mean(values), max(values)
        text = measuring.verdict(mean, reach, aim)
        if worst > worst_reach:
            text += f", worst row MISSED ({worst_reach})"
        found.append(
            {
                "ratio": f"{what}/{other}",
                "geometric_mean": round(mean, 3),
                "worst": round(worst, 3),
                "reach": reach,
                "aim": aim,
                "verdict": text,
            }
        )
    return found


def main() -> int:
    """Entry point of the program."""
    parser = argparse.ArgumentParser(description="CPU time of compute kernels in several ways.")
    parser.add_argument("--arch", choices=_ARCHES, action="append")
    parser.add_argument("--kernel", choices=tuple(ROUNDS), action="append")
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--runs", type=int, default=5, help="minimum of N runs (default 5)")
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds, 3 runs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    runs = 3 if options.quick else options.runs
    if options.quick:
        ROUNDS.update({kernel: rounds // _QUICK for kernel, rounds in ROUNDS.items()})
    facts = measuring.machine()
    if not options.json:
        print(measuring.heading(facts))
        if not host_code_works():
            print("note: the best set-up has no host code on this machine")
        print(flush=True)
    times: dict[str, dict[str, dict[str, float]]] = {}
    for arch in options.arch or _ARCHES:
        try:
            chosen = ways(arch, tuple(options.way or WAYS))
        except GuestUnavailable as error:
            print(f"{arch} left out: {error}", file=sys.stderr)
            continue
        times[arch] = {
            kernel: measure(kernel, rounds, chosen, runs)
            for kernel, rounds in ROUNDS.items()
            if kernel in (options.kernel or ROUNDS)
        }
        if not options.json:
            show(arch, times[arch])
    results = judge(times)
    facts["calibration_after_s"] = round(measuring.calibration(), 4)
    if options.json:
        answer = {"facts": facts, "rounds": ROUNDS, "cpu_s": times, "ratios": results}
        print(json.dumps(answer, indent=1))
        return 0
    head = ["all, geometric mean", "ratio", "worst", "reach", "aim", ""]
    keys = ("ratio", "geometric_mean", "worst", "reach", "aim", "verdict")
    print(measuring.table(head, [[str(item[key]) for key in keys] for item in results]))
    print(f"calibration again: {facts['calibration_after_s']} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
