"""What history costs: recording, a way back, a step back, the last writer of a cell.

`python tests/benchmarks/history.py [--runs N] [--json] [PROGRAM ARGS...]`. Figures are CPU time.
The cost of recording is the least of N runs over the least of as many without: with the guest's
clock in both, which is the journal's, and without it in the plain run, which is all of it.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.history.journal import Journal
from engine.history.recording import RunRecorder
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Session
from engine.session.control.backwards import Backwards
from engine.session.guest.past import PastSession
from tests.benchmarks.measuring import heading, machine, table

_PROGRAM: Final = (
    "/usr/bin/python3",
    "-c",
    "d = {}\nfor i in range(60000): d[i % 1000] = str(i)\nprint(len(d))",
)
_SEEKS: Final = 60


def _session(config: GuestConfig) -> Session:
    sink = SinkStream(lambda data: None)
    return Session(config, (FeedStream(b"", ended=True), sink, sink))


def _run(words: tuple[str, ...], *, clock: bool, recorded: bool) -> tuple[float, Session, Journal]:
    """CPU seconds of a run, and what is left of it."""
    guest, *args = words
    env = ("PATH=/usr/bin:/bin",)
    session = _session(
        GuestConfig(guest, tuple(args), env=env, count_blocks=clock, history=recorded)
    )
    journal = Journal()
    start = time.process_time()
    if recorded:
        RunRecorder(session.machine, session.noted, journal)
    session.run()
    return time.process_time() - start, session, journal


def _least(words: tuple[str, ...], runs: int, *, clock: bool, recorded: bool) -> float:
    found = []
    for _ in range(runs):
        spent, session, _ = _run(words, clock=clock, recorded=recorded)
        session.close()
        found.append(spent)
    return min(found)


def measure(words: tuple[str, ...], runs: int) -> dict[str, float]:
    """The figures by name."""
    plain = _least(words, runs, clock=False, recorded=False)
    clocked = _least(words, runs, clock=True, recorded=False)
    recorded = _least(words, runs, clock=True, recorded=True)
    _, session, journal = _run(words, clock=True, recorded=True)
    found = {
        "plain run, s": plain,
        "recorded / plain": recorded / plain,
        "recorded / with the clock": recorded / clocked,
        "entries": float(len(journal)),
        "journal, MB": sum(map(len, journal.raw)) / 1e6,
    }
    past = PastSession(session.config, journal, session.ram.size, session.opened)
    backwards = Backwards(past)
    timeline = backwards.timeline
    start = time.process_time()
    timeline.end()
    found["lived through once / plain"] = (time.process_time() - start) / plain
    found["checkpoints, MB"] = timeline.checkpoints.size / 1e6
    choose, end = random.Random(1), session.cpu.blocks()
    seeks = []
    for _ in range(_SEEKS):
        clock = choose.randrange(end)
        start = time.process_time()
        timeline.seek_clock(clock)
        seeks.append(time.process_time() - start)
    found["seek, median, ms"] = sorted(seeks)[len(seeks) // 2] * 1e3
    found["seek, p95, ms"] = sorted(seeks)[len(seeks) * 95 // 100] * 1e3
    timeline.seek_clock(end // 2)
    steps = []
    for _ in range(_SEEKS):
        start = time.process_time()
        backwards.step()
        steps.append(time.process_time() - start)
    found["step back, median, ms"] = sorted(steps)[len(steps) // 2] * 1e3
    found["step back, p95, ms"] = sorted(steps)[len(steps) * 95 // 100] * 1e3
    sp = past.cpu.read_register(past.arch.roles.sp)
    start = time.process_time()
    backwards.last_write(sp, 8)
    found["last write, ms"] = (time.process_time() - start) * 1e3
    past.close()
    session.close()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    figures = measure(tuple(options.words) or _PROGRAM, options.runs)
    if options.json:
        print(json.dumps({"machine": machine(), "figures": figures}, indent=1))
        return
    print(heading(machine()))
    print(table(("what", "figure"), [(name, f"{value:.3g}") for name, value in figures.items()]))


if __name__ == "__main__":
    main()
