"""Scripts of bpftrace on guests: what they print, where it stands, how they end."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from compiled import build, tool
from guestrun import Outcome, run, start
from sysroot import CHECKOUT

SAMPLES = CHECKOUT / "samples" / "bin"
PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
struct inner { int a; char *name; };
struct node { long id; struct inner in; struct node *next; char text[12]; };
enum color { RED, GREEN = 5 };
int words[4] = { 1, -2, 3, 4 };
short small = -3;
char tiny = 5;
__attribute__((noinline)) long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) int work(struct node *n, const char *s, short k, unsigned char c,
                                   enum color e, int *p)
{
    return n->id * k + c + strlen(s) + e + p[1];
}
int main(int argc, char **argv)
{
    struct node b = { 2, { 20, "bee" }, 0, "bbb" }, a = { 1, { -10, "ay" }, &b, "aaa" };
    for (int i = 0; i < 2; i++) {
        char line[32];
        int n = sprintf(line, "work %d\n", work(&a, "hello", -i, 200, GREEN, words));
        write(1, line, n);
    }
    fib(6);
    if (argc > 1) {
        if (!fork()) { fib(3); _exit(0); }
        wait(0);
    }
    return 3;
}
"""
GUEST = "work 208\nwork 207\n"
ACTIONS = (
    (
        "uprobe:PROGRAM:fib { @a[arg0] = count(); }",
        "@a[5]: 1\n@a[6]: 1\n@a[4]: 2\n@a[3]: 3\n@a[0]: 5\n@a[2]: 5\n@a[1]: 8\n",
    ),
    ("uretprobe:PROGRAM:fib { @b = max(retval); @b_sum = sum(retval); }", "@b: 8\n@b_sum: 38\n"),
    (
        "uprobe:PROGRAM:work { @c[str(arg1), (int16)arg2, arg3] = count(); }",
        "@c[hello, -1, 200]: 1\n@c[hello, 0, 200]: 1\n",
    ),
    (
        "uprobe:PROGRAM:work /args.k < 0/ { $n = args.n; @d = ($n.id, $n.in.a, str($n.in.name),"
        " $n.next.id, $n.next.text, args.p[1], args.e); }",
        "@d: (1, -10, ay, 2, bbb, -2, GREEN)\n",
    ),
    ("uprobe:PROGRAM:work { @e = str(((struct mine *)arg0).name); }", "@e: ay\n"),
    (
        "uprobe:PROGRAM:work { @f[probe, func, comm] = count(); }",
        "@f[uprobe:PROGRAM:work, work, program]: 2\n",
    ),
    ("uprobe:PROGRAM:main+4 { @g = count(); }", "@g: 1\n"),
    ("uprobe:PROGRAM:[wf][io]* { @h[func] = count(); }", "@h[work]: 2\n@h[fib]: 25\n"),
    (
        "uprobe:PROGRAM:fib { @at[tid] = nsecs; } uretprobe:PROGRAM:fib /@at[tid]/"
        " { @i = nsecs >= @at[tid]; delete(@at[tid]); }",
        "@i: true\n",
    ),
    (
        "uprobe:PROGRAM:work { @name[tid] = arg1; }"
        " uretprobe:PROGRAM:work { @j = str(@name[tid]); clear(@name); }",
        "@j: hello\n",
    ),
    (
        "tracepoint:syscalls:sys_enter_write { @k[args.fd, str(args.buf, args.count)] = count(); }"
        " t:syscalls:sys_exit_write { @k_sum = sum(args.ret); }",
        "@k[1, work 207]: 1\n@k[1, work 208]: 1\n@k_sum: 18\n",
    ),
    (
        "t:raw_syscalls:sys_enter /args.id == 1/ { @l = count(); @l_most = max(args.args[2]); }"
        " t:raw_syscalls:sys_exit /args.id == 1/ { @l_ret = max(args.ret); }",
        "@l: 2\n@l_most: 9\n@l_ret: 9\n",
    ),
    (
        "u:PROGRAM:fib { @m[ustack(2)] = count(); }",
        "@m[\n        fib+0\n        main+N\n]: 1\n@m[\n        fib+0\n        fib+N\n]: 12\n"
        "@m[\n        fib+0\n        fib+N\n]: 12\n",
    ),
    (  # what an address leads to is as large as the object
        'uprobe:PROGRAM:work { @n = (*uaddr("small"), *uaddr("tiny"), *uaddr("words")); }',
        "@n: (-3, 5, -8589934591)\n",
    ),
    (  # the instruction pointer, whatever an architecture calls it
        'uprobe:PROGRAM:work { @o = reg("pc") - (uint64)uaddr("work"); }',
        "@o: 0\n",
    ),
)
"""Probes, and the maps that they leave, in the order of their names."""
DEFINED = (
    "struct mine { long id; int a; int pad; char *name; }; config = { show_debug_info = false } "
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(
        tmp_path_factory.mktemp("script"), "program", PROGRAM, "-g", "-O0", "-fcf-protection=none"
    )


def scripted(program: Path, script: str, *options: str, args: tuple[str, ...] = ()) -> Outcome:
    """A script on the program; the program's path is left out of what it prints."""
    words = (*options, "-q", "-e", script.replace("PROGRAM", str(program)))
    found = run("bpftrace", *words, "--", str(program), *args, cwd=program.parent)
    return Outcome(found.code, found.out.replace(str(program), "PROGRAM"), found.err, found.rss)


def test_actions_see_what_the_guest_does(program: Path) -> None:
    found = scripted(program, DEFINED + " ".join(script for script, _ in ACTIONS))
    maps = "".join(expected for _, expected in ACTIONS)
    assert found.code == 3, found.err
    assert re.sub(r"\+[1-9]\d*$", "+N", found.out, flags=re.M) == f"{GUEST}\n\n{maps}"


def test_the_order_of_things_is_that_of_hits(program: Path) -> None:
    script = """BEGIN { printf("begin %s\\n", comm); }
        uprobe:PROGRAM:work { printf("second %d\\n", (int16)arg2); }
        uprobe:PROGRAM:work { printf("third\\n"); }
        uretprobe:PROGRAM:work { printf("gives %d\\n", retval); }
        tracepoint:syscalls:sys_enter_exit_group { printf("exits %d\\n", args.error_code); }
        END { printf("end\\n"); }"""
    expected = (
        "begin bpftrace\nsecond 0\nthird\ngives 208\nwork 208\n"
        "second -1\nthird\ngives 207\nwork 207\nexits 3\nend\n"
    )
    assert scripted(program, script).out == f"{expected}\n\n"
    assert scripted(program, script, "--technique", "breakpoint").out == f"{expected}\n\n"


def test_what_the_guest_does_not_have_is_told(program: Path) -> None:
    script = 'BEGIN { print((ncpus, cgroup_path(cgroup))); print(cgroup_path(cgroup, "cpu")); }'
    found = scripted(program, script, "--cpus", "3")
    assert found.out.startswith("(3, unified:/)\n\n")
    found = scripted(program, "uprobe:PROGRAM:work { print(curtask); }")
    assert found.code == 2
    assert "curtask() is refused: the guest is a program" in found.err


def test_a_stack_by_build_ids(program: Path) -> None:
    """The identification of the file, and the offset in it: what a symbol server is asked for."""
    notes = subprocess.run([tool("readelf"), "-n", program], capture_output=True, check=True)
    ident = re.search(rb"Build ID: (\w+)", notes.stdout)
    assert ident is not None
    names = subprocess.run([tool("nm"), program], capture_output=True, text=True, check=True)
    place = next(line for line in names.stdout.splitlines() if line.endswith(" fib"))
    script = "uprobe:PROGRAM:fib { print(ustack(build_id, 1)); exit(); }"
    found = scripted(program, script)
    assert f"\n{ident[1].decode()} {int(place.split()[0], 16):#x}\n" in found.out, found.err


def test_a_child_is_seen_too(program: Path) -> None:
    script = "uprobe:PROGRAM:fib { @[pid, tid, ppid] = count(); }"
    found = scripted(program, script, args=("fork",))
    assert found.out == f"{GUEST}\n\n@[1001, 1001, 1000]: 5\n@[1000, 1000, 1]: 25\n", found.err


def test_ends(program: Path) -> None:
    end = ' END { printf("end\\n"); }'
    for script, code, out in (
        ("uprobe:PROGRAM:work { exit(7); print(1); }", 7, "end\n\n\n"),
        (
            "uretprobe:PROGRAM:work { @++; if (@ == 2) { exit(); } }",
            0,
            "work 208\nend\n\n\n@: 2\n",
        ),
        ("BEGIN { exit(9); }", 9, "end\n\n\n"),
        (
            'uprobe:PROGRAM:work { @++; if (@ == 2) { signal("KILL"); } }',
            137,
            "work 208\nend\n\n\n@: 2\n",
        ),
        ("config = { print_maps_on_exit = false } BEGIN { @ = 1; }", 3, f"{GUEST}end\n"),
    ):
        found = scripted(program, script + end)
        assert (found.code, found.out) == (code, out), (script, found.err)
    found = scripted(program, "interval:us:50 { @ = count(); }", "--max-blocks", "9000")
    assert found.code == 124
    assert re.search(r"^@: \d+$", found.out, re.M)


def test_timers_go_by_the_guests_time(program: Path) -> None:
    script = (
        "interval:ms:100 { @i = count(); } profile:hz:10 { @p = count(); } i:s:2 { @two = 1; }"
    )
    found = run("bpftrace", "-q", "-e", script, "--", "/bin/sleep", "1.05", cwd=program.parent)
    assert found.out == "\n\n@i: 10\n@p: 10\n", found.err


@pytest.mark.parametrize("arch", ["aarch64", "riscv64"])
def test_other_processors(arch: str) -> None:
    guest = str(SAMPLES / arch / "recursion")
    script = (
        f"u:{guest}:fibonacci /arg0 < 3/ {{ @[arg0] = count(); }}"
        f" ur:{guest}:factorial {{ @f = max(retval); }} END {{ clear(@f); }}"
    )
    found = run("bpftrace", "-q", "-e", script, "--", guest, cwd=CHECKOUT)
    assert found.out.endswith("\n\n@[2]: 233\n@[1]: 377\n"), found.err


def test_words_of_the_command_line(program: Path, tmp_path: Path) -> None:
    script = tmp_path / "sizes.bt"
    script.write_text(
        f"#!/usr/bin/env -S kprobe-tui bpftrace\nuprobe:{program}:fib /arg0 > $1/"
        " { @[str($2)] = count(); }\n"
    )
    words = ("bpftrace", "-q", str(script), "4", "big")
    assert "@[big]: 2" in run(*words, "--", str(program), cwd=tmp_path).out
    out = tmp_path / "out"
    found = run(*words[:2], "-o", str(out), *words[2:], "--", str(program), cwd=tmp_path)
    assert (found.out, out.read_text()) == (GUEST, "\n\n@[big]: 2\n")
    found = run("bpftrace", "-f", "json", *words[2:], "--", str(program), cwd=tmp_path)
    lines = [json.loads(line) for line in found.out.splitlines() if line.startswith("{")]
    assert {"type": "map", "data": {"@": {"big": 2}}} in lines
    dry = run("bpftrace", "--dry-run", *words[2:], "--", str(program), cwd=tmp_path)
    assert (dry.code, dry.out) == (0, "")
    named = ("-q", "-e", 'BEGIN { print(getopt("n", 1)); exit(); }', "--", "--n=5", "--")
    assert run("bpftrace", *named, str(program), cwd=tmp_path).out == "5\n\n\n"
    for wrong, text in (
        ((), "no GUEST"),
        (("-e", "BEGIN { }"), "no GUEST"),
        (("--", str(program)), "no script"),
        (("/no/such.bt", "--", str(program)), "/no/such.bt: No such file"),
        (("-e", "BEGIN {", "--", str(program)), "stdin:1:8"),
        (("-l", "struct nobody", "--", str(program)), "struct nobody is not known"),
        (("-l", "a", "b", "--", str(program)), "-l: one pattern, or a script"),
    ):
        found = run("bpftrace", *wrong, cwd=tmp_path)
        assert found.code == 2, found.err
        assert text in found.err


def test_what_there_is(program: Path) -> None:
    def listed(*words: str) -> list[str]:
        found = run("bpftrace", *words, "--", str(program), cwd=program.parent)
        assert found.code == 0, found.err
        return found.out.replace(str(program), "PROGRAM").splitlines()

    assert listed("-l", f"uprobe:{program}:w*k") == ["uprobe:PROGRAM:work"]
    assert listed("-lv", f"uprobe:{program}:work")[1:] == [
        "    struct node* n",
        "    const char* s",
        "    short k",
        "    unsigned char c",
        "    enum color e",
        "    int* p",
        "    int retval",
    ]
    assert listed("-lv", "t:syscalls:sys_enter_openat") == [
        "tracepoint:syscalls:sys_enter_openat",
        "    int __syscall_nr",
        "    int dfd",
        "    const char * filename",
        "    int flags",
        "    umode_t mode",
    ]
    assert listed("-l", "*_nanosleep") == [
        "tracepoint:syscalls:sys_enter_clock_nanosleep",
        "tracepoint:syscalls:sys_exit_clock_nanosleep",
        "tracepoint:syscalls:sys_enter_nanosleep",
        "tracepoint:syscalls:sys_exit_nanosleep",
    ]
    assert listed("-l", "uprobe:./prog*:work,ur:./p*m:[v-x]*") == [
        "uprobe:./program:work",
        "uretprobe:./program:work",
    ]
    assert listed("-lv", "struct inner") == [
        "struct inner {",
        "    int a;",
        "    char *name;",
        "}",
    ]
    script = f"BEGIN {{ }} i:ms:$1 {{ }} u:{program}:w* {{ }} t:sched:sched_process_ex* {{ }}"
    probes = [
        "interval:ms:",
        "uprobe:PROGRAM:work",
        "tracepoint:sched:sched_process_exec",
        "tracepoint:sched:sched_process_exit",
    ]
    assert listed("-l", "-e", script, "10") == probes
    (program.parent / "probes.bt").write_text(script)
    assert listed("-l", "probes.bt", "10") == probes
    every = listed("-l")
    assert {"interval:ms:", "self:signal:SIGUSR1", "tracepoint:raw_syscalls:sys_exit"} <= {*every}
    assert len(every) > 600


MARKED = r"""
#include "markers.h"
long counter;
SEMAPHORE(step_semaphore);
int main(void)
{
    for (int i = 0; i < 5; i++) {
        counter += i;
        if (step_semaphore)
            MARKER("demo", "step", "step_semaphore", "-4@%0 8@%1", "nor"(i), "nor"("text"));
    }
    MARKER("demo", "last", "0", "-8@%0", "nor"(counter));
    return 0;
}
"""


def test_markers_and_stores(tmp_path: Path) -> None:
    headers = CHECKOUT / "tests" / "data" / "markers"
    guest = build(tmp_path, "marked", MARKED, "-O0", "-no-pie", "-I", str(headers))
    symbol = next(
        int(line.split()[0], 16)
        for line in subprocess.run(
            [tool("nm"), guest], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        if line.endswith(" counter")
    )
    script = (
        f"usdt:{guest}:demo:step {{ @[str(arg1)] = sum(arg0); }}"
        f" usdt:{guest}:last {{ @last = arg0; @name[probe] = 1; }}"
        f" watchpoint:{symbol:#x}:8:w {{ @stores = count(); }}"
    )
    found = run("bpftrace", "-q", "-e", script, "--", str(guest), cwd=tmp_path)
    expected = f"@[text]: 10\n@last: 10\n@name[usdt:{guest}:demo:last]: 1\n@stores: 5\n"
    assert found.out == f"\n\n{expected}", found.err


def test_a_recorded_run_gives_the_same(program: Path, tmp_path: Path) -> None:
    script = tmp_path / "past.bt"
    script.write_text(
        f'uprobe:{program}:work {{ printf("%s %d\\n", str(arg1), nsecs > 0); }}'
        f" uprobe:{program}:fib {{ @[arg0, tid] = count(); }}"
        " t:syscalls:sys_enter_write { @w[str(args.buf, args.count)] = count(); }"
    )
    recording = str(tmp_path / "run")
    assert run("record", "-o", recording, str(program), cwd=tmp_path).code == 3
    past = run("replay", "--bpftrace", str(script), recording, cwd=tmp_path)
    now = run("bpftrace", "-q", str(script), "--", str(program), cwd=tmp_path)
    assert (past.code, past.out) == (3, now.out), past.err
    assert now.out.startswith("hello 1\nwork 208\nhello 1\nwork 207\n\n\n@[5, 1000]: 1\n")
    script.write_text("interval:ms:1 { }")
    refused = run("replay", "--bpftrace", str(script), recording, cwd=tmp_path)
    assert refused.code == 2
    assert "would change a run that is recorded" in refused.err


def test_the_tool_hears_signals(tmp_path: Path) -> None:
    script = (
        'self:signal:SIGUSR1 { printf("first"); } self:signal:SIGUSR1'
        ' { printf(" second\\n"); exit(4); } BEGIN { printf("begin\\n"); }'
    )
    guest = ("/bin/sh", "-c", "while :; do :; done")
    words = ("bpftrace", "-e", script, "--timeout", "60", "--", *guest)
    with start(*words, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begin\n"
        while process.poll() is None:
            process.send_signal(signal.SIGUSR1)
            time.sleep(0.1)
        assert process.stdout.read() == b"first second\n\n\n"
    assert process.returncode == 4


def test_files_that_a_script_imports_and_the_guest_as_target(
    program: Path, tmp_path: Path
) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "twice.bt").write_text("macro twice(x) { x * 2 }\n")
    script = tmp_path / "main.bt"
    script.write_text('import "parts/twice.bt";\nuprobe:fib /arg0 > 5/ { print(twice(arg0)); }\n')
    words = ("bpftrace", "-q", str(script), "--", str(program))
    found = run(*words, cwd=program.parent)  # imports are relative to the script's file
    assert found.out == f"{GUEST}12\n\n\n", found.err
    (tmp_path / "parts" / "twice.bt").write_text("macro twice(x) { x * }\n")
    found = run(*words, cwd=program.parent)
    assert found.code == 2
    assert "twice.bt:1:22" in found.err


PAGES = r"""
#include <fcntl.h>
#include <sys/mman.h>
__attribute__((aligned(65536))) const char far[65536] = "far", name[65536] = "/nowhere";
__attribute__((noinline)) void look(const char *text)
{
    __asm__ volatile("" :: "r"(text) : "memory");
}
int main(void)
{
    char *memory = mmap(0, 8192, 3, 0x22, -1, 0);
    look(far);
    look(memory);
    memory[0] = 'h';
    look(memory);
    look((char *)8);
    *(volatile char *)memory = *(volatile const char *)far;
    look(far + 1);
    open(name, 0);
    return 0;
}
"""


@pytest.mark.parametrize(
    ("mode", "untouched", "asked"),
    [("strict", "[far] 102", "[/nowhere]"), ("kernel", "[] 0", "[]")],
)
def test_pages_that_nobody_has_used_yet(
    tmp_path: Path, mode: str, untouched: str, asked: str
) -> None:
    """The lines of the uprobe are in kernel mode those of bpftrace 0.17 on Linux 6.18."""
    build(tmp_path, "pages", PAGES, "-O1")
    script = (
        'uprobe:./pages:look { printf("[%s] %d\\n", str(arg0), *(int8 *)arg0); @looked = 1; }'
        " t:syscalls:sys_enter_openat /@looked/ { @at = args.filename;"
        ' printf("in [%s]\\n", str(args.filename)); }'
        ' t:syscalls:sys_exit_openat /@looked/ { printf("out [%s]\\n", str(@at)); }'
    )
    words = ("-q", "--mode", mode, "-e", script, "--", "./pages")
    found = run("bpftrace", *words, cwd=tmp_path)
    lines = [untouched, "[] 0", "[h] 104", "[] 0", "[ar] 97", f"in {asked}", "out [/nowhere]"]
    assert found.out.splitlines()[:7] == lines, found.err


MANY = r"""
#include <stdlib.h>
__attribute__((noinline)) int hit(unsigned x) { __asm__ volatile(""); return x; }
int main(int argc, char **argv)
{
    unsigned x = 1;
    for (long i = atol(argv[1]); i > 0; i--) { x = x * 1103515245 + 12345; hit(x >> 12 & 4095); }
    return 0;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("bpftrace", "-q", "-o", "/dev/null", "many.bt", "--"),
        ("trace", "--bpftrace", "many.bt", "-e", "syscalls/*", "-o", "/dev/null"),
    ],
)
def test_many_hits_keep_no_more_than_few(tmp_path: Path, command: tuple[str, ...]) -> None:
    build(tmp_path, "many", MANY, "-O1")
    (tmp_path / "many.bt").write_text(
        "uprobe:./many:hit { @[arg0] = count(); @h[comm] = hist(arg0); @at[tid] = nsecs; }"
        " uretprobe:./many:hit /@at[tid]/ { @l = max(nsecs); @k[retval] = 1; delete(@at[tid]); }"
    )
    few, many = (run(*command, "./many", count, cwd=tmp_path) for count in ("100000", "500000"))
    assert (few.code, many.code) == (0, 0), many.err
    assert many.rss - few.rss <= 1  # mebibytes: three bytes a hit would be more
