"""The same file operations here and on the host's own kernel: same results, same tree.

Three kinds of trees are compared: one the guest made in the overlay, one that lies over a
host directory (copy-up and whiteouts), and a writable share.
"""

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fskit import AT_FDCWD, SIZE, Process
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.linux.fs.view import View

PATHS = [
    "a",
    "b",
    "l",
    "d",
    "e",
    "d/a",
    "d/x",
    "e/d",
    "l/a",
    "d/..",
    "d/../a",
    "a/",
    "d/",
    "d/.",
    "a/b",
    "e/l/x",
    ".",
    "d/" + "n" * 256,
    "",
]
TARGETS = ["a", "d", "l", "d/x", "../a", "nowhere", "d/", "."]

path = st.sampled_from(PATHS)
data = st.binary(min_size=0, max_size=12)
size = st.integers(0, 30) | st.sampled_from([4095, 70_000, 140_000])
flags = st.builds(
    lambda access, more: access | sum(more),
    st.sampled_from([os.O_RDONLY, os.O_WRONLY, os.O_RDWR]),
    st.lists(
        st.sampled_from(
            [os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_DIRECTORY, os.O_NOFOLLOW]
        ),
        max_size=3,
        unique=True,
    ),
).filter(lambda f: not (f & os.O_CREAT and f & os.O_DIRECTORY))
slot = st.integers(0, 2)

OPERATION = st.one_of(
    st.tuples(st.just("open"), slot, path, flags, st.sampled_from([0o644, 0o600, 0o755])),
    st.tuples(st.just("close"), slot),
    st.tuples(st.just("write"), slot, data),
    st.tuples(st.just("read"), slot, size),
    st.tuples(st.just("pwrite"), slot, data, size),
    st.tuples(st.just("pread"), slot, size, size),
    st.tuples(st.just("lseek"), slot, st.integers(-5, 20), st.integers(0, 2)),
    st.tuples(st.just("ftruncate"), slot, size),
    st.tuples(st.just("fstat"), slot),
    st.tuples(st.just("truncate"), path, size),
    st.tuples(st.just("mkdir"), path),
    st.tuples(st.just("rmdir"), path),
    st.tuples(st.just("unlink"), path),
    st.tuples(st.just("rename"), path, path),
    st.tuples(st.just("link"), path, path),
    st.tuples(st.just("symlink"), st.sampled_from(TARGETS), path),
    st.tuples(st.just("readlink"), path),
    st.tuples(st.just("chmod"), path, st.sampled_from([0o644, 0o755, 0o700, 0o4711])),
    st.tuples(st.just("utime"), path, st.integers(0, 10**9)),
    st.tuples(st.just("stat"), path),
    st.tuples(st.just("lstat"), path),
    st.tuples(st.just("list"), path),
)


def populate(top: Path) -> None:
    (top / "a").write_bytes(b"lower contents of a")
    (top / "d").mkdir()
    (top / "d" / "x").write_bytes(b"x" * 100_000)
    (top / "d" / "a").write_bytes(b"")
    (top / "e").mkdir()
    (top / "e" / "l").symlink_to("../d")
    (top / "l").symlink_to("d")
    os.link(top / "a", top / "e" / "d")
    for name in ("a", "d/x", "d/a"):
        (top / name).chmod(0o644)
    for name in ("d", "e", "."):
        (top / name).chmod(0o755)


def shape(mode: int, size: int, links: int) -> tuple[int, int, int]:
    """What of a stat must agree; sizes and links of directories are each system's own."""
    if stat.S_ISDIR(mode):
        return mode, 0, 0
    return mode, size, links


class Host:
    """Operations on the host."""

    def __init__(self, top: Path) -> None:
        self.top = os.open(top, os.O_RDONLY)
        self.slots: dict[int, int] = {}

    def run(self, operation: tuple[Any, ...]) -> object:
        name, *arguments = operation
        try:
            return getattr(self, name)(*arguments)
        except OSError as error:
            return errno.errorcode[error.errno or 0]

    def finish(self) -> None:
        for fd in self.slots.values():
            os.close(fd)
        os.close(self.top)

    def _fd(self, slot: int) -> int:
        return self.slots.get(slot, -1)

    def open(self, slot: int, path: str, flags: int, mode: int) -> object:
        fd = os.open(path, flags, mode, dir_fd=self.top)
        if slot in self.slots:
            os.close(self.slots[slot])
        self.slots[slot] = fd
        return "opened"

    def close(self, slot: int) -> object:
        os.close(self.slots.pop(slot, -1))
        return 0

    def write(self, slot: int, data: bytes) -> object:
        return os.write(self._fd(slot), data)

    def read(self, slot: int, size: int) -> object:
        return os.read(self._fd(slot), size)

    def pwrite(self, slot: int, data: bytes, offset: int) -> object:
        return os.pwrite(self._fd(slot), data, offset)

    def pread(self, slot: int, size: int, offset: int) -> object:
        return os.pread(self._fd(slot), size, offset)

    def lseek(self, slot: int, offset: int, whence: int) -> object:
        fd = self._fd(slot)
        if fd >= 0 and stat.S_ISDIR(os.fstat(fd).st_mode):
            return "directory"
        return os.lseek(fd, offset, whence)

    def ftruncate(self, slot: int, size: int) -> object:
        os.ftruncate(self._fd(slot), size)
        return 0

    def fstat(self, slot: int) -> object:
        found = os.fstat(self._fd(slot))
        return shape(found.st_mode, found.st_size, found.st_nlink)

    def truncate(self, path: str, size: int) -> object:
        # os.truncate takes no directory descriptor.
        os.truncate(f"/proc/self/fd/{self.top}/{path}" if path else "", size)
        return 0

    def mkdir(self, path: str) -> object:
        os.mkdir(path, 0o755, dir_fd=self.top)
        return 0

    def rmdir(self, path: str) -> object:
        os.rmdir(path, dir_fd=self.top)
        return 0

    def unlink(self, path: str) -> object:
        os.unlink(path, dir_fd=self.top)
        return 0

    def rename(self, old: str, new: str) -> object:
        os.rename(old, new, src_dir_fd=self.top, dst_dir_fd=self.top)
        return 0

    def link(self, old: str, new: str) -> object:
        os.link(old, new, src_dir_fd=self.top, dst_dir_fd=self.top, follow_symlinks=False)
        return 0

    def symlink(self, target: str, path: str) -> object:
        os.symlink(target, path, dir_fd=self.top)
        return 0

    def readlink(self, path: str) -> object:
        return os.fsencode(os.readlink(path, dir_fd=self.top))

    def chmod(self, path: str, mode: int) -> object:
        os.chmod(path, mode, dir_fd=self.top)
        return 0

    def utime(self, path: str, time: int) -> object:
        os.utime(path, ns=(time, time), dir_fd=self.top)
        return os.stat(path, dir_fd=self.top).st_mtime_ns

    def stat(self, path: str) -> object:
        found = os.stat(path, dir_fd=self.top)
        return shape(found.st_mode, found.st_size, found.st_nlink)

    def lstat(self, path: str) -> object:
        found = os.stat(path, dir_fd=self.top, follow_symlinks=False)
        return shape(found.st_mode, found.st_size, found.st_nlink)

    def list(self, path: str) -> object:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.top)
        try:
            return sorted(os.fsencode(name) for name in os.listdir(fd))
        finally:
            os.close(fd)


class Guest:
    """The same operations through the handlers."""

    def __init__(self, process: Process, top: str) -> None:
        self.process = process
        self.top = process.open(top, os.O_DIRECTORY)
        assert self.top >= 0
        self.slots: dict[int, int] = {}

    def run(self, operation: tuple[Any, ...]) -> object:
        name, *arguments = operation
        result = getattr(self, name)(*arguments)
        if isinstance(result, int) and result < 0:
            return errno.errorcode[-result]
        return result

    def _call(self, name: str, *arguments: int | bytes | str) -> int:
        return self.process.call(name, *arguments)

    def _fd(self, slot: int) -> int:
        return self.slots.get(slot, -1)

    def open(self, slot: int, path: str, flags: int, mode: int) -> object:
        fd = self._call("openat", self.top, path, flags, mode)
        if fd < 0:
            return fd
        if slot in self.slots:
            self._call("close", self.slots[slot])
        self.slots[slot] = fd
        return "opened"

    def close(self, slot: int) -> object:
        return self._call("close", self.slots.pop(slot, -1))

    def write(self, slot: int, data: bytes) -> object:
        return self.process.write(self._fd(slot), data)

    def _bytes(self, count: int) -> object:
        return count if count < 0 else bytes(self.process.memory.read(SIZE // 2, count))

    def read(self, slot: int, size: int) -> object:
        return self._bytes(self._call("read", self._fd(slot), SIZE // 2, size))

    def pwrite(self, slot: int, data: bytes, offset: int) -> object:
        address = self.process.put(data)
        return self._call("pwrite64", self._fd(slot), address, len(data), offset)

    def pread(self, slot: int, size: int, offset: int) -> object:
        return self._bytes(self._call("pread64", self._fd(slot), SIZE // 2, size, offset))

    def lseek(self, slot: int, offset: int, whence: int) -> object:
        fd = self._fd(slot)
        file = self.process.files.peek(fd)
        if file is not None and file.is_directory:
            return "directory"
        return self._call("lseek", fd, offset, whence)

    def ftruncate(self, slot: int, size: int) -> object:
        return self._call("ftruncate", self._fd(slot), size)

    def _stat(self, result: int) -> object:
        if result < 0:
            return result
        raw = bytes(self.process.memory.read(SIZE // 2, 144))
        links, mode, length = (
            int.from_bytes(raw[at : at + width], "little")
            for at, width in ((16, 8), (24, 4), (48, 8))
        )
        return shape(mode, length, links)

    def fstat(self, slot: int) -> object:
        return self._stat(self._call("fstat", self._fd(slot), SIZE // 2))

    def truncate(self, path: str, size: int) -> object:
        if path:
            path = f"/proc/self/fd/{self.top}/{path}"
        return self._call("truncate", path, size)

    def mkdir(self, path: str) -> object:
        return self._call("mkdirat", self.top, path, 0o755)

    def rmdir(self, path: str) -> object:
        return self._call("unlinkat", self.top, path, 0x200)

    def unlink(self, path: str) -> object:
        return self._call("unlinkat", self.top, path, 0)

    def rename(self, old: str, new: str) -> object:
        return self._call("renameat", self.top, old, self.top, new)

    def link(self, old: str, new: str) -> object:
        return self._call("linkat", self.top, old, self.top, new, 0)

    def symlink(self, target: str, path: str) -> object:
        return self._call("symlinkat", target, self.top, path)

    def readlink(self, path: str) -> object:
        return self._bytes(self._call("readlinkat", self.top, path, SIZE // 2, 4096))

    def chmod(self, path: str, mode: int) -> object:
        return self._call("fchmodat", self.top, path, mode)

    def utime(self, path: str, time: int) -> object:
        pair = divmod(time, 10**9) * 2
        times = self.process.put(b"".join(value.to_bytes(8, "little") for value in pair))
        result = self._call("utimensat", self.top, path, times, 0)
        if result < 0:
            return result
        self._call("newfstatat", self.top, path, SIZE // 2, 0)
        raw = bytes(self.process.memory.read(SIZE // 2, 144))
        seconds, rest = (int.from_bytes(raw[at : at + 8], "little") for at in (88, 96))
        return seconds * 10**9 + rest

    def stat(self, path: str) -> object:
        return self._stat(self._call("newfstatat", self.top, path, SIZE // 2, 0))

    def lstat(self, path: str) -> object:
        return self._stat(self._call("newfstatat", self.top, path, SIZE // 2, 0x100))

    def list(self, path: str) -> object:
        if path == "":
            return -errno.ENOENT
        fd = self._call("openat", self.top, path, os.O_DIRECTORY, 0)
        if fd < 0:
            return fd
        self._call("close", fd)
        return sorted(self.process.ls(f"/proc/self/fd/{self.top}/{path}"))


def overlay(host: Path) -> tuple[Process, str, Path]:
    """A tree that the guest made itself, empty at first."""
    process = Process(uid=os.geteuid())
    process.umask = 0
    process.call("mkdir", "/tmp/top", 0o755)
    twin = host / "twin"
    twin.mkdir(0o755)
    return process, "/tmp/top", twin


def merged(host: Path) -> tuple[Process, str, Path]:
    """A tree over a host directory."""
    lower, twin = host / "lower", host / "twin"
    for top in (lower, twin):
        top.mkdir()
        populate(top)
    process = Process(View.make(cwd=str(lower)), uid=os.geteuid())
    process.umask = 0
    return process, str(lower), twin


def shared(host: Path) -> tuple[Process, str, Path]:
    """A writable share."""
    lower, twin = host / "lower", host / "twin"
    for top in (lower, twin):
        top.mkdir()
        populate(top)
    process = Process(View.make(shares=[(str(lower), True)]), uid=os.geteuid())
    process.umask = 0
    return process, str(lower), twin


def host_tree(top: Path) -> dict[str, object]:
    """Everything below a host directory."""
    host = Host(top)
    try:
        return tree(host)
    finally:
        host.finish()


def tree(runner: Host | Guest, top: str = ".") -> dict[str, object]:
    """Everything below a directory."""
    found: dict[str, object] = {}
    names = runner.run(("list", top))
    assert isinstance(names, list), (top, names)
    for raw in names:
        path = f"{top}/{os.fsdecode(raw)}"
        found[path] = runner.run(("lstat", path))
        mode = found[path][0]  # type: ignore[index]
        if stat.S_ISDIR(mode):
            found.update(tree(runner, path))
        elif stat.S_ISLNK(mode):
            found[path + " ->"] = runner.run(("readlink", path))
        else:
            runner.run(("open", 9, path, os.O_RDONLY, 0))
            found[path + " ="] = runner.run(("read", 9, 200_000))
    return found


def without_rights(operation: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is done on the host in place of it: no setuid or setgid bit comes out of a share."""
    if operation[0] == "chmod":
        return (*operation[:2], operation[2] & 0o1777)
    return operation


@pytest.mark.parametrize(
    "make",
    [overlay, *(pytest.param(make, marks=pytest.mark.slow) for make in (merged, shared))],
)
@given(operations=st.lists(OPERATION, min_size=1, max_size=25))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
def test_same_as_the_host(
    make: Callable[[Path], tuple[Process, str, Path]], operations: list[tuple[Any, ...]]
) -> None:
    folder = tempfile.mkdtemp()
    umask = os.umask(0)
    try:
        process, top, twin = make(Path(folder))
        if make is merged:
            before = host_tree(Path(top))
        host, guest = Host(twin), Guest(process, top)
        for operation in operations:
            meant = without_rights(operation) if make is shared else operation
            assert (operation, guest.run(operation)) == (operation, host.run(meant))
        assert tree(guest) == tree(host)
        if make is merged:
            assert host_tree(Path(top)) == before, "the host's directory was changed"
        if make is shared:
            assert host_tree(Path(top)) == tree(host), "the share was not written through"
        host.finish()
        process.files.close_all()
        process.fs.close()
        assert process.fs.budget.used >= 0
    finally:
        os.umask(umask)
        shutil.rmtree(folder)


def test_budget_is_given_back() -> None:
    process = Process()
    for number in range(20):
        fd = process.open("/tmp/f", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        process.call("pwrite64", fd, process.put(b"x" * 5000), 5000, number * 100_000)
        process.call("unlink", "/tmp/f")
        assert process.fs.budget.used > 0
        process.call("close", fd)
    assert process.fs.budget.used == 0
    assert process.fs.budget.files == 0
    assert process.call("mkdirat", AT_FDCWD, "/tmp/d", 0o755) == 0
    assert process.fs.budget.files == 1
