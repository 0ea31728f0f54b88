"""Calls of a booted kernel's functions as a graph, traced and left while it stands."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bootcontrolkit import BootUser
from bootkit import needs_host_code
from kernelimages import AMD64_61, image_path

from engine.session.protocol import commands as cmd

pytestmark = [pytest.mark.slow, needs_host_code]
INIT = """#!/bin/sh
mount -t proc proc /proc
for n in 1 2 3 4 5 6 7; do cat /proc/uptime; done
(cat /proc/version) &
wait
poweroff -f
"""
GLOBS = ("do_sys_open*", "path_*", "vfs_read", "ksys_read")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("boot")


@pytest.fixture
def user(folder: Path) -> Iterator[BootUser]:
    user = BootUser(AMD64_61, folder, init=INIT)
    yield user
    user.close()


def calls(user: BootUser) -> list[tuple[int, int, str, dict[str, Any]]]:
    """Time, task, kind and values of the rows so far."""
    found = []
    for row in user.rows():
        names = [column.name for column in user.infos[row.id].columns]
        values = dict(zip(names, row.values, strict=True))
        found.append((row.time, row.thread_id, row.name, values))
    return found


def test_rows_are_those_of_graph_boot(user: BootUser, folder: Path, tmp_path: Path) -> None:
    """With stops, steps, the way back; and for functions of later, from power-on."""
    out = tmp_path / "out.jsonl"
    words = [sys.executable, "-P", "-m", "tui", "graph", "--boot", "--append", "quiet", "--retval"]
    words += ["--initrd", str(folder / "initrd.gz"), "--format", "jsonl", "-o", str(out)]
    for glob in GLOBS:
        words += ["-f", glob]
    subprocess.run([*words, str(image_path(AMD64_61))], check=True, stdin=subprocess.DEVNULL,
                   capture_output=True)  # fmt: skip
    traced = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(traced) > 100
    assert user.do(cmd.TraceFunctions(GLOBS)).endswith(" functions traced")
    user.do(cmd.ToggleBreak("do_sys_openat2"))
    for _ in range(3):
        assert user.do(cmd.Continue()) == "breakpoint 1 at do_sys_openat2+0x0"
        user.do(cmd.StepInsn(3))
    user.do(cmd.ContinueBack())
    user.do(cmd.ContinueBack())
    user.do(cmd.Delete((1,)))
    assert user.do(cmd.Continue()) == "the machine is switched off"
    rows = calls(user)
    assert [(time, pid, name) for time, pid, name, _ in rows] == [
        (row["time"], row["tid"], row["event"].removeprefix("ftrace/")) for row in traced
    ]
    for (_, _, _, values), row in zip(rows, traced, strict=True):
        for name in ("depth", "retval", "calltime"):
            assert values.get(name) == row["args"].get(name), row


def test_more_and_fewer_while_it_stands(user: BootUser) -> None:
    entry, leave = "funcgraph_entry", "funcgraph_exit"

    def fresh() -> list[tuple[str, int]]:
        """Go on to the next stop: the rows that have come."""
        before = len(calls(user))
        assert user.do(cmd.Continue()) == "breakpoint 1 at do_sys_openat2+0x0"
        return [(one[2], one[3]["depth"]) for one in calls(user)[before:]]

    user.do(cmd.ToggleBreak("do_sys_openat2"))
    assert fresh() == []
    opens = cmd.TraceFunctions(("do_sys_openat2",), depth=1)
    assert user.do(opens) == "1 functions traced, 1 deep"
    assert user.do(cmd.TraceFunctions(("no_such*",))).startswith("-f no_such*: no function")
    assert fresh() == [(entry, 0), (leave, 0), (entry, 0)]  # where it stops it is entered
    user.do(cmd.TraceFunctions(("get_unused_fd_flags",), depth=1))
    assert fresh() == [(leave, 0), (entry, 0)]
    user.do(cmd.TraceFunctions(("get_unused_fd_flags",)))
    assert fresh() == [(entry, 1), (leave, 1), (leave, 0), (entry, 0)]
    told = user.do(cmd.TraceFunctions(("get_unused_*",), on=False))
    assert told == "1 functions are no longer traced"
    assert fresh() == [(leave, 0), (entry, 0)]
    there, count = user.view.time, len(calls(user))
    user.told.clear()
    user.do(cmd.Refill())
    assert user.view.time == there
    assert len(calls(user)) == count - 3  # those one deep, and what is entered next
    assert {one[3]["depth"] for one in calls(user)} == {0}
    user.do(cmd.StepInsn(2))
    user.do(cmd.TraceFunctions((), on=False))
    assert fresh() == [(leave, 0)]  # what had begun returns
    assert fresh() == []
    user.told.clear()
    user.do(cmd.Restart())
    assert fresh() == []
