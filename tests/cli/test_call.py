"""`kprobe-tui call`, as a user runs it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from guestrun import called
from kernelimages import AMD64_61, AMD64_612, image_path, module_path


def call(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """The command run."""
    return called("call", *words)


def test_results_and_buffers_are_shown_by_type() -> None:
    done = call(image_path(AMD64_61), 'strscpy(&buf[8], "hello", 8)', "gcd(48, 180)")
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout == (
        'strscpy(&buf[8], "hello", 8) = (ssize_t) 5\n'
        "    buf: 68 65 6c 6c 6f 00 00 00  hello...\n"
        "gcd(48, 180) = (unsigned long) 12\n"
    )


def test_a_call_that_fails_is_the_last_one() -> None:
    done = call("--json", image_path(AMD64_61), "strlen(0)", "gcd(48, 180)")
    assert done.returncode == 1
    (row,) = json.loads(done.stdout)
    assert row["failure"] == "read of 0x0, where nothing is mapped, at strlen+0x0"
    assert row["value"] is None


def test_a_call_that_cannot_be_made_ends_no_others() -> None:
    words = ("nosuch(1)", "gcd(48, 180)", "gcd(1)", "gcd(6, 4)", "also_not()")
    done = call(image_path(AMD64_61), *words)
    assert done.returncode == 2
    assert done.stdout == "gcd(48, 180) = (unsigned long) 12\ngcd(6, 4) = (unsigned long) 2\n"
    assert "no function nosuch in the image" in done.stderr
    assert "no function also_not in the image" in done.stderr
    assert "gcd takes 2" in done.stderr
    rows = json.loads(call("--json", image_path(AMD64_61), *words).stdout)
    assert [row["call"] for row in rows] == [*words]
    assert [row["value"] for row in rows] == [None, 12, None, 2, None]


@pytest.mark.slow
def test_bad_usage_is_told(tmp_path: Path) -> None:
    module = shutil.copy(module_path("crc16"), tmp_path)
    for words in (("gcd(1)",), ("what",), ("nosuch(1)",)):
        done = call(image_path(AMD64_61), *words)
        assert done.returncode == 2
        assert words[0] in done.stderr
        assert "Traceback" not in done.stderr
    assert call(sys.executable, "f()").returncode == 2
    choices: tuple[tuple[str | Path, ...], ...] = ((), ("--kernel", image_path(AMD64_612)))
    for kernel in choices:
        alone = call(*kernel, module, 'crc16(0, "a", 1)')
        assert (alone.returncode, alone.stdout) == (2, "")
        assert "--kernel FILE names the image of the module's kernel" in alone.stderr
    done = call("--kernel", image_path(AMD64_61), module_path("crc16"), 'crc16(0, "a", 1)')
    assert done.stdout == 'crc16(0, "a", 1) = (u16) 59585\n'


@pytest.mark.slow
def test_a_probe_that_the_own_kernel_refuses_is_told_of() -> None:
    image = image_path(AMD64_61)
    words = ("-e", "p get_kprobe", "-e", "p:x/g gcd a=$arg1", "-e", "sched:*")
    done = called("trace", *words, image, "gcd(48, 180)")
    assert done.returncode == 0
    assert "g: (gcd+0x0/0x70) a=0x30" in done.stderr
    why = "Linux 6.1.192 refuses it (EINVAL): get_kprobe is on the kernel's blacklist"
    assert done.stderr.count("refuses it") == 1
    assert f"kprobe-tui: p get_kprobe: {why}" in done.stderr
    assert done.stderr.rstrip().endswith("here it is placed all the same")
    done = called("trace", "--mode", "kernel", *words, image, "gcd(48, 180)")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kprobe-tui: p get_kprobe: {why}")
