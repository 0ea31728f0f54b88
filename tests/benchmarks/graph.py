"""What a million traced calls cost: ours, and uftrace's on the same program where it is installed.

`python tests/benchmarks/graph.py [--calls N] [--runs N] [--json]`. A call is the CPU time of a
traced run minus that of the same run untraced, each the minimum of N runs. uftrace gets the
program compiled with `-pg`, and with patched entries (`-P.`) without; $UFTRACE names another
command than `uftrace`.
"""

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.session import GuestConfig
from engine.session.protocol.requests import TRACERS, GraphOptions
from engine.session.tracing.graphing import Graphing
from engine.session.tracing.tracing import Tracing
from tests.benchmarks.guestcpu import cpu_of_run

_SOURCE: Final = Path(__file__).parent / "src" / "calls.c"
_FUNCTIONS: Final = ("leaf", "outer")
_COMPILERS: Final = {"x86_64": "gcc", "aarch64": "aarch64-linux-gnu-gcc"}


def build(folder: Path, arch: str, *flags: str) -> Path:
    """The program for an architecture."""
    path = folder / "-".join(["calls", arch, *(flag.strip("-") for flag in flags)])
    words = [_COMPILERS[arch], "-O1", "-g", *flags, "-o", str(path), str(_SOURCE)]
    subprocess.run(words, check=True)
    return path


def ours(path: Path, calls: int, tracer: str, output: str) -> float:
    """CPU seconds of one run; `tracer` "" for none."""
    config = GuestConfig(str(path), args=(str(calls // 2),), isolated=True)

    def prepare(tracing: Tracing) -> None:
        Graphing(tracing, GraphOptions(tracer)).add(*_FUNCTIONS)

    return cpu_of_run(config, prepare if tracer else None, output)


def spent(words: Sequence[str | Path]) -> float:
    """CPU seconds of a command, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def least(runs: int, measure: Callable[[], float]) -> float:
    """The minimum of some runs."""
    return min((measure() for _ in range(runs)), default=math.inf)


def peers(folder: Path, calls: int, runs: int) -> dict[str, float]:
    """uftrace's CPU seconds by way; nothing where it is not installed."""
    command = os.environ.get("UFTRACE", "uftrace")
    if shutil.which(command) is None or os.uname().machine != "x86_64":
        return {}
    found = {}
    data = folder / "data"
    for name, flags, words in (
        ("uftrace record, -pg", ("-pg",), ("-F", "leaf", "-F", "outer")),
        ("uftrace record -P, no help", (), ("-P", "leaf", "-P", "outer")),
    ):
        path = build(folder, "x86_64", *flags)
        rounds = str(calls // 2)
        plain = least(runs, partial(spent, [path, rounds]))
        line: list[str | Path] = [
            command,
            "record",
            "--no-libcall",
            "-d",
            data,
            *words,
            path,
            rounds,
        ]
        try:
            traced = least(runs, partial(spent, line))
        except subprocess.CalledProcessError as error:
            print(f"{name}: {error.stderr.decode(errors='replace').strip()[:200]}")
            continue
        found[name] = traced - plain
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for arch in _COMPILERS:
            if shutil.which(_COMPILERS[arch]) is None:
                continue
            path = build(folder, arch, "-static")
            plain = least(given.runs, partial(ours, path, given.calls, "", ""))
            for tracer in TRACERS:
                for what, output in (("recorded", "/dev/null"), ("written", f"{name}/text")):
                    traced = least(
                        given.runs,
                        partial(ours, path, given.calls, tracer, output),
                    )
                    found[f"{arch} {tracer}, {what}"] = traced - plain
        found |= peers(folder, given.calls, given.runs)
    each = {what: seconds / given.calls * 1e9 for what, seconds in found.items()}
    if given.json:
        print(json.dumps([{"what": what, "ns_per_call": ns} for what, ns in each.items()]))
        return
    print(f"load {os.getloadavg()[0]:.1f}, {given.calls} calls")
    for what, ns in each.items():
        print(f"{what:40} {ns:8.0f} ns a call")


if __name__ == "__main__":
    main()
