"""A whole Linux kernel as a guest: Debian's user-mode Linux boots, runs programs, powers off."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from guestrun import run
from kernelimages import UML_61, image_path

_SCRIPT = Path(__file__).parents[2] / "samples" / "uml.sh"
_BUSYBOX = "/usr/bin/busybox"
_WORDS = ("mem=64M", "initrd=initrd.gz", "con=null", "con0=fd:0,fd:1")

_OWN = re.compile(
    r"""\[mem\ .*|Total\ pages.*|hash\ table\ entries.*|Memory:.*|TCP:\ Hash.*|nTxBlock.*
    |Calibrating.*|audit\(.*|raid6:.*|\d+\ MB/sec.*|\ on\ /\S+/mconsole|lpj=\d+
    |prefetch64-sse|generic_sse
    |\ {3}\w+\ *:""",
    re.VERBOSE,
)
"""Times, measured speeds, random names, and what follows from where the host puts the heap."""


def _settled(text: str) -> list[str]:
    return [_OWN.sub("", line) for line in text.splitlines()]


@pytest.mark.slow
def test_user_mode_linux_boots_and_powers_off(tmp_path: Path) -> None:
    if not os.path.exists(_BUSYBOX) or shutil.which("gzip") is None:
        pytest.skip("needs busybox-static and gzip")
    environment = {**os.environ, "KERNEL": str(image_path(UML_61)), "BUSYBOX": _BUSYBOX}
    made = subprocess.run(
        ["sh", _SCRIPT, tmp_path], env=environment, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    boots = [
        run(
            *("run", "--root", "/", "--env", "TMPDIR=/dev/shm", "./linux.uml", *_WORDS),
            cwd=tmp_path,
            deadline=900,
        )
        for _ in range(2)
    ]
    first, second = boots

    assert (first.out, first.err) == (second.out, second.err)
    assert first.code == 0
    assert "Linux 6.1" in first.out
    assert first.out.splitlines()[-6:-3] == ["19", "hello", "PID   COMMAND"]
    assert first.out.endswith("reboot: System halted\n")

    native = subprocess.run(
        ["setarch", "-R", "./linux.uml", *_WORDS],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "System halted" not in native.stdout:
        pytest.skip(f"this host does not boot it: {native.stdout[-200:]}{native.stderr[-200:]}")
    ours, theirs = _settled(first.out), _settled(native.stdout)
    missing = [line for line in theirs if line not in ours]
    assert all("epollctl" in line for line in missing), missing  # of standard input
