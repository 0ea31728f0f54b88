"""Events that are followed from power-on, asked for in the middle of a boot."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bootcontrolkit import BootUser
from bootkit import needs_host_code
from kernelimages import AMD64_61, image_path

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev

pytestmark = [pytest.mark.slow, needs_host_code]
INIT = "#!/bin/sh\nmount -t proc proc /proc\nread line\necho it is $line\n" + (
    "cat /proc/version\n" * 5 + "poweroff -f\n"
)
READ = "p:t/read ksys_read fd=$arg1:s32"
LATE = (
    "syscalls/sys_enter_openat",
    "p:u/start /bin/busybox:0xebf0 sp=%sp",
    "e:made/again t.read fd=$fd:s32",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("boot")


@pytest.fixture
def user(folder: Path) -> Iterator[BootUser]:
    user = BootUser(AMD64_61, folder, init=INIT)
    yield user
    user.close()


def test_rows_are_those_of_a_trace(user: BootUser, folder: Path, tmp_path: Path) -> None:
    """Behind power-on, in the past, with what was typed: as if they had been there all along."""
    out = tmp_path / "out.jsonl"
    words = [sys.executable, "-P", "-m", "tui", "trace", "--boot", "--append", "quiet"]
    words += ["--initrd", str(folder / "initrd.gz"), "--format", "jsonl", "-o", str(out)]
    for line in (READ, *LATE):
        words += ["-e", line]
    subprocess.run([*words, str(image_path(AMD64_61))], check=True, input=b"42\n",
                   capture_output=True)  # fmt: skip
    traced = [json.loads(line) for line in out.read_text().splitlines()]
    user.do(cmd.Define(READ))
    user.do(cmd.ToggleBreak("ksys_read"))
    user.do(cmd.Input(b"42\n"))
    for _ in range(3):
        assert user.do(cmd.Continue()) == "breakpoint 2 at ksys_read+0x0"
    user.do(cmd.StepInsn(2))
    there = user.view
    written = user.output
    bad = user.do(cmd.Define("p:u/none /bin/busybox:0x1"))
    assert "busybox" in bad
    assert "u/none" not in [probe.event for probe in user.view.probes]
    assert user.view.time == there.time
    user.do(cmd.ContinueBack())
    user.do(cmd.ContinueBack())
    past = user.view
    for line in LATE:
        before = len(user.told)
        assert user.do(cmd.Define(line)) == f"placed {line}, from power-on"
        del user.told[: before - len(user.told)]  # the log is made anew
        assert (user.view.time, user.view.pc) == (past.time, past.pc)
        assert user.view.history is not None
        assert user.view.history.past
    assert user.of(ev.Output) == []
    hits = [probe.hits for probe in user.view.probes]
    assert hits[1] == 3
    assert hits[2] > 0
    user.do(cmd.Seek())
    assert (user.view.time, user.view.pc) == (there.time, there.pc)
    user.do(cmd.Delete((2,)))
    assert user.do(cmd.Continue()) == "the machine is switched off"
    assert "it is 42" in written + user.output
    rows = [(row.time, row.thread_id, f"{row.group}/{row.name}") for row in user.rows()]
    assert rows == [(row["time"], row["tid"], row["event"]) for row in traced]
    assert {name for _, _, name in rows} >= {"t/read", "u/start", "made/again"}


def test_an_event_that_the_kernel_makes_is_of_another_boot(
    user: BootUser, folder: Path, tmp_path: Path
) -> None:
    """It comes to the same time, with what was typed; its rows are those of a trace."""
    placed = "placed sched:sched_process_exec"
    user.do(cmd.ToggleBreak("ksys_read"))
    user.do(cmd.Input(b"42\n"))
    for _ in range(4):
        user.do(cmd.Continue())
    newest = user.view.time
    user.do(cmd.SetMark("here"))
    user.do(cmd.ContinueBack())
    past = user.view
    late = user.do(cmd.Define("sched:sched_process_exec"))
    assert late == (
        f"{placed}, from power-on; the kernel is told of it, so this is another boot, at the same"
        " time"
    )
    view = user.view
    assert past.time <= view.time < past.time + 100_000
    assert view.history is not None
    assert view.history.past
    assert newest <= view.history.end < newest + 100_000
    user.do(cmd.SeekMark("here"))
    assert newest <= user.view.time < newest + 100_000
    assert user.do(cmd.Define(READ)).startswith("placed")
    user.do(cmd.Delete((1,)))
    user.do(cmd.Seek())
    assert user.do(cmd.Continue()) == "the machine is switched off"
    assert user.output.count("it is 42") == 1
    before = len(user.told)
    user.do(cmd.Refill())
    del user.told[:before]  # the log is made anew
    out = tmp_path / "out.jsonl"
    words = [sys.executable, "-P", "-m", "tui", "trace", "--boot", "--append", "quiet"]
    words += ["--initrd", str(folder / "initrd.gz"), "--format", "jsonl", "-o", str(out)]
    words += ["-e", "sched:sched_process_exec", "-e", READ, str(image_path(AMD64_61))]
    subprocess.run(words, check=True, input=b"42\n", capture_output=True)
    traced = [json.loads(line) for line in out.read_text().splitlines()]
    rows = [(row.time, row.thread_id, f"{row.group}/{row.name}") for row in user.rows()]
    assert rows == [(row["time"], row["tid"], row["event"]) for row in traced]
    assert len({name for _, _, name in rows}) == 2
    user.do(cmd.Restart())
    assert user.do(cmd.Define("sched:sched_process_fork")) == "placed sched:sched_process_fork"


def test_what_was_changed_by_hand_is_not_changed_again(user: BootUser) -> None:
    user.do(cmd.ToggleBreak("ksys_read"))
    user.do(cmd.Continue())
    user.do(cmd.WriteRegister("rbx", 7))
    assert "changed by hand" in user.do(cmd.Define(LATE[0]))
    assert "changed by hand" in user.do(cmd.Refill())
    assert user.view.location == "ksys_read+0x0"
