"""`kprobe-tui bt --boot`: the kernel's backtrace at a place, and where it panics."""

import json
from pathlib import Path

import pytest
from bootkit import initrd, needs_host_code
from guestrun import run
from kernelimages import AMD64_61, image_path

INIT = "#!/bin/sh\ngrep -c . /etc/none\nexit 3\n"


@needs_host_code
@pytest.mark.slow
def test_a_panic_and_a_place_in_a_task(tmp_path: Path) -> None:
    """What the kernel writes itself at its panic names the same functions (dump_stack)."""
    image, ramdisk = str(image_path(AMD64_61)), str(initrd(tmp_path, INIT))
    words = ("bt", "--boot", "--initrd", ramdisk, image)
    done = run(*words, cwd=tmp_path, deadline=600)
    assert done.code == 0, done.err
    assert "the kernel has panicked: Attempted to kill init! exitcode=0x00000300" in done.err
    assert "in the task sh 1, " in done.err or "in the task init 1, " in done.err
    lines = done.out.splitlines()
    names = [line.split(" in ")[1].partition("+")[0] for line in lines if line.startswith("#")]
    at = names.index("panic")
    traced = done.err[done.err.index("Call Trace:") :]
    dumped = [
        line.split("] ")[-1].strip().partition("+")[0]
        for line in traced.splitlines()
        if "+0x" in line and "? " not in line and "RIP" not in line
    ]
    assert names[at:] == dumped[dumped.index("panic") :]
    assert lines[-1].startswith("(end: entered from a program, at 0x")

    at_open = ("--at", "do_sys_openat2", "--comm", "init", "--json")
    done = run("bt", "--boot", *at_open, *words[2:], cwd=tmp_path, deadline=600)
    assert done.code == 0, done.err
    frames = json.loads(done.out)["frames"]
    assert [frame["function"] for frame in frames] == [
        *("do_sys_openat2", "__x64_sys_openat", "do_syscall_64"),
        "entry_SYSCALL_64_after_hwframe",
    ]
    assert frames[0]["offset"] == 0


@needs_host_code
def test_bad_usage_is_one_message(tmp_path: Path) -> None:
    image = str(image_path(AMD64_61))
    for place, text in {
        "no_such": "--at no_such: the kernel's image has no no_such",
        "vfs_read+0x9000": "is not in the kernel's text",
        "0x10": "--at 0x10: 0x10 is not in the kernel's text",
        "vfs_read+z": "--at vfs_read+z: no place",
        "fs/read_write.c:450": "no debug information of this kernel is found",
    }.items():
        done = run("bt", "--boot", "--at", place, image, cwd=tmp_path, deadline=120)
        assert (done.code, done.out) == (2, ""), place
        assert text in done.err, (place, done.err)
        assert len(done.err.splitlines()) == 1


@needs_host_code
@pytest.mark.slow
def test_where_a_boot_is_when_its_time_is_over(tmp_path: Path) -> None:
    image = str(image_path(AMD64_61))
    done = run("bt", "--boot", "--timeout", "2", image, cwd=tmp_path, deadline=120)
    assert done.code == 124
    assert done.out.startswith("#0 ")
    assert done.out.splitlines()[-1].startswith("(end: ")
    assert "the machine was stopped at 0x" in done.err
    words = ("-e", "p vfs_read", "--timeout", "2")
    done = run("diff", "--boot", *words, image, cwd=tmp_path, deadline=120)
    assert done.code == 124
    assert "were the same so far" in done.err
    done = run("run", "--boot", "--timeout", "2", image, cwd=tmp_path, deadline=120)
    assert done.code == 124
    assert "the machine was stopped at 0x" in done.err
