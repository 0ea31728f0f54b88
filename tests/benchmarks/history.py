"""What history costs: recording, a way back, a step back, the last writer of a cell, late probes.

`python tests/benchmarks/history.py [--runs N] [--json] [--late DEFINITION] [PROGRAM ARGS...]`.
Figures are CPU time, of all processes, but for those of a late probe that say otherwise.
The cost of recording is the least of N runs over the least of as many without: with the guest's
clock in both, which is the journal's, and without it in the plain run, which is all of it.
"""

import argparse
import json
import os
import random
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from controlkit import Given

from engine.history.journal import Journal
from engine.history.livecheckpoints import LiveCheckpoints
from engine.history.recording import RunRecorder
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Session
from engine.session.control.control import Control
from engine.session.control.past.backwards import Backwards
from engine.session.guest.past import PastSession
from engine.session.guest.terminal import CapturedStreams
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from tests.benchmarks.measuring import heading, machine, table

_PROGRAM: Final = (
    "/usr/bin/python3",
    "-c",
    "d = {}\nfor i in range(60000): d[i % 1000] = str(i)\nprint(len(d))",
)
_SEEKS: Final = 60
_SHORT: Final = "engine.session.control.past.refill.SHORT"
_LATE: Final = "p:late python3:PyObject_Str"


class _LateProbe:
    """Places a probe when the run is over, and measures how the log is filled."""

    def __init__(self, words: tuple[str, ...], line: str) -> None:
        self._line = line
        self._first: float | None = None
        self._began = 0.0
        guest, *args = words
        config = GuestConfig(guest, tuple(args), env=("PATH=/usr/bin:/bin",), history=True)
        self._control = Control(config, self._tell, terminal=CapturedStreams())
        self._control.loop.refills = True
        began = time.process_time()
        self._control.loop.execute(cmd.Continue())
        self.run = time.process_time() - began

    def _tell(self, event: ev.SessionEvent) -> None:
        if isinstance(event, ev.Rows) and event.count and self._first is None:
            self._first = time.monotonic() - self._began

    def place(self) -> dict[str, float]:
        """Place it, fill the log, and take it away."""
        before = time.process_time(), _of_children()
        self._first, self._began = None, time.monotonic()
        self._control.loop.execute(cmd.Define(self._line))
        wall = time.monotonic() - self._began
        found = {"own": time.process_time() - before[0], "others": _of_children() - before[1]}
        self._control.loop.execute(cmd.Delete((self._control.view().probes[-1].row.id,)))
        return {**found, "wall": wall, "first": self._first or 0.0}

    def ended(self, after: float) -> float:
        """Place it, and end that after some seconds: how long that takes."""
        due, asked = time.monotonic() + after, 0.0

        def waiting() -> cmd.Command | None:
            nonlocal asked
            if asked or time.monotonic() < due:
                return None
            asked = time.monotonic()
            return cmd.Halt()

        self._control.queue.source = Given(waiting)
        self._control.loop.execute(cmd.Define(self._line))
        return time.monotonic() - asked if asked else 0.0

    def close(self) -> None:
        self._control.close()


def _of_children() -> float:
    """CPU seconds of the processes that this one has made, of those that still live, too."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = 0
    for listed in Path("/proc/self/task").glob("*/children"):
        for child in listed.read_text().split():
            with suppress(OSError):  # it has ended meanwhile
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                living += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return usage.ru_utime + usage.ru_stime + living / os.sysconf("SC_CLK_TCK")


def _late(words: tuple[str, ...], line: str) -> dict[str, float]:
    """The figures of a probe that is placed when the run is over."""
    probe = _LateProbe(words, line)
    run = probe.run
    with patch(_SHORT, 1 << 62):
        whole = probe.place()
    with patch(_SHORT, 0):
        first, again = probe.place(), probe.place()
        ended = probe.ended(0.2)
    probe.close()
    return {
        "late probe, from the start / run": whole["own"] / run,
        "late probe, no checkpoints yet / run": (first["own"] + first["others"]) / run,
        "its first rows, wall, s": first["first"],
        "late probe, stretches / run": (again["own"] + again["others"]) / run,
        "each of two processes / run": again["others"] / 2 / run,
        "its wall time / run": again["wall"] / run,
        "its first rows again, wall, s": again["first"],
        "late probe ended, wall, ms": ended * 1e3,
    }


def _session(config: GuestConfig) -> Session:
    sink = SinkStream(lambda data: None)
    return Session(config, (FeedStream(b"", ended=True), sink, sink))


def _run(
    words: tuple[str, ...], *, clock: bool, recorded: bool, keeps: bool = False
) -> tuple[float, Session, Journal]:
    """CPU seconds of a run, and what is left of it."""
    guest, *args = words
    env = ("PATH=/usr/bin:/bin",)
    session = _session(
        GuestConfig(guest, tuple(args), env=env, count_blocks=clock, history=recorded)
    )
    journal = Journal()
    start = time.process_time()
    if recorded:
        recorder = RunRecorder(session.machine, session.noted, journal)
        if keeps:
            LiveCheckpoints(session.kernel, recorder)
    session.run()
    return time.process_time() - start, session, journal


def _least(
    words: tuple[str, ...], runs: int, *, clock: bool, recorded: bool, keeps: bool = False
) -> float:
    found = []
    for _ in range(runs):
        spent, session, _ = _run(words, clock=clock, recorded=recorded, keeps=keeps)
        session.close()
        found.append(spent)
    return min(found)


def measure(words: tuple[str, ...], runs: int, late: str) -> dict[str, float]:
    """The figures by name."""
    plain = _least(words, runs, clock=False, recorded=False)
    clocked = _least(words, runs, clock=True, recorded=False)
    recorded = _least(words, runs, clock=True, recorded=True)
    keeping = _least(words, runs, clock=True, recorded=True, keeps=True)
    _, session, journal = _run(words, clock=True, recorded=True)
    found = {
        "plain run, s": plain,
        "recorded / plain": recorded / plain,
        "recorded / with the clock": recorded / clocked,
        "recorded with checkpoints / with the clock": keeping / clocked,
        "entries": float(len(journal)),
        "journal, MB": sum(map(len, (*journal.raw, *journal.contents.values()))) / 1e6,
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
    return found | _late(words, late)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--late", default=_LATE)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    figures = measure(tuple(options.words) or _PROGRAM, options.runs, options.late)
    if options.json:
        print(json.dumps({"machine": machine(), "figures": figures}, indent=1))
        return
    print(heading(machine()))
    print(table(("what", "figure"), [(name, f"{value:.3g}") for name, value in figures.items()]))


if __name__ == "__main__":
    main()
