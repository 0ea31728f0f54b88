"""Steps into libraries, out of selected frames, and under settings, as gdb 13 takes them."""

import re
import subprocess
from pathlib import Path

import pytest
from compiled import tool
from gdbwords import said

from engine.session.protocol.config import GuestConfig

MAIN = """\
int shared(int n);
int blind(int n);

static int three(void)
{
    int n = shared(1);
    n += blind(n);
    return n;
}

int main(void)
{
    int n = three();
    n++;
    return n & 1;
}
"""
_FIB = """\
static int fib(int n)
{
    if (n < 2)
        return 1;
    int a = fib(n - 1);
    int b = fib(n - 2);
    return a + b;
}
int main(void)
{
    int n = fib(2);
    return n;
}
"""
SHARED = """\
int __impl(int n)
{
    return n + 1;
}
int shared(int n) __attribute__((alias("__impl")));
"""
COMPILERS = {
    "x86_64": "gcc",
    "aarch64": "aarch64-linux-gnu-gcc",
    "riscv64": "riscv64-linux-gnu-gcc",
}
STOP = ("set breakpoint pending on", "break __impl", "run")
LOADERS = {
    "aarch64": ("/usr/aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
    "riscv64": ("/usr/riscv64-linux-gnu", "ld-linux-riscv64-lp64d.so.1"),
}


def built(folder: Path, arch: str) -> GuestConfig:
    """The program, with a library that has line information and one that has none."""
    gcc = tool(COMPILERS[arch])
    (folder / "main.c").write_text(MAIN)
    (folder / "shared.c").write_text(SHARED)
    (folder / "blind.c").write_text("int blind(int n) { return n * 2; }\n")
    library = ["-shared", "-fPIC"]
    tree, loader = LOADERS.get(arch, ("", ""))
    loaded = [f"-Wl,-rpath,$ORIGIN:{tree}/lib"]
    loaded += [f"-Wl,--dynamic-linker={tree}/lib/{loader}"] if tree else []
    for line in (
        [*library, "-g", "-o", "libshared.so", "shared.c"],
        [*library, "-o", "libblind.so", "blind.c"],
        ["-g", "-O0", "-o", "p", "main.c", "-L.", "-lshared", "-lblind", *loaded],
    ):
        subprocess.run([gcc, *line], cwd=folder, check=True)
    shares = (str(folder), tree) if tree else (str(folder),)
    return GuestConfig(str(folder / "p"), shares=tuple((path, False) for path in shares))


@pytest.mark.parametrize("arch", COMPILERS)
def test_a_step_enters_a_library_with_lines_and_passes_one_without(
    tmp_path: Path, arch: str
) -> None:
    program = built(tmp_path, arch)
    lines = ("break three", "run", "step", "bt 2", "finish", "step", "step", "p n")
    out = said(program, *lines)
    # The function is called as its source calls it, in its line and in the list of frames.
    assert "\n__impl (n=1) at shared.c:3\n3\t    return n + 1;\n#0  __impl (n=1)" in out
    assert "\n7\t    n += blind(n);\n8\t    return n;\n$2 = 6\n" in out


def test_with_step_mode_a_step_stops_in_what_has_no_lines(tmp_path: Path) -> None:
    program = built(tmp_path, "x86_64")
    lines = ("break 7", "run", "set step-mode on", "step", "step", "p $pc == &blind + 1", "finish")
    out = said(program, *lines)
    assert "in blind () from " in out
    assert out.count("in blind () from ") == 2  # at its first instruction and its second
    assert "three () at main.c:7" in out


def test_until_and_steps_are_the_innermost_frames(tmp_path: Path) -> None:
    program = built(tmp_path, "x86_64")
    stop = ("break 8", "run", "frame 1")
    assert said(program, *stop, "until").endswith("9\t}\n")
    assert said(program, *stop, "next").endswith("9\t}\n")


def test_numbers_frames_and_files_are_shown_as_is_set(tmp_path: Path) -> None:
    program = built(tmp_path, "x86_64")
    lines = (*STOP, "set output-radix 16", "p 255", "p -1", "p 'A'", "bt 1")
    out = said(program, *lines, "set output-radix 8", "p 8", "set output-radix 10", "p 8")
    assert "$1 = 0xff\n$2 = 0xffffffff\n$3 = 0x41\n#0  __impl (n=0x1) at " in out
    assert out.endswith("$4 = 010\n$5 = 8\n")
    stop = STOP
    rows = said(program, *stop, "set backtrace limit 2", "bt").splitlines()
    assert [line[:2] for line in rows[-2:]] == ["#0", "#1"]
    rows = said(program, *stop, "set backtrace past-main on", "bt").splitlines()
    assert any(" in main () " in line for line in rows[-5:-1])
    assert "_start ()" in rows[-1]
    for how, name in (("absolute", tmp_path / "shared.c"), ("basename", "shared.c")):
        out = said(program, *stop, f"set filename-display {how}", "bt 1")
        assert out.endswith(f"#0  __impl (n=1) at {name}:3\n")


def test_the_instructions_of_the_next_line_are_shown(tmp_path: Path) -> None:
    program = built(tmp_path, "x86_64")
    lines = ("break main", "run", "set disassemble-next-line on", "next", "stepi")
    out = said(program, *lines).splitlines()
    at = out.index("14\t    n++;")
    assert out[at + 1].startswith("=> 0x")
    assert "<main+" in out[at + 1]
    raw, text = out[at + 1].split("\t")[1:]
    assert len(raw) == 19
    assert bytes.fromhex(raw)
    assert text.startswith("addl ")


def test_words_are_traced_with_their_depth(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("define twice\n  p $arg0 * 2\nend\ntwice 4\nif 1\n  p 5\nend\n")
    program = built(tmp_path, "x86_64")
    out = said(program, "set trace-commands on", f"source {script}", "set trace-commands off")
    assert out == (
        f"+source {script}\n+define twice\n+twice 4\n++p 4 * 2\n$1 = 8\n+if 1\n++p 5\n$2 = 5\n"
        "+set trace-commands off\n"
    )


def test_libraries_are_listed_with_their_code(tmp_path: Path) -> None:
    program = built(tmp_path, "x86_64")
    out = said(
        program, "break three", "run", "info sharedlibrary", "p/x (long)&__impl"
    ).splitlines()
    head = "From                To                  Syms Read   Shared Object Library"
    rows = [line.split() for line in out[out.index(head) + 1 : -2]]
    found = {path.rpartition("/")[2]: (words, read) for *words, read, path in map(marked, rows)}
    assert found["libshared.so"][1] == "Yes"
    assert found["libblind.so"][1] == "Yes(*)"
    first, last = (int(word, 16) for word in found["libshared.so"][0])
    assert first < int(out[-1].partition(" = ")[2], 16) < last
    assert out[-2] == "(*): Shared library is missing debugging information."


def marked(words: list[str]) -> list[str]:
    """A row with the mark of missing information beside the word that it belongs to."""
    return [*words[:2], "".join(words[2:-1]), words[-1]]


def test_a_result_is_not_shown_where_that_is_set(tmp_path: Path) -> None:
    program = built(tmp_path, "x86_64")
    out = said(program, *STOP, "set print finish off", "finish", "p $")
    assert out.endswith("Value returned is $1 = <not displayed>\n$2 = 2\n")


THREADS = """\
#include <pthread.h>
#include <sched.h>
volatile int other, stop;
static void *work(void *p) { while (!stop) other++; return p; }
int moves(void) { int a = other; for (int i = 0; i < 20; i++) sched_yield(); return other > a; }
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    while (!other) ;
    int a = other;
    for (int i = 0; i < 20; i++) sched_yield();
    int b = other;
    stop = 1;
    pthread_join(t, 0);
    return a == b;
}
"""


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        ((), True),
        (("set scheduler-locking on",), False),
        (("set scheduler-locking step",), False),
        (("set scheduler-locking on", "set scheduler-locking off"), True),
    ],
)
def test_other_threads_run_as_is_set(tmp_path: Path, words: tuple[str, ...], runs: bool) -> None:
    (tmp_path / "t.c").write_text(THREADS)
    command = [tool("gcc"), "-g", "-O0", "-static", "-pthread", "-o", "t", "t.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    stop = ("break 12", "run", *words)
    out = said(GuestConfig(str(tmp_path / "t")), *stop, "next", "next", "p b > a")
    assert out.endswith(f"$1 = {int(runs)}\n")
    called = "set scheduler-locking step" in words or runs  # a call is no step
    out = said(GuestConfig(str(tmp_path / "t")), *stop, "p moves()")
    assert out.endswith(f"$1 = {int(called)}\n")


def test_a_continue_runs_all_threads_where_steps_are_locked(tmp_path: Path) -> None:
    (tmp_path / "t.c").write_text(THREADS)
    command = [tool("gcc"), "-g", "-O0", "-static", "-pthread", "-o", "t", "t.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    stop = ("break 12", "run", "next", "break 14", "set scheduler-locking step", "step")
    config = GuestConfig(str(tmp_path / "t"))
    assert said(config, *stop, "p b > a").endswith("$1 = 1\n")  # line 12 was over before
    locked = ("break 12", "break 14", "run", "set scheduler-locking step", "continue", "p b > a")
    assert said(config, *locked).endswith("$1 = 1\n")


@pytest.mark.slow
def test_a_continue_leaves_other_threads_where_they_are_if_all_are_locked(tmp_path: Path) -> None:
    (tmp_path / "t.c").write_text(THREADS)
    command = [tool("gcc"), "-g", "-O0", "-static", "-pthread", "-o", "t", "t.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    config = GuestConfig(str(tmp_path / "t"))
    stop = ("break 12", "break 14", "run", "set scheduler-locking on")
    out = said(config, *stop, "set var a = other", "continue", "p b > a")
    assert out.endswith("$1 = 0\n")


INLINED = """\
volatile int seen;
static inline __attribute__((always_inline)) int weigh(int n)
{
    seen += n;
    return seen * 2;
}
int main(int argc, char **argv)
{
    int a = argc + weigh(argc) + weigh(2);
    int b = a;
    return a == b;
}
"""


def test_next_passes_inlined_functions_and_step_enters_them(tmp_path: Path) -> None:
    """gdb/infrun.c, process_event_stop_test: "stepping through inlined function"."""
    (tmp_path / "in.c").write_text(INLINED)
    command = [tool("gcc"), "-g", "-O0", "-static", "-o", "in", "in.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    config = GuestConfig(str(tmp_path / "in"))
    over = said(config, "break 9", "run", "next", "next").splitlines()
    assert over[-2:] == ["10\t    int b = a;", "11\t    return a == b;"]
    into = said(config, "break 9", "run", "step", "next", "next", "next").splitlines()
    assert into[-6:-2] == [
        "weigh (n=2) at in.c:4",
        "4\t    seen += n;",
        "5\t    return seen * 2;",
        into[-3],
    ]
    assert into[-3].startswith("main (argc=1, argv=0x")
    assert into[-2:] == ["9\t    int a = argc + weigh(argc) + weigh(2);", "10\t    int b = a;"]


def test_a_step_back_to_the_same_function_shows_its_line_alone(tmp_path: Path) -> None:
    (tmp_path / "fib.c").write_text(_FIB)
    subprocess.run([tool("gcc"), "-g", "-O0", "-o", "fib", "fib.c"], cwd=tmp_path, check=True)
    lines = ("break fib if n == 1", "run", "delete", *["next"] * 4, "step", *["next"] * 2)
    text = said(GuestConfig(str(tmp_path / "fib")), *lines)
    shown = [line.strip() for line in text.splitlines() if re.match(r"\d+\t|fib |main ", line)]
    assert shown[1:] == [
        *("4\t        return 1;", "8\t}", "6\t    int b = fib(n - 2);", "7\t    return a + b;"),
        *("8\t}", "main () at fib.c:12", "12\t    return n;", "13\t}"),
    ]
