"""The event log with a million events: time and memory of all that a user does with it.

Run: python tests/benchmarks/tui_log.py [EVENTS]. Times are in milliseconds unless said otherwise.
"""

import asyncio
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from eventkit import INFOS, NAMES, fact, opened, ret
from textual.app import App, ComposeResult
from textual.events import Key
from textual.widgets import Footer

from tui.filters import compile_filter
from tui.lineindex import Fold
from tui.panes.events import EventLogPane
from tui.store import EventStore

BATCH = 23_000
"""Rows of a batch: 700,000 a second at 30 batches a second."""


def mixed(first: int, count: int) -> bytes:
    """Rows of three events with different sizes."""
    out: list[bytes] = []
    for number in range(first, first + count):
        kind = number % 8
        if kind == 7:
            out.append(opened(number, b"/lib/x86_64/lib%d.so" % (number % 1000), number % 9))
        else:
            out.append(fact(number, number % 100) if kind < 4 else ret(number, number))
    return b"".join(out)


def milliseconds(work: Callable[[], object]) -> float:
    """Processor time of something."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def percentiles(values: list[float]) -> str:
    """Median, 99th percentile and maximum."""
    values = sorted(values)
    return " / ".join(
        f"{values[min(int(len(values) * at), len(values) - 1)]:.1f}" for at in (0.5, 0.99, 1.0)
    )


def store_figures(events: int) -> EventStore:
    """Append, filter, fold and search, without a screen."""
    same = [b"".join(fact(at, at) for at in range(BATCH))] * (events // BATCH)
    batches = [mixed(first, BATCH) for first in range(0, events, BATCH)]
    for name, data in (("rows of one size", same), ("rows of three sizes", batches)):
        store = EventStore(NAMES, events)
        store.declare(INFOS)
        spent = [milliseconds(partial(store.append, batch)) for batch in data]
        print(
            f"append a batch of {BATCH}, {name}: {percentiles(spent)} (p50/p99/max),"
            f" {sum(spent) * 1e6 / store.end:.0f} ns a row"
        )
    for text in ("open", "n<4", "fd==3 && path~*7.so"):
        store.filter = compile_filter(text, store.events)
        longest = 0.0
        total = 0.0
        more = True
        while more:
            start = time.process_time()
            more = store.step(0.006)
            spent_one = (time.process_time() - start) * 1000
            longest, total = max(longest, spent_one), total + spent_one
        print(f"filter {text}: {total:.0f}, longest slice {longest:.1f}, {store.line_count} lines")
    store.filter = None
    for fold in (Fold.EVENT, Fold.VALUES):
        store.fold = fold
        print(
            f"fold {fold.value}: {milliseconds(lambda: drain(store)):.0f},"
            f" {store.line_count} lines"
        )
    store.fold = Fold.NONE
    for pattern in ("no such text", "NoSuch"):
        spent_all = milliseconds(partial(search, store, pattern))
        print(f"search {pattern!r} through all: {spent_all:.0f}")
    return store


def drain(store: EventStore) -> None:
    """Do all the work put off."""
    while store.step(0.1):
        pass


def search(store: EventStore, pattern: str) -> None:
    """Look through all lines for what is not there."""
    for found in store.find(pattern, 0, store.line_count, False):
        assert found is None


class Screen(App[None]):
    """The pane and a footer."""

    def __init__(self, store: EventStore) -> None:
        super().__init__()
        self.pane = EventLogPane(store)

    def compose(self) -> ComposeResult:
        """Both."""
        yield self.pane
        yield Footer()


async def screen_figures(store: EventStore, events: int) -> None:
    """Key to paint, alone and while rows come at full rate."""
    app = Screen(store)
    gc.collect()
    gc.freeze()  # as the app does once it is up
    async with app.run_test(size=(120, 40)) as pilot:
        app.pane.focus_inside()
        await pilot.pause()
        lines = app.pane.lines
        painted = [0.0]
        paint = lines.render_line

        def render_line(y: int) -> object:
            strip = paint(y)
            painted[0] = time.perf_counter()
            return strip

        lines.render_line = render_line  # type: ignore[assignment, method-assign]
        feed = [mixed(events + first, BATCH) for first in range(0, 10 * BATCH, BATCH)]
        turn = 0

        def drained() -> None:
            nonlocal turn
            store.append(feed[turn % len(feed)])
            turn += 1
            app.pane.drained()

        keys = ["home", "pagedown", "j", "j", "ctrl+d", "G", "k", "pageup", "k", "home", "G"]
        for name, running in (("at rest", False), ("while 700,000 events a second come", True)):
            timer = app.set_interval(1 / 30, drained) if running else None
            latencies: list[float] = []
            spent: list[float] = []
            for key in keys * 12:
                await asyncio.sleep(0.02)
                before, used = time.perf_counter(), time.process_time()
                painted[0] = 0.0
                app.post_message(_key(key))
                while painted[0] < before:
                    await asyncio.sleep(0.0005)
                    if time.perf_counter() - before > 0.5:
                        break
                latencies.append((painted[0] - before) * 1000)
                spent.append((time.process_time() - used) * 1000)
            if timer is not None:
                timer.stop()
            print(f"key to paint {name}: {percentiles(latencies)} (p50/p99/max)")
            print(f"  processor time of it: {percentiles(spent)}")
        start = time.process_time()
        turns = turn
        timer = app.set_interval(1 / 30, drained)
        wall = time.perf_counter()
        await asyncio.sleep(3)
        timer.stop()
        seconds = time.perf_counter() - wall
        load = (time.process_time() - start) / seconds
        rate = (turn - turns) * BATCH / seconds
        print(f"load of the interface's thread: {load:.0%} at {rate:.0f} events a second")


def _key(key: str) -> Key:
    return Key(key, key if len(key) == 1 else None)


def memory_figures(events: int) -> None:
    """Bytes that Python holds for the events alone."""
    tracemalloc.start()
    store = EventStore(NAMES, events)
    store.declare(INFOS)
    for first in range(0, events + 5 * BATCH, BATCH):
        store.append(mixed(first, BATCH))
    held = tracemalloc.get_traced_memory()[0]
    print(f"memory: {held / 1e6:.0f} MB for {len(store)} events")
    store.fold = Fold.VALUES
    drain(store)
    print(f"memory with a fold: {tracemalloc.get_traced_memory()[0] / 1e6:.0f} MB")
    tracemalloc.stop()


def main() -> None:
    """All figures."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    memory_figures(events)
    asyncio.run(screen_figures(store_figures(events), events))


if __name__ == "__main__":
    main()
