"""Guests that reach for the host's files and network, or flood what they may write."""

import errno
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from guestrun import Outcome, finish, guest, start

Attack = Callable[..., Outcome]
EPERM, ENOENT, EACCES, ENOSPC, EMFILE, EAFNOSUPPORT, ECONNREFUSED = (
    -1,
    -2,
    -13,
    -28,
    -24,
    -97,
    -111,
)


@pytest.fixture
def secret(home: Path) -> Path:
    path = home.parent / "secret"
    path.write_text("secret\n")
    return path


def test_writes_stay_in_the_overlay(attack: Attack, home: Path, secret: Path) -> None:
    mine, passwd = home / "mine", Path("/etc/passwd")
    mine.write_text("host\n")
    (home / "link").symlink_to(mine)
    (home / "out").symlink_to(secret)
    before = passwd.read_bytes()

    names = ("mine", str(mine), "link", "out", str(secret), "../secret", "/etc/passwd", "/new")
    done = attack("files", "write", *names)

    assert done.code == 0
    assert done.facts["mine"] >= 0
    assert "overwritten" in done.out
    assert mine.read_text() == "host\n"
    assert secret.read_text() == "secret\n"
    assert passwd.read_bytes() == before
    assert not Path("/new").exists()
    assert sorted(os.listdir(home)) == ["link", "mine", "out"]


def test_new_links_lead_nowhere(attack: Attack, home: Path, secret: Path) -> None:
    done = attack("files", "link", secret)

    assert done.facts["hard link"] == ENOENT
    assert secret.read_text() == "secret\n"
    assert os.listdir(home) == []


def test_nothing_of_the_host_can_be_destroyed(attack: Attack, home: Path) -> None:
    mine = home / "mine"
    mine.write_text("host\n")
    mine.chmod(0o640)
    before = (mine.stat().st_mtime_ns, mine.stat().st_mode, mine.stat().st_nlink)

    done = attack("files", "destroy", "mine", "/etc/hostname", "/usr/lib", home)

    assert done.code == 0
    assert mine.read_text() == "host\n"
    assert (mine.stat().st_mtime_ns, mine.stat().st_mode, mine.stat().st_nlink) == before
    assert os.listdir(home) == ["mine"]
    assert {done.facts[name] for name in ("mount", "chroot")} == {-1}


def test_what_is_not_visible_is_not_there_and_is_told(
    attack: Attack, home: Path, secret: Path
) -> None:
    (home / "link").symlink_to(secret)
    names = (str(secret), "link", "../secret", f"{home}/../secret")

    done = attack("files", "read", *names, "/etc/shadow")

    assert {done.facts[name] for name in names} == {ENOENT}
    assert "secret\n" not in done.out
    assert f"{secret}  (allow it with --share {secret})" in done.err
    # It is there for everybody to see and for nobody to read, as on the host.
    assert done.facts["/etc/shadow"] == -errno.EACCES
    told = "/etc/shadow  (allow it with --share /etc/shadow)" in done.err
    assert told == os.access("/etc/shadow", os.R_OK)
    assert done.err.count(f"{secret} ") == 1, "each path once"


def test_a_share_shows_it(attack: Attack, home: Path, secret: Path) -> None:
    done = attack("files", "read", secret, options=("--share", str(secret)))

    assert "secret\n" in done.out
    assert not done.err


def test_no_kernel_or_device_file_leads_out(attack: Attack) -> None:
    done = attack("files", "proc")

    assert done.facts["secret"] == 2  # its own memory, which it may write anyway
    hidden = [name for name in done.facts if name.startswith(("/proc/2/", "/dev/"))]
    hidden += ["/proc/self/root/etc/shadow", "/proc/kcore", "/proc/kallsyms", "/proc/1/environ"]
    assert len(hidden) >= 8
    # The guest's process 1 is the engine's own, whatever the host's is.
    assert "\n/sbin/init\n" in done.out
    assert all(done.facts[name] in (ENOENT, EACCES) for name in hidden)


def test_no_connection_arrives(attack: Attack, home: Path) -> None:
    with socket.socket() as listener, socket.socket(socket.AF_UNIX) as local:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.2)
        place = os.path.relpath(home / "socket", os.getcwd())
        local.bind(place if len(place) < 100 else f"\0{os.getpid()}-{time.monotonic_ns()}")
        local.listen()
        local.settimeout(0.2)
        done = attack("files", "connect", listener.getsockname()[1], home / "socket")
        with pytest.raises(TimeoutError):
            listener.accept()
        with pytest.raises(TimeoutError):
            local.accept()

    assert done.facts["connect"] == ECONNREFUSED
    assert done.facts["unix connect"] < 0
    assert done.facts["packet socket"] == EPERM
    assert done.facts["vsock socket"] == EAFNOSUPPORT
    assert "sockets of address family 40" in done.err


def test_open_files_are_limited(attack: Attack) -> None:
    done = attack("files", "fds")

    assert done.facts["opened"] == 1021
    assert done.facts["open"] == done.facts["pipe"] == done.facts["dup"] == EMFILE


def test_a_full_device_is_full(attack: Attack) -> None:
    assert attack("files", "full").facts["write"] == ENOSPC


def test_huge_sparse_files_cost_nothing(attack: Attack) -> None:
    done = attack("files", "sparse")

    assert done.code == 0
    assert done.facts["pwrite"] == 1
    assert done.facts["ftruncate huge"] == -27
    assert done.rss < 200


def test_a_reader_that_goes_away_ends_the_flood(arch: str, home: Path) -> None:
    process = start("run", "--timeout", "300", guest(arch, "files"), "flood", cwd=home)
    assert process.stdout is not None
    process.stdout.read(100_000)
    process.stdout.close()

    done = finish(process)

    assert done.code == 141


def test_a_slow_reader_gets_everything(arch: str, home: Path) -> None:
    process = start("run", "--timeout", "300", guest(arch, "files"), "pattern", cwd=home)
    assert process.stdout is not None
    data = b""
    while part := process.stdout.read(300_000):
        data += part
        time.sleep(0.02)

    assert finish(process).code == 0
    alphabet = bytes(range(ord("a"), ord("z") + 1))
    assert data == (alphabet * (2**21 // 26 + 1))[: 2**21]


def test_a_flood_that_nobody_reads_can_be_stopped(arch: str, home: Path) -> None:
    process = start("run", "--timeout", "1", guest(arch, "files"), "flood", cwd=home)

    assert process.wait(300) == 124

    process.communicate()
