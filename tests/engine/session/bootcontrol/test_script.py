"""A script of bpftrace on a booted kernel under control: from power-on, whenever it is loaded."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bootcontrolkit import BootUser
from bootkit import needs_host_code
from kernelimages import AMD64_61, image_path

from engine.session.protocol import commands as cmd

pytestmark = [pytest.mark.slow, needs_host_code]
INIT = "#!/bin/sh\nmount -t proc proc /proc\n" + "cat /proc/version\n" * 5 + "poweroff -f\n"
SCRIPT = """
kprobe:do_sys_openat2 { @reads[comm] = count(); }
kretprobe:path_openat { @opened[comm, retval] = count(); }
tracepoint:syscalls:sys_enter_openat { printf("%s opens %s\\n", comm, str(args.filename)); }
interval:ms:100 { @ticks = count(); }
END { printf("the end\\n"); }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("boot")


@pytest.fixture
def user(folder: Path) -> Iterator[BootUser]:
    user = BootUser(AMD64_61, folder, init=INIT)
    yield user
    user.close()


def shown(user: BootUser) -> list[str]:
    """Lines of the script's maps and of its output, without those that say so."""
    lines = "\n".join(user.view.histograms).splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_it_counts_what_bpftrace_boot_counts(user: BootUser, folder: Path) -> None:
    """With stops, steps, the way back, and seeks, which look at the time as its intervals do."""
    words = [sys.executable, "-P", "-m", "tui", "bpftrace", "--boot", "--append", "quiet"]
    words += ["--initrd", str(folder / "initrd.gz"), "-o", str(folder / "out"), "-e", SCRIPT]
    subprocess.run([*words, "--", str(image_path(AMD64_61))], check=True, stdin=subprocess.DEVNULL,
                   capture_output=True)  # fmt: skip
    expected = sorted(line for line in (folder / "out").read_text().splitlines() if line)
    assert len(expected) > 15
    user.do(cmd.ToggleBreak("do_sys_openat2"))
    for _ in range(3):
        assert user.do(cmd.Continue()) == "breakpoint 1 at do_sys_openat2+0x0"
    user.do(cmd.StepInsn(3))
    there = user.view
    assert user.do(cmd.LoadScript("stdin", SCRIPT)) == "stdin is attached"
    assert (user.view.time, user.view.pc) == (there.time, there.pc)
    before = shown(user)
    assert any("opens /init" in line for line in before)
    assert user.view.histograms[0].startswith("# bpftrace: stdin runs\n")
    user.do(cmd.ContinueBack())
    user.do(cmd.Seek(1_000_000_000))
    user.do(cmd.Continue())
    assert shown(user) == before  # nothing twice
    user.do(cmd.Seek())
    assert (user.view.time, user.view.pc) == (there.time, there.pc)
    user.do(cmd.Delete((1,)))
    assert user.do(cmd.Continue()) == "the machine is switched off"
    assert user.view.histograms[0].startswith("# bpftrace: stdin has ended\n")
    found = set(shown(user))
    assert found == set(expected)
    user.do(cmd.StepBack())
    user.do(cmd.Seek())
    assert set(shown(user)) == found
    user.do(cmd.Restart())
    assert user.do(cmd.Continue()) == "the machine is switched off"
    assert set(shown(user)) == found


def test_it_is_changed_and_goes(user: BootUser) -> None:
    assert user.do(cmd.LoadScript()) == "no script is attached"
    told = user.do(cmd.LoadScript("x.bt", "kprobe:no_such_function { @ = count(); }"))
    assert "no_such_function" in told
    assert not user.view.histograms
    counts = "kprobe:do_sys_openat2 { @ = count(); if (@ > 2) { exit(); } }"
    assert user.do(cmd.LoadScript("x.bt", counts)) == "x.bt is attached"
    user.do(cmd.ToggleBreak("do_sys_openat2"))
    for _ in range(5):
        assert user.do(cmd.Continue()) == "breakpoint 1 at do_sys_openat2+0x0"
    assert shown(user)[0] == "@: 3"
    assert user.view.histograms[0].startswith("# bpftrace: x.bt has ended\n")
    there = user.view
    late = user.do(cmd.LoadScript("y.bt", "tracepoint:sched:sched_switch { @ = count(); }"))
    assert late.startswith("y.bt is attached, from power-on; the kernel is told of it")
    assert there.time <= user.view.time < there.time + 100_000
    assert int(shown(user)[0].removeprefix("@: ")) > 10
    assert user.do(cmd.LoadScript()) == "y.bt is out"
    assert user.do(cmd.Continue()) == "breakpoint 1 at do_sys_openat2+0x0"
    user.do(cmd.Restart())
    assert not user.view.histograms
    placed = user.do(
        cmd.LoadScript("y.bt", "tracepoint:sched:sched_process_exec { @ = count(); }")
    )
    assert placed == "y.bt is attached"
    user.do(cmd.Delete((1,)))
    assert user.do(cmd.Continue()) == "the machine is switched off"
    assert set(shown(user)) == {"@: 8"}  # init, mount, five times cat, poweroff
    assert there.time > 0
