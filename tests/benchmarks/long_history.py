"""What the history of a long run offers: the first way back, seeks, steps, a late probe.

`python tests/benchmarks/long_history.py [--seconds N] [--megabytes N] [python | writes]...`. A
program without an end is halted after N seconds of CPU time (60), then its past is looked at as a
user does: every figure is that of a command, from its begin to its end. Milliseconds are CPU time
of this process; where it says wall, they are that.

`python` allocates trees, fills a dictionary, formats and sorts; `writes` (`src/writes.c`) writes
to 16 MB at random, or to as many as are given. `--json` prints the same as data.
"""

import argparse
import json
import random
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cguest import compiled_from
from controlkit import Given

from engine.session import GuestConfig
from engine.session.control.control import Control
from engine.session.guest.terminal import CapturedStreams
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import HistoryView
from tests.benchmarks.measuring import heading, machine, table

_PYTHON: Final = """
class Node:
    def __init__(self, key, left, right):
        self.key, self.left, self.right = key, left, right

def build(depth):
    return Node(depth, build(depth - 1), build(depth - 1)) if depth else None

def total(node):
    return node.key + total(node.left) + total(node.right) if node else 0

words, found, count = {}, 0, 0
while True:
    found += total(build(9))
    for step in range(3000):
        words[(count * step) % 20000] = str(count + step)
    found += sum(sorted(len(word) for word in words.values()))
    if count % 10 == 0:
        print(count, found, flush=True)
    count += 1
"""
_WRITES: Final = Path(__file__).resolve().parent / "src" / "writes.c"
_LATE: Final = {"python": "p:late python3:PyObject_Str", "writes": "p:late fflush"}
_SEEKS: Final = 100
_PLACES: Final = 5
_STEPS: Final = 20
"""From each of the places."""


class _LongRun:
    """A run that was halted, and whose past is looked at."""

    def __init__(self, words: tuple[str, ...], seconds: float) -> None:
        guest, *args = words
        env = ("PATH=/usr/bin:/bin", "PYTHONHASHSEED=0")
        config = GuestConfig(guest, tuple(args), env=env, history=True)
        self._first: float | None = None
        self._began = 0.0
        self._control = Control(config, self._tell, terminal=CapturedStreams())
        self._control.loop.refills = True
        began = time.process_time()
        over = threading.Event()

        def ended() -> cmd.Command | None:
            if over.is_set() or time.process_time() - began < seconds:
                return None
            over.set()
            return cmd.Halt()

        def ask() -> None:
            while not over.wait(0.1):
                self._control.sight.attention()

        self._control.queue.source = Given(ended)
        asking = threading.Thread(target=ask)
        asking.start()
        self._control.loop.execute(cmd.Continue())
        over.set()
        asking.join()
        self._control.queue.source = Given(lambda: None)
        self.ran = time.process_time() - began

    def _tell(self, event: ev.SessionEvent) -> None:
        if isinstance(event, ev.Rows) and event.count and self._first is None:
            self._first = time.monotonic() - self._began

    @property
    def _history(self) -> HistoryView:
        history = self._control.view().history
        assert history is not None, "it is recorded"
        return history

    def _spent(self, command: cmd.Command) -> float:
        began = time.process_time()
        self._control.loop.execute(command)
        return (time.process_time() - began) * 1e3

    def look(self, *, late: str) -> dict[str, float]:
        """The figures by name."""
        found = {"run, s": self.ran, "memory of the run, MB": _memory()}
        found["first way back, s"] = self._spent(cmd.StepBack()) / 1e3
        end = self._history.end
        found["ticks, millions"] = end / 1e6
        found["checkpoints"] = float(len(self._history.checkpoints))
        found["memory with them, MB"] = _memory()
        choose = random.Random(1)
        seeks = [self._spent(cmd.Seek(choose.randrange(end))) for _ in range(_SEEKS)]
        found |= _of("seek", seeks)
        firsts, steps = [], []
        for _ in range(_PLACES):
            self._spent(cmd.Seek(choose.randrange(end)))
            firsts.append(self._spent(cmd.StepBack()))
            steps += [self._spent(cmd.StepBack()) for _ in range(_STEPS)]
        found |= _of("first step back", firsts) | _of("step back", steps)
        overs = [self._spent(cmd.StepBack(over=True)) for _ in range(_STEPS)]
        found |= _of("step back over calls", overs)
        found["memory after that, MB"] = _memory()
        return found | self._late(late)

    def _late(self, line: str) -> dict[str, float]:
        """A probe that is placed now: its first rows, and how soon it ends when it is cut."""
        asked = 0.0

        def waiting() -> cmd.Command | None:
            nonlocal asked
            if asked or self._first is None:
                return None
            asked = time.monotonic()
            return cmd.Halt()

        self._control.queue.source = Given(waiting)
        self._first, self._began = None, time.monotonic()
        self._control.loop.execute(cmd.Define(line))
        ended = time.monotonic() - asked if asked else 0.0
        return {
            "late probe, first rows, wall, s": self._first or 0.0,
            "cut, wall, ms": ended * 1e3,
        }

    def close(self) -> None:
        self._control.close()


def _of(what: str, figures: list[float]) -> dict[str, float]:
    figures.sort()
    return {
        f"{what}, median, ms": figures[len(figures) // 2],
        f"{what}, p95, ms": figures[len(figures) * 95 // 100],
        f"{what}, worst, ms": figures[-1],
    }


def _memory() -> float:
    """Resident megabytes of this process, the host's and the guest's."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def _words(name: str, megabytes: int) -> tuple[str, ...]:
    if name == "writes":
        return (str(compiled_from(_WRITES, "x86_64")), str(megabytes))
    return (shutil.which("python3", path="/usr/bin:/bin") or "python3", "-c", _PYTHON)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--megabytes", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("programs", nargs="*", default=["python", "writes"])
    options = parser.parse_args()
    figures = {}
    for name in options.programs:
        run = _LongRun(_words(name, options.megabytes), options.seconds)
        figures[name] = run.look(late=_LATE[name])
        run.close()
    if options.json:
        print(json.dumps({"machine": machine(), "figures": figures}, indent=1))
        return
    print(heading(machine()))
    for name, found in figures.items():
        print(table((name, "figure"), [(what, f"{value:.3g}") for what, value in found.items()]))


if __name__ == "__main__":
    main()
