"""`kprobe-tui graph`: its options, its sites, what it says at the end."""

import re
from pathlib import Path

import pytest
from archkit import FIRST_COMPILED
from graphkit import compiled, traced
from guestrun import run
from sessionkit import SAMPLES, loaded

from engine.chapters import load_chapter
from engine.session.protocol.requests import GraphOptions

SOURCE = """
#define N __attribute__((noinline))
struct pair { long a, b; };
volatile long n;
N int leaf(int a, const char *text, unsigned char c) { n++; return a - 5; }
N long two(struct pair p, double d, unsigned long last) { n++; return p.a + last; }
N int inner(int a) { n++; return leaf(a, "x", 200) + 1; }
N int outer(int a) { n++; return inner(a) + inner(a + 1) + (int)two((struct pair){1, 2}, 1.0, 7); }
int main(void) { return outer(3) == 7 ? 0 : 1; }
"""
FLAGS = ("-g", "-O1", "-fno-optimize-sibling-calls", "-fcf-protection=none")


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("graph"), SOURCE, "x86_64", *FLAGS)


def graph(guest: Path, *words: str) -> str:
    """The trace without its header and durations."""
    done = run("graph", *words, str(guest), cwd=guest.parent)
    assert done.code == 0, done.err
    lines = [line for line in done.err.splitlines() if line.startswith(" 0) ")]
    return "\n".join(line.partition("|  ")[2] for line in lines)


ALL = ("-f", "main", "-f", "outer", "-f", "inner", "-f", "leaf", "-f", "two")


def test_the_graph(guest: Path) -> None:
    assert graph(guest, *ALL) == (
        "main() {\n"
        "  outer() {\n"
        "    inner() {\n"
        "      leaf();\n"
        "    }\n"
        "    inner() {\n"
        "      leaf();\n"
        "    }\n"
        "    two();\n"
        "  }\n"
        "}"
    )


def test_arguments_and_values(guest: Path) -> None:
    text = graph(guest, *ALL, "--args", "--retval")
    assert "inner(a=3) {" in text
    assert re.search(r"leaf\(a=3, text=0x[0-9a-f]+ \"x\", c=200 '\\310'\); /\* ret=-2 \*/", text)
    assert "two(p={a = 1, b = 2}, d=1, last=7); /* ret=8 */" in text
    assert "} /* outer ret=7 */" in text
    text = graph(guest, *ALL, "--args", "--retval", "--mode", "kernel")
    assert re.search(r"leaf\(a=3, text=0x[0-9a-f]+, c=0xc8\); /\* ret=-2 \*/", text)
    assert "two(last=0x7); /* ret=0x8 */" in text
    assert "} /* outer ret=0x7 */" in text
    assert "} /* inner ret=-1 */" in text
    assert "ret=0xfffffffe" in graph(guest, *ALL, "--option", "funcgraph-retval-hex")


def test_depth_under_and_not(guest: Path) -> None:
    assert graph(guest, *ALL, "--max-depth", "2") == "main() {\n  outer();\n}"
    assert graph(guest, *ALL, "--under", "inner") == "\n".join(["inner() {\n  leaf();\n}"] * 2)
    assert graph(guest, *ALL, "--not", "inner") == "main() {\n  outer() {\n    two();\n  }\n}"
    under = graph(guest, "-f", "leaf", "--under", "inner", "--option", "funcgraph-tail")
    assert under == "inner() {\n  leaf();\n} /* inner */\ninner() {\n  leaf();\n} /* inner */"


def test_the_function_tracer(guest: Path, tmp_path: Path) -> None:
    out = tmp_path / "trace"
    words = ("graph", "--tracer", "function", *ALL, "--not", "two", "-o", str(out))
    assert run(*words, str(guest), cwd=tmp_path).code == 0
    lines = out.read_text().splitlines()
    assert lines[0] == "# tracer: function"
    calls = [line.split(": ", 1)[1] for line in lines if not line.startswith("#")]
    assert calls[1:] == [
        "outer <-main",
        "inner <-outer",
        "leaf <-inner",
        "inner <-outer",
        "leaf <-inner",
    ]
    assert calls[0].startswith("main <-")


def test_the_last_events_of_a_ring(guest: Path) -> None:
    done = run("graph", *ALL, "--buffer", "3", "--overwrite", str(guest), cwd=guest.parent)
    lines = done.err.splitlines()
    assert "CPU:0 [LOST 11 EVENTS]" in lines
    tail = [line.partition("|  ")[2] for line in lines if line.startswith(" 0) ")]
    assert tail == ["    two();", "  }", "}"] or tail == [
        "    } /* two */",
        "  } /* outer */",
        "} /* main */",
    ]


def test_a_list_defines_what_would_be_traced(guest: Path, tmp_path: Path) -> None:
    """Nothing runs, a file that is there stays; the lines give `trace` the same calls."""
    kept = tmp_path / "trace"
    kept.write_text("precious")
    words = ("--args", "--retval", "--not", "two", "-o", str(kept))
    done = run("graph", "--list", *ALL, *words, str(guest), cwd=tmp_path)
    assert (done.code, done.err, kept.read_text()) == (0, "", "precious")
    lines = done.out.splitlines()
    assert lines[2:4] == [
        "p:kprobes/p_outer_0 outer a=a",
        "r:kprobes/r_outer_0 outer ret=$retval",
    ]
    assert not any("two" in line for line in lines)
    again = [word for line in lines for word in ("-e", line)]
    traced = run("trace", *again, str(guest), cwd=tmp_path)
    rows = re.findall(r": ([pr]_\w+)_0: \(", traced.err)
    assert rows == [
        *("p_main", "p_outer", "p_inner", "p_leaf", "r_leaf", "r_inner"),
        *("p_inner", "p_leaf", "r_leaf", "r_inner", "r_outer", "r_main"),
    ]
    for_perf = run("graph", "--list-as", "perf", "-f", "two", str(guest), cwd=tmp_path).out
    assert for_perf.splitlines() == [
        f"perf probe -x {guest} kprobes:p_two_0=two",
        f"perf probe -x {guest} kprobes:r_two_0=two%return",
    ]
    calls = run("graph", "--list", "--tracer", "function", *ALL, str(guest), cwd=tmp_path).out
    assert [line[0] for line in calls.splitlines()] == ["p"] * 5


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--overwrite",), "--overwrite needs --buffer"),
        (("--tracer", "function", "--retval"), "--retval is for calls with their returns"),
        (("--tracer", "function", "--max-depth", "3"), "--max-depth is for calls"),
        (("-f", "nobody"), "-f nobody: no function matches"),
        (("--under", "libnone.so:*"), "no library 'libnone.so'"),
        (("--option", "funcgraph-irqs"), "no trace option funcgraph-irqs"),
    ],
)
def test_bad_usage(words: tuple[str, ...], what: str, tmp_path: Path) -> None:
    done = run("graph", *words, str(SAMPLES / "x86_64" / "recursion"), cwd=tmp_path)
    assert done.code == 2
    assert what in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("arch", "flags", "nops"),
    [
        ("x86_64", ("-pg", "-mfentry", "-mnop-mcount", "-mrecord-mcount", "-fno-pie"), True),
        ("x86_64", ("-fpatchable-function-entry=5",), True),
        ("x86_64", ("-fpatchable-function-entry=6,2", "-fcf-protection=branch"), True),
        ("aarch64", ("-fpatchable-function-entry=2",), True),
        ("aarch64", ("-fpatchable-function-entry=2", "-mbranch-protection=bti"), True),
        ("x86_64", ("-fcf-protection=branch",), False),
    ],
)
def test_entries_that_a_compiler_has_prepared(
    arch: str, flags: tuple[str, ...], nops: bool, tmp_path: Path
) -> None:
    keep = tuple(flag for flag in FLAGS if "cf-protection" not in flag)
    guest = compiled(tmp_path, SOURCE, arch, *keep, *flags)
    names = ("main", "outer", "inner", "leaf", "two")
    with loaded(guest) as plain:
        code = plain.run().exit_code
    with loaded(guest) as session:
        done = traced(session.session, *names, options=GraphOptions(args=True))
        assert done.reports.exit_code == code
        assert done.check() == 0
        assert done.graphing.calls is not None
        assert done.graphing.calls.exits == 7
        text = "\n".join(done.graphing.summary().lines)
    assert ("entries: 5 are nops" in text) is nops
    assert ("5 begin with a landing pad" in text) is ("branch" in " ".join(flags))
    listed = "__mcount_loc" if "-pg" in flags else "__patchable_function_entries"
    assert (f"in {listed}" in text) is nops


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_what_is_refused_is_named(arch: str, tmp_path: Path) -> None:
    """An exclusive load, or an instruction that only raises an exception, at its beginning."""
    body = {
        "x86_64": "hard: ud2",
        "aarch64": "hard: ldxr x1, [x0]\\nstxr w2, x1, [x0]\\ncbnz w2, hard\\nret",
        "riscv64": "hard: lr.d a1, (a0)\\nsc.d a2, a1, (a0)\\nbnez a2, hard\\nret",
    }[arch]
    source = f"""
long word; extern int hard(long *); extern void soft(void); void *target = soft;
__asm__(".text\\n.globl hard, soft\\n.type hard,%function\\n.type soft,%function\\n"
"{body}\\n.size hard, .-hard\\nsoft: ret\\n.size soft, .-soft\\n");
int main(void) {{ if (word) hard(&word); return 0; }}
"""
    guest = compiled(tmp_path, source, arch, "-O1")
    done = run("graph", "-f", "main", "-f", "hard", "--summary", str(guest), cwd=tmp_path)
    assert done.code == 0
    assert "kprobe-tui: 1 functions are not traced:\nkprobe-tui:   hard+0x0: " in done.err
    assert "1 functions traced, 1 refused" in done.err
    assert re.search(r"slots: \d of \d+ bytes", done.err)
    assert re.search(r"memory: \d+ bytes a function", done.err)


def test_it_is_described() -> None:
    assert "kprobe-tui graph" in load_chapter("functions").text
