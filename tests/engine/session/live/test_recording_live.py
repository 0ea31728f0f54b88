"""Probes in the kernel that runs here; only if the environment says so.

`KPROBE_TUI_LIVE_KERNEL=1`, as root, on x86-64 with tracefs mounted. Each test looks at the end for
what it may have left behind.
"""

import json
import os
import platform
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from compiled import build
from guestrun import Outcome, run, start
from livekernel import LIVE_KERNEL
from livekit import DATA, LINES, PROGRAM, left

from engine.arch import by_name
from engine.image import ElfImage, SymbolTable
from engine.session.live.tracefs import Tracefs

pytestmark = pytest.mark.skipif(
    not os.environ.get(LIVE_KERNEL) or platform.machine() != "x86_64" or os.geteuid() != 0,
    reason=f"changes the running kernel: wants {LIVE_KERNEL}, x86-64 and root",
)

TREE: Final = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) long tick(long n) { __asm__ volatile(""); return n + 1; }
static void *thread(void *n) { tick((long)n); return 0; }
int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == 'x')
        return tick(50) != 51;
    for (long i = 0; argc > 1 && i < atol(argv[1]); i++)
        tick(i);
    if (argc > 2)
        for (;;)
            tick(1), usleep(2000);
    pthread_t other;
    for (long i = 0; i < 3; i++) {
        pthread_create(&other, 0, thread, (void *)(10 + i));
        pthread_join(other, 0);
    }
    int child = fork(), status;
    if (!child) {
        tick(20);
        execl(argv[0], argv[0], "x", (char *)0);
    }
    waitpid(child, &status, 0);
    tick(60 + status);
    return 0;
}
"""

PID: Final = r"""
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void who(long n) { __asm__ volatile(""); }
__attribute__((noinline)) void cpu(long n) { __asm__ volatile(""); }
int main(void) { who(getpid()); cpu(time(0)); return 0; }
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(build(tmp_path_factory.mktemp("live"), "tree", TREE, "-O1", "-g", "-pthread"))


@pytest.fixture
def looping(tree: str) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([tree, "0", "forever"])
    yield process
    process.kill()
    process.wait()


def events(done: Outcome) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.err.splitlines() if line.startswith('{"event"')]


def values(done: Outcome, name: str = "n") -> list[object]:
    found: list[object] = []
    for event in events(done):
        args = event["args"]
        assert isinstance(args, dict)
        found += [args[name]] if name in args else []
    return found


TICK = ("-e", "p:tick tick n=%di:s64", "--format", "jsonl")


def test_it_records_what_was_recorded_once(tmp_path: Path, tracefs: Tracefs) -> None:
    words = [word for line in LINES for word in ("-e", line)]
    done = run("live", *words, str(PROGRAM), cwd=tmp_path)
    before = (DATA / "trace.txt").read_text(errors="backslashreplace").splitlines()
    told = [line.partition("DBZff")[2] for line in before if "DBZff" in line]
    ours = [line.partition(" ..... ")[2] for line in done.err.splitlines() if " ..... " in line]
    assert len(told) == len(ours) == 19
    for own, line in zip(ours, told, strict=True):
        name, _, rest = own.partition(": ")[2].partition(": (")
        their_name, _, their_rest = line.partition(": ")[2].partition(": (")
        assert name == their_name
        if "\\" not in own + line and "\0" not in line and "^" not in line:
            assert rest.partition(") ")[2] == their_rest.partition(") ")[2]
    assert done.code == run("run", str(PROGRAM), cwd=tmp_path).code


def test_threads_children_and_what_they_execute(
    tree: str, tmp_path: Path, tracefs: Tracefs
) -> None:
    done = run("live", *TICK, tree, cwd=tmp_path)
    assert (done.code, values(done)) == (0, [10, 11, 12, 20, 50, 60])
    found = events(done)
    assert len({event["tid"] for event in found}) == 5
    assert len({event["pid"] for event in found}) == 2
    assert all(str(event["symbol"]).startswith("tick+0x0/") for event in found)


def test_filters_and_triggers_are_the_kernels(tree: str, tmp_path: Path, tracefs: Tracefs) -> None:
    filtered = run("live", *TICK, "--filter", "kprobes/tick:n > 11 && n != 20", tree, cwd=tmp_path)
    assert values(filtered) == [12, 50, 60]
    off = run("live", *TICK, "--trigger", "kprobes/tick:traceoff if n == 12", tree, cwd=tmp_path)
    assert values(off) == [10, 11, 12]
    words = (
        "-e",
        "r:back tick ret=$retval:s64",
        "--trigger",
        "kprobes/back:disable_event:kprobes:tick",
    )
    switched = run("live", *TICK, *words, tree, cwd=tmp_path)
    assert values(switched) == [10]
    assert values(switched, "ret") == [11, 12, 13, 21, 51, 61]
    counted = run("live", *TICK, "--trigger", "kprobes/tick:hist:keys=n", tree, cwd=tmp_path)
    assert "Hits: 6" in counted.err


def test_losses_are_counted(tree: str, tmp_path: Path, tracefs: Tracefs) -> None:
    words = ("--kernel-buffer", "16K", tree, "60000")
    done = run("live", *TICK, *words, cwd=tmp_path)
    found = re.search(r"^kprobe-tui: (\d+) events lost", done.err, re.MULTILINE)
    assert found is not None
    assert len(values(done)) + int(found[1]) == 60006
    said = [json.loads(line)["lost"] for line in done.err.splitlines() if '"lost"' in line]
    assert sum(said) == int(found[1])


def test_a_process_that_runs(
    looping: "subprocess.Popen[bytes]", tmp_path: Path, tracefs: Tracefs
) -> None:
    words = ("--pid", str(looping.pid), "--duration", "0.3")
    done = run("live", *TICK, *words, cwd=tmp_path)
    assert done.code == 0
    assert set(values(done)) == {1}
    assert {event["pid"] for event in events(done)} == {looping.pid}
    assert looping.poll() is None


def recording(*words: str, folder: Path, tracefs: Tracefs) -> "subprocess.Popen[bytes]":
    """A recording that has begun."""
    process = start("live", *TICK, "-o", "out", *words, cwd=folder)
    out = folder / "out"
    while not (out.exists() and out.stat().st_size):
        assert process.poll() is None
        time.sleep(0.01)
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_signals_end_it(
    number: signal.Signals,
    code: int,
    looping: "subprocess.Popen[bytes]",
    tmp_path: Path,
    tracefs: Tracefs,
) -> None:
    with recording("--pid", str(looping.pid), folder=tmp_path, tracefs=tracefs) as process:
        process.send_signal(number)
        assert process.wait(120) == code
    assert left(tracefs) == []
    assert looping.poll() is None


def test_a_kill_leaves_what_the_next_start_removes(
    looping: "subprocess.Popen[bytes]", tree: str, tmp_path: Path, tracefs: Tracefs
) -> None:
    with recording("--pid", str(looping.pid), folder=tmp_path, tracefs=tracefs) as process:
        process.kill()
    assert len(left(tracefs)) == 2
    for line in (tmp_path / "out").read_text().splitlines()[:-1]:
        json.loads(line)
    done = run("live", *TICK, tree, "x", cwd=tmp_path)
    assert values(done) == [50]
    assert left(tracefs) == []


def test_two_at_once_do_not_meet(
    looping: "subprocess.Popen[bytes]", tree: str, tmp_path: Path, tracefs: Tracefs
) -> None:
    with recording("--pid", str(looping.pid), folder=tmp_path, tracefs=tracefs) as process:
        assert values(run("live", *TICK, tree, "x", cwd=tmp_path)) == [50]
        assert len(left(tracefs)) == 2
        process.send_signal(signal.SIGINT)
        process.wait(120)
    assert b'"n":50' not in (tmp_path / "out").read_bytes()


def test_what_the_kernel_has_no_words_for(tree: str, tmp_path: Path, tracefs: Tracefs) -> None:
    done = run("live", "-e", "p:a syscalls/sys_enter_write", tree, cwd=tmp_path)
    assert done.code == 2
    done = run("live", "-f", "main", str(PROGRAM).replace("x86_64", "aarch64"), cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "is for aarch64, and the running kernel is one of x86_64" in done.err


ARGS: Final = (
    *("a=%ax:x64", "b=%bx:s32", "c=%cx:u16", "d=%dx:x8", "si=%si:x64", "di=%di:x64", "bp=%bp:x64"),
    *("sp=%sp:x64", "fl=%flags:x32", "r8=%r8:s64", "r9=%r9:x64", "r10=%r10:x64", "r11=%r11:x64"),
    *("r12=%r12:x64", "r13=%r13:u64", "r14=%r14:x64", "r15=%r15:x64", "ip=%ip:x64"),
    *("s0=$stack0:x64", "s1=$stack1:x64", "st=$stack:x64", "m=+0(%sp):x64", "m8=+8(%sp):u8"),
    *("arr=+0(%sp):x16[4]", "str=+0(%di):string", "str2=+0(%si):string", "v=+0(+0(%di)):u32"),
    *("bits=%di:b4@2/64", "co=$comm", "im=\\42:s8", "ch=%ax:char", "cs=%cs:x16", "ss=%ss:x16"),
    *("oa=%orig_ax:s64", "us=+0(%si):ustring", "x=+0(+8(%di)):string"),
)


def definitions() -> list[str]:
    """A hundred of them, on as many instructions of the sample as it has functions for."""
    image = ElfImage.open(str(PROGRAM))
    symbols, probes = SymbolTable(image, ()), by_name("x86_64").probes
    places: list[tuple[str, int]] = []
    for name in ("transfer", "deposit", "chain_length", "print_person", "move_house"):
        symbol = symbols.find(name)
        assert symbol is not None
        at = symbol.address
        while at < symbol.address + symbol.size:
            places.append((name, at - symbol.address))
            at += probes.length(image.read_vaddr(at, 15))
    found: list[str] = []
    for number in range(100):
        name, offset = places[number % len(places)]
        if number % 9 == 8:
            args = "ret=$retval:s64 low=$retval:x32 comm=$comm sp=%sp:x64 above=$stack0:x64"
            found.append(f"r:d{number} {name} {args}")
        else:
            args = " ".join(ARGS[(number * 5 + each * 7) % len(ARGS)] for each in range(5))
            found.append(f"p:d{number} {name}+{offset} {args}")
    return found


def test_a_hundred_definitions_here_and_in_the_guest(tmp_path: Path, tracefs: Tracefs) -> None:
    (tmp_path / "definitions").write_text("\n".join(definitions()))
    done = run("diff", "--live", "-e", "@definitions", str(PROGRAM), cwd=tmp_path)
    # Some have +0(+0(%di)), and what is there is no address: a 0, which is a guess only.
    assert done.code == 1, done.err
    assert "numbers that may not be readable (" in done.err
    found = re.search(r"100 probes, (\d+) events of the guest, (\d+) of the running", done.err)
    assert found is not None
    assert found[1] == found[2]
    assert int(found[1]) > 200
    assert "not explained (" not in done.err
    assert done.out == run("run", str(PROGRAM), cwd=tmp_path).out


def test_a_program_that_can_tell_the_machine_from_a_guest(
    tree: str, tmp_path: Path, tracefs: Tracefs
) -> None:
    pid = build(tmp_path, "pid", PID, "-O1")
    done = run("diff", "--live", "-e", "p:who who n=%di:s64", str(pid), cwd=tmp_path)
    assert done.code == 0, done.err
    assert "ids (1: " in done.err
    done = run("diff", "--live", "-e", "p:cpu cpu n=%di:s64", str(pid), cwd=tmp_path)
    assert done.code == 1
    assert "not explained (1)" in done.err
    done = run("diff", "--live", *TICK[:2], tree, cwd=tmp_path)
    assert (done.code, "6 events of both compared, 6 are the same" in done.err) == (0, True)
