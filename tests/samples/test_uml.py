"""A whole Linux kernel as a guest: Debian's user-mode Linux boots, runs programs, powers off."""

import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from compiled import build
from guestrun import run
from historykit import State, past, recorded, state_of
from sessionkit import loaded
from umlkit import BOTTOMS, EVENT, QUICK, SCRIPT, SHOWN, WORDS, events, made, ran

from engine.arch.plan import Mode
from engine.history.timeline import Moment, Timeline
from engine.session.inspect.backtrace import Backtraces
from engine.session.protocol.requests import TraceOptions
from engine.unwind.unwinder import EndReason

_OWN = re.compile(
    r"""\[mem\ .*|Total\ pages.*|hash\ table\ entries.*|Memory:.*|TCP:\ Hash.*|nTxBlock.*
    |Calibrating.*|audit\(.*|raid6:.*|\d+\ MB/sec.*|\ on\ /\S+/mconsole|lpj=\d+
    |prefetch64-sse|generic_sse
    |\ {3}\w+\ *:""",
    re.VERBOSE,
)
"""Times, measured speeds, random names, and what follows from where the host puts the heap."""


_INIT = r"""
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char data[4096];

/* Tell what is done: comm, call, what about, result. */
static void did(const char *comm, const char *call, const char *what, long result)
{
	char line[128];
	int size = snprintf(line, sizeof line, "did %s %s %s %ld\n", comm, call, what, result);
	write(1, line, size);
}

static void work(const char *comm, int count)
{
	char path[32];

	prctl(PR_SET_NAME, comm);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof path, "/%s%d", comm, i);
		int fd = open(path, O_CREAT | O_RDWR, 0600);
		did(comm, "open", path, fd);
		did(comm, "write", path, write(fd, data, 100 * i + 7));
		lseek(fd, 0, SEEK_SET);
		did(comm, "read", path, read(fd, data, sizeof data));
		did(comm, "read", path, read(fd, data, sizeof data));
		close(fd);
	}
	did(comm, "open", "/missing", open("/missing", O_RDONLY) < 0 ? -errno : 0);
}

int main(void)
{
	struct timespec nap = {0, 30000000};
	int status;

	work("first", 5);
	for (int i = 0; i < 3; i++) {
		char name[16];
		snprintf(name, sizeof name, "child%d", i);
		pid_t pid = fork();
		if (!pid) {
			work(name, i + 1);
			nanosleep(&nap, 0);
			_exit(i + 3);
		}
		did("first", "clone", name, pid);
	}
	for (int i = 0; i < 3; i++) {
		pid_t pid = wait(&status);
		did("first", "exit", "code", WEXITSTATUS(status));
	}
	reboot(RB_POWER_OFF);
}
"""
"""Does some work in several processes, and tells of it."""


def _settled(text: str) -> list[str]:
    """The lines of a boot without what is its own.

    Whether the compressor's self-test ends before zswap waits for it is luck on real hardware
    (crypto/api.c, crypto_wait_for_test), and a matter of the kernel's bytes here: a late one costs
    a warning, which is left out, and zswap's pool. A measured speed is as wide as its digits, so
    that runs of spaces count as one.
    """
    warning = r"(?ms)^[^\n]*-+\[ cut here \]-+.*?-+\[ end trace [^\n]*\n"
    return [
        " ".join(_OWN.sub("", line).split()) for line in re.sub(warning, "", text).splitlines()
    ]


def test_the_same_files_make_the_same_archive(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel"
    kernel.touch()
    archives = []
    for name in ("one", "two"):
        made(tmp_path / name, KERNEL=str(kernel))
        archives.append((tmp_path / name / "initrd.gz").read_bytes())
    assert archives[0] == archives[1]


def test_an_archive_that_fails_is_told(tmp_path: Path) -> None:
    odd = tmp_path / "busybox"
    odd.write_text("#!/bin/sh\necho unknown option >&2\nexit 1\n")
    odd.chmod(0o755)
    tried = subprocess.run(
        ["sh", SCRIPT, tmp_path],
        env={**os.environ, "KERNEL": str(odd), "BUSYBOX": str(odd)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (tried.returncode, tried.stderr) == (2, "unknown option\n")


def _natively(folder: Path) -> list[str]:
    """The lines of a native boot.

    A host under load has let a native init be killed, which is a panic of that kernel: a boot is
    tried three times before this host counts as one that does not boot it.
    """
    for _ in range(3):
        native = subprocess.run(
            ["setarch", "-R", "./linux.uml", *WORDS],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(folder), "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if "System halted" in native.stdout:
            return _settled(native.stdout)
    pytest.skip(f"this host does not boot it: {native.stdout[-600:]}{native.stderr[-200:]}")


@pytest.mark.slow
def test_user_mode_linux_boots_and_powers_off(tmp_path: Path) -> None:
    made(tmp_path)
    boots = [
        run(
            *("run", *SHOWN, "./linux.uml", *WORDS),
            cwd=tmp_path,
            env={"HOME": str(tmp_path)},
            deadline=900,
        )
        for _ in range(2)
    ]
    first, second = boots

    assert (first.out, first.err) == (second.out, second.err)
    assert first.code == 0
    assert "Linux 6.1" in first.out
    assert first.out.splitlines()[-6:-3] == ["19", "hello", "PID   COMMAND"]
    assert first.out.endswith("reboot: System halted\n")

    ours, theirs = _settled(first.out), _natively(tmp_path)
    if any("zswap" in line and "not available" in line for line in (*ours, *theirs)):
        ours, theirs = (
            [line for line in lines if "zswap" not in line] for lines in (ours, theirs)
        )
    missing = [line for line in theirs if line not in ours and "epollctl" not in line]
    others = [line for line in ours if line not in theirs and "epollctl" not in line]
    assert not missing, (missing, others)
    assert not others, (missing, others)
    assert len(ours) > 90
    assert (
        ours[ours.index("Run /init as init process") :]
        == theirs[theirs.index("Run /init as init process") :]
    )


@pytest.mark.slow
def test_a_home_that_the_guest_does_not_see_is_there(tmp_path: Path) -> None:
    """The kernel makes a folder in HOME, and panics where it cannot, as it does natively."""
    (tmp_path / "home").mkdir()
    made(tmp_path / "uml")
    kernel = ("./linux.uml", *WORDS, *QUICK)
    boots = [
        run("run", *more, *kernel, cwd=tmp_path / "uml", env={"HOME": home}, deadline=900)
        for home, more in (
            (str(tmp_path / "home"), ()),
            (str(tmp_path / "home"), ("--env", "HOME=/missing")),
        )
    ]
    assert boots[0].code == 0, boots[0].out
    assert f"mconsole (version 2) initialized on {tmp_path}/home/.uml/" in boots[0].out
    assert boots[0].out.endswith("reboot: System halted\n")
    assert not list((tmp_path / "home").iterdir())
    assert "Failed to mkdir '/missing/.uml/': No such file or directory" in boots[1].out


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a kernel whose init works, and tells what it does."""
    folder = tmp_path_factory.mktemp("uml")
    made(folder, INIT=str(build(folder, "init", _INIT, "-static", "-O1", "-s")))
    return folder


def _did(console: str) -> dict[str, list[tuple[str, str, int]]]:
    """What each process has told: call, what about, result."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    for line in console.splitlines():
        if line.startswith("did "):
            _, comm, call, what, result = line.split()
            found.setdefault(comm, []).append((call, what, int(result)))
    return found


_PATHS = (
    *("ksys_read", "ksys_write", "vfs_open", "do_dentry_open", "path_openat", "getname_flags"),
    *("kernel_wait4", "do_group_exit", "copy_process", "wake_up_new_task", "do_nanosleep"),
    *("path_lookupat", "walk_component", "rw_verify_area", "alloc_empty_file", "fput"),
)


def _definitions() -> list[str]:
    """Probes on the paths of system calls: arguments and results, and besides just hits."""
    lines = [
        "p:open do_filp_open name=+0(+0($arg2)):string",
        "r:opened do_sys_openat2 fd=$retval:s32",
        "r:read vfs_read size=$retval:s64",
        "r:write vfs_write size=$retval:s64",
        "p:exit do_exit code=$arg1:u64",
        "r:clone kernel_clone pid=$retval:s32",
        "r:slept hrtimer_nanosleep result=$retval:s64",
        "r1:one hrtimer_nanosleep result=$retval:s64",
        *(f"p:p_{name} {name}" for name in (*_PATHS, "vfs_read", "vfs_write", "kernel_clone")),
        *(f"r:r_{name} {name} $retval" for name in (*_PATHS, "do_filp_open", "schedule_idle")),
        *("p:p_schedule schedule", "r:r_schedule schedule", "r:r_exit do_exit"),
        *("p:dead do_task_dead", "p:switch __switch_to from=+0x4b8($arg1):string"),
    ]
    return [word for line in lines for word in ("-e", line)]


@pytest.mark.slow
def test_probes_see_what_the_programs_of_the_kernel_do(worker: Path) -> None:
    definitions = _definitions()
    assert len(definitions) // 2 >= 50
    texts = []
    for technique in ("auto", "breakpoint", "jump"):
        done = ran(worker, "trace", "--technique", technique, *definitions, "-o", "trace.txt")
        assert done.code == 0, done.err
        assert "kprobes/one: 2 of 3 hits missed\n" in done.err
        assert done.err.count("missed") == 2  # one has no more than one instance at a time
        texts.append((worker / "trace.txt").read_text())
        told = _did(done.out)
    assert texts[0] == texts[1] == texts[2]
    text = texts[0]

    assert set(told) == {"first", "child0", "child1", "child2"}
    seen = {name: events(text, name) for name in ("open", "opened", "read", "write", "exit")}
    for comm, did in told.items():
        opened = [(what, result) for call, what, result in did if call == "open"]
        assert seen["open"][comm] == [f'name="{what}"' for what, _ in opened]
        assert seen["opened"][comm] == [f"fd={result}" for _, result in opened]
        read = [f"size={result}" for call, _, result in did if call == "read"]
        assert seen["read"][comm] == read
        written = []
        for call, what, result in did:
            written += [f"size={result}"] if call == "write" else []
            written.append(f"size={len(f'did {comm} {call} {what} {result}') + 1}")
        assert seen["write"][comm] == written
    clones = [f"pid={result}" for call, _, result in told["first"] if call == "clone"]
    assert events(text, "clone")["first"] == clones
    ids = {match[1]: int(match[2]) for match in EVENT.finditer(text) if match[1] in told}
    assert [f"pid={ids[f'child{number}']}" for number in range(3)] == clones
    assert ids["first"] == 1
    for number in range(3):
        assert seen["exit"][f"child{number}"] == [f"code={(number + 3) << 8}"]
        assert events(text, "slept")[f"child{number}"] == ["result=0"]
    assert "r_exit" not in {match[3] for match in EVENT.finditer(text)}
    # The task that a switch leaves is the one that the event is of.
    for comm, rows in events(text, "switch").items():
        left = "swapper" if comm == "<idle>" else comm
        assert set(rows) == {f'from="{left}"'}


@pytest.mark.slow
def test_probes_in_the_kernel_change_nothing(worker: Path) -> None:
    done = ran(worker, "diff", *_definitions())
    assert done.code == 0, done.err
    assert "did first exit code 5" in done.out


@pytest.mark.slow
def test_filters_and_histograms_go_by_the_kernels_tasks(worker: Path) -> None:
    done = ran(
        worker,
        "trace",
        *("-e", "r:read vfs_read size=$retval:s64", "-e", "p:open do_filp_open"),
        *("--filter", 'kprobes/read:comm == "child2" && common_pid > 1'),
        *("--trigger", "kprobes/open:hist:keys=common_pid.execname"),
        *("-o", "trace.txt"),
    )
    assert done.code == 0, done.err
    text = (worker / "trace.txt").read_text()
    told = _did(done.out)
    read = [f"size={result}" for call, _, result in told["child2"] if call == "read"]
    assert events(text, "read") == {"child2": read}
    for comm, did in told.items():
        opens = sum(call == "open" for call, _, _ in did)
        # A key has the name that its task had first: process 1 had another one.
        name, count = ("swapper", opens + 2) if comm == "first" else (comm, opens)
        row = rf"common_pid: {name} +\[ *\d+\] }} hitcount: +{count}$"
        assert re.search(row, text, re.M), comm


@pytest.mark.slow
def test_the_graph_of_each_task_is_one_of_nested_calls(worker: Path) -> None:
    globs: tuple[str, ...] = (
        "vfs_read",
        "new_sync_read",
        "*_read_iter",
        "rw_verify_area",
        "touch_atime",
    )
    globs += ("copy_page_to_iter", "_copy_to_iter", "atime_needs_update", "schedule", "__schedule")
    globs += ("stub_*",)  # refused: the kernel copies it into its processes
    words = [word for glob in globs for word in ("-f", glob)]
    done = ran(worker, "graph", "--format", "jsonl", *words, "-o", "graph.jsonl")
    assert done.code == 0, done.err
    stacks: dict[int, list[tuple[str, int]]] = {}
    nested, calls = 0, set()
    for line in (worker / "graph.jsonl").read_text().splitlines():
        row = json.loads(line)
        name, args = row["symbol"].partition("+")[0], row["args"]
        stack = stacks.setdefault(row["tid"], [])
        if row["event"].endswith("_exit"):
            assert stack.pop() == (name, args["calltime"])
            assert args["depth"] == len(stack)
            assert not args["left"]
            continue
        assert args["depth"] == len(stack)
        caller = args["parent"].partition("+")[0]
        if stack and caller in {"vfs_read", "new_sync_read", "schedule", "touch_atime"}:
            assert stack[-1][0] == caller  # it is called in its parent's code
            nested += 1
        calls.add((row["comm"], *(name for name, _ in stack), name))
        stack.append((name, row["time"]))
    assert nested > 100
    path = ("vfs_read", "new_sync_read", "generic_file_read_iter", "copy_page_to_iter")
    for comm in ("first", "child0", "child1", "child2"):
        assert (comm, *path) in calls
        assert (comm, "schedule", "__schedule") in calls


@pytest.mark.slow
@pytest.mark.parametrize("mode", [None, Mode.STRICT, Mode.KERNEL])
def test_backtraces_end_where_stacks_begin(worker: Path, mode: Mode | None) -> None:
    config = {
        "root": "/",
        "isolated": False,
        "cwd": str(worker),
        "shares": ((str(worker), False),),
        "env": ("TMPDIR=/dev/shm", "HOME=/tmp", "PATH=/bin"),
    }
    stops, programs, cut, chance = 0, 0, 0, random.Random(1)
    below: set[str] = set()
    with loaded(worker / "linux.uml", *WORDS, *QUICK, **config) as guest:
        session = guest.session
        if mode is not None:
            tracing = guest.tracing(TraceOptions(mode=mode))
            for name in ("kernel_init_freeable", "do_one_initcall", "schedule", "vfs_*"):
                tracing.definitions.on_returns(name)
            tracing.start()
        kernel, machine, cpu = session.kernel, session.machine, session.cpu
        cpu.count_blocks(True)
        backtraces = Backtraces(session)
        while machine.exit is None:
            kernel.scheduler.turn_end = end = cpu.blocks() + chance.randrange(1, 500)
            kernel.resume()
            thread = machine.current
            if cpu.blocks() < max(end, 350_000) or machine.exit is not None:
                continue
            if thread.process is not session.process or thread.wait is not None:
                continue
            pc = session.space.hooks.original_pc(cpu.read_register("rip"))
            main = session.modules.main
            assert main is not None
            if not main.contains(pc):
                continue
            found = backtraces.take()
            names = [frame.function for frame in found.frames if not frame.thread]
            programs += len(names) < len(found.frames)
            whole = found.reason is EndReason.OUTERMOST
            # What a process has of its program is told by what was looked at of it before.
            cut += not whole
            assert whole or len(names) < len(found.frames), list(found.lines())
            assert names[-1] in BOTTOMS, list(found.lines())
            # What is called at the end only has no name in the kernel's own table.
            assert "" not in names or "do_uml_exitcalls" in names, list(found.lines())
            below.update(names[-2:-1])  # none where it stands in the bottom itself
            stops += 1
    assert "first exit code 5" in guest.out
    assert stops >= 1000
    assert programs >= 100
    assert cut <= programs // 50
    assert {"kernel_init", "kthread", "userspace"} <= below


@pytest.mark.slow
def test_a_recorded_boot_is_lived_through_without_its_files(worker: Path, tmp_path: Path) -> None:
    """A kprobe that is placed afterwards tells what one that is there from the start does."""
    folder = tmp_path / "gone"
    shutil.copytree(worker, folder)
    probes = ("-e", "r:read vfs_read ret=$retval:s64", "-e", "p:open do_sys_openat2 name=+0(%si)")
    boot = (*SHOWN, "./linux.uml", *WORDS, *QUICK)
    home = {"HOME": str(folder)}
    recorded = run("record", "-o", "../boot.rec", *boot, cwd=folder, env=home, deadline=900)
    traced = run("trace", *probes, "-o", "../run", *boot, cwd=folder, env=home, deadline=900)
    shutil.rmtree(folder)
    replayed = run("replay", *probes, "-o", "past", "boot.rec", cwd=tmp_path, deadline=900)
    assert (recorded.code, replayed.code, traced.code) == (0, 0, 0)
    assert recorded.out == replayed.out == traced.out
    log = (tmp_path / "past").read_text()
    assert log == (tmp_path / "run").read_text()
    assert len(re.findall(r" read: .* ret=\d", log)) > 20
    assert (tmp_path / "boot.rec").stat().st_size < 32 << 20


_HANGS = r"""
#include <unistd.h>

__attribute__((noinline)) int hears(int fd) { char c; int r = read(fd, &c, 1); return r + 1; }

/* Two processes that each wait for a word of the other's. */
int main(void)
{
	int there[2], back[2];

	pipe(there);
	pipe(back);
	if (!fork())
		return hears(there[0]);
	write(1, "did wait\n", 9);
	return hears(back[0]);
}
"""


@pytest.mark.slow
def test_a_boot_that_hangs_tells_where_each_task_waits(tmp_path: Path) -> None:
    made(tmp_path, INIT=str(build(tmp_path, "init", _HANGS, "-static", "-O1", "-fno-inline")))
    done = ran(tmp_path, "run", "--max-blocks", "26000000")
    assert "did wait" in done.out
    assert done.code == 124, done.err
    told = done.err[done.err.index("the kernel's tasks:") :]
    heads = re.findall(r"task (\d+) \((\S+)\) (?:runs|waits)(?: in (\w+))?", told)
    assert ("2", "kthreadd", "kthreadd") in heads
    assert [comm for _, comm, place in heads if not place] == ["init", "init"]
    for task in told.split(" (init) waits:\n")[1:]:
        names = re.findall(r"#\d+ +0x\w+ in (\w+)\+", task.partition("task ")[0])
        assert names[0] == "pipe_read"
        assert "userspace" in names
        assert names[names.index("hears") :][:2] == ["hears", "main"]


@pytest.mark.slow
def test_the_past_of_a_boot_begins_where_it_has_kept_itself(worker: Path) -> None:
    """What is gone to at once is what a guest comes to that lives through all of the boot."""
    config: dict[str, Any] = {
        "root": "/",
        "isolated": False,
        "cwd": str(worker),
        "shares": ((str(worker), False),),
        "env": ("TMPDIR=/dev/shm", "HOME=/tmp", "PATH=/bin"),
    }
    with recorded(worker / "linux.uml", *WORDS, *QUICK, live=True, **config) as ran:
        assert ran.live is not None
        marks = [one.mark for one in ran.live.pending]
        assert len(marks) >= 2  # as many as the machine has had the time for
        chosen = random.Random(1).sample(marks, min(len(marks), 5))
        known: dict[Moment, tuple[State, list[int]]] = {}
        with past(ran) as session:
            timeline = Timeline(session.kernel, session.ram)
            for mark in sorted(chosen):
                timeline.seek(mark)
                known[mark] = state_of(session), sorted(session.machine.threads)
        with past(ran) as session:
            timeline = Timeline(session.kernel, session.ram, ran.live)
            for mark in chosen:
                timeline.seek(mark)
                assert (state_of(session), sorted(session.machine.threads)) == known[mark]
