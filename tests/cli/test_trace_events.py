"""Filters, triggers, system calls, formats; and that nothing is lost silently."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from guestrun import run
from protowire import fields, packets
from sysroot import CHECKOUT, SysrootUnavailable, sysroot
from warmed import SAME_CODE

GUEST = str(CHECKOUT / "samples" / "bin" / "x86_64" / "recursion")
CALLS = 987
"""Calls of fibonacci in the sample."""
WIDE = "p:g/x fibonacci n=%di:u32 " + " ".join(f"a{n}=+0($stack):x64[64]" for n in range(5))
"""An event whose rows are so big that they are handed on some times while the guest runs."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def alone(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Python in a process of its own, which may be killed."""
    environment = {**os.environ, **SAME_CODE}
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def events(text: str) -> list[str]:
    return re.findall(r"\] \.{5} +\d+: (.*)", text)


def numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"x: \(fibonacci\+0x0/0x\w+\) n=(\d+)", text)]


def test_a_filter_keeps_what_it_says(home: Path) -> None:
    every = run("trace", "-e", "p:g/x fibonacci n=%di:u32", GUEST, cwd=home)
    some = run("trace", "-e", "p:g/x fibonacci n=%di:u32",
               "--filter", "g/x:n >= 3 && n < 5 || n == 12", GUEST, cwd=home)  # fmt: skip
    assert numbers(some.err) == [n for n in numbers(every.err) if n in (3, 4, 12)]
    assert (every.out, every.code) == (some.out, some.code)


def test_a_filter_for_several_events(home: Path) -> None:
    words = (
        "-e",
        "p:g/x fibonacci n=%di:u32",
        "-e",
        "p:g/y ackermann m=%di:u32",
        "-e",
        "p:h/z main",
    )
    done = run("trace", *words, "--filter", "g/*:n == 15", "--trigger", "*/*:hist:keys=common_pid",
               GUEST, cwd=home)  # fmt: skip
    assert numbers(done.err) == [15]
    assert len(re.findall(": y: ", done.err)) == 20
    assert re.findall(r"^# event: (.*)$", done.err, re.MULTILINE) == ["g/x", "g/y", "h/z"]
    none = run("trace", *words, "--filter", "g/*:q == 1", GUEST, cwd=home)
    assert (none.code, none.out) == (2, "")
    assert "Field not found" in none.err
    assert (
        "no event matches" in run("trace", *words, "--filter", "q*/*:n == 1", GUEST, cwd=home).err
    )


@pytest.mark.parametrize("mode", ["strict", "kernel"])
def test_a_bad_filter(home: Path, mode: str) -> None:
    words = ("-e", "p:g/x fibonacci n=%di:u32", "--filter", "g/x:m == 1")
    done = run("trace", "--mode", mode, *words, GUEST, cwd=home)
    head, command, caret, *_ = done.err.splitlines()
    assert head == "event filter parse error: error: Field not found"
    assert command == "  Command: m == 1"
    assert caret.index("^") == len("  Command: m ")
    assert done.code == (2 if mode == "strict" else 0)
    assert len(numbers(done.err)) == (0 if mode == "strict" else CALLS)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--filter", "g/y:n == 1"), "there is no event g/y; there are g/x"),
        (("--filter", "n == 1"), "--filter n == 1: not of the form GROUP/NAME:TEXT"),
        (("--trigger", "g/x:explode"), "there is no 'explode'"),
        (("--trigger", "g/x:hist:keys=m"), "hist:g:x: error: Couldn't find field"),
        (("--trigger", "g/x:traceoff if m == 1"), "event filter parse error: error: Field not"),
        (("--trigger", "g/x:enable_event:g:z"), "there is no event g/z"),
        (("--option", "loud"), "--option loud: there is no such option"),
    ],
)
def test_what_is_refused_before_the_guest_runs(
    home: Path, words: tuple[str, ...], text: str
) -> None:
    done = run("trace", "-e", "p:g/x fibonacci n=%di:u32", *words, GUEST, cwd=home)
    assert (done.code, done.out) == (2, "")
    assert text in done.err


def test_a_histogram_comes_behind_the_trace(home: Path) -> None:
    done = run("trace", "-e", "p:g/x fibonacci n=%di:u32", "-o", "out", "--profile",
               "--trigger", "g/x:hist:keys=n:sort=n", "--filter", "g/x:n == 15",
               GUEST, cwd=home)  # fmt: skip
    assert (done.code, done.err) == (0, "")
    trace, _, table = (home / "out").read_text().partition("\n# event: g/x\n")
    assert numbers(trace) == [15]
    assert "# trigger info: hist:keys=n:vals=hitcount:sort=n:size=2048 [active]\n" in table
    rows = [
        (int(n), int(hits)) for n, hits in re.findall(r"\{ n: +(\d+) \} hitcount: +(\d+)", table)
    ]
    assert [n for n, _ in rows] == sorted(n for n, _ in rows)
    assert sum(hits for _, hits in rows) == CALLS
    assert f"    Hits: {CALLS}\n    Entries: {len(rows)}\n    Dropped: 0\n" in table
    assert re.search(rf"^  x +{CALLS} +0$", table, re.MULTILINE)


def test_switching_triggers(home: Path) -> None:
    words = ("-e", "p:g/x fibonacci n=%di:u32", "-e", "p:g/ack ackermann", "-e", "p:g/f factorial")
    off = run("trace", *words, "--trigger", "g/x:traceoff:1 if n == 1", "--trigger",
              "g/ack:traceon:1", GUEST, cwd=home)  # fmt: skip
    found = numbers(off.err)
    assert found[-1] == 1
    assert found.count(1) == 1
    assert len(re.findall(r": ack: ", off.err)) == 20  # it switches before it is recorded

    on = run("trace", *words, "--trigger", "g/f:enable_event:g:x", "--trigger",
             "g/ack:disable_event:g:ack:1", GUEST, cwd=home)  # fmt: skip
    assert len(numbers(on.err)) == CALLS
    assert ": ack: " not in on.err


def test_a_snapshot(home: Path) -> None:
    done = run("trace", "-e", "p:g/x fibonacci n=%di:u32", "--buffer", "5", "--overwrite",
               "--trigger", "g/x:snapshot:1 if n == 1", GUEST, cwd=home)  # fmt: skip
    trace, _, snapshot = done.err.partition("# snapshot\n")
    assert len(numbers(trace)) == 5
    # A trigger with a condition sees the event before it is recorded.
    assert numbers(snapshot) == [6, 5, 4, 3, 2]


def test_system_calls(home: Path) -> None:
    done = run("trace", "-e", "syscalls/sys_enter_write", "-e", "syscalls:sys_exit_*",
               "--filter", 'syscalls/sys_enter_write:fd == 1 && buf ~ "*ack*"',
               GUEST, cwd=home)  # fmt: skip
    calls = events(done.err)
    writes = [call for call in calls if call.startswith("sys_write(")]
    assert len(writes) == 1
    assert writes == ['sys_write(fd: 1, buf: "ackermann(2, 3) = 9\\n", count: 20)']
    assert calls.count("sys_write -> 20") == 2


def test_kernel_mode_has_the_numbers_of_system_calls(home: Path) -> None:
    done = run("trace", "--mode", "kernel", "-e", "syscalls/write", GUEST, cwd=home)
    calls = events(done.err)
    assert re.fullmatch(
        r'sys_write\(fd: 1, buf: 0x\w+ \(61:63:6b[\w:]*\) "ackermann\(2, 3\) = 9\."'
        r", count: 0x14\)",
        calls[-2],
    )
    assert calls[-1] == "sys_write -> 0x14"


@pytest.mark.parametrize("form", ["ftrace", "jsonl"])
def test_a_kill_leaves_every_event_readable(home: Path, form: str) -> None:
    kill_at = 700
    (home / "handlers.py").write_text(
        "import os, signal\nseen = 0\n"
        "def before(probe, regs):\n"
        "    global seen\n    seen += 1\n"
        f"    if seen == {kill_at}:\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        "probes = [Kprobe(symbol_name='fibonacci', pre_handler=before)]\n"
    )
    words = ("--format", form, "-o", "out", "--handlers", "handlers.py", "-e", WIDE)
    done = alone("-m", "tui", "trace", *words, GUEST, cwd=home)
    assert done.returncode == -signal.SIGKILL

    rest = run("recover", "--format", form, "out.ring", cwd=home)
    assert rest.code == 0
    text = (home / "out").read_text()
    counted = re.search(r"kprobe-tui: (\d+) events", rest.err)
    assert counted is not None
    read = numbers_of(form)
    assert 0 < int(counted[1]) == len(read(rest.out))
    assert len(read(text)) > 0
    assert len(read(text)) + len(read(rest.out)) == kill_at - 1  # the handler comes first
    every = run("trace", "-e", "p:g/x fibonacci n=%di:u32", GUEST, cwd=home)
    assert read(text) + read(rest.out) == numbers(every.err)[: kill_at - 1]


def numbers_of(form: str) -> Callable[[str], list[int]]:
    if form == "ftrace":
        return numbers
    return lambda text: [json.loads(line)["args"]["n"] for line in text.splitlines()]


@pytest.mark.parametrize("room", [15 << 17, 1 << 21])
def test_a_full_disk_is_counted_to_the_event(home: Path, room: int) -> None:
    code = (
        "import resource, runpy, sys; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room})); "
        "sys.argv[0] = 'kprobe-tui'; runpy.run_module('tui', run_name='__main__')"
    )
    padded = ["--env", "PAD=" + "x" * 8192]  # words of the stack that are not zero
    words = ["trace", "-o", "out", *padded, "-e", WIDE, GUEST]
    done = alone("-c", code, *words, cwd=home)
    found = re.search(r"out: File too large; (\d+) events lost", done.stderr)
    assert found is not None, done.stderr
    assert done.returncode == 2
    text = (home / "out").read_text()
    assert text.endswith("\n")
    kept = numbers(text)
    assert 0 < len(kept) < CALLS
    assert len(kept) + int(found[1]) == CALLS
    assert done.stdout.count("\n") == 3


def test_the_ring_is_written_at_a_signal_too(home: Path) -> None:
    script = (
        "import os, signal, time\nseen = 0\n"
        "def before(probe, regs):\n"
        "    global seen\n    seen += 1\n"
        "    if seen == 500:\n        os.kill(os.getpid(), signal.SIGUSR1)\n"
        "        time.sleep(0.3)\n"  # another thread hears it, while the program runs
        "probes = [Kprobe(symbol_name='fibonacci', pre_handler=before)]\n"
    )
    (home / "handlers.py").write_text(script)
    words = ("--buffer", "10", "--overwrite", "--handlers", "handlers.py")
    done = run("trace", *words, "-e", "p:g/x fibonacci n=%di:u32", GUEST, cwd=home)
    assert done.code == 0
    counts = re.findall(r"entries-in-buffer/entries-written: (\d+)/(\d+)", done.err)
    assert len(counts) == 2
    assert counts[1] == ("10", str(CALLS))
    assert 500 <= int(counts[0][1]) <= CALLS
    assert len(numbers(done.err)) == 20


@pytest.mark.slow
def test_a_run_of_sqlite3_as_nested_slices(home: Path) -> None:
    try:
        root = sysroot("x86_64")
    except SysrootUnavailable as reason:
        pytest.skip(str(reason))
    library = "libsqlite3.so.0:sqlite3_*"
    sql = "create table t(a,b); insert into t values(1,2),(3,4); select sum(a*b) from t;"
    done = run("trace", "--root", str(root), "-f", library, "-r", library, "-e", "syscalls/*",
               "--format", "perfetto", "-o", "out", f"{root}/usr/bin/sqlite3", ":memory:", sql,
               cwd=home)  # fmt: skip
    assert (done.code, done.out) == (0, "14\n")
    opened: list[str] = []
    names, deepest, last = set(), 0, 0
    for packet in packets((home / "out").read_bytes()):
        if 11 not in packet:
            continue
        event = dict(fields(packet[11]))
        assert packet[8] >= last
        last = packet[8]
        if event[9] == 1:
            opened.append(event[23].decode())
            names.add(opened[-1])
            deepest = max(deepest, len(opened))
        elif event[9] == 2:
            opened.pop()
    assert opened == ["exit_group"]  # the only one that did not return
    assert {"sqlite3_exec", "sqlite3_step", "sqlite3_malloc64", "mmap"} & names
    assert deepest > 3
