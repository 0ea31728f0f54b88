"""Functions whose compiler put a tracer's call or room at the entry are traced all the same.

The counts are those of the program; Linux counts as many with uprobes at the same entries.
"""

from pathlib import Path

import pytest
from compiled import build
from guestrun import run

SOURCE = """
#include <stdio.h>
__attribute__((noinline)) int leaf(int x) { return x * 3 + 1; }
__attribute__((noinline)) int mid(int x) {
    int s = 0;
    for (int i = 0; i < 3; i++) s += leaf(x + i);
    return s;
}
int main(void) {
    int s = 0;
    for (int i = 0; i < 4; i++) s += mid(i);
    printf("%d\\n", s);
    return 0;
}
"""
CALLS = {"leaf": 12, "mid": 4, "main": 1}


@pytest.mark.parametrize(
    "flags",
    [
        ("-pg", "-mfentry"),
        ("-pg", "-mfentry", "-fcf-protection=full"),
        ("-pg", "-mfentry", "-no-pie", "-fno-pie"),
        ("-pg", "-mfentry", "-mnop-mcount", "-no-pie", "-fno-pie"),
        ("-pg",),
        ("-fpatchable-function-entry=5",),
        ("-fpatchable-function-entry=8,3",),
    ],
)
def test_every_call_is_traced(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, "entries", SOURCE, "-O1", *flags)
    names = [word for name in CALLS for word in ("-f", name)]
    graph = run("graph", "-o", "/dev/stderr", *names, str(program), cwd=tmp_path)
    plain = run(
        "graph", "-o", "/dev/stderr", "--tracer", "function", *names, str(program), cwd=tmp_path
    )
    returns = [word for name in CALLS for word in ("-r", name)]
    events = run("trace", "-o", "/dev/stderr", *names, *returns, str(program), cwd=tmp_path)
    assert "not traced" not in graph.err + plain.err
    for name, count in CALLS.items():
        assert sum(f" {name}(" in line for line in graph.err.splitlines()) == count
        assert sum(f" {name} <-" in line for line in plain.err.splitlines()) == count
        for letter in "pr":
            shown = [line for line in events.err.splitlines() if f" {letter}_{name}_" in line]
            assert len(shown) == count


def test_a_definition_is_refused_as_the_kernel_refuses_it(tmp_path: Path) -> None:
    program = build(tmp_path, "entries", SOURCE, "-O1", "-pg", "-mfentry", "-fcf-protection=none")
    done = run("trace", "-e", "p leaf", str(program), cwd=tmp_path)
    assert done.code == 2
    assert "kprobes do not emulate it" in done.err
