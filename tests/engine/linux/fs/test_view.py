"""What a guest sees of the host, and that nothing leads out of it."""

import errno
import gc
import os
import socket
import stat
import sys
from pathlib import Path

import pytest
from fskit import AT_FDCWD, SIZE, FailedError, OneProcess, Process

from engine.linux.fs.view import View

O_DIRECTORY, O_NOFOLLOW, O_PATH = 0o200000, 0o400000, 0o10000000


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A secret beside a visible directory."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "file").write_text("secret")
    seen = tmp_path / "seen"
    (seen / "sub").mkdir(parents=True)
    (seen / "file").write_text("visible")
    (seen / "sub" / "inner").write_text("inner")
    (seen / "up").symlink_to("../secret")
    (seen / "absolute").symlink_to(tmp_path / "secret")
    (seen / "folder").symlink_to(tmp_path / "hidden")
    (seen / "good").symlink_to(seen / "sub" / "inner")
    return tmp_path


@pytest.mark.parametrize("kind", ["cwd", "share", "writable"])
def test_no_way_out(host: Path, kind: str) -> None:
    seen = str(host / "seen")
    shares = [] if kind == "cwd" else [(seen, kind == "writable")]
    view = View.make(cwd=seen if kind == "cwd" else None, shares=shares)
    process = Process(view, cwd=os.fsencode(seen))
    assert process.cat("file") == b"visible"
    assert process.cat("good") == b"inner"
    directory = process.open(seen, O_DIRECTORY)
    here = f"/proc/self/fd/{directory}"
    for path in (
        "up",
        "absolute",
        "folder/file",
        "../secret",
        "../hidden/file",
        f"{seen}/../secret",
        f"/..{host}/secret",
        "sub/../../secret",
        f"{here}/../secret",
        f"{here}/up",
        "/proc/self/cwd/../secret",
        f"/proc/self/root{host}/secret",
        f"/proc/self/root/..{host}/secret",
        f"/dev/fd/{directory}/../secret",
        f"/proc/thread-self/root{host}/hidden/file",
    ):
        assert process.open(path) == -errno.ENOENT, path
        assert process.stat(path) == {"errno": errno.ENOENT}, path
        assert process.call("openat", directory, path, 0, 0) == -errno.ENOENT, path
        assert process.open(path, O_PATH) == -errno.ENOENT, path
    assert process.ls(str(host)) == [b"seen"]
    assert str(host / "secret") in [refusal.path for refusal in view.refused.listed()]


def test_moved_directories_keep_their_bounds(host: Path) -> None:
    seen = str(host / "seen")
    process = Process(View.make(cwd=seen), cwd=os.fsencode(seen), uid=os.geteuid())
    inner = process.open("sub", O_DIRECTORY)
    assert process.call("rename", "sub", "/tmp/moved") == 0
    assert process.cat("/tmp/moved/inner") == b"inner"
    assert process.call("openat", inner, "../../secret", 0, 0) == -errno.ENOENT
    assert process.call("openat", inner, "../moved/inner", 0, 0) >= 0
    assert process.stat("sub") == {"errno": errno.ENOENT}
    assert sorted(os.listdir(host / "seen" / "sub")) == ["inner"]


def test_moved_directories_of_a_share_keep_their_bounds(host: Path) -> None:
    seen = str(host / "seen")
    process = Process(View.make(shares=[(seen, True)]), cwd=os.fsencode(seen), uid=os.geteuid())
    assert process.call("mkdir", "deep", 0o755) == 0
    assert process.call("mkdir", "deep/er", 0o755) == 0
    inner = process.open("deep/er", O_DIRECTORY)
    assert process.call("rename", "deep/er", "er") == 0
    assert process.call("openat", inner, "../../secret", 0, 0) == -errno.ENOENT
    assert process.call("openat", inner, "../file", 0, 0) >= 0
    assert process.call("openat", inner, "made", os.O_CREAT | os.O_WRONLY, 0o600) >= 0
    assert (host / "seen" / "er" / "made").exists()
    assert process.call("rename", "er", "/tmp/er") == -errno.EXDEV
    assert process.call("link", "file", "/tmp/file") == -errno.EXDEV


@pytest.mark.parametrize("writable", [False, True])
def test_swapped_symlinks_do_not_lead_out(host: Path, writable: bool) -> None:
    """The host replaces what the guest has seen by symlinks to the secret."""
    seen = host / "seen"
    process = Process(View.make(shares=[(str(seen), writable)]), cwd=os.fsencode(seen))
    assert process.stat("file")["size"] == 7
    assert process.cat("sub/inner") == b"inner"
    held = process.open("file")
    folder = process.open("sub", O_DIRECTORY)
    (seen / "file").unlink()
    (seen / "file").symlink_to(host / "secret")
    (seen / "sub" / "inner").unlink()
    (seen / "sub" / "inner").symlink_to("../../secret")
    (seen / "sub").rename(host / "elsewhere")
    (seen / "sub").symlink_to(host / "hidden")
    for path in ("file", "sub/file"):
        assert process.open(path) in (-errno.ENOENT, -errno.ELOOP), path
    for path in ("inner", "file", "../secret"):
        result = process.call("openat", folder, path, 0, 0)
        assert result in (-errno.ENOENT, -errno.ELOOP), path
    assert process.read(held, 100) == b"visible"
    reopened = process.open(f"/proc/self/fd/{held}")
    assert reopened < 0 or process.read(reopened, 100) == b"visible"


def test_swap_between_check_and_open(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A symlink or a FIFO that appears just before the open is refused by the open itself."""
    seen = host / "seen"
    process = Process(View.make(shares=[(str(seen), True)]), cwd=os.fsencode(seen))
    real_open = os.open

    def swapping(replace: str) -> None:
        def opener(path: object, flags: int, *rest: int, **more: int) -> int:
            if path == b"file":
                (seen / "file").unlink()
                if replace == "link":
                    (seen / "file").symlink_to(host / "secret")
                else:
                    os.mkfifo(seen / "file")
            return real_open(path, flags, *rest, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(os, "open", opener)

    for kind in ("link", "fifo"):
        swapping(kind)
        assert process.open("file") in (-errno.ELOOP, -errno.EACCES)
        monkeypatch.undo()
        (seen / "file").unlink()
        (seen / "file").write_text("visible")


def test_special_files_are_seen_but_not_opened(host: Path) -> None:
    seen = host / "seen"
    os.mkfifo(seen / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(seen / "sock"))
    process = Process(View.make(cwd=str(seen)), cwd=os.fsencode(seen), uid=os.geteuid())
    assert stat.S_ISFIFO(process.stat("fifo")["mode"])
    assert stat.S_ISSOCK(process.stat("sock")["mode"])
    for path in ("fifo", "sock"):
        for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_NONBLOCK):
            assert process.open(path, flags) == -errno.EACCES
    listener.close()


def test_root_is_the_whole_tree(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "lib").symlink_to("/usr/lib")
    (root / "usr" / "lib").mkdir(parents=True)
    (root / "usr" / "lib" / "thing").write_text("thing")
    (root / "bin" / "prog").write_text("prog")
    (root / "out").symlink_to(f"{tmp_path}/outside")
    (root / "climb").symlink_to("../../../../../../../../etc/passwd")
    (root / "tmp").mkdir()
    (root / "tmp" / "old").write_text("old")
    (root / "proc").mkdir()
    (tmp_path / "outside").write_text("outside")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "input").write_text("input")
    view = View.make(
        str(root / "bin" / "prog"), root=str(root), cwd=str(tmp_path / "work"), shares=[]
    )
    process = Process(view, cwd=os.fsencode(tmp_path / "work"))
    assert process.cat("/lib/thing") == b"thing"
    assert process.cat("/bin/prog") == b"prog"
    assert process.cat(str(root / "bin" / "prog")) == b"prog"
    assert process.cat("input") == b"input"
    assert process.cat(f"{tmp_path}/work/input") == b"input"
    assert process.open("/out") == -errno.ENOENT
    assert process.open("/climb") == -errno.ENOENT
    assert process.ls("/tmp") == [] or process.ls("/tmp") == [os.fsencode(tmp_path.parts[2])]
    assert process.open("/lib/x86_64-linux-gnu/libc.so.6") == -errno.ENOENT
    assert b"self" in process.ls("/proc")
    assert b"out" in process.ls("/")


def test_standard_view(tmp_path: Path) -> None:
    guest = tmp_path / "bin" / "guest"
    guest.parent.mkdir()
    guest.write_text("guest")
    (tmp_path / "bin" / "other").write_text("other")
    view = View.make(str(guest))
    process = Process(view)
    assert process.cat(str(guest)) == b"guest"
    assert process.ls(str(guest.parent)) == [b"guest"]
    assert process.open(str(guest.parent / "other")) == -errno.ENOENT
    assert process.open("/etc/passwd") == -errno.ENOENT
    assert process.open("/etc/no-such-file") == -errno.ENOENT
    refused = {refusal.path: refusal.option for refusal in view.refused.listed()}
    assert refused == {
        "/etc/passwd": "--share /etc/passwd",
        str(guest.parent / "other"): f"--share {guest.parent / 'other'}",
    }
    for path in ("/tmp", "/var/tmp", "/dev/shm"):
        found = process.stat(path)
        assert found["mode"] == stat.S_IFDIR | 0o1777
        assert process.open(f"{path}/new", os.O_CREAT | os.O_WRONLY) >= 0
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    if loader.exists():
        assert process.open(str(loader)) >= 0


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system's program directory with what others may not read, and a home in it."""
    usr = tmp_path / "usr"
    for path, mode in (
        ("bin/tool", 0o755),
        ("etc/secret", 0o640),
        ("etc/private/key", 0o644),
        ("sealed/file", 0o644),
        ("people/me/diary", 0o644),
    ):
        (usr / path).parent.mkdir(parents=True, exist_ok=True)
        (usr / path).write_text(path)
        (usr / path).chmod(mode)
    (usr / "etc/private").chmod(0o750)
    (usr / "sealed").chmod(0o751)
    (usr / "etc/out").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").write_text("outside")
    (tmp_path / "lib").symlink_to("usr/bin")
    monkeypatch.setattr(
        "engine.linux.fs.build.program_directories",
        lambda host: [os.fsencode(usr), os.fsencode(tmp_path / "lib")],
    )
    monkeypatch.setenv("HOME", str(usr / "people/me"))
    return tmp_path


def test_program_directories_show_what_others_may_read(programs: Path) -> None:
    usr = programs / "usr"
    view = View.make(programs=True)
    process = Process(view, uid=1000)
    assert process.cat(str(usr / "bin/tool")) == process.cat(str(programs / "lib/tool"))
    assert process.ls(str(usr)) == [b"bin", b"etc", b"people", b"sealed"]
    assert process.stat(str(usr / "etc/secret"))["size"] == len("etc/secret")
    assert process.stat(str(usr / "etc/secret"))["uid"] == 0
    for closed in ("etc/secret", "etc/private/key"):
        assert process.open(str(usr / closed)) == -errno.EACCES, closed
    assert process.open(str(usr / "etc/private"), O_DIRECTORY) == -errno.EACCES
    # Search permission alone: what is known by name can be read, the list can't.
    assert process.cat(str(usr / "sealed/file")) == b"sealed/file"
    assert process.open(str(usr / "sealed"), O_DIRECTORY) == -errno.EACCES
    assert process.open(str(usr / "etc/out")) == -errno.ENOENT
    assert process.open(str(usr / "people/me/diary")) == -errno.ENOENT
    assert process.open(str(usr / "bin/tool"), os.O_WRONLY) == -errno.EACCES
    assert process.open(str(usr / "bin/new"), os.O_WRONLY | os.O_CREAT) == -errno.EACCES
    assert process.call("fchmodat", AT_FDCWD, str(usr / "etc/secret"), 0o777) == -errno.EPERM
    kept = {refusal.path for refusal in view.refused.listed()}
    wanted = {"etc/secret", "etc/private", "etc/private/key", "sealed", "people/me/diary"}
    assert kept >= {str(usr / path) for path in wanted}


def test_a_working_directory_among_the_programs_is_shown_whole(programs: Path) -> None:
    home = programs / "usr/people/me"
    process = Process(View.make(cwd=str(home), programs=True), uid=1000)
    assert process.cat(str(home / "diary")) == b"people/me/diary"
    inner = Process(View.make(cwd=str(programs / "usr/etc"), programs=True), uid=1000)
    assert inner.cat(str(programs / "usr/etc/secret")) == b"etc/secret"


def test_root_takes_the_program_directories_away(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    process = Process(View.make(root=str(tmp_path / "tree"), programs=True), uid=1000)
    assert process.open(str(programs / "usr/bin/tool")) == -errno.ENOENT


def test_library_directories_show_libraries_only() -> None:
    folder = next(
        (p for p in Path("/usr/lib").glob("*-linux-gnu") if (p / "libc.so.6").exists()), None
    )
    if folder is None:
        pytest.skip("the host has no multiarch library directory")
    view = View.make()
    process = Process(view)
    assert process.open(str(folder / "libc.so.6")) >= 0
    others = [p for p in folder.iterdir() if ".so" not in p.name and p.is_dir()]
    names = process.ls(str(folder))
    assert b"libc.so.6" in names
    for other in others:
        if other.name != "glibc-hwcaps":
            assert os.fsencode(other.name) not in names
            assert process.open(str(other), O_DIRECTORY) == -errno.ENOENT


def test_isolated_and_shares(host: Path) -> None:
    process = Process(View.make(shares=[(str(host / "seen" / "file"), False)]))
    assert process.cat(str(host / "seen" / "file")) == b"visible"
    assert process.ls(str(host / "seen")) == [b"file"]
    assert process.call("unlink", str(host / "seen" / "file")) in (-errno.EBUSY, -errno.EACCES)
    writable = Process(View.make(shares=[(str(host / "seen" / "file"), True)]), uid=os.geteuid())
    fd = writable.open(str(host / "seen" / "file"), os.O_WRONLY | os.O_APPEND)
    assert writable.write(fd, b"+") == 1
    assert (host / "seen" / "file").read_text() == "visible+"


def test_symlinked_share_is_found_at_both_names(host: Path) -> None:
    (host / "link").symlink_to("seen")
    view = View.make(shares=[(str(host / "link" / "sub"), False)])
    process = Process(view)
    assert process.cat(str(host / "link" / "sub" / "inner")) == b"inner"
    assert process.cat(str(host / "seen" / "sub" / "inner")) == b"inner"
    assert process.open(str(host / "seen" / "file")) == -errno.ENOENT


def test_permissions_of_the_guest(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    (tmp_path / "mine").chmod(0o400)
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "f").write_text("x")
    (tmp_path / "closed").chmod(0o600)
    process = Process(View.make(cwd=str(tmp_path)), cwd=os.fsencode(tmp_path))
    assert process.open("mine") >= 0
    assert process.open("mine", os.O_RDWR) == -errno.EACCES
    assert process.call("faccessat", AT_FDCWD, "mine", 2) == -errno.EACCES
    assert process.call("faccessat", AT_FDCWD, "mine", 4) == 0
    assert process.open("closed/f") == -errno.EACCES
    assert process.call("fchmodat", AT_FDCWD, "closed", 0o700) == 0
    assert process.open("closed/f") >= 0
    assert process.call("mkdir", "/newdir", 0o755) in (-errno.EACCES, 0)
    assert process.call("mkdir", "/proc/newdir", 0o755) == -errno.EACCES
    assert stat.S_IMODE((tmp_path / "closed").stat().st_mode) == 0o600


def test_caps(tmp_path: Path) -> None:
    from engine.linux.fs.data import Budget

    process = Process(budget=Budget(space=100_000, inodes=10))
    fd = process.open("/tmp/f", os.O_RDWR | os.O_CREAT)
    assert process.call("ftruncate", fd, 1 << 40) == 0
    assert process.fs.budget.used == 0
    assert process.call("pwrite64", fd, process.put(b"x"), 1, (1 << 40) - 1) == 1
    assert process.fs.budget.used <= 1 << 16
    assert process.call("ftruncate", fd, 1 << 50) == -errno.EFBIG
    assert process.call("ftruncate", fd, 0) == 0
    big = process.put(b"y" * 90_000)
    assert process.call("write", fd, big, 90_000) == 90_000
    assert process.call("pwrite64", fd, big, 90_000, 90_000) < 90_000
    assert process.call("pwrite64", fd, big, 90_000, 1 << 30) == -errno.ENOSPC
    assert process.call("ftruncate", fd, 50_000) == 0
    made = [process.call("mkdir", f"/tmp/d{n}", 0o755) for n in range(12)]
    assert made.count(-errno.ENOSPC) == 3
    process.limits["nofile"] = 20
    opened = [process.open("/dev/null") for _ in range(25)]
    assert opened.count(-errno.EMFILE) == 25 - 19
    process.limits["fsize"] = 10
    small = process.open("/tmp/f", os.O_WRONLY | os.O_TRUNC)
    assert small == -errno.EMFILE
    assert process.call("pwrite64", fd, big, 20, 5) == 5
    assert process.call("pwrite64", fd, big, 20, 10) == -errno.EFBIG
    assert process.signals == [25]


def test_copy_up_of_a_large_file_takes_little_space(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 30)
        file.seek(5)
        file.write(b"start")
    process = Process(View.make(cwd=str(tmp_path)), cwd=os.fsencode(tmp_path))
    fd = process.open("large", os.O_RDWR)
    assert process.call("pwrite64", fd, process.put(b"changed"), 7, 1 << 29) == 7
    assert process.fs.budget.used <= 1 << 16
    assert process.call("pread64", fd, SIZE // 2, 10, 0) == 10
    assert process.memory.read(SIZE // 2, 10) == bytes(5) + b"start"
    with pytest.raises(FailedError):
        process.cat("missing")
    assert (tmp_path / "large").stat().st_size == 1 << 30


def test_two_runs_see_the_same(host: Path) -> None:
    def run() -> list[object]:
        process = Process(View.make(cwd=str(host / "seen")), cwd=os.fsencode(host / "seen"))
        found: list[object] = [process.ls(".")]
        process.open("/tmp/new", os.O_CREAT | os.O_WRONLY)
        found += [process.stat(name, follow=False) for name in ("file", "sub", "good", "/tmp/new")]
        found.append(process.cat("/proc/self/stat"))
        return found

    assert run() == run()


def test_a_program_opens_itself_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """By which its mappings are listed, too."""
    process = Process()
    process.open("/tmp/prog", os.O_CREAT | os.O_WRONLY)
    monkeypatch.setattr(OneProcess, "exe", b"/tmp/prog")
    assert process.files.get(process.open("/proc/self/exe")).describe() == b"/tmp/prog"


def test_proc_and_dev() -> None:
    process = Process()
    for name in process.ls("/proc/self"):
        path = b"/proc/self/" + name
        mode = process.stat(path, follow=False)["mode"]
        if stat.S_ISREG(mode):
            assert name == b"mem" or process.cat(path), path
    assert len(process.cat("/proc/self/stat").rsplit(b")", 1)[1].split()) == 50
    assert process.cat("/proc/self/cmdline") == b"prog\0-v\0"
    assert process.call("readlink", "/proc/self/exe", SIZE // 2, 100) == len(b"/bin/prog")
    fd = process.open("/proc/self/comm", os.O_WRONLY)
    assert process.write(fd, b"renamed\n") == 8
    assert process.cat("/proc/42/comm") == b"renamed\n"
    assert process.open("/proc/self/maps", os.O_WRONLY) == -errno.EACCES
    assert process.open("/proc/43/maps") == -errno.ENOENT
    assert process.cat("/sys/devices/system/cpu/online") == b"0\n"
    assert process.cat("/proc/sys/kernel/osrelease") == b"6.1.0\n"
    assert process.read(process.open("/dev/zero"), 8) == bytes(8)
    assert process.read(process.open("/dev/null"), 8) == b""
    assert process.write(process.open("/dev/full", os.O_WRONLY), b"x") == -errno.ENOSPC
    assert len(process.read(process.open("/dev/urandom"), 100)) == 100
    assert process.stat("/dev/null")["mode"] == stat.S_IFCHR | 0o666
    if sys.platform == "linux":
        assert process.open("/dev/tty") == -errno.ENXIO
    assert process.call("unlink", "/proc/self/comm") == -errno.EACCES
    assert process.call("rename", "/tmp", "/tmp2") < 0
    assert process.call("rmdir", "/tmp") in (-errno.EBUSY, -errno.EACCES)


def test_a_share_follows_renames_and_refuses_strangers(host: Path) -> None:
    seen = host / "seen"
    process = Process(View.make(shares=[(str(seen), True)]), cwd=os.fsencode(seen))
    process.umask = 0
    fd = process.open("file", os.O_RDWR)
    assert process.call("rename", "file", "renamed") == 0
    (seen / "file").write_text("another")
    (seen / "file").chmod(0o644)
    assert process.call("fchmod", fd, 0o600) == 0
    assert stat.S_IMODE((seen / "renamed").stat().st_mode) == 0o600
    assert stat.S_IMODE((seen / "file").stat().st_mode) == 0o644
    (seen / "renamed").unlink()
    (seen / "renamed").write_text("stranger")
    assert process.call("fchmod", fd, 0o777) in (-errno.ESTALE, 0)
    assert process.read(fd, 10) == b"visible"


def test_closing_gives_host_descriptors_back(host: Path) -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    gc.collect()  # trees of other tests give theirs back whenever they are collected
    before = opened()
    process = Process(View.make(cwd=str(host / "seen")), cwd=os.fsencode(host / "seen"))
    assert process.cat("sub/inner") == b"inner"
    assert opened() > before
    process.files.close_all()
    process.fs.close()
    assert opened() == before
    assert process.open("file") < 0


def test_the_home_that_a_program_is_told_of_is_there_and_empty(host: Path) -> None:
    home = str(host / "hidden")
    view = View.make(cwd=str(host / "seen"), home=home)
    process = Process(view, cwd=os.fsencode(host / "seen"))
    with pytest.raises(FailedError):
        process.cat(f"{home}/file")
    made = process.open(f"{home}/made", os.O_CREAT | os.O_WRONLY)
    assert made >= 0
    assert sorted(os.listdir(home)) == ["file"]
    missing = Process(View.make(cwd=str(host / "seen"), home=str(host / "missing")))
    assert missing.open(str(host / "missing"), O_DIRECTORY) == -errno.ENOENT


def test_a_home_that_is_shown_stays_what_it_is(host: Path) -> None:
    seen = str(host / "seen")
    assert Process(View.make(cwd=seen, home=seen)).cat(f"{seen}/file") == b"visible"
    inside = Process(View.make(cwd=f"{seen}/sub", home=seen))
    assert inside.cat(f"{seen}/sub/inner") == b"inner"
    for own in ("/proc", "/dev/shm", "/"):
        assert Process(View.make(cwd=seen, home=own)).open(own, O_DIRECTORY) >= 0


@pytest.mark.parametrize("kind", ["cwd", "writable"])
def test_names_are_sorted_unless_they_are_to_be_in_the_order_of_the_host(
    tmp_path: Path, kind: str
) -> None:
    for number in range(60):
        (tmp_path / f"{number * 7919 % 61:02}").touch()
    order = [os.fsencode(name) for name in os.listdir(tmp_path)]
    place = str(tmp_path)
    shares = [(place, True)] if kind == "writable" else []
    for host_order, want in ((False, sorted(order)), (True, order)):
        view = View.make(
            cwd=place if kind == "cwd" else None, shares=shares, host_order=host_order
        )
        assert Process(view).ls(place) == want


def test_dev_shm_is_a_file_system_of_its_own() -> None:
    process = Process()
    buffer = SIZE // 2
    assert process.call("statfs", "/dev/shm", buffer) == 0
    assert process.memory.read(buffer, 4) == (0x01021994).to_bytes(4, "little")
    assert process.open("/dev/shm/file", os.O_CREAT | os.O_WRONLY) >= 0
    shown = process.stat("/dev/shm/file")["dev"]
    assert shown == process.stat("/dev/shm")["dev"] != process.stat("/dev")["dev"]
    assert process.call("link", "/dev/shm/file", "/tmp/file") == -errno.EXDEV
    assert b"tmpfs /dev/shm tmpfs " in process.cat("/proc/self/mounts")
    number = f" {os.major(shown)}:{os.minor(shown)} / /dev/shm ".encode()
    assert number in process.cat("/proc/self/mountinfo")


def test_user_namespaces_are_off_as_debian_tells_it() -> None:
    process = Process()
    assert process.cat("/proc/sys/kernel/unprivileged_userns_clone") == b"0\n"
    assert process.cat("/proc/self/uid_map").split() == [b"0", b"0", b"4294967295"]
