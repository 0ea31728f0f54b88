"""Runs the command in a process and measures it: exit code, both streams, peak memory."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import warmed
from sysroot import CHECKOUT

HOSTILE = CHECKOUT / "tests" / "data" / "hostile"
DEADLINE = 600.0
"""Seconds after which a run hangs: a busy machine takes ten times as long as one at rest."""


@dataclass(frozen=True)
class Outcome:
    """What a finished run left behind; `rss` in mebibytes."""

    code: int
    out: str
    err: str
    rss: int

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
    """Start `kprobe-tui` with these words in a new Python, streams on pipes."""
    return subprocess.Popen(
        [sys.executable, "-m", "tui", *words],
        cwd=cwd,
        env={**os.environ, **(env or {}), **warmed.SAME_CODE},
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
    its_in, feed = os.pipe() if stdin is not None else (os.open(os.devnull, os.O_RDONLY), -1)
    with _forked(words, cwd, {**os.environ, **(env or {})}, its_in) as process:
        os.close(its_in)
        if stdin is not None:
            threading.Thread(target=_feed, args=(feed, stdin), daemon=True).start()
        return _outcome(process, deadline)


def captured(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: int, timeout: float
) -> "subprocess.CompletedProcess[bytes]":
    """Run `kprobe-tui` to its end, as subprocess.run does that captures the output.

    Raises:
        AssertionError: it ran for more than `timeout` seconds.
    """
    with _forked(words, cwd, env, stdin) as process:
        ended = _wait(process, timeout)
    return subprocess.CompletedProcess(list(words), ended.code, ended.out, ended.err)


def called(
    *words: str | Path, cwd: Path | None = None, timeout: float = DEADLINE
) -> "subprocess.CompletedProcess[str]":
    """Run `kprobe-tui` to its end without input, as subprocess.run does that captures text.

    Raises:
        AssertionError: it ran for more than `timeout` seconds.
    """
    texts = [str(word) for word in words]
    with open(os.devnull, "rb") as nothing:
        done = captured(texts, cwd or Path.cwd(), os.environ, nothing.fileno(), timeout)
    out, err = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(texts, done.returncode, out, err)


class Process(Protocol):
    """What is followed to its end; subprocess.Popen is one."""

    pid: int
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None


@dataclass
class _Fork:
    """A run that was forked by the process that has everything imported."""

    pid: int
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None


@contextlib.contextmanager
def _forked(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: int
) -> Iterator[_Fork]:
    (out, its_out), (err, its_err) = os.pipe(), os.pipe()
    try:
        pid = warmed.fork(words, cwd, env, (stdin, its_out, its_err))
    finally:
        os.close(its_out)
        os.close(its_err)
    with os.fdopen(out, "rb") as output, os.fdopen(err, "rb") as errors:
        yield _Fork(pid, output, errors)


@dataclass(frozen=True)
class _Ended:
    """What a process left behind; `rss` in mebibytes."""

    code: int
    out: bytes
    err: bytes
    rss: int


def _feed(pipe: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(pipe, "wb") as stream:
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


def finish(process: "subprocess.Popen[bytes]", deadline: float = DEADLINE) -> Outcome:
    """Wait for a started run."""
    outcome = _outcome(process, deadline)
    process.returncode = outcome.code
    return outcome


def _outcome(process: Process, deadline: float) -> Outcome:
    ended = _wait(process, deadline)
    err = ended.err.decode(errors="replace")
    assert "Traceback" not in err, err
    out = ended.out.decode(errors="replace")
    return Outcome(ended.code, out, err, ended.rss)


def _wait(process: Process, deadline: float) -> _Ended:
    """Read a process's streams until it ends; after `deadline` seconds it is killed, and fails."""
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
    late = threading.Timer(deadline, os.kill, (process.pid, signal.SIGKILL))
    late.start()
    peak = [0]
    watching = threading.Thread(target=_watch_peak, args=(process.pid, peak), daemon=True)
    watching.start()
    _, status, usage = os.wait4(process.pid, 0)
    late.cancel()
    watching.join()
    for thread in threads:
        thread.join()
    code = os.waitstatus_to_exitcode(status)
    assert code != -signal.SIGKILL, f"still running after {deadline} s: {parts['err']!r}"
    return _Ended(code, parts["out"], parts["err"], peak[0] or usage.ru_maxrss >> 10)
