"""Events as lines that define them again: those of patterns, system calls and handlers, too."""

from pathlib import Path

import pytest
from compiled import build
from guestrun import Outcome, run

SOURCE = """
#include <stdlib.h>
static __attribute__((noinline)) int helper(int x) { return x * 3 + 1; }
__attribute__((noinline)) int work(int x) { return helper(x) + 2; }
int main(int argc, char **argv) { free(malloc(argc)); return work(argc) != 6; }
"""
TWIN = "__attribute__((noinline)) static int helper(int x) { return x; }\n"
HANDLERS = """
def pre(probe, regs): pass
def init(): raise SystemExit("the guest does not run")
probes = [Kprobe(symbol_name="work", pre_handler=pre), Kretprobe(symbol_name="helper")]
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return build(tmp_path, "prog", SOURCE, "-O1", "-no-pie")


def trace(program: Path, *words: str) -> Outcome:
    return run("trace", *words, str(program), cwd=program.parent)


def listed(program: Path, *words: str) -> list[str]:
    done = trace(program, *words)
    assert done.code == 0, done.err
    assert done.err == ""
    return done.out.splitlines()


def test_events_of_patterns_are_listed(program: Path) -> None:
    assert listed(program, "-f", "work", "--list") == ["p:kprobes/p_work_0 work"]
    assert listed(program, "-r", "h*r", "-f", "work", "-e", "p:g/x main n=%di", "--list") == [
        "p:g/x main n=%di",
        "p:kprobes/p_work_0 work",
        "r:kprobes/r_helper_0 helper",
    ]
    assert listed(program, "-f", "libc.so.6:malloc", "--list") == [
        "p:kprobes/p_malloc_0 libc.so.6:malloc"
    ]
    perf = listed(program, "-f", "work", "-r", "work", "--list-as", "perf")
    assert perf == [
        f"perf probe -x {program} kprobes:p_work_0=work",
        f"perf probe -x {program} kprobes:r_work_0=work%return",
    ]


def told(text: str) -> list[str]:
    """All but what indirect functions mean: a list names the implementations themselves."""
    return [line for line in text.splitlines() if "indirect function" not in line]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("-f", "*", "-r", "work"), marks=pytest.mark.slow),
        pytest.param(("-f", "*", "-r", "*"), marks=pytest.mark.slow),
        ("-f", "libc.so.6:m*", "-f", "libc.so.6:*free*"),
        ("-e", "syscalls/*", "-f", "main"),
    ],
    ids=" ".join,
)
def test_a_list_defines_the_same_again(program: Path, words: tuple[str, ...]) -> None:
    lines = listed(program, *words, "--list")
    assert lines
    file = program.parent / "lines"
    file.write_text("".join(f"{line}\n" for line in lines))
    assert sorted(listed(program, "-e", f"@{file}", "--list")) == sorted(lines)
    first, again = (trace(program, *given) for given in (words, ("-e", f"@{file}")))
    assert first.code == again.code == 0
    assert told(first.err) == told(again.err)
    assert first.err.count("\n") > 12


def test_a_name_of_two_functions_is_an_address(tmp_path: Path) -> None:
    (tmp_path / "twin.c").write_text(TWIN + "int other(int x) { return helper(x); }\n")
    program = build(tmp_path, "twins", SOURCE, str(tmp_path / "twin.c"), "-O1", "-no-pie")
    lines = listed(program, "-f", "helper", "--list")
    assert len(lines) == 2
    assert all(line.startswith("p:kprobes/p_helper_0 0x0") for line in lines)
    file = tmp_path / "lines"
    file.write_text("\n".join(lines))
    assert trace(program, "-e", f"@{file}").err == trace(program, "-f", "helper").err


def test_handlers_are_a_comment_and_do_not_begin(program: Path) -> None:
    file = program.parent / "handlers.py"
    file.write_text(HANDLERS)
    for words in (("--list",), ("--list-as", "perf"), ("--describe",)):
        assert listed(program, "--handlers", str(file), *words) == [
            f"# {file}: Kprobe work+0x0: what it does is code",
            f"# {file}: Kretprobe helper+0x0: what it does is code",
        ]


def test_filters_and_triggers_are_not_lost_for_other_tools(program: Path) -> None:
    words = (
        *("-f", "work", "-e", "p:g/x main n=%di", "-e", "syscalls/sys_enter_write"),
        *("--filter", "g/x:n > 3 && n != 7", "--trigger", "g/x:stacktrace:5 if n == 1"),
        *("--trigger", "syscalls/sys_enter_write:traceoff"),
    )
    events = "/sys/kernel/tracing/events"
    assert listed(program, *words, "--list-as", "tracefs")[1:4] == [
        f"echo 'n > 3 && n != 7' > {events}/g/x/filter",
        f"echo 'stacktrace:5 if n == 1' >> {events}/g/x/trigger",
        f"echo 1 > {events}/g/x/enable",
    ]
    assert listed(program, *words, "--list-as", "tracefs")[-2:] == [
        f"echo traceoff >> {events}/syscalls/sys_enter_write/trigger",
        f"echo 1 > {events}/syscalls/sys_enter_write/enable",
    ]
    for form in ("perf", "bpftrace"):
        text = "\n".join(listed(program, *words, "--list-as", form))
        for told in ("n > 3 && n != 7", "stacktrace:5 if n == 1", "sys_enter_write", "traceoff"):
            assert told in text, form


def test_what_is_refused_is_told_beside_a_list(program: Path) -> None:
    done = trace(program, "--mode", "kernel", "--list", "-e", f"p {program}:0x10")
    assert done.code == 0
    assert done.out.count("\n") == 1
    assert "it will not be hit" in done.err


def test_event_probes_on_probes_are_no_lines_of_linux(program: Path) -> None:
    words = ("-e", "p:g/x main n=%di", "-e", "e:on g.x n=$n", "-e", "e:w syscalls.sys_enter_write")
    assert listed(program, *words, "--list-as", "tracefs")[2:] == [
        "# e:eprobes/on g.x n=$n: Linux has event probes on tracepoints alone",
        "echo 'e:eprobes/w syscalls.sys_enter_write' >> /sys/kernel/tracing/dynamic_events",
        "echo 1 > /sys/kernel/tracing/events/eprobes/w/enable",
    ]
