"""Probes that follow the program: fork, vfork, posix_spawn and exec, by every technique."""

import re
from collections import Counter
from pathlib import Path

import pytest
from compiled import build
from guestrun import run

from engine.image import ElfImage, SymbolTable

TREE = r"""
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
char *word = "parent";
extern char **environ;
__attribute__((noinline)) int work(char *text, long n)
{
    volatile long left = n * 100;
    while (left) left--;
    return n;
}
__attribute__((noinline)) int forking(void)
{
    int pid = fork();
    if (!pid) word = "child";
    work(word, 2);
    return pid;
}
__attribute__((noinline)) int vforking(char *self)
{
    int pid = vfork();
    if (!pid) {
        work(word, 3);
        execl(self, self, "leaf", (char *)0);
        _exit(9);
    }
    work(word, 4);
    return pid;
}
static void *thread(void *n)
{
    for (long turn = 0; turn < 5; turn++) work("thread", (long)n);
    return 0;
}
int main(int argc, char **argv)
{
    int status, pid;
    if (argc > 1) {
        word = argv[1];
        return work(word, 7);
    }
    for (int turn = 0; turn < 3; turn++) {
        pid = forking();
        if (!pid) {
            pthread_t other;
            pthread_create(&other, 0, thread, (void *)(long)(turn + 10));
            pthread_join(other, 0);
            if (turn == 2) {
                if (!forking()) _exit(0);
                wait(0);
                execl(argv[0], argv[0], "again", (char *)0);
            }
            _exit(turn);
        }
        waitpid(pid, &status, 0);
    }
    pid = vforking(argv[0]);
    waitpid(pid, &status, 0);
    char *args[] = {argv[0], "spawned", 0};
    posix_spawn(&pid, argv[0], 0, 0, args, environ);
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}
"""
EVENTS = (
    *("-e", "p work s=+0(%di):string n=%si w=+0(@word):string"),
    *("-e", "r work $retval"),
    *("-e", "r forking ret=$retval:s32"),
    *("-e", "r vforking ret=$retval:s32"),
)
# Process, text, number and the word of the process, of each call of `work`.
CALLS = Counter(
    {
        (1000, "parent", 2, "parent"): 3,
        (1001, "child", 2, "child"): 1,
        (1002, "thread", 10, "child"): 5,
        (1003, "child", 2, "child"): 1,
        (1004, "thread", 11, "child"): 5,
        (1005, "child", 2, "child"): 2,
        (1006, "thread", 12, "child"): 5,
        (1007, "child", 2, "child"): 1,
        (1005, "again", 7, "again"): 1,
        (1008, "parent", 3, "parent"): 1,
        (1008, "leaf", 7, "leaf"): 1,
        (1000, "parent", 4, "parent"): 1,
        (1009, "spawned", 7, "spawned"): 1,
    }
)
FORKED = Counter(
    {
        *((1000, child) for child in (1001, 1003, 1005)),
        *((child, 0) for child in (1001, 1003, 1005, 1007)),
        (1005, 1007),
    }
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("tree"), "tree", TREE, "-pthread", "-O1")


def traced(tree: Path, *words: str) -> tuple[str, str]:
    """The text of a trace, and what is said about it."""
    done = run("trace", "-o", "out", *words, str(tree), cwd=tree.parent)
    assert done.code == 7, done.err
    return (tree.parent / "out").read_text("utf-8"), done.err


def calls(text: str) -> Counter[tuple[int, str, int, str]]:
    pattern = r'^ *\S+-(\d+) .* p_work_0: .* s="(\w+)" n=(\w+) w="(\w+)"'
    return Counter(
        (int(pid), word, int(number, 16), own)
        for pid, word, number, own in re.findall(pattern, text, re.M)
    )


def returns(text: str, name: str) -> Counter[tuple[int, int]]:
    pattern = rf"^ *\S+-(\d+) .* r_{name}_0: .* ret=(-?\d+)"
    return Counter((int(pid), int(value)) for pid, value in re.findall(pattern, text, re.M))


@pytest.mark.parametrize("technique", ["breakpoint", "jump"])
@pytest.mark.parametrize("mode", ["strict", "kernel"])
def test_a_tree_of_processes(tree: Path, technique: str, mode: str) -> None:
    """Each call is seen in its process, with its memory; returns of calls that fork, twice."""
    text, _ = traced(tree, "--technique", technique, "--mode", mode, *EVENTS)
    assert calls(text) == CALLS
    assert returns(text, "forking") == FORKED
    assert returns(text, "vforking") == {(1000, 1008): 1}
    assert text.count(" r_work_0: ") == CALLS.total()


def test_all_techniques_record_the_same(tree: Path) -> None:
    one, _ = traced(tree, "--technique", "breakpoint", *EVENTS)
    other, said = traced(tree, "--technique", "jump", *EVENTS)
    assert one == other
    assert said.count("stays a breakpoint") <= 1


def test_the_schedule_is_the_same(tree: Path) -> None:
    done = run("run", "--record-schedule", "plain", str(tree), cwd=tree.parent)
    assert done.code == 7
    traced(tree, "--record-schedule", "probed", "-f", "*", "-r", "*")
    plain, probed = ((tree.parent / name).read_text("utf-8") for name in ("plain", "probed"))
    assert plain == probed
    assert len(plain.splitlines()) > 20


def test_served_probes_change_nothing(tree: Path) -> None:
    done = run("diff", "--served", "-e", "p work", "-r", "work", str(tree), cwd=tree.parent)
    assert done.code == 0, done.err


def test_probes_that_do_not_follow(tree: Path) -> None:
    text, said = traced(tree, "--follow", "no", *EVENTS)
    assert calls(text) == {
        (1000, "parent", 2, "parent"): 3,
        (1000, "parent", 4, "parent"): 1,
        (1008, "parent", 3, "parent"): 1,  # in the memory of the first
    }
    assert "its new processes run without probes (--follow no)" in said


def test_hits_are_those_of_all_processes(tree: Path) -> None:
    text, _ = traced(tree, "--profile", "-e", "p:g/call work", "-e", "r:g/back forking")
    assert re.search(rf"^ +call +{CALLS.total()} +0$", text, re.M)
    assert re.search(r"^ +back +4 +0$", text, re.M)


def test_a_filter_and_triggers_hold_for_all(tree: Path) -> None:
    words = ("-e", "p:g/call work n=%si:s32", "--filter", "g/call: n == 7")
    text, _ = traced(tree, *words)
    assert len(re.findall(r" call: .* n=7$", text, re.M)) == 3
    assert text.count(" call: ") == 3
    quiet = ("-e", "p:g/call work", "-e", "p:g/end vforking")
    text, _ = traced(tree, *quiet, "--trigger", "g/end: disable_event:g:call")
    assert text.count(" call: ") == 24


def test_stacks_of_all_processes(tree: Path) -> None:
    text, _ = traced(
        tree, "-e", "p:g/call work n=%si:s32", "--stack", "--filter", "g/call: n == 7"
    )
    stacks = re.findall(r"<user stack trace>\n((?: =>.*\n)+)", text)
    assert len(stacks) == 3
    assert all(" => work+" in stack and " => main+" in stack for stack in stacks)


def test_a_graph_of_processes(tree: Path) -> None:
    done = run("graph", "-f", "work", "-f", "forking", "-o", "out", str(tree), cwd=tree.parent)
    assert done.code == 7
    text = (tree.parent / "out").read_text("utf-8")
    assert text.count("work();") + text.count("work() {") == CALLS.total()


def test_other_programs_are_named_by_their_own_files(tmp_path: Path) -> None:
    """A library lies elsewhere in each program: addresses are named as they were there then."""
    script = "echo one | cat; /bin/echo two; (echo three)"
    words = ("-e", "p:g/write libc.so.6:write n=%dx:u64 fd=%di:s32", "-o", "out")
    for more in ((), ("--buffer", "100")):
        done = run("trace", *words, *more, "/bin/bash", "-c", script, cwd=tmp_path)
        assert done.out.split() == ["one", "two", "three"]
        text = (tmp_path / "out").read_text("utf-8")
        found = re.findall(r"^ *(\S+)-\d+ .* write: \((\S+)\+0x0/\S+\) n=(\d+)", text, re.M)
        assert [(who, size) for who, _, size in found] == [
            *(("bash", "4"), ("cat", "4"), ("echo", "4"), ("bash", "6"))
        ]
        assert {name for _, name, _ in found} <= {"write", "__write", "__GI___libc_write"}


HANDLERS = """
seen = []

def pre(probe, regs):
    seen.append((guest.machine.current.pid, regs.string(regs["rdi"], 20)))

def back(instance, regs):
    seen.append(("back", guest.machine.current.pid))

call = Kretprobe(symbol_name="forking", handler=back)
probes = [Kprobe(symbol_name="work", pre_handler=pre), call]

def exit():
    from collections import Counter
    print(sorted(Counter(seen).items(), key=str))
    print([probe.hits for probe in probes])
"""


def test_handlers_see_the_process_that_is_hit(tree: Path) -> None:
    (tree.parent / "handlers.py").write_text(HANDLERS, "utf-8")
    done = run("trace", "-o", "out", "--handlers", "handlers.py", str(tree), cwd=tree.parent)
    assert done.code == 7, done.err
    for pid, word in ((1000, b"parent"), (1003, b"child"), (1005, b"again"), (1009, b"spawned")):
        assert f"({pid}, {word!r})" in done.out
    assert done.out.count("'back'") == 5
    assert "[28, 4]" in done.out


COUNTERS = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((section(".probes"))) volatile unsigned short counter;
__attribute__((noinline)) void place(void) { __asm__ volatile(""); }
int main(int argc, char **argv)
{
    place();
    printf("first %d\n", counter);
    fflush(stdout);
    if (!fork()) {
        place();
        printf("child %d\n", counter);
        fflush(stdout);
        if (argc == 1) execl(argv[0], argv[0], "again", (char *)0);
        _exit(0);
    }
    wait(0);
    printf("last %d\n", counter);
    return 0;
}
"""


def test_reference_counters_are_each_process_s_own(tmp_path: Path) -> None:
    program = build(tmp_path, "counters", COUNTERS, "-O1")
    symbols = run("check", "--json", "-e", "p place", str(program), cwd=tmp_path)
    assert symbols.code == 0
    offsets = {name: offset_of(program, name) for name in ("place", "counter")}
    event = f"p:g/e {program}:{offsets['place']:#x}({offsets['counter']:#x})"
    done = run("trace", "-o", "out", "-e", event, str(program), cwd=tmp_path)
    assert done.out.split("\n")[:6] == [
        *("first 1", "child 1", "first 1", "child 1", "last 1", "last 1")
    ]
    plain = run("trace", "--follow", "no", "-o", "out", "-e", event, str(program), cwd=tmp_path)
    assert plain.out.split("\n")[:6] == [
        *("first 1", "child 0", "first 0", "child 0", "last 0", "last 1")
    ]


def offset_of(path: Path, name: str) -> int:
    image = ElfImage.open(str(path))
    offset = image.file_offset(SymbolTable(image).find_all(name)[0].address)
    assert offset is not None
    return offset


LATER = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
    for (int turn = 0; turn < 2; turn++) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        int exponent;
        ((double (*)(double, int *))dlsym(library, "frexp"))(8.0, &exponent);
        printf("%d\n", exponent);
        dlclose(library);
    }
    return 0;
}
"""


def test_a_library_that_is_loaded_later(tmp_path: Path) -> None:
    """Named as those that the program begins with; armed each time that it is mapped."""
    program = build(tmp_path, "later", LATER, "-ldl")
    for name in ("libm.so.6", "libm"):
        done = run("trace", "-e", f"p:g/e {name}:frexp", "-o", "out", str(program), cwd=tmp_path)
        assert (done.code, done.out, done.err) == (0, "4\n4\n", "")
        text = (tmp_path / "out").read_text("utf-8")
        assert len(re.findall(r" e: \(\w*frexp\+0x", text)) == 2
    unused = build(tmp_path, "unused", "int main(void) { return 0; }")
    done = run("trace", "-e", "p:g/e libm:frexp", "-o", "out", str(unused), cwd=tmp_path)
    assert done.code == 0
    assert "never placed, as their file was not mapped:" in done.err


def test_a_probe_by_its_address_stays_with_its_program(tree: Path) -> None:
    """One that code registers belongs to no file: fork copies it, exec leaves it, and says so."""
    (tree.parent / "late.py").write_text(
        "seen = []\n"
        "def late(probe, regs):\n    seen.append(guest.machine.current.pid)\n"
        "def first(probe, regs):\n"
        "    manager = guest.probes().manager\n"
        "    if not manager.points.get(work.addr):\n        return\n"
        "    if not seen:\n        seen.append(0)\n"
        "        manager.register(Kprobe(addr=work.addr, pre_handler=late, name='late'))\n"
        "work = Kprobe(symbol_name='work', pre_handler=first)\n"
        "probes = [work]\n"
        "def exit():\n    print(sorted(set(seen)))\n",
        "utf-8",
    )
    done = run("trace", "-o", "out", "--handlers", "late.py", str(tree), cwd=tree.parent)
    assert done.code == 7, done.err
    assert "[0, 1000, 1003, 1005, 1007, 1008]" in done.out
    assert "late: stayed with a program that began another one" in done.err


OUTLIVED = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <unistd.h>
static char stack[1 << 16];
static volatile int seen;
__attribute__((noinline)) int work(int n) { seen = n; return n + 1; }
static int sharing(void *none) { work(7); pause(); return 0; }
int main(void)
{
    work(1);
    clone(sharing, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
    if (!fork()) {
        work(3);
        for (;;) pause();
    }
    usleep(1000);
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    return work(6);
}
"""


@pytest.mark.parametrize(("follow", "numbers"), [("yes", [1, 3, 6, 7]), ("no", [1, 6, 7])])
def test_memory_of_the_first_process_that_another_one_leaves_last(
    tmp_path: Path, follow: str, numbers: list[int]
) -> None:
    program = build(tmp_path, "outlived", OUTLIVED, "-O1")
    done = run("trace", "--follow", follow, "-e", "p work n=%di:u32", str(program), cwd=tmp_path)
    assert done.code == 7, done.err
    assert sorted(int(n) for n in re.findall(r" n=(\d+)", done.err)) == numbers
