"""The interface's numbers: first paint, a step by key, key to paint under a flood of events.

    python tests/benchmarks/tui.py [--runs N] [--events N] [GUEST...]

The first ones run the command in a pseudo-terminal of 120x40 and are processor time of its
process, all threads of it: from its start to the frame that shows the loaded guest, and from a
key that steps, changes the theme, or is a letter in the palette, to the frame that shows what came
of it. What the process does while nobody presses a key is taken off. Key to paint is measured
inside: a key is posted, and the clock stops when a frame has been painted after the key's action,
while the guest emits events as fast as it can; with few events in the log, and with many. On a
machine that others use as well, look at processor time.
"""

import argparse
import asyncio
import compileall
import fcntl
import gc
import os
import pty
import resource
import select
import signal
import statistics
import struct
import sys
import termios
from contextlib import suppress
from pathlib import Path
from time import monotonic, perf_counter, process_time, thread_time
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.measuring import heading, machine, table, verdict

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples" / "bin"
KEYS: Final = 400
FEW: Final = 100_000
STEPS: Final = {"i": "instruction", "o": "over", "n": "line", ".": "phase"}
GAP: Final = 0.15
"""Seconds between two steps: more than one takes, screen and all."""
# (reach, aim): the issue on speed and the design say so.
FIRST_PAINT: Final = (0.6, 0.35)
STEP: Final = (20.0, 8.0)
LETTER: Final = (40.0, 20.0)
KEY_TO_PAINT: Final = (50.0, 30.0)
THEMES: Final = ("nord", "textual-light", "gruvbox", "textual-dark")
THEME: Final = (300.0, 200.0)


class Terminal:
    """The command in a pseudo-terminal."""

    def __init__(self, guest: str) -> None:
        self._begin = monotonic()
        self.seen = b""
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.environ["PYTHONPATH"] = str(ROOT)
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
            os.execv(sys.executable, [sys.executable, "-m", "tui", "--fresh", guest])
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("=4H", 40, 120, 0, 0))

    def read(self, seconds: float) -> None:
        """Take what it paints for a while."""
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                self.seen += os.read(self._terminal, 1 << 16)

    def until(self, text: bytes) -> None:
        """Wait for a text."""
        while text not in self.seen:
            if monotonic() - self._begin > 30:
                raise RuntimeError(f"no {text!r} in {len(self.seen)} bytes")
            self.read(0.005)

    def spent(self, key: str = "", gap: float = GAP) -> float:
        """Processor time in milliseconds of a key, or of doing nothing."""
        before = self._used()
        os.write(self._terminal, key.encode())
        self.read(gap)
        return self._used() - before

    def _used(self) -> float:
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6

    def leave(self) -> None:
        """Quit it as a user does."""
        os.write(self._terminal, b"q")
        with suppress(OSError):
            while True:
                os.read(self._terminal, 1 << 16)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)

    def close(self) -> float:
        """End it; the processor time of all its life, in seconds."""
        os.kill(self.pid, signal.SIGKILL)
        usage = os.wait4(self.pid, 0)[2]
        os.close(self._terminal)
        return usage.ru_utime + usage.ru_stime


def first_paint(guest: str) -> float:
    """Seconds of processor time until the loaded guest is seen."""
    terminal = Terminal(guest)
    terminal.until(b"loaded")
    return terminal.close()


def steps(guest: str, count: int) -> dict[str, list[float]]:
    """Milliseconds of processor time of steps, by key."""
    terminal = Terminal(guest)
    terminal.until(b"loaded")
    terminal.read(1)
    idle = statistics.median(terminal.spent() for _ in range(10))
    found = {}
    for key in STEPS:
        for _ in range(3):
            terminal.spent(key)  # what a first use does
        found[key] = [terminal.spent(key) - idle for _ in range(count)]
    terminal.close()
    return found


def themes(guest: str) -> list[float]:
    """Milliseconds of processor time of a change to each theme."""
    terminal = Terminal(guest)
    terminal.until(b"loaded")
    terminal.read(1)
    idle = statistics.median(terminal.spent(gap=1) for _ in range(3))
    found = []
    for name in THEMES:
        terminal.spent(f":theme {name}")
        found.append(terminal.spent("\r", gap=1) - idle)
    terminal.close()
    return found


def letters(guest: str) -> list[float]:
    """Milliseconds of processor time of letters in the palette, once names are read."""
    terminal = Terminal(guest)
    terminal.until(b"loaded")
    terminal.read(1)
    idle = statistics.median(terminal.spent() for _ in range(10))
    terminal.spent("\x10", gap=2)
    found = [terminal.spent(letter) - idle for letter in "breakpoint"]
    terminal.close()
    return found


async def flood(events: int) -> list[list[str]]:
    """Key to paint while events come: rows of a table."""
    os.environ.setdefault("TEXTUAL_FPS", "120")  # as the command does
    from engine.session import GuestConfig
    from engine.session.protocol import commands as cmd
    from tui.app import KprobeApp

    rows = []
    app = KprobeApp(GuestConfig(str(SAMPLES / "x86_64" / "loop"), ("2000000000",)))
    async with app.run_test(size=(120, 40)) as pilot:
        painted = asyncio.Event()
        display = app._display

        def counted(*args: Any) -> None:
            display(*args)
            if obeyed.is_set():
                painted.set()

        setattr(app, "_display", counted)  # noqa: B010 - of this one app
        obeyed = asyncio.Event()
        run_action = app.run_action

        async def acted(*args: Any, **options: Any) -> bool:
            done = await run_action(*args, **options)
            obeyed.set()
            return done

        setattr(app, "run_action", acted)  # noqa: B010 - of this one app
        app.bridge.post(cmd.Define("p:demo/mix mix a=%di b=%si c=%dx"))
        app.bridge.post(cmd.Continue())
        for wanted in (FEW, events):
            while app.view.events < wanted:
                await asyncio.sleep(0.05)
            gc.collect()
            gc.freeze()  # as the app does where it is not under test
            gc.set_threshold(20_000, 20, 50)
            for pane, keys in (("code", "jk"), ("events", "Gk"), ("registers", "jk"), ("", "16")):
                if pane:
                    app.body.show_pane(pane)
                await pilot.pause(0.2)
                times, work = [], []
                seen = app.view.events
                for number in range(KEYS):
                    obeyed.clear()
                    painted.clear()
                    began, used = perf_counter(), thread_time()
                    app.post_message(_key(keys[number % 2]))  # each moves what is shown
                    await asyncio.wait_for(painted.wait(), 2)
                    times.append(1000 * (perf_counter() - began))
                    work.append(1000 * (thread_time() - used))
                    await asyncio.sleep(0.01)
                figures = (at(times, 0.5), at(times, 0.99), at(work, 0.5), at(work, 0.99))
                name = f"{pane or 'another pane'}, {seen / 1e6:.1f} million"
                rows.append([name, *(f"{one:.1f}" for one in figures)])
                rows[-1].append(verdict(figures[1], *KEY_TO_PAINT))
        rate, cpu = float(app.view.events), process_time()
        began = perf_counter()
        await asyncio.sleep(3)
        spent = perf_counter() - began
        rate = (app.view.events - rate) / spent
        share = (process_time() - cpu) / spent
        print(f"{rate:.0f} events a second, {resident():.0f} MiB, processor {share:.0%}")
    return rows


def at(values: list[float], share: float) -> float:
    """The value below which a share of the values are."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def _key(key: str) -> Any:
    from textual.events import Key

    return Key(key, key)


def resident() -> float:
    """MiB of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / (1 << 20)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("guests", nargs="*", metavar="GUEST")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--events", type=int, default=10_000_000)
    options = parser.parse_args()
    for package in ("engine", "tui"):
        compileall.compile_dir(ROOT / package, quiet=1)
    print(heading(machine()))
    guests = options.guests or [str(SAMPLES / "x86_64" / "recursion"), "/bin/bash"]
    rows = []
    for guest in guests:
        terminal = Terminal(guest)  # reads the files
        terminal.until(b"loaded")
        terminal.leave()
        spent = [first_paint(guest) for _ in range(options.runs)]
        rows.append([guest, f"{min(spent):.3f}", f"{statistics.median(spent):.3f}"])
        rows[-1].append(verdict(statistics.median(spent), *FIRST_PAINT))
    print(table(("first paint, CPU s", "least", "median", ""), rows), end="\n\n")
    rows = []
    for guest in guests:
        for key, values in steps(guest, 4 * options.runs).items():
            figures = [at(values, share) for share in (0.5, 0.9, 1)]
            name = f"{key} {STEPS[key]}: {guest}"
            rows.append([name, *(f"{one:.1f}" for one in figures), verdict(figures[0], *STEP)])
    print(table(("step, CPU ms", "p50", "p90", "max", ""), rows), end="\n\n")
    rows = []
    for guest in guests:
        values = themes(guest)
        row = [guest, f"{min(values):.0f}", f"{statistics.median(values):.0f}"]
        rows.append([*row, verdict(statistics.median(values), *THEME)])
    print(table(("theme, CPU ms", "least", "median", ""), rows), end="\n\n")
    rows = []
    for guest in guests:
        values = letters(guest)
        figures = [at(values, share) for share in (0.5, 0.9, 1)]
        rows.append([guest, *(f"{one:.1f}" for one in figures), verdict(figures[0], *LETTER)])
    print(table(("palette letter, CPU ms", "p50", "p90", "max", ""), rows), end="\n\n")
    rows = asyncio.run(flood(options.events))
    print(table(("key to paint, ms", "p50", "p99", "CPU p50", "CPU p99", ""), rows))


if __name__ == "__main__":
    main()
