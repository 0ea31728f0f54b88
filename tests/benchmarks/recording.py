"""What it costs that a run is recorded, over the golden programs.

`python tests/benchmarks/recording.py [--arch A]... [--least MS] [--runs N] [--json]`. Each golden
line runs in processes of its own, in turns: as it is, with the guest's clock, which a recording
needs, and recorded with checkpoints. The least CPU time of each counts. Lines shorter than
`--least` are left out: their times are the machine's noise.
"""

import argparse
import json
import os
import shutil
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from goldenruns import GoldenLine, GuestUnavailable, data_folder, golden_lines, place

from engine.history.journal import Journal
from engine.history.livecheckpoints import LiveCheckpoints
from engine.history.recording import RunRecorder
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Session
from tests.benchmarks.measuring import geometric_mean, heading, machine, table

_WAYS: Final = ("plain", "clock", "recorded")
_TIME: Final = struct.Struct("=d")


def _config(line: GoldenLine, way: str) -> GuestConfig:
    where = place(line)
    return GuestConfig(
        str(where.program),
        line.argv[1:],
        argv0=line.argv[0],
        root=None if where.root is None else str(where.root),
        shares=tuple((str(each), False) for each in where.shares),
        env=tuple(f"{key}={value}" for key, value in line.env.items()),
        count_blocks=way != "plain",
        history=way == "recorded",
    )


def _spent(line: GoldenLine, way: str) -> float:
    """CPU seconds of one run, in this process, from its first instruction to its end."""
    stdin = Path(line.stdin).read_bytes() if line.stdin else b""
    sink = SinkStream(lambda data: None)
    session = Session(_config(line, way), (FeedStream(stdin, ended=True), sink, sink))
    start = time.process_time()
    if way == "recorded":
        recorder = RunRecorder(session.machine, session.noted, Journal())
        LiveCheckpoints(session.kernel, recorder)
    session.run()
    return time.process_time() - start


def _measured(line: GoldenLine, way: str) -> float:
    """The same in a process and a copy of the data folder of its own; 0 if it fails."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if not child:
            code = 1
            try:
                shutil.copytree(data_folder(), f"{folder}/data")
                os.chdir(f"{folder}/data")
                os.write(writing, _TIME.pack(_spent(line, way)))
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        with open(reading, "rb") as pipe:
            told = pipe.read()
        os.waitpid(child, 0)
    return float(_TIME.unpack(told)[0]) if told else 0.0


def measure(line: GoldenLine, runs: int, least: float) -> dict[str, float] | None:
    """CPU seconds by way; None for a line that is too short, or does not run here."""
    try:
        place(line)
    except GuestUnavailable:
        return None
    if _measured(line, "plain") < least:
        return None
    found: dict[str, list[float]] = {way: [] for way in _WAYS}
    for _ in range(runs):
        for way in _WAYS:
            found[way].append(_measured(line, way))
    return (
        {way: min(times) for way, times in found.items()}
        if all(map(all, found.values()))
        else None
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", action="append", choices=("amd64", "arm64", "riscv64"))
    parser.add_argument("--least", type=float, default=200, help="milliseconds of a plain run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {}
    for line in golden_lines():
        if line.arch in (options.arch or ("amd64",)):
            times = measure(line, options.runs, options.least / 1e3)
            if times is not None:
                found[line.name] = times
    of_clock = [times["recorded"] / times["clock"] for times in found.values()]
    of_plain = [times["recorded"] / times["plain"] for times in found.values()]
    means = {
        "programs": len(found),
        "recorded / with the clock": geometric_mean(of_clock),
        "worst": max(of_clock, default=0.0),
        "recorded / plain": geometric_mean(of_plain),
        "worst of these": max(of_plain, default=0.0),
    }
    if options.json:
        print(json.dumps({"machine": machine(), "means": means, "lines": found}, indent=1))
        return
    print(heading(machine()))
    rows = [
        (name, f"{times['plain']:.3f}", f"{one:.2f}", f"{other:.2f}")
        for (name, times), one, other in zip(found.items(), of_clock, of_plain, strict=True)
    ]
    print(table(("program", "plain, s", "recorded / clock", "recorded / plain"), rows))
    print(table(("what", "figure"), [(name, f"{value:.3g}") for name, value in means.items()]))


if __name__ == "__main__":
    main()
