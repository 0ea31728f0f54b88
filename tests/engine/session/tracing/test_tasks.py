"""The choice of threads by --pid and --comm: what is recorded, what is told."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner
from guestrun import Outcome, run
from sysroot import CHECKOUT

from engine.cli.bt import bt
from engine.cli.graph import graph
from engine.cli.trace import trace

RACE = str(CHECKOUT / "samples" / "bin" / "x86_64" / "race")


def threads(lines: Iterable[str]) -> Counter[int]:
    return Counter(int(n) for line in lines for n in re.findall(r"^ *\S+-(\d+) +\[000\]", line))


def traced(home: Path, *words: str) -> Outcome:
    return run("trace", "-e", "p:g/add add_one", "-o", "out", *words, RACE, "3", cwd=home)


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        pytest.param(("--pid", "1002"), {1002: 100}, marks=pytest.mark.slow),
        (("--pid", "1001", "--pid", "7", "--comm", "r?ce"), {1001: 100}),
        (("--pid", "1000"), {1001: 100, 1002: 100, 1003: 100}),
        (("--comm", "race", "--stack"), {1001: 200, 1002: 200, 1003: 200}),
        pytest.param(
            ("--pid", "1003", "--filter", "g/add:common_pid != 1003"), {}, marks=pytest.mark.slow
        ),
        pytest.param(
            ("--pid", "1003", "--technique", "breakpoint"), {1003: 100}, marks=pytest.mark.slow
        ),
    ],
)
def test_events_of_some_threads(
    tmp_path: Path, words: tuple[str, ...], recorded: dict[int, int]
) -> None:
    done = traced(tmp_path, *words)
    assert (done.code, done.out) == (0, "3 threads counted 300 of 300\n")
    lines = (tmp_path / "out").read_text("utf-8").splitlines()
    assert threads(lines) == recorded


def test_triggers_do_not_see_the_others(tmp_path: Path) -> None:
    traced(tmp_path, "--pid", "1002", "--trigger", "g/add:hist:keys=common_pid")
    text = (tmp_path / "out").read_text("utf-8")
    assert re.findall(r"common_pid: +(\d+) } hitcount: +(\d+)", text) == [("1002", "100")]


def test_what_never_was_there_is_told(tmp_path: Path) -> None:
    done = traced(tmp_path, "--pid", "1002,4711", "--comm", "bash")
    assert "--pid 4711, --comm bash: the guest had no such process or thread; there were" in (
        done.err
    )
    assert "1002 race (of process 1000)" in done.err


@pytest.mark.parametrize("word", ["x", "-1", "0", "1000,", "1000;2", "4294967296", "³"])
@pytest.mark.parametrize("command", [trace, graph, bt], ids=lambda command: command.name)
def test_what_is_no_id(command: Command, word: str) -> None:
    done = CliRunner().invoke(command, ["--pid", word, RACE])
    assert done.exit_code == 2
    assert "is no id of a process or thread" in done.output


@pytest.mark.parametrize(
    "tracer", ["function_graph", pytest.param("function", marks=pytest.mark.slow)]
)
def test_calls_of_some_threads(tmp_path: Path, tracer: str) -> None:
    done = run("graph", "--tracer", tracer, "-f", "add_one", "--pid", "1003", "-o", "out",
               "--option", "funcgraph-proc" if tracer == "function_graph" else "func-args",
               RACE, "3", cwd=tmp_path)  # fmt: skip
    assert done.code == 0, done.err
    text = (tmp_path / "out").read_text("utf-8")
    assert len(re.findall(r"race-1003 .*\badd_one", text)) == 100
    assert not re.search(r"race-100[12] .*\badd_one", text)


@pytest.mark.slow
def test_a_backtrace_of_some_threads(tmp_path: Path) -> None:
    words = ("bt", "--json", "--all-threads", "--at", "add_one", "--hit", "100")
    done = run(*words, "--pid", "1002", RACE, "3", cwd=tmp_path)
    found = json.loads(done.out)
    assert [frame["function"] for frame in found["frames"]][:2] == ["add_one", "worker"]
    assert 1002 not in [other["thread"] for other in found["threads"]]
    done = run(*words, "--comm", "none", RACE, "3", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert "--comm none: the guest had no such process or thread" in done.err
