"""`kprobe-tui diff --boot`: what its probes change, and what it refuses."""

from pathlib import Path

import pytest
from bootkit import initrd, needs_host_code
from guestrun import run
from kernelimages import AMD64_61, image_path

INIT = "#!/bin/sh\necho awake\npoweroff -f\n"


@needs_host_code
@pytest.mark.slow
def test_planted_breakpoints_change_no_byte_of_a_boot(tmp_path: Path) -> None:
    words = ("--technique", "breakpoint", "--every-insn", "vfs_read", "-r", "do_sys_openat2")
    ramdisk = str(initrd(tmp_path, INIT))
    image = str(image_path(AMD64_61))
    done = run("diff", "--boot", *words, "--initrd", ramdisk, image, cwd=tmp_path, deadline=900)
    assert done.code == 0, done.err
    assert done.out.count("awake") == 1
    *_, counts, verdict = done.err.splitlines()
    assert verdict == "kprobe-tui: no effect"
    words_said = counts.split()
    places, hits = int(words_said[1]), int(words_said[4])
    assert places > 100
    assert hits > 50


@needs_host_code
def test_bad_usage_is_one_message(tmp_path: Path) -> None:
    image = str(image_path(AMD64_61))
    for words, text in {
        (): "nothing to probe: give -e DEF",
        ("-e", "p no_such_function"): "Invalid probed address or symbol",
        ("--every-insn", "no_such_*"): "--every-insn no_such_*: no function matches",
        ("-e", "p vfs_read", "--live"): "No such option '--live'",
        ("-e", "p vfs_read", "--initrd", "none"): "none: No such file",
    }.items():
        done = run("diff", "--boot", *words, image, cwd=tmp_path, deadline=120)
        assert (done.code, done.out) == (2, ""), words
        assert text in done.err, (words, done.err)
