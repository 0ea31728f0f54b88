"""Words that may stand at the end of a script."""

from pathlib import Path

import pytest
from compiled import build
from sysroot import CHECKOUT

from engine.session.browse import Browser
from engine.session.protocol.config import GuestConfig
from engine.session.tracing.script.completing import ScriptCompleter

HEADERS = CHECKOUT / "tests" / "data" / "markers"
SOURCE = r"""
#include "markers.h"
struct node { long id; };
__attribute__((noinline)) int summed(struct node *first, int count) { return count; }
__attribute__((noinline)) int sorted_by_name(int x) { return x + 1; }
int main(int argc, char **argv)
{
    MARKER("demo", "step", "0", "-4@%0", "nor"(argc));
    return summed(0, sorted_by_name(argc));
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    return build(folder, "program", SOURCE, "-g", "-O0", "-I", str(HEADERS))


@pytest.fixture(scope="module")
def completer(program: Path) -> ScriptCompleter:
    browser = Browser(GuestConfig(str(program)))
    return ScriptCompleter(browser.arch, browser.verdicts, is_kernel=False)


def words(completer: ScriptCompleter, program: Path, text: str) -> list[str]:
    """The words that take the place of the last one."""
    text = text.replace("PROGRAM", str(program))
    found = completer.script(text)
    assert all(word.startswith(text[found.start :]) for word in found.words)
    return [word.replace(str(program), "PROGRAM") for word in found.words]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("up", ["uprobe:"]),
        ("begin, e", ["end"]),
        ("begin { } end { } inter", ["interval:"]),
        ("i:", ["i:hz:", "i:s:", "i:ms:", "i:us:"]),
        ("self:", ["self:signal:SIGUSR1"]),
        ("uprobe:lib", ["uprobe:libc:"]),
        ("uprobe:summ", ["uprobe:summed"]),
        ("uprobe:PROGRAM:s", ["uprobe:PROGRAM:sorted_by_name", "uprobe:PROGRAM:summed"]),
        ("ur:libc:mallop", ["ur:libc:mallopt"]),
        ("usdt:PROGRAM:", ["usdt:PROGRAM:demo:", "usdt:PROGRAM:step"]),
        ("usdt:PROGRAM:demo:s", ["usdt:PROGRAM:demo:step"]),
        ("t:sched:sched_process_f", ["t:sched:sched_process_fork"]),
        ("tracepoint:raw", ["tracepoint:raw_syscalls:"]),
        ("// uprobe:x {\nbeg", ["begin"]),
        ("config = { max_map_keys = 3 } en", ["end"]),
        ('begin { printf("}"); un', ["unroll", "unwatch("]),
        ("uretprobe:PROGRAM:main /retv", ["retval"]),
        ("uprobe:PROGRAM:main /arg0 > 1/ { @[usern", ["username"]),
        ("begin { @ab = 1; @b = @a", ["@ab"]),
        ("begin { $one = 1; $two = $o", ["$one"]),
        ("uprobe:PROGRAM:summed { @[args.", ["first", "count"]),
        ("t:syscalls:sys_enter_openat { @[args.fl", ["flags"]),
        ("t:syscalls:sys_exit_openat { @[args.r", ["ret"]),
        ("t:sched:sched_switch { @[args->next_c", ["next_comm"]),
        ("t:raw_syscalls:sys_enter { @[args.", ["id", "args"]),
        ('begin { printf("pri', []),
        ("begin { // pri", []),
        ("begin { $x.pri", []),
        ("begin { 12", []),
        ("uprobe:/nowhere:x", []),
        ("uprobe:libc:getpid { @[args.", []),  # without debug information
        ("nobody:x", []),
        ("begin { system", []),  # what is refused is not offered
    ],
)
def test_what_fits(
    completer: ScriptCompleter, program: Path, text: str, expected: list[str]
) -> None:
    assert words(completer, program, text) == expected


def test_providers_are_those_of_the_guest(completer: ScriptCompleter, program: Path) -> None:
    found = words(completer, program, "")
    assert {"begin", "uprobe:", "tracepoint:", "usdt:", "watchpoint:"} <= {*found}
    assert "kprobe:" not in found


def test_a_word_that_is_whole_is_not_offered(completer: ScriptCompleter, program: Path) -> None:
    assert words(completer, program, "uprobe:summed") == []
    assert words(completer, program, "begin { @ = nsecs") == []


def test_any_beginning_of_a_script_can_be_asked(completer: ScriptCompleter) -> None:
    script = """#!/usr/bin/env bpftrace
        config = { missing_probes = "warn" } struct a { int b; };
        uprobe:/bin/ls:main, usdt:lib*:x:y /str(arg0) == "a/b" && @x[tid] / {
            /* of files */ if (args.count > 1) { @y[$1] = hist(args->z.w[3]); } else { exit(); }
        }
        tracepoint:syscalls:sys_enter_* { print(@, 3); } uprobe:"a:b":c, end { }"""
    for at in range(len(script)):
        found = completer.script(script[:at])
        assert 0 <= found.start <= at
