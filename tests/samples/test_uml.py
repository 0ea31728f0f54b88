"""A whole Linux kernel as a guest: Debian's user-mode Linux boots, runs programs, powers off."""

import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from compiled import build
from guestrun import Outcome, run
from kernelimages import UML_61, image_path
from sessionkit import loaded

from engine.arch.plan import Mode
from engine.image import ElfImage, SymbolTable
from engine.session.inspect.backtrace import Backtraces
from engine.session.protocol.requests import TraceOptions
from engine.unwind.unwinder import EndReason

_QUICK = ("pty.legacy_count=0", "initcall_blacklist=raid6_select_algo,calibrate_xor_blocks")
"""Words that make a boot short: without 512 devices and without measuring the processor."""

_SCRIPT = Path(__file__).parents[2] / "samples" / "uml.sh"
_BUSYBOX = "/usr/bin/busybox"
_WORDS = ("mem=64M", "initrd=initrd.gz", "initramfs_async=0", "con=null", "con0=fd:0,fd:1")

_SHOWN = ("--root", "/", "--env", "TMPDIR=/dev/shm", "--env", "HOME=/root")
"""What the kernel needs of its host: it makes a folder in HOME, and panics where it cannot."""

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
    return [_OWN.sub("", line) for line in text.splitlines()]


def _made(folder: Path, **more: str) -> None:
    """A kernel and an initramfs in a folder."""
    if not os.path.exists(_BUSYBOX) or shutil.which("gzip") is None:
        pytest.skip("needs busybox-static and gzip")
    kernel = more.get("KERNEL") or str(image_path(UML_61))
    made = subprocess.run(
        ["sh", _SCRIPT, folder],
        env={**os.environ, **more, "KERNEL": kernel, "BUSYBOX": _BUSYBOX},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr


def test_the_same_files_make_the_same_archive(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel"
    kernel.touch()
    made = []
    for name in ("one", "two"):
        _made(tmp_path / name, KERNEL=str(kernel))
        made.append((tmp_path / name / "initrd.gz").read_bytes())
    assert made[0] == made[1]


def test_an_archive_that_fails_is_told(tmp_path: Path) -> None:
    odd = tmp_path / "busybox"
    odd.write_text("#!/bin/sh\necho unknown option >&2\nexit 1\n")
    odd.chmod(0o755)
    made = subprocess.run(
        ["sh", _SCRIPT, tmp_path],
        env={**os.environ, "KERNEL": str(odd), "BUSYBOX": str(odd)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stderr) == (2, "unknown option\n")


@pytest.mark.slow
def test_user_mode_linux_boots_and_powers_off(tmp_path: Path) -> None:
    _made(tmp_path)
    boots = [
        run(
            *("run", *_SHOWN, "./linux.uml", *_WORDS),
            cwd=tmp_path,
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

    native = subprocess.run(
        ["setarch", "-R", "./linux.uml", *_WORDS],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "System halted" not in native.stdout:
        pytest.skip(f"this host does not boot it: {native.stdout[-200:]}{native.stderr[-200:]}")
    ours, theirs = _settled(first.out), _settled(native.stdout)
    missing = [line for line in theirs if line not in ours and "epollctl" not in line]
    others = [line for line in ours if line not in theirs and "epollctl" not in line]
    assert not missing, (missing, others)
    assert not others, (missing, others)
    assert len(ours) > 90
    assert (
        ours[ours.index("Run /init as init process") :]
        == theirs[theirs.index("Run /init as init process") :]
    )


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a kernel whose init works, and tells what it does."""
    folder = tmp_path_factory.mktemp("uml")
    _made(folder, INIT=str(build(folder, "init", _INIT, "-static", "-O1", "-s")))
    return folder


def _ran(folder: Path, command: str, *words: str) -> Outcome:
    guest = (*_SHOWN, "./linux.uml", *_WORDS, *_QUICK)
    return run(command, *words, *guest, cwd=folder, deadline=900)


def _did(console: str) -> dict[str, list[tuple[str, str, int]]]:
    """What each process has told: call, what about, result."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    for line in console.splitlines():
        if line.startswith("did "):
            _, comm, call, what, result = line.split()
            found.setdefault(comm, []).append((call, what, int(result)))
    return found


_EVENT = re.compile(r" *(\S+)-(\d+) +\[000\] \S+ +\d+: (\w+): \(\S+(?: <- \S+)?\) ?(.*)")


def _events(text: str, name: str) -> dict[str, list[str]]:
    """The values of an event's rows by the name of the task."""
    found: dict[str, list[str]] = {}
    for match in _EVENT.finditer(text):
        if match[3] == name:
            found.setdefault(match[1], []).append(match[4])
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
        done = _ran(worker, "trace", "--technique", technique, *definitions, "-o", "trace.txt")
        assert done.code == 0, done.err
        assert "kprobes/one: 2 of 3 hits missed\n" in done.err
        assert done.err.count("missed") == 2  # one has no more than one instance at a time
        texts.append((worker / "trace.txt").read_text())
        told = _did(done.out)
    assert texts[0] == texts[1] == texts[2]
    text = texts[0]

    assert set(told) == {"first", "child0", "child1", "child2"}
    events = {name: _events(text, name) for name in ("open", "opened", "read", "write", "exit")}
    for comm, did in told.items():
        opened = [(what, result) for call, what, result in did if call == "open"]
        assert events["open"][comm] == [f'name="{what}"' for what, _ in opened]
        assert events["opened"][comm] == [f"fd={result}" for _, result in opened]
        read = [f"size={result}" for call, _, result in did if call == "read"]
        assert events["read"][comm] == read
        written = []
        for call, what, result in did:
            written += [f"size={result}"] if call == "write" else []
            written.append(f"size={len(f'did {comm} {call} {what} {result}') + 1}")
        assert events["write"][comm] == written
    clones = [f"pid={result}" for call, _, result in told["first"] if call == "clone"]
    assert _events(text, "clone")["first"] == clones
    ids = {match[1]: int(match[2]) for match in _EVENT.finditer(text) if match[1] in told}
    assert [f"pid={ids[f'child{number}']}" for number in range(3)] == clones
    assert ids["first"] == 1
    for number in range(3):
        assert events["exit"][f"child{number}"] == [f"code={(number + 3) << 8}"]
        assert _events(text, "slept")[f"child{number}"] == ["result=0"]
    assert "r_exit" not in {match[3] for match in _EVENT.finditer(text)}
    # The task that a switch leaves is the one that the event is of.
    for comm, rows in _events(text, "switch").items():
        left = "swapper" if comm == "<idle>" else comm
        assert set(rows) == {f'from="{left}"'}


@pytest.mark.slow
def test_probes_in_the_kernel_change_nothing(worker: Path) -> None:
    done = _ran(worker, "diff", *_definitions())
    assert done.code == 0, done.err
    assert "did first exit code 5" in done.out


@pytest.mark.slow
def test_filters_and_histograms_go_by_the_kernels_tasks(worker: Path) -> None:
    done = _ran(
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
    assert _events(text, "read") == {"child2": read}
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
    done = _ran(worker, "graph", "--format", "jsonl", *words, "-o", "graph.jsonl")
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


_BOTTOMS = {"new_thread_handler", "fork_handler", "uml_finishsetup", "_start"}
"""The functions that a stack of the kernel's begins with; the last is that of the host's process,
to which it comes back when it has halted."""


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
    with loaded(worker / "linux.uml", *_WORDS, *_QUICK, **config) as guest:
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
            names = [frame.function for frame in found.frames if frame.space is None]
            programs += len(names) < len(found.frames)
            whole = found.reason is EndReason.OUTERMOST
            # What a process has of its program is told by what was looked at of it before.
            cut += not whole
            assert whole or len(names) < len(found.frames), list(found.lines())
            assert names[-1] in _BOTTOMS, list(found.lines())
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
    boot = (*_SHOWN, "./linux.uml", *_WORDS, *_QUICK)
    recorded = run("record", "-o", "../boot.rec", *boot, cwd=folder, deadline=900)
    traced = run("trace", *probes, "-o", "../run", *boot, cwd=folder, deadline=900)
    shutil.rmtree(folder)
    replayed = run("replay", *probes, "-o", "past", "boot.rec", cwd=tmp_path, deadline=900)
    assert (recorded.code, replayed.code, traced.code) == (0, 0, 0)
    assert recorded.out == replayed.out == traced.out
    log = (tmp_path / "past").read_text()
    assert log == (tmp_path / "run").read_text()
    assert len(re.findall(r" read: .* ret=\d", log)) > 20
    assert (tmp_path / "boot.rec").stat().st_size < 32 << 20


_USER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

static char data[1 << 16];

#define OWN __attribute__((noinline))
#define LATER __asm__ volatile("")

OWN long inner(int fd, int n) { long r = read(fd, data, n); LATER; return r + 1; }
OWN long middle(int fd, int n) { long r = inner(fd, n + 1); LATER; return r + 1; }
OWN long outer(int fd, int n) { long r = middle(fd, n + 1); LATER; return r + 1; }

OWN int forks(void) { int pid = fork(); LATER; return pid; }

OWN void work(const char *comm, int from, int to)
{
	char line[64];
	int fd = open("/numbers", O_RDONLY);

	prctl(PR_SET_NAME, comm);
	for (int n = from; n < to; n++) {
		lseek(fd, 0, SEEK_SET);
		int size = snprintf(line, sizeof line, "did %s outer %d %ld\n", comm, n, outer(fd, n));
		write(1, line, size);
	}
	close(fd);
}

/* What another program would see of the code that is probed. */
OWN void sum(void)
{
	unsigned sum = 0;
	int fd = open("/init", O_RDONLY), size;

	while ((size = read(fd, data, sizeof data)) > 0)
		for (int n = 0; n < size; n++)
			sum = sum * 31 + (unsigned char)data[n];
	close(fd);
	size = snprintf(data, sizeof data, "did sum file /init %u\n", sum);
	write(1, data, size);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "again")) {
		work("again", 20, 22);
		_exit(0);
	}
	int fd = open("/numbers", O_CREAT | O_RDWR, 0600);
	write(fd, data, 100);
	close(fd);
	work("first", 0, 3);
	if (!forks()) {
		work("kid", 10, 14);
		execl("/init", "init", "again", NULL);
	}
	wait(NULL);
	work("first", 30, 31);
	sum();
	reboot(RB_POWER_OFF);
}
"""
"""Reads by way of three functions, in a process, its child, and what that executes."""


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
    _made(tmp_path, INIT=str(build(tmp_path, "init", _HANGS, "-static", "-O1", "-fno-inline")))
    done = _ran(tmp_path, "run", "--max-blocks", "26000000")
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


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a kernel whose init has functions of known names."""
    folder = tmp_path_factory.mktemp("user")
    init = build(folder, "init", _USER, "-static", "-O1", "-fno-inline")
    _made(folder, INIT=str(init))
    return folder


def _offset(program: Path, name: str) -> int:
    """The offset in a file of a function's code."""
    image = ElfImage.open(program)
    symbol = image.once(SymbolTable).find(name)
    assert symbol is not None
    offset = image.file_offset(symbol.address)
    assert offset is not None
    return offset


_CALLS = {"first": [0, 1, 2, 30], "kid": [10, 11, 12, 13], "again": [20, 21]}
_USER_FRAMES = ["inner", "middle", "outer", "work", "main"]
_KERNEL_FRAMES = ["vfs_read", "ksys_read", "sys_read", "handle_syscall", "userspace"]


def _stacks(text: str, name: str) -> list[tuple[str, list[str]]]:
    """The name of the task and the functions on the stack of each row of an event."""
    found: list[tuple[str, list[str]]] = []
    wanted = False
    for line in text.splitlines():
        match = _EVENT.match(line)
        if match is not None:
            wanted = match[3] == name
            if wanted:
                found.append((match[1], []))
        elif wanted and line.startswith(" => "):
            found[-1][1].append(line.split()[1].partition("+")[0])
    return found


_CARRIED = r"""
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned char data[1 << 21];

/* Write a program that is behind this one's end, its bytes turned over; run it. */
int main(void)
{
	int fd = open("/init", O_RDONLY), from, size = 0, more;

	while ((more = read(fd, data + size, sizeof data - size)) > 0)
		size += more;
	close(fd);
	from = *(int *)(data + size - 4);
	size -= 4;
	for (int n = from; n < size; n++)
		data[n] ^= 0xff;
	mkdir("/mnt", 0700);
	mount("none", "/mnt", "tmpfs", 0, 0);
	mkdir("/mnt/deep", 0700);
	fd = open("/mnt/deep/work", O_CREAT | O_WRONLY, 0700);
	write(fd, data + from, size - from);
	close(fd);
	if (!fork()) {
		execl("/mnt/deep/work", "work", (char *)0);
		_exit(1);
	}
	wait(0);
	reboot(RB_POWER_OFF);
}
"""
"""Runs a program that its initramfs does not have."""

_WORK = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

char known[] = "what the program has";
static char data[64];

#define OWN __attribute__((noinline))
#define LATER __asm__ volatile("")

OWN long inner(int fd, int n) { long r = read(fd, data, n); LATER; return r + 1; }
OWN long outer(int fd, int n) { long r = inner(fd, n + 1); LATER; return r + 1; }

int main(void)
{
	int fd = open("/init", O_RDONLY);

	for (int n = 10; n < 15; n++)
		printf("work %d %ld\n", n, outer(fd, n));
	return 0;
}
"""


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a kernel whose init writes a program, and with that program."""
    folder = tmp_path_factory.mktemp("writer")
    work = build(folder, "work", _WORK, "-static", "-g", "-O1", "-fno-inline")
    init = build(folder, "init", _CARRIED, "-static", "-s", "-O1")
    before = init.read_bytes()
    turned = bytes(byte ^ 0xFF for byte in work.read_bytes())
    init.write_bytes(before + turned + len(before).to_bytes(4, "little"))
    _made(folder, INIT=str(init))
    return folder


@pytest.mark.slow
def test_a_program_that_is_written_while_the_kernel_runs_is_probed(writer: Path) -> None:
    inner = _offset(writer / "work", "inner")
    words = [
        *("-e", f"p:in ./work:{inner:#x} n=%si:s32", "-e", f"r:left ./work:{inner:#x} $retval"),
        *("-e", "p:read vfs_read"),
    ]
    done = _ran(writer, "trace", "--stack", *words, "-o", "trace.txt")
    assert done.code == 0, done.err
    assert [f"work {n} {n + 3}" in done.out for n in range(10, 15)] == [True] * 5
    assert "never placed" not in done.err
    text = (writer / "trace.txt").read_text()
    assert _events(text, "in") == {"work": [f"n={n + 1}" for n in range(10, 15)]}
    assert _events(text, "left") == {"work": [f"arg1={n + 2:#x}" for n in range(10, 15)]}
    for stack in (stack for task, stack in _stacks(text, "in") if task == "work"):
        assert stack[:3] == ["inner", "outer", "main"]
        assert stack[-1] == "_start"
    reads = [stack for task, stack in _stacks(text, "read") if "inner" in stack]
    assert len(reads) == 5
    for stack in reads:
        assert stack[:5] == _KERNEL_FRAMES
        assert stack[stack.index("inner") :][:3] == ["inner", "outer", "main"]


_LOOKS = """
handle all nostop noprint pass
handle SIGTRAP nostop noprint pass
handle SIGKILL nostop noprint pass
break vfs_read
ignore 1 2
run
frame 7
x/s &known
x/2i $pc
info symbol $pc
info registers rip
set var $rax = 1
disassemble
frame 0
x/1i $pc
info symbol $pc
"""


@pytest.mark.slow
def test_a_frame_of_a_program_shows_its_memory(writer: Path) -> None:
    words = [word for line in _LOOKS.split("\n") if line for word in ("-ex", line)]
    done = _ran(writer, "--batch", *words)
    text = done.out[done.out.index("Breakpoint 1, ") :]
    image = ElfImage.open(writer / "work")
    symbols = image.once(SymbolTable)
    inner, known = symbols.find("inner"), symbols.find("known")
    assert inner is not None
    assert known is not None
    at = int(re.findall(r"#7 +0x(\w+) in inner ", text)[0], 16)
    assert inner.address < at < inner.address + inner.size
    assert f'{known.address:#x} <known>:\t"what the program has"\n' in text
    assert f"=> {at:#x} <inner+{at - inner.address}>:\tadd rax, 1\n" in text
    assert f"inner + {at - inner.address} in section .text of /mnt/deep/work\n" in text
    assert re.search(rf"rip +{at:#x} +{at:#x} <inner\+", text)
    assert "<+0>:\tsub rsp, 8\n" in text
    assert "cannot" not in text
    assert "<vfs_read>:\tpush rbp\n" in text
    assert text.rstrip().endswith("vfs_read in section .text")


@pytest.mark.slow
def test_programs_of_the_kernel_are_probed_with_it(user: Path) -> None:
    definitions = (
        f"p:user/in /init:{_offset(user / 'init', 'inner'):#x} n=%si:s32",
        "p:calls init:outer n=%si:s32",
        "r:left init:outer result=$retval:s64",
        "r:forked init:forks pid=$retval:s32",
        "p:read vfs_read",
    )
    words = [word for line in definitions for word in ("-e", line)]
    texts: list[str] = []
    for technique in ("jump", "auto"):
        done = _ran(user, "trace", "--stack", "--technique", technique, *words, "-o", "trace.txt")
        assert done.code == 0, done.err
        assert "missed" not in done.err
        assert "never placed" not in done.err
        texts.append((user / "trace.txt").read_text())
    assert texts[0] == texts[1]
    text = texts[0]

    told = {
        comm: [
            int(line.split()[3]) for line in done.out.splitlines() if f"did {comm} outer" in line
        ]
        for comm in _CALLS
    }
    assert told == _CALLS
    for comm, calls in _CALLS.items():
        assert _events(text, "calls")[comm] == [f"n={n}" for n in calls]
        assert _events(text, "in")[comm] == [f"n={n + 2}" for n in calls]
        assert _events(text, "left")[comm] == [f"result={n + 5}" for n in calls]
    ids = {match[1]: match[2] for match in _EVENT.finditer(text)}
    # The child comes back with the kernel's copy of the stack, where nobody waits for it.
    assert _events(text, "forked") == {"first": [f"pid={ids['kid']}"]}
    times = [int(match[0].split(":")[0].split()[-1]) for match in _EVENT.finditer(text)]
    assert times == sorted(times)

    for comm, calls in _CALLS.items():
        inside = [stack for task, stack in _stacks(text, "in") if task == comm]
        assert [stack[:5] for stack in inside] == [_USER_FRAMES] * len(calls)
        assert {stack[-1] for stack in inside} == {"_start"}
        reads = [stack for task, stack in _stacks(text, "read") if task == comm]
        whole = [stack for stack in reads if "inner" in stack]
        assert len(whole) == len(calls)
        for stack in whole:
            assert stack[:5] == _KERNEL_FRAMES
            assert stack[5] in _BOTTOMS
            assert stack[stack.index("inner") :][:5] == _USER_FRAMES
            assert stack[-1] == "_start"


@pytest.mark.slow
def test_probes_in_programs_of_the_kernel_change_nothing(user: Path) -> None:
    words = ("-e", "p init:outer", "-e", "r init:inner $retval", "-e", "p init:sum")
    done = _ran(user, "diff", *words, "-e", "p vfs_read")
    assert done.code == 0, done.err
    assert "did sum file /init" in done.out


@pytest.mark.slow
def test_a_backtrace_goes_from_the_kernel_into_its_program(user: Path) -> None:
    done = _ran(user, "bt", "--json", "--comm", "kid", "--at", "vfs_read")
    assert done.code == 0, done.err
    frames = json.loads(done.out)["frames"]
    names = [frame["function"] for frame in frames]
    assert names[:6] == [*_KERNEL_FRAMES, "fork_handler"]
    assert names[7:12] == _USER_FRAMES
    assert names[-1] == "_start"
    assert {frame["module"] for frame in frames[6:]} == {"/init"}
