"""The programs of a whole Linux kernel that is the guest: their stacks, probes, files, memory."""

import json
import re
from pathlib import Path

import pytest
from compiled import build
from controlkit import Held
from umlkit import BOTTOMS, EVENT, QUICK, WORDS, events, made, ran

from engine.image import ElfImage, SymbolTable
from engine.session.debugger.console import Console
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.views import StopCause

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


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a kernel whose init has functions of known names."""
    folder = tmp_path_factory.mktemp("user")
    init = build(folder, "init", _USER, "-static", "-O1", "-fno-inline")
    made(folder, INIT=str(init))
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
        match = EVENT.match(line)
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
    made(folder, INIT=str(init))
    return folder


@pytest.mark.slow
def test_a_program_that_is_written_while_the_kernel_runs_is_probed(writer: Path) -> None:
    inner = _offset(writer / "work", "inner")
    words = [
        *("-e", f"p:in ./work:{inner:#x} n=%si:s32", "-e", f"r:left ./work:{inner:#x} $retval"),
        *("-e", "p:read vfs_read"),
    ]
    done = ran(writer, "trace", "--stack", *words, "-o", "trace.txt")
    assert done.code == 0, done.err
    assert [f"work {n} {n + 3}" in done.out for n in range(10, 15)] == [True] * 5
    assert "never placed" not in done.err
    text = (writer / "trace.txt").read_text()
    assert events(text, "in") == {"work": [f"n={n + 1}" for n in range(10, 15)]}
    assert events(text, "left") == {"work": [f"arg1={n + 2:#x}" for n in range(10, 15)]}
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
    done = ran(writer, "--batch", *words)
    text = done.out[done.out.index("Breakpoint 1, ") :]
    image = ElfImage.open(writer / "work")
    symbols = image.once(SymbolTable)
    inner, known = symbols.find("inner"), symbols.find("known")
    assert inner is not None
    assert known is not None
    at = int(re.findall(r"#7 +0x(\w+) in inner ", text)[0], 16)
    assert inner.address < at < inner.address + inner.size
    assert f'{known.address:#x} <known>:\t"what the program has"\n' in text
    assert f"=> {at:#x} <inner+{at - inner.address}>:\tadd    $0x1,%rax\n" in text
    assert f"inner + {at - inner.address} in section .text of /mnt/deep/work\n" in text
    assert re.search(rf"rip +{at:#x} +{at:#x} <inner\+", text)
    assert "<+0>:\tsub    $0x8,%rsp\n" in text
    assert "cannot" not in text
    # As gdb does, a break is behind `push rbp; mov rbp, rsp`, and the file is named where several
    # are known.
    assert "<vfs_read+4>:\tpush   %r15\n" in text
    assert re.search(r"vfs_read \+ 4 in section \.text of \S+/linux\.uml$", text.rstrip())


@pytest.mark.slow
def test_panes_show_what_the_frame_in_sight_has(
    writer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame is chosen by a key, or by a word: the program's code and memory, or the kernel's."""
    monkeypatch.chdir(writer)
    env = ("TMPDIR=/dev/shm", "HOME=/root")
    config = GuestConfig(
        str(writer / "linux.uml"), (*WORDS, *QUICK), root="/", isolated=False, env=env
    )
    guest = Held.of(config)
    try:
        Console(guest.control, guest._tell)
        symbols = ElfImage.open(writer / "work").once(SymbolTable)
        (symbol,) = symbols.find_all("known")
        known = symbol.address
        guest.do(cmd.TypedLine("break vfs_read"), cmd.TypedLine("ignore 1 2"))
        view = guest.do(cmd.Continue())
        assert view.cause is StopCause.HIT, view.reason
        number = next(n for n, frame in enumerate(view.frames) if frame.function == "inner")

        def seen() -> tuple[bool, bool]:
            """Whether the program's file is there, and its text."""
            guest.do(cmd.ReadMemory(known, 21))
            pieces = guest.all(ev.MemoryRead)[-1].pieces
            there = any(module.path == "/mnt/deep/work" for module in guest.view.modules)
            return there, (known, b"what the program has\0") in pieces

        assert seen() == (False, False)
        in_sight = {guest.view.program_in_sight}
        for choose in (cmd.SelectFrame(number), cmd.TypedLine(f"frame {number}")):
            guest.do(choose)
            assert seen() == (True, True)
            in_sight.add(guest.view.program_in_sight)
            guest.do(cmd.SelectFrame(0))
            assert seen() == (False, False)
        assert len(in_sight) == 2
    finally:
        guest.control.close()


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
        done = ran(user, "trace", "--stack", "--technique", technique, *words, "-o", "trace.txt")
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
        assert events(text, "calls")[comm] == [f"n={n}" for n in calls]
        assert events(text, "in")[comm] == [f"n={n + 2}" for n in calls]
        assert events(text, "left")[comm] == [f"result={n + 5}" for n in calls]
    ids = {match[1]: match[2] for match in EVENT.finditer(text)}
    # The child comes back with the kernel's copy of the stack, where nobody waits for it.
    assert events(text, "forked") == {"first": [f"pid={ids['kid']}"]}
    times = [int(match[0].split(":")[0].split()[-1]) for match in EVENT.finditer(text)]
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
            assert stack[5] in BOTTOMS
            assert stack[stack.index("inner") :][:5] == _USER_FRAMES
            assert stack[-1] == "_start"


@pytest.mark.slow
def test_probes_in_programs_of_the_kernel_change_nothing(user: Path) -> None:
    words = ("-e", "p init:outer", "-e", "r init:inner $retval", "-e", "p init:sum")
    done = ran(user, "diff", *words, "-e", "p vfs_read")
    assert done.code == 0, done.err
    assert "did sum file /init" in done.out


@pytest.mark.slow
def test_a_backtrace_goes_from_the_kernel_into_its_program(user: Path) -> None:
    done = ran(user, "bt", "--json", "--comm", "kid", "--at", "vfs_read")
    assert done.code == 0, done.err
    frames = json.loads(done.out)["frames"]
    names = [frame["function"] for frame in frames]
    assert names[:6] == [*_KERNEL_FRAMES, "fork_handler"]
    assert names[7:12] == _USER_FRAMES
    assert names[-1] == "_start"
    assert {frame["module"] for frame in frames[6:]} == {"/init"}
