"""Initial ramdisks for kernels that tests boot."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from engine.cpu import native

SCRIPT = Path(__file__).parents[2] / "samples" / "initrd.sh"
BUSYBOX = "/usr/bin/busybox"
needs_host_code = pytest.mark.skipif(not native.possible(), reason="boots on x86-64 hosts only")


INIT = """#!/bin/sh
mount -t devtmpfs dev /dev
mount -t proc proc /proc
echo "release $(uname -r)"
grep -c "XT-PIC *timer" /proc/interrupts
(sleep 0.5; echo slept) &
wait
for n in 1 2 3 4 5 6 7 8; do echo $n; done | sort -r | head -1
read line < /dev/console && echo "typed $line"
poweroff -f
"""


def initrd(folder: Path, init: str | None = INIT) -> Path:
    """An initial ramdisk with an init of ours; None: with the one of the script."""
    dynamic = subprocess.run(["ldd", BUSYBOX], capture_output=True, check=False).returncode == 0
    if not os.path.exists(BUSYBOX) or dynamic or shutil.which("gzip") is None:
        pytest.skip("needs busybox-static and gzip")
    script, made = folder / "init", folder / "initrd.gz"
    script.write_text(init or "")
    environment = {**os.environ, "INIT": str(script) if init is not None else ""}
    subprocess.run(["sh", SCRIPT, made], env=environment, check=True)
    return made


def busybox_root(folder: Path, init: str) -> Path:
    """A root with busybox in it, and an init."""
    root = folder / "root"
    for name in ("bin", "dev", "proc", "sbin", "sys"):
        (root / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    for name in ("cat", "dd", "head", "ls", "mount", "poweroff", "sh", "sha256sum"):
        (root / "bin" / name).symlink_to("busybox")
    (root / "sbin" / "modprobe").symlink_to("../bin/busybox")
    script = root / "init"
    script.write_text(init)
    script.chmod(0o755)
    return root
