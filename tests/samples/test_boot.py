"""`samples/boot.sh`: what it fetches boots to a shell as it says."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from guestrun import run
from kernelimages import AMD64_61, image_path

from engine.cpu import native

SCRIPT = Path(__file__).parents[2] / "samples" / "boot.sh"


@pytest.mark.slow
@pytest.mark.skipif(not native.possible(), reason="boots on x86-64 hosts only")
@pytest.mark.parametrize("own", [False, True], ids=["fetched", "own"])
def test_the_line_that_it_prints_boots_to_a_shell(own: bool, tmp_path: Path) -> None:
    """A kernel of the user's own comes without modules unless they are named."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("apt-get is not installed")
    done = subprocess.run(
        ["sh", SCRIPT, "made"],
        cwd=tmp_path,
        env={**os.environ, "KERNEL": str(image_path(AMD64_61)) if own else ""},
        capture_output=True,
        text=True,
        check=True,
    )
    program, *words = shlex.split(done.stdout.replace("\\\n", ""))
    assert program == "kprobe-tui"
    typed = b"echo $((6 * 7)) modules: $(grep -c virtio /proc/modules); poweroff -f\n"
    ended = run(*words, "--append", "quiet", cwd=tmp_path, stdin=typed, deadline=600)
    assert ended.code == 0, ended
    assert re.search(rf"(?m)^42 modules: {'0' if own else '[4-9]'}", ended.out)
