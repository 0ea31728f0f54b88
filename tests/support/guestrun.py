"""Runs the command in a subprocess and measures it: exit code, both streams, time, peak memory."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sysroot import CHECKOUT

ARCHES = ("x86_64", "aarch64")
HOSTILE = CHECKOUT / "tests" / "data" / "hostile"
DEADLINE = 60.0


@dataclass(frozen=True)
class Outcome:
    """What a finished run left behind; `rss` in mebibytes."""

    code: int
    out: str
    err: str
    rss: int
    seconds: float

    @property
    def facts(self) -> dict[str, int]:
        """The guest's lines `WHAT: RESULT`."""
        pairs = (line.rpartition(": ") for line in self.out.splitlines())
        return {what: int(value) for what, _, value in pairs if value.lstrip("-").isdigit()}


def guest(arch: str, name: str) -> str:
    """The path of a hostile guest."""
    return str(HOSTILE / arch / name)


def start(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None, stdin: int | None = None
) -> "subprocess.Popen[bytes]":
    """Start `kprobe-tui` with these words, streams on pipes."""
    return subprocess.Popen(
        [sys.executable, "-m", "tui", *words],
        cwd=cwd,
        env={**os.environ, **(env or {}), "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(
    *words: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    deadline: float = DEADLINE,
) -> Outcome:
    """Run `kprobe-tui` to its end; a run that outlasts the deadline is killed and fails."""
    began = time.monotonic()
    process = start(*words, cwd=cwd, env=env, stdin=None if stdin is None else subprocess.PIPE)
    if stdin is not None:
        threading.Thread(target=_feed, args=(process, stdin), daemon=True).start()
    return finish(process, began, deadline)


def _feed(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as stream:
        stream.write(data)


def _watch_peak(pid: int, peak: list[int]) -> None:
    """Follow a run's peak memory; what wait4 says includes what this process had at the fork."""
    path = Path(f"/proc/{pid}/status")
    while True:
        try:
            text = path.read_text()
        except OSError:
            return
        marks = [line for line in text.splitlines() if line.startswith("VmHWM:")]
        if not marks:
            return
        peak[0] = int(marks[0].split()[1]) >> 10
        time.sleep(0.01)


def finish(
    process: "subprocess.Popen[bytes]", began: float, deadline: float = DEADLINE
) -> Outcome:
    """Wait for a started run."""
    parts: dict[str, bytes] = {}

    def drain(name: str, stream: IO[bytes]) -> None:
        parts[name] = b"" if stream.closed else stream.read()
        stream.close()

    assert process.stdout is not None
    assert process.stderr is not None
    threads = [
        threading.Thread(target=drain, args=("out", process.stdout)),
        threading.Thread(target=drain, args=("err", process.stderr)),
    ]
    for thread in threads:
        thread.start()
    late = threading.Timer(deadline, process.kill)
    late.start()
    peak = [0]
    watching = threading.Thread(target=_watch_peak, args=(process.pid, peak), daemon=True)
    watching.start()
    _, status, usage = os.wait4(process.pid, 0)
    watching.join()
    late.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    for thread in threads:
        thread.join()
    err = parts["err"].decode(errors="replace")
    assert process.returncode != -9, f"still running after {deadline} s:\n{err}"
    assert "Traceback" not in err, err
    return Outcome(
        process.returncode,
        parts["out"].decode(errors="replace"),
        err,
        peak[0] or usage.ru_maxrss >> 10,
        time.monotonic() - began,
    )
