"""A machine of its own for `live`: Debian's Linux 6.1 in qemu-system, without KVM, as root.

The kernel that runs the tests often has no kprobes, and nobody wants to have it changed. The guest
sees the whole file system of this machine read-only (9p), so that it runs the same Python and the
same checkout; it writes in `MOUNT` alone, of which `SHARE` is a folder of this machine. Its kernel
and its few modules come from Debian's package, its only program in memory is busybox.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from kernelimages import AMD64_61, fetched_modules, image_path
from sysroot import SysrootUnavailable
from warmed import SAME_CODE

KPROBES: Final = "KPROBE_TUI_LIVE_MACHINE"
"""Environment variable that allows to boot it."""
MOUNT: Final = "/mnt"
SHARE: Final = f"{MOUNT}/share"
_QEMU: Final = "qemu-system-x86_64"
_MODULES: Final = (
    *("virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci"),
    *("9pnet", "9pnet_virtio", "netfs", "fscache", "9p"),
)
_BOOT: Final = 180.0
"""Seconds for the kernel to come up; a minute's work of a slow host."""

_INIT: Final = f"""#!/bin/busybox sh
B=/bin/busybox
$B mount -t proc proc /proc; $B mount -t sysfs sys /sys; $B mount -t devtmpfs dev /dev
left="$($B ls /modules)"
for turn in 1 2 3 4 5; do  # in whatever order they need each other
    again=
    for module in $left; do $B insmod /modules/$module 2>/dev/null || again="$again $module"; done
    left="$again"
done
$B mount -t 9p -o trans=virtio,version=9p2000.L,cache=loose,ro,msize=512000 host /root
for folder in proc sys dev; do $B mount --bind /$folder /root/$folder; done
$B mount -t tracefs nodev /root/sys/kernel/tracing
$B mount -t tmpfs tmp /root{MOUNT}
$B mkdir /root{SHARE}
$B mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=512000 share /root{SHARE}
echo 1 > /proc/sys/vm/overcommit_memory  # an emulator reserves more than there is
exec $B chroot /root /bin/bash {SHARE}/serve
"""
_SERVE: Final = f"""
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME={MOUNT} TMPDIR={MOUNT} TERM=dumb
cd {MOUNT}
echo up > {SHARE}/up
while :; do
    for job in {SHARE}/*.job; do
        [ -f "$job" ] || continue
        name="${{job%.job}}"
        mv "$job" "$name.taken"
        (
            timeout 600 bash "$name.taken" > "$name.out" 2>&1 < /dev/null
            echo $? > "$name.code.part"
            mv "$name.code.part" "$name.code"
        ) &
    done
    sleep 1
done
"""
_ENVIRONMENT: Final = f"""
T=/sys/kernel/tracing
live="{sys.executable} -m tui live"
left() {{ cat $T/kprobe_events $T/uprobe_events; ls $T/instances; }}
export KPROBE_TUI_KERNEL_CACHE={SHARE}/cache
"""


class LiveMachine:
    """One that runs.

    Attributes:
        folder: of this machine that it has as `SHARE`.
        image: its kernel's image, as it knows it.
    """

    def __init__(self, folder: Path, process: "subprocess.Popen[bytes]") -> None:
        """Take one that boots."""
        self.folder = folder
        self.image = f"{SHARE}/vmlinuz"
        self._process = process
        self._jobs = 0

    def wait(self, path: Path, seconds: float) -> None:
        """Wait for a file.

        Raises:
            AssertionError: the machine has ended, or it takes too long.
        """
        limit = time.monotonic() + seconds
        while not path.exists():
            assert self._process.poll() is None, (self.folder / "console").read_text()
            assert time.monotonic() < limit, (self.folder / "console").read_text()
            time.sleep(0.1)

    def bash(self, script: str, seconds: float = 600.0) -> str:
        """What a script says, with $live, `left` and $T (tracefs) at hand.

        Raises:
            AssertionError: its exit code is not 0.
        """
        self._jobs += 1
        job = self.folder / f"{self._jobs}.job"
        part = job.with_suffix(".part")
        variables = "".join(f"export {name}='{value}'\n" for name, value in SAME_CODE.items())
        part.write_text(variables + _ENVIRONMENT + script)
        part.rename(job)
        self.wait(job.with_suffix(".code"), seconds)
        said = job.with_suffix(".out").read_text(errors="backslashreplace")
        assert job.with_suffix(".code").read_text().strip() == "0", said
        return said


@contextmanager
def live_machine(folder: Path) -> Iterator[LiveMachine]:
    """One that has booted, in an empty folder; it ends with this.

    The test is skipped where the machine or its kernel is not at hand.
    """
    busybox = Path("/bin/busybox")
    qemu = shutil.which(_QEMU)
    if qemu is None or not busybox.exists():
        pytest.skip(f"no {_QEMU} (qemu-system-x86) or no /bin/busybox (busybox-static)")
    try:
        modules = fetched_modules(AMD64_61, _MODULES)
    except SysrootUnavailable as error:
        pytest.skip(f"no modules of {AMD64_61}: {error}")
    image = image_path(AMD64_61)
    share = folder / "share"
    share.mkdir()
    shutil.copy(image, share / "vmlinuz")
    (share / "serve").write_text(_SERVE)
    files = {"init": _INIT.encode(), "bin/busybox": busybox.read_bytes()}
    files |= {f"modules/{path.name}": path.read_bytes() for path in modules}
    initrd = folder / "initrd"
    initrd.write_bytes(_archive(files, ("root", "proc", "sys", "dev")))
    _warm(share)
    command = [
        *(qemu, "-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "1", "-m", "1024"),
        *("-display", "none", "-no-reboot", "-monitor", "none"),
        *("-serial", f"file:{share / 'console'}", "-kernel", str(image), "-initrd", str(initrd)),
        *("-append", "console=ttyS0 quiet panic=-1"),
        *(
            "-virtfs",
            "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
        ),
        *("-virtfs", f"local,path={share},mount_tag=share,security_model=none"),
    ]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        machine = LiveMachine(share, process)
        try:
            machine.wait(share / "up", _BOOT)
            yield machine
        finally:
            process.kill()


def _warm(share: Path) -> None:
    """Read the image here, which takes the machine minutes."""
    words = [sys.executable, "-m", "tui", "check", "-e", "p:warm vfs_read", str(share / "vmlinuz")]
    env = {**os.environ, **SAME_CODE, "KPROBE_TUI_KERNEL_CACHE": str(share / "cache")}
    subprocess.run(words, env=env, stdout=subprocess.DEVNULL, check=True, timeout=600)


def _archive(files: dict[str, bytes], folders: tuple[str, ...]) -> bytes:
    """A cpio archive, `newc` (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    made = {**dict.fromkeys(folders, b"")}
    for name in files:
        made |= dict.fromkeys((str(each) for each in Path(name).parents if each.name), b"")
    entries = [(name, 0o040755, b"") for name in sorted(made)]
    entries += [(name, 0o100755, data) for name, data in files.items()]
    out = bytearray()
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        out += head.ljust(len(head) + 3 & ~3, b"\0")
        out += data.ljust(len(data) + 3 & ~3, b"\0")
    return bytes(out)
