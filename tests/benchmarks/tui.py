"""The interface's numbers: first paint, key to paint under a flood of events, memory over time.

    python tests/benchmarks/tui.py [GUEST...]

First paint is wall time from starting the process to the first frame that shows the loaded
guest, in a pseudo-terminal of 120x40; the least of several starts. Key to paint is measured in
the process: a key is posted, and the clock stops when a frame has been painted after the key's
action, while the guest emits events as fast as it can and the log holds a million. On a machine
that others use as well, look at the processor time.
"""

import asyncio
import fcntl
import gc
import os
import pty
import resource
import select
import signal
import struct
import sys
import termios
from pathlib import Path
from time import monotonic, perf_counter, process_time, thread_time
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
SAMPLES = ROOT / "samples" / "bin"
STARTS = 5
KEYS = 400
EVENTS = 1_000_000


def first_paint(guest: str) -> tuple[float, float, float]:
    """Seconds to a first frame, to one with the guest, and of CPU until then."""
    begin = monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.environ["PYTHONPATH"] = str(ROOT)
        os.execv(sys.executable, [sys.executable, "-m", "tui", guest])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("=4H", 40, 120, 0, 0))
    seen, frame, loaded = b"", 0.0, 0.0
    while not loaded and monotonic() - begin < 30:
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 1 << 16)
            frame = frame or (monotonic() - begin if b"\x1b[?1049h" in seen else 0.0)
            loaded = monotonic() - begin if b"loaded" in seen else 0.0
    os.kill(pid, signal.SIGKILL)
    usage = os.wait4(pid, 0)[2]
    os.close(terminal)
    return frame, loaded, usage.ru_utime + usage.ru_stime


async def flood() -> None:
    """Key to paint, and memory, while events come."""
    os.environ.setdefault("TEXTUAL_FPS", "120")  # as the command does
    from engine.session import GuestConfig
    from engine.session.protocol import commands as cmd
    from tui.app import KprobeApp

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
        print(f"{'events':>12} {'seconds':>8} {'RSS MiB':>8}")
        begin, step = perf_counter(), EVENTS // 4
        while app.view.events < EVENTS:
            await asyncio.sleep(0.05)
            if app.view.events >= step:
                step += EVENTS // 4
                print(f"{app.view.events:>12} {perf_counter() - begin:>8.1f} {resident():>8.0f}")
        gc.collect()
        gc.freeze()  # as the app does where it is not under test
        gc.set_threshold(20_000, 20, 50)
        for pane, keys in (("code", "jk"), ("events", "Gk"), ("registers", "jk")):
            app.body.show_pane(pane)
            await pilot.pause(0.2)
            times, work = [], []
            for number in range(KEYS):
                obeyed.clear()
                painted.clear()
                began, used = perf_counter(), thread_time()
                app.post_message(_key(keys[number % 2]))  # each moves what is shown
                await asyncio.wait_for(painted.wait(), 2)
                times.append(1000 * (perf_counter() - began))
                work.append(1000 * (thread_time() - used))
                await asyncio.sleep(0.01)
            print(
                f"{pane:<10} key to paint p50 {at(times, 0.5):.1f} ms  p99 {at(times, 0.99):.1f},"
                f" processor time of the interface {at(work, 0.5):.1f} and {at(work, 0.99):.1f} ms"
            )
        rate, cpu = float(app.view.events), process_time()
        began = perf_counter()
        while perf_counter() - began < 5:
            await asyncio.sleep(0.1)
        spent = perf_counter() - began
        print(
            f"events a second {(app.view.events - rate) / spent:.0f}, RSS {resident():.0f} MiB, "
        )
        print(f"CPU {100 * (process_time() - cpu) / spent:.0f}%")


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
    guests = sys.argv[1:] or [str(SAMPLES / arch / "recursion") for arch in ("x86_64", "aarch64")]
    for guest in guests:
        runs = [first_paint(guest) for _ in range(STARTS)]
        frame, loaded, cpu = (min(each) for each in zip(*runs, strict=True))
        print(
            f"first frame {frame:.2f} s, with the guest {loaded:.2f} s (CPU {cpu:.2f} s): {guest}"
        )
    asyncio.run(flood())


if __name__ == "__main__":
    main()
