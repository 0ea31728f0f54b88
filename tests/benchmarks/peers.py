"""The same hit elsewhere: registers of a native program under gdb, and by a kernel uprobe."""

import math
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LIVE_KERNEL: Final = "KPROBE_TUI_LIVE_KERNEL"
"""Environment variable that allows a probe in the running kernel's tables."""

_TRACING: Final = Path("/sys/kernel/tracing")
_KERNEL_HITS: Final = 50_000
_GDB_HITS: Final = 2_000
_GDB: Final = """
import gdb
seen = []
class Stop(gdb.Breakpoint):
    def stop(self):
        frame = gdb.selected_frame()
        seen.append([int(frame.read_register(name)) for name in ("rdi", "rsi", "rdx")])
        return False
if {probed}:
    Stop("boosted")
gdb.execute("run boosted {count}")
if {probed} and len(seen) != {count}:
    gdb.execute("quit 3")
"""


def _spent(words: Sequence[str | Path]) -> float:
    """CPU seconds of a command and its children, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_gdb(program: Path, runs: int) -> float | None:
    """Nanoseconds of a hit under gdb, its own and the program's; None without gdb."""
    gdb = shutil.which("gdb")
    if gdb is None or platform.machine() != "x86_64":
        return None
    best = [math.inf, math.inf]
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        for _ in range(runs):
            for probed in (0, 1):
                script.seek(0)
                script.truncate()
                script.write(_GDB.format(probed=probed, count=_GDB_HITS))
                script.flush()
                spent = _spent([gdb, "-nx", "-batch", "-x", script.name, program])
                best[probed] = min(best[probed], spent)
    return (best[1] - best[0]) / _GDB_HITS * 1e9


def measure_kernel(
    program: Path, offset: int, registers: Sequence[str], runs: int
) -> float | None:
    """Nanoseconds of a hit of a uprobe of the running kernel; None where there is none to ask.

    Only if `LIVE_KERNEL` is set, and as root. The event goes to a trace buffer of its own.

    Args:
        program: for the host's own processor, with the function `boosted`.
        offset: of that function in the file.
        registers: three, as the kernel calls them.
        runs: minimum of so many.

    Raises:
        RuntimeError: the probe was not hit at every call.
    """
    if not os.environ.get(LIVE_KERNEL):
        return None
    if os.geteuid() != 0:
        print(f"kernel uprobe left out: {LIVE_KERNEL} needs root", file=sys.stderr)
        return None
    words: list[str | Path] = [program, "boosted", str(_KERNEL_HITS)]
    plain = min(_spent(words) for _ in range(runs))
    try:
        with _tracefs(), _event(program, offset, registers) as event:
            probed = min(_spent(words) for _ in range(runs))
            hits = _hits(event)
    except OSError as error:
        print(f"kernel uprobe left out: {error}", file=sys.stderr)
        return None
    if hits != runs * _KERNEL_HITS:
        raise RuntimeError(f"kernel uprobe: {hits} hits of {runs * _KERNEL_HITS}")
    return (probed - plain) / _KERNEL_HITS * 1e9


@contextmanager
def _tracefs() -> Iterator[None]:
    """The tracing file system, mounted for the time if it is not."""
    if (_TRACING / "uprobe_events").exists():
        yield
        return
    words = ["mount", "-t", "tracefs", "tracefs", str(_TRACING)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip() or "tracefs cannot be mounted")
    try:
        yield
    finally:
        subprocess.run(["umount", str(_TRACING)], check=True)


@contextmanager
def _event(program: Path, offset: int, registers: Sequence[str]) -> Iterator[str]:
    """An enabled uprobe with a group and a trace instance of its own; gone afterwards."""
    group = f"kprobe_tui_{os.getpid()}"
    event = f"hit_{os.getpid()}"  # uprobe_profile does not show groups
    fields = " ".join(f"a{number}={name}" for number, name in enumerate(registers))
    instance = _TRACING / "instances" / group
    enable = instance / "events" / group / event / "enable"
    _append(f"p:{group}/{event} {program}:{offset:#x} {fields}")
    try:
        instance.mkdir()
        try:
            enable.write_text("1")
            try:
                yield event
            finally:
                enable.write_text("0")
        finally:
            instance.rmdir()
    finally:
        _append(f"-:{group}/{event}")


def _append(line: str) -> None:
    # Plain calls: the file refuses the seek of `open`. Without O_APPEND all events would go.
    events = os.open(_TRACING / "uprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(events, f"{line}\n".encode())
    finally:
        os.close(events)


def _hits(event: str) -> int:
    """What the kernel has counted for an event (uprobe_profile)."""
    rows = (line.split() for line in (_TRACING / "uprobe_profile").read_text().splitlines())
    return sum(int(row[-1]) for row in rows if len(row) >= 2 and row[-2] == event)
