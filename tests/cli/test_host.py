"""Signals to the tool, limits of time, and streams that take nothing: every run has its end."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from guestrun import finish, guest, run, start
from sysroot import CHECKOUT

PROCESS = guest("x86_64", "process")
SAMPLE = str(CHECKOUT / "samples" / "bin" / "x86_64" / "recursion")
ENDLESS = """
def before(probe, regs):
    print("here", flush=True)
    while True:
        {body}


probes = [Kprobe(symbol_name="ackermann", pre_handler=before)]
"""
STUBBORN = """try:
            while True:
                pass
        except BaseException:
            pass"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "endless.py").write_text(ENDLESS.format(body="pass"))
    (tmp_path / "stubborn.py").write_text(ENDLESS.format(body=STUBBORN))
    return tmp_path


def begun(process: "subprocess.Popen[bytes]", line: bytes = b"") -> None:
    """Wait until it writes a line."""
    assert process.stdout is not None
    while line not in (got := process.stdout.readline()):
        assert got


def again_and_again(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Send a signal until the process is gone: two that come at once count as one."""
    while True:
        process.send_signal(number)
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
        process.communicate()
        return


@pytest.mark.parametrize(
    ("where", "number"),
    [
        ([], signal.SIGTERM),
        pytest.param(["waiting"], signal.SIGHUP, marks=pytest.mark.slow),
        pytest.param([], signal.SIGQUIT, marks=pytest.mark.slow),
    ],
)
def test_one_signal_ends_a_guest_that_ignores_all(
    home: Path, where: list[str], number: int
) -> None:
    process = start("run", PROCESS, "ignore", *where, cwd=home)
    begun(process)
    process.send_signal(number)

    assert finish(process).code == 128 + number


@pytest.mark.parametrize("where", [[], ["waiting"]], ids=["running", "waiting"])
def test_the_second_interrupt_ends_it(home: Path, where: list[str]) -> None:
    process = start("run", PROCESS, "ignore", *where, cwd=home)
    begun(process)
    again_and_again(process, signal.SIGINT)

    assert process.returncode == 130


def test_the_first_one_is_the_guests(home: Path) -> None:
    process = start("run", PROCESS, "handle", cwd=home)
    begun(process)
    process.send_signal(signal.SIGINT)

    done = finish(process)
    assert (done.code, done.out) == (42, "signal: 2\n")


def test_what_was_recorded_is_written(home: Path) -> None:
    process = start("trace", "-e", "syscalls/*", "-o", "out", PROCESS, "calls", cwd=home)
    begun(process)
    process.send_signal(signal.SIGTERM)

    assert finish(process).code == 143
    lines = (home / "out").read_text().split("\n")
    assert lines[-1] == ""
    assert all(
        re.match(r" +process-1000 +\[000\] \.{5} +\d+: sys_", line) for line in lines[11:-1]
    )
    assert len(lines) > 12
    assert not (home / "out.ring").exists()


@pytest.mark.parametrize(
    "handlers", ["endless.py", pytest.param("stubborn.py", marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_an_endless_handler_is_cut_off(home: Path, handlers: str) -> None:
    words = ("trace", "-e", "p:g/f factorial", "-o", "out", "--handlers", handlers, SAMPLE)
    process = start(*words, cwd=home)
    begun(process, b"here")
    process.send_signal(signal.SIGTERM)

    assert finish(process).code == 143
    kept = (home / "out").read_bytes()
    if handlers == "stubborn.py":  # what could not be written is in the other file
        found = run("recover", "out.ring", cwd=home)
        assert found.code == 0
        kept += found.out.encode()
    assert kept.count(b" f: (factorial+0x0/0x21)") == 1


@pytest.mark.slow
def test_the_limit_of_time_holds_for_handlers(home: Path) -> None:
    done = run("trace", "--timeout", "1", "--handlers", "endless.py", SAMPLE, cwd=home)

    assert done.code == 124
    assert "the time limit (--timeout) ran out\n" in done.err


# Every subcommand that runs a guest to its end; `spin` never ends.
ENDLESS_RUNS = {
    "run": (),
    "trace": ("-e", "p _start", "-o", "/dev/null"),
    "graph": ("-f", "_start", "-o", "/dev/null"),
    "diff": ("-e", "p _start"),
    "bt": ("--at", "_start", "--hit", "2"),
    "record": ("-o", "spin.rec"),
    "explore": ("--seeds", "2"),
}


@pytest.mark.parametrize("command", ENDLESS_RUNS)
def test_the_limit_of_time_is_told_as_itself(home: Path, command: str) -> None:
    done = run(command, *ENDLESS_RUNS[command], "--timeout", "0.3", PROCESS, "spin", cwd=home)

    assert done.code == 124
    assert "the time limit (--timeout) ran out\n" in done.err
    assert "effect" not in done.err


def test_the_limit_of_time_ends_a_replay(home: Path) -> None:
    run("record", "-o", "spin.rec", "--timeout", "0.5", PROCESS, "spin", cwd=home)
    done = run("replay", "--timeout", "0.1", "spin.rec", cwd=home)

    assert done.code == 124
    assert "the time limit (--timeout) ran out\n" in done.err


LOOP = "while True: pass"
PLACED = "probes = [Kprobe(symbol_name='main')]\n"


@pytest.mark.parametrize(
    ("source", "words", "printed"),
    [
        (LOOP, (), "# tracer: nop\n"),
        pytest.param(
            f"{PLACED}def init():\n    {LOOP}",
            ("--profile",),
            "# profile\n  main+0x0 ",
            marks=pytest.mark.slow,
        ),
        (f"{PLACED}def exit():\n    {LOOP}", ("-e", "p:g/f factorial"), " f: (factorial+0x0/"),
        (LOOP, ("--list", "-e", "p main"), ""),
    ],
    ids=["body", "init", "exit", "list"],
)
@pytest.mark.slow
def test_it_holds_for_all_of_a_handlers_file(
    home: Path, source: str, words: tuple[str, ...], printed: str
) -> None:
    (home / "loop.py").write_text(source)
    done = run("trace", "--timeout", "0.2", *words, "--handlers", "loop.py", SAMPLE, cwd=home)

    assert done.code == 124
    assert "the time limit (--timeout) ran out\n" in done.err
    assert printed in done.err
    assert ("fibonacci" in done.out) is (f"{PLACED}def exit" in source)


def test_a_reader_that_does_not_read_holds_nobody(home: Path) -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", "trace", "-e", "syscalls/*", PROCESS, "calls"],
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=writing,
    )
    os.close(writing)
    begun(process)
    process.send_signal(signal.SIGTERM)

    assert process.wait(60) == 143
    assert os.read(reading, 10) == b"# tracer: "
    os.close(reading)
    assert process.stdout is not None
    process.stdout.close()


def test_a_storm_of_signals_does_not_hide_the_one_that_ends(home: Path) -> None:
    words = ("trace", "--buffer", "5", "--overwrite", "-e", "syscalls/*", "-o", "out")
    process = start(*words, PROCESS, "calls", cwd=home)
    begun(process)
    for number in (*[signal.SIGUSR1] * 2000, signal.SIGTERM, *[signal.SIGUSR1] * 2000):
        os.kill(process.pid, number)  # `send_signal` would take its end from who waits for it

    assert finish(process).code == 143
    text = (home / "out").read_text()
    dumps = re.findall(r"# entries-in-buffer/entries-written: (\d+)/(\d+)", text)
    kept = [int(had) for had, _ in dumps]
    assert kept == [min(int(written), 5) for _, written in dumps] != []
    assert len(re.findall(r"(?m)^ +process-1000", text)) == sum(kept)
