"""What a guest may leave behind in a writable share: no rights of others, and no surprise."""

import errno
import os
import stat
from pathlib import Path

import pytest
from fskit import AT_FDCWD, Process

from engine.linux.fs.view import View

O_CREAT, O_RDWR, O_TRUNC = os.O_CREAT, os.O_RDWR, os.O_TRUNC


@pytest.fixture
def share(tmp_path: Path) -> Path:
    for name in ("suid", "cut", "kept"):
        (tmp_path / name).write_text("hello")
        (tmp_path / name).chmod(0o6755)
    return tmp_path


def process(share: Path) -> Process:
    view = View.make(shares=[(str(share), True)])
    made = Process(view, cwd=os.fsencode(share), uid=os.geteuid())
    made.umask = 0
    return made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_no_way_sets_the_bits_of_another_users_rights(share: Path) -> None:
    guest = process(share)
    opened = guest.open("opened", O_CREAT | O_RDWR, 0o4755)
    assert guest.call("fchmod", opened, 0o6755) == 0
    assert guest.call("openat", AT_FDCWD, "created", O_CREAT | O_RDWR, 0o7711) >= 0
    assert guest.call("mknod", "node", stat.S_IFREG | 0o4700, 0) == 0
    assert guest.call("chmod", "node", 0o6711) == 0
    assert guest.call("fchmodat", AT_FDCWD, "created", 0o2755) == 0
    assert guest.call("mkdir", "folder", 0o7777) == 0
    assert guest.call("chmod", "folder", 0o6775) == 0
    assert guest.call("mkdir", "sticky", 0o1777) == 0

    assert mode(share / "opened") == 0o755
    assert mode(share / "node") == 0o711
    assert mode(share / "created") == 0o755
    assert mode(share / "folder") & 0o6000 == (share.stat().st_mode & 0o2000) == 0
    assert mode(share / "sticky") == 0o1777 & ~_host_umask()


def _host_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_what_is_changed_loses_them(share: Path) -> None:
    guest = process(share)
    suid = guest.open("suid", O_RDWR)
    assert mode(share / "suid") == 0o6755, "to open it changes nothing"
    assert guest.call("write", suid, b"x", 1) == 1
    assert guest.call("truncate", "cut", 1) == 0
    assert guest.open("kept") >= 0

    assert mode(share / "suid") == mode(share / "cut") == 0o755
    assert mode(share / "kept") == 0o6755


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK])
def test_fifos_and_sockets_are_the_guests_alone(share: Path, kind: int) -> None:
    guest = process(share)
    before = sorted(os.listdir(share))
    assert guest.call("mknod", "made", kind | 0o666, 0) == 0
    assert guest.stat("made")["mode"] & 0o170000 == kind
    assert guest.call("mknod", "made", kind | 0o666, 0) == -errno.EEXIST
    assert guest.open("made", os.O_RDWR | os.O_CREAT | os.O_EXCL) == -errno.EEXIST
    assert b"made" in guest.ls(".")
    assert guest.call("unlink", "made") == 0
    assert guest.stat("made") == {"errno": errno.ENOENT}
    assert sorted(os.listdir(share)) == before


@pytest.mark.parametrize("kind", [stat.S_IFCHR, stat.S_IFBLK])
def test_there_are_no_devices(share: Path, kind: int) -> None:
    guest = process(share)
    before = sorted(os.listdir(share))
    assert guest.call("mknod", "device", kind | 0o666, os.makedev(1, 3)) == -errno.EPERM
    assert sorted(os.listdir(share)) == before


def test_links_that_are_left_are_told(share: Path) -> None:
    (share / "old").symlink_to("/etc")
    guest = process(share)
    links = guest.fs.view.links
    assert guest.call("mkdir", "d", 0o755) == 0
    assert guest.call("symlink", "/etc/passwd", "a") == 0
    assert guest.call("symlink", "../..", "d/b\x1b") == 0
    assert guest.call("symlink", "gone", "c") == 0
    assert guest.call("unlink", "c") == 0
    assert guest.call("symlink", "x", "moved") == 0
    assert guest.call("rename", "moved", "d/there") == 0
    assert guest.call("rename", "d", "e") == 0
    assert guest.call("link", "a", "again") == 0
    assert guest.call("symlink", "/", "/tmp/private") == 0

    assert links.listed() == [
        (f"{share}/a", "/etc/passwd"),
        (f"{share}/e/b\x1b", "../.."),
        (f"{share}/e/there", "x"),
        (f"{share}/again", "/etc/passwd"),
    ]
