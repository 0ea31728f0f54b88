"""Names of UNIX sockets in the tree of files."""

import errno
import os
import socket
import stat
import struct
from pathlib import Path

from fskit import Process

from engine.linux.fs.view import View


def name(path: str) -> bytes:
    return struct.pack("<H", 1) + os.fsencode(path) + b"\0"


def bound(process: Process, path: str) -> int:
    fd = process.call("socket", 1, 1, 0)
    assert process.call("bind", fd, name(path), len(path) + 3) == 0
    assert process.call("listen", fd, 3) == 0
    return fd


def connects(process: Process, path: str) -> int:
    fd = process.call("socket", 1, 1, 0)
    result = process.call("connect", fd, name(path), len(path) + 3)
    process.call("close", fd)
    return result


def test_a_name_in_a_writable_share_is_the_guests_alone(tmp_path: Path) -> None:
    process = Process(View(shares=((os.fsencode(tmp_path), True),)))
    path, other = f"{tmp_path}/socket", f"{tmp_path}/other"
    bound(process, path)
    assert list(tmp_path.iterdir()) == []
    assert process.ls(str(tmp_path)) == [b"socket"]
    assert stat.S_ISSOCK(process.stat(path)["mode"])
    assert connects(process, path) == 0
    assert process.call("rename", path, other) == 0
    assert connects(process, path) == -errno.ENOENT
    assert connects(process, other) == 0
    assert process.call("unlink", other) == 0
    assert process.ls(str(tmp_path)) == []
    assert process.call("mknod", path, 0o010644, 0) == 0
    assert stat.S_ISFIFO(process.stat(path)["mode"])
    assert list(tmp_path.iterdir()) == []


def test_a_name_takes_the_place_of_a_file_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("the host's")
    process = Process(View(shares=((os.fsencode(tmp_path), True),)))
    path, file = f"{tmp_path}/socket", f"{tmp_path}/file"
    bound(process, path)
    assert process.call("rename", file, path) == 0
    assert process.cat(path) == b"the host's"
    bound(process, file)
    assert process.call("rename", file, path) == 0
    assert connects(process, path) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_socket_of_the_host_cannot_be_reached(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as host:
        host.bind(str(tmp_path / "host"))
        host.listen()
        process = Process(View(shares=((os.fsencode(tmp_path), True),)))
        assert connects(process, f"{tmp_path}/host") == -errno.ECONNREFUSED
        host.setblocking(False)
        try:
            host.accept()
        except BlockingIOError:
            pass
        else:
            raise AssertionError("it was reached")


def test_names_of_a_private_tree() -> None:
    process = Process()
    fd = bound(process, "/tmp/s")
    assert process.stat("/tmp/s")["mode"] == stat.S_IFSOCK | 0o755
    assert connects(process, "/tmp/s") == 0
    process.call("close", fd)
    assert connects(process, "/tmp/s") == -errno.ECONNREFUSED
    assert process.call("unlink", "/tmp/s") == 0
    assert connects(process, "/tmp/s") == -errno.ENOENT


def test_a_name_that_may_not_be_written_to() -> None:
    process = Process()
    bound(process, "/tmp/s")
    assert process.call("fchmodat", -100, process.put(b"/tmp/s\0"), 0o500) == 0
    assert connects(process, "/tmp/s") == -errno.EACCES
    assert process.call("fchmodat", -100, process.put(b"/tmp/s\0"), 0o200) == 0
    assert connects(process, "/tmp/s") == 0


def test_an_abstract_name_goes_with_its_socket() -> None:
    process = Process()
    raw = struct.pack("<H", 1) + b"\0name"
    fd = process.call("socket", 1, 1, 0)
    assert process.call("bind", fd, raw, len(raw)) == 0
    other = process.call("socket", 1, 1, 0)
    assert process.call("bind", other, raw, len(raw)) == -errno.EADDRINUSE
    process.call("close", fd)
    assert process.call("bind", other, raw, len(raw)) == 0


def test_groups_of_a_peer_are_told_whole_or_not_at_all() -> None:
    process = Process()
    two = process.put(bytes(8))
    assert process.call("socketpair", 1, 1, 0, two) == 0
    fd = int.from_bytes(process.memory.read(two, 4), "little")
    value, size = process.put(b"\xee" * 8), process.put(struct.pack("<i", 3))
    assert process.call("getsockopt", fd, 1, 59, value, size) == -errno.ERANGE
    assert process.memory.read(size, 4) == struct.pack("<i", 4)
    assert process.memory.read(value, 4) == b"\xee" * 4
    assert process.call("getsockopt", fd, 1, 59, value, size) == 0
    assert process.memory.read(value, 4) == struct.pack("<I", process.fs.identity.gid)
