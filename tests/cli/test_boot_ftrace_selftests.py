"""Linux's own selftests for ftrace in a booted kernel: the same results as in qemu-system.

They are those of Debian's sources of the kernel. `$KPROBE_TUI_FTRACE_SELFTESTS` names the files
and folders of tools/testing/selftests/ftrace that are run, such as `test.d/kprobe`; "1" those of
kprobes, dynamic events, and the basic ones, which take minutes of CPU in both.
"""

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from bootkit import BUSYBOX, needs_host_code
from compiled import tool
from guestrun import run
from kernelheaders import kernel_sources
from kernelimages import AMD64_61, image_path

from engine.machine.ramdisk import Ramdisk, assembled

WANTED = "KPROBE_TUI_FTRACE_SELFTESTS"
ALL = "test.d/kprobe test.d/dynevent test.d/00basic"
FTRACE = "tools/testing/selftests/ftrace"
INIT = """#!/bin/sh
/bin/busybox mkdir -p /dev /proc /sys /tmp
export PATH=/bin
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs trace /sys/kernel/tracing
mount -t tmpfs tmp /tmp
echo 1 > /proc/sys/kernel/printk
cd /ftrace
sh ./ftracetest --logdir /tmp/logs {} 2>&1
poweroff -f
"""
MEMORY = 512


def results(console: str) -> dict[str, str]:
    """Result of each test by its number and title; messages of the kernel stand in between."""
    plain = re.sub(r"\r|\[ *\d+\.\d+\] [^\n]*\n", "", console)
    found = re.findall(r"\[(\d+)\] ([^\n]*?)\t\[([A-Z]+)\]", plain)
    return {f"{number} {title}": result for number, title, result in found}


@needs_host_code
@pytest.mark.skipif(not os.environ.get(WANTED), reason=f"set {WANTED}=1 to run Linux's selftests")
def test_results_are_those_of_qemu(tmp_path: Path) -> None:
    wanted = os.environ[WANTED]
    qemu = tool("qemu-system-x86_64")
    (tmp_path / "source").mkdir()
    top = kernel_sources(AMD64_61, (FTRACE,), tmp_path / "source")
    root = tmp_path / "root"
    shutil.copytree(top / FTRACE, root / "ftrace")
    (root / "bin").mkdir()
    shutil.copy(BUSYBOX, root / "bin")
    (root / "bin" / "sh").symlink_to("busybox")
    (root / "init").write_text(INIT.format(ALL if wanted == "1" else wanted))
    (root / "init").chmod(0o755)
    disk = tmp_path / "initrd"
    disk.write_bytes(assembled(Ramdisk("", str(root), "", (), True), ""))
    image = image_path(AMD64_61)
    ours = run(
        *("boot", "--memory", f"{MEMORY}M", "--append", "quiet", "--initrd", str(disk)),
        str(image),
        cwd=tmp_path,
        deadline=3600,
    )
    assert ours.code == 0, ours
    words = "console=ttyS0 nokaslr mitigations=off panic=-1 quiet"
    command: list[str | Path] = [
        qemu,
        "-m",
        str(MEMORY),
        "-kernel",
        image,
        "-initrd",
        disk,
        "-append",
        words,
    ]
    theirs = subprocess.run(
        [*command, "-nographic", "-no-reboot"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=3600,
        check=True,
    )
    found = results(ours.out)
    print(dict(Counter(found.values())))
    assert "PASS" in found.values()
    assert found == results(theirs.stdout.decode("utf-8", "replace"))
