"""A disk with Debian on it, as Debian's own tool makes one: systemd, udev and what they need."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from sysroot import SysrootUnavailable, cache_directory, locked, package_file

_INCLUDED = "systemd-sysv,udev,kmod,login,passwd,dbus"
_SIZE = "1G"


def debian_disk() -> Path:
    """A raw image of an ext4 with Debian 12, whose root has no password; made once.

    Nothing in the system is changed but that password: the packages' own scripts have set it up.
    The test is skipped where a tool is missing.
    """
    for tool in ("perl", "mke2fs", "tar", "fakeroot"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    path = cache_directory() / "debian-disk.img"
    with locked(path):
        if not path.is_file():
            try:
                with tempfile.TemporaryDirectory(dir=path.parent) as work:
                    _made(Path(work)).rename(path)
            except SysrootUnavailable as error:
                pytest.skip(f"no Debian: {error}")
    return path


def _made(work: Path) -> Path:
    fetched, tool = work / "fetched", work / "tool"
    fetched.mkdir()
    tool.mkdir()
    subprocess.run(
        ["dpkg-deb", "-x", package_file("mmdebstrap", "amd64", fetched), tool], check=True
    )
    tar, disk = work / "system.tar", work / "disk"
    subprocess.run(
        [
            *("perl", tool / "usr" / "bin" / "mmdebstrap", "--quiet", "--variant=minbase"),
            *("--architectures=amd64", f"--include={_INCLUDED}", "--skip=check/qemu"),
            *("bookworm", tar),
        ],
        check=True,
    )
    script = (
        "mkdir tree && tar -C tree -xf system.tar && sed -i 's/^root:[^:]*:/root::/' "
        f"tree/etc/shadow && mke2fs -q -t ext4 -d tree disk {_SIZE}"
    )
    owners = [] if os.geteuid() == 0 else ["fakeroot"]
    subprocess.run([*owners, "sh", "-c", script], cwd=work, check=True)
    return disk
