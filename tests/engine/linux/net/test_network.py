"""Bounds of the network, ports, and what a connection leaves behind."""

import contextlib
import errno
import os
import socket
import struct
import subprocess
from pathlib import Path

import pytest
from cguest import compiled
from fskit import Process
from guestrun import start

from engine.linux.net import network
from engine.linux.net.tcp import TcpSocket
from engine.linux.wait import Wait

BUF = 0x200000
SECOND = 10**9


def address(host: str, port: int) -> bytes:
    return struct.pack("<H", 2) + port.to_bytes(2, "big") + socket.inet_aton(host) + bytes(8)


def port_of(process: Process, fd: int) -> int:
    size = process.put(struct.pack("<i", 16))
    assert process.call("getsockname", fd, BUF, size) == 0
    return int.from_bytes(process.memory.read(BUF + 2, 2), "big")


def listener(process: Process, port: int = 0) -> int:
    fd = process.call("socket", 2, 1, 0)
    process.call("bind", fd, address("127.0.0.1", port), 16)
    process.call("listen", fd, 100)
    return fd


def connected(process: Process) -> tuple[int, int]:
    fd = listener(process)
    one = process.call("socket", 2, 1, 0)
    assert process.call("connect", one, address("127.0.0.1", port_of(process, fd)), 16) == 0
    other = process.call("accept", fd, 0, 0)
    process.call("close", fd)
    return one, other


@pytest.mark.parametrize("host", ["192.0.2.1", "10.0.0.1", "224.0.0.1", "255.255.255.255"])
def test_nothing_leads_out(host: str) -> None:
    process = Process()
    for kind in (1, 2):
        fd = process.call("socket", 2, kind, 0)
        assert process.call("connect", fd, address(host, 80), 16) == -errno.ENETUNREACH
    sent = process.call("sendto", fd, BUF, 1, 0, process.put(address(host, 80)), 16)
    assert sent == -errno.ENETUNREACH
    six = struct.pack("<HHI", 10, 0x5000, 0) + bytes.fromhex("20010db8") + bytes(12) + bytes(4)
    fd = process.call("socket", 10, 1, 0)
    assert process.call("connect", fd, six, 28) == -errno.ENETUNREACH


def test_sockets_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_SOCKETS", 5)
    process = Process()
    made = [process.call("socket", 2, 1, 0) for _ in range(7)]
    assert made[5:] == [-errno.ENFILE] * 2
    process.call("close", made[0])
    assert process.call("socketpair", 1, 1, 0, BUF) == -errno.ENFILE
    assert process.call("socket", 1, 1, 0) == made[0]


def test_a_pair_without_descriptors_is_gone() -> None:
    process = Process()
    process.limits["nofile"] = 1
    for _ in range(2):
        assert process.call("socketpair", 1, 1, 0, BUF) == -errno.EMFILE
        assert not process.net.sockets
        process.call("pipe2", BUF, 0)
        process.call("socket", 2, 1, 0)
        process.call("close", 0)
    process.limits["nofile"] = 0
    assert process.call("socketpair", 1, 1, 0, BUF) == -errno.EMFILE
    assert not process.net.sockets


def test_a_backlog_that_no_socket_is_left_for_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    fd = listener(process)
    one = process.call("socket", 2, 1, 0)
    monkeypatch.setattr(network, "_SOCKETS", 2)
    where = address("127.0.0.1", port_of(process, fd))
    assert process.call("connect", one, where, 16) == -errno.ECONNREFUSED


def test_bytes_on_their_way_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_BUFFERED", 100_000)
    process = Process()
    one, other = connected(process)
    assert process.call("sendto", one, 0x1000, 1 << 20, 0x40, 0, 0) == 100_000
    assert process.call("sendto", one, 0x1000, 1, 0x40, 0, 0) == -errno.EAGAIN
    datagrams = process.call("socket", 2, 2, 0)
    process.call("bind", datagrams, address("127.0.0.1", 0), 16)
    where = process.put(address("127.0.0.1", port_of(process, datagrams)))
    sender = process.call("socket", 2, 2, 0)
    assert process.call("sendto", sender, 0x1000, 9, 0, where, 16) == 9  # and it is lost
    assert process.call("recvfrom", datagrams, BUF, 9, 0x40, 0, 0) == -errno.EAGAIN
    assert process.call("recvfrom", other, BUF, 1 << 20, 0x40, 0, 0) == 100_000
    assert process.net.buffered == 0


def test_what_is_closed_leaves_nothing() -> None:
    process = Process()
    one, other = connected(process)
    process.write(one, b"unread")
    process.call("close", one)
    process.call("close", other)
    process.clock.now += 61 * SECOND
    process.net.expire()
    assert not process.net.sockets
    assert not process.net.waiting
    assert process.net.buffered == 0
    assert all(not process.net.tcp.holders(port) for port in range(32768, 32800))


def test_a_port_is_kept_for_a_minute() -> None:
    process = Process()
    fd = listener(process)
    port = port_of(process, fd)
    one = process.call("socket", 2, 1, 0)
    process.call("connect", one, address("127.0.0.1", port), 16)
    other = process.call("accept", fd, 0, 0)
    for each in (fd, other, one):
        process.call("close", each)
    fd = process.call("socket", 2, 1, 0)
    where = address("127.0.0.1", port)
    assert process.call("bind", fd, where, 16) == -errno.EADDRINUSE
    process.clock.now += 61 * SECOND
    assert process.call("bind", fd, where, 16) == 0


def test_an_orphan_ends_with_its_peer() -> None:
    process = Process()
    one, other = connected(process)
    process.call("close", one)
    orphans = [s for s in process.net.sockets if isinstance(s, TcpSocket) and s.orphan]
    assert len(orphans) == 1
    process.call("close", other)
    assert not process.net.sockets


def test_connecting_to_a_full_backlog_waits_for_room() -> None:
    process = Process()
    fd = process.call("socket", 2, 1, 0)
    process.call("bind", fd, address("127.0.0.1", 0), 16)
    process.call("listen", fd, 0)
    where = address("127.0.0.1", port_of(process, fd))
    first, second = (process.call("socket", 2, 1, 0) for _ in range(2))
    assert process.call("connect", first, where, 16) == 0
    wait = process.start("connect", second, where, 16)
    assert isinstance(wait, Wait)
    assert wait.poll() is None
    assert wait.timeout_result == -errno.ETIMEDOUT
    process.call("accept", fd, 0, 0)
    assert wait.poll() == 0


def test_a_port_is_shared_by_sockets_of_one_user() -> None:
    """SO_REUSEPORT of all; another user's is a conflict (inet_csk_bind_conflict)."""

    class Holder(network.TimeWait):
        reuse_port = True

    process = Process()
    sockets = [process.call("socket", 2, 1, 0) for _ in range(2)]
    for fd in sockets:
        assert process.call("setsockopt", fd, 1, 15, process.put(b"\1\0\0\0"), 4) == 0
    assert process.call("bind", sockets[0], address("127.0.0.1", 9999), 16) == 0
    (first, second) = process.net.sockets
    assert isinstance(first, TcpSocket)
    assert isinstance(second, TcpSocket)
    asking = Holder(second, 0)
    assert not process.net.tcp.conflict(asking, first.local)
    asking.uid = first.uid + 1
    assert process.net.tcp.conflict(asking, first.local)


def _own_sockets(process: int) -> set[str]:
    """Inodes of sockets that a process of the host has."""
    found = set()
    for each in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(each))
    return {name.strip("socket:[]") for name in found if name.startswith("socket:")}


def test_a_program_and_the_host_cannot_reach_each_other(tmp_path: Path) -> None:
    """By addresses, abstract names, and files in a folder that is shared with writing."""
    hidden = f"kprobe-tui-test-{os.getpid()}"
    mine, own = tmp_path / "mine", tmp_path / "own"
    with contextlib.ExitStack() as stack:
        tcp, udp = stack.enter_context(socket.socket()), socket.socket(type=socket.SOCK_DGRAM)
        stack.enter_context(udp)
        tcp.bind(("127.0.0.1", 0))
        port: int = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        names = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2)]
        for one, name in zip(names, (f"\0{hidden}", str(mine)), strict=True):
            one.bind(name)
            one.listen()
        tcp.listen()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            other: int = free.getsockname()[1]
        words = [str(port), hidden, str(mine), str(own), str(other)]
        program = str(compiled("hostnet", "x86_64"))
        process = start(
            *("run", "--share", f"{tmp_path}:rw", program, *words),
            cwd=tmp_path,
            stdin=subprocess.PIPE,
        )
        assert process.stdout is not None
        lines = []
        while (line := process.stdout.readline().decode().strip()) != "ready":
            assert line, process.communicate()
            lines.append(line)
        refused = -errno.ECONNREFUSED
        assert lines == [
            *(f"tcp: {refused}", f"tcp6: {refused}", f"abstract: {refused}", f"file: {refused}"),
            f"raw: {-errno.EPERM}",
            *("bind: 0", "bind abstract: 0", "bind own: 0", "bind other: 0", "listen: 0"),
        ]
        for host in (tcp, udp, *names):
            host.setblocking(False)
            with pytest.raises(BlockingIOError):
                host.recv(1) if host is udp else host.accept()
        for address_family, place in (
            (socket.AF_INET, ("127.0.0.1", other)),
            (socket.AF_UNIX, str(own)),
        ):
            with (
                socket.socket(address_family) as caller,
                pytest.raises(OSError, match=r"refused|No"),
            ):
                caller.connect(place)
        assert not own.exists()
        assert _own_sockets(process.pid) == set()
        process.communicate(b"x", timeout=300)
        assert process.returncode == 0
