"""Calls at random: none fails in the engine, and when all is closed nothing is left."""

import random
import struct

import pytest
from fskit import Process

from engine.linux.wait import Wait

_BUF, _ROOM = 0x200000, 0x1F0000
_LOOPBACK = (b"\x7f\0\0\1", bytes(4), b"\x7f\1\1\1", b"\x08\x08\x08\x08")


def _name(rng: random.Random, ports: list[int]) -> bytes:
    port = rng.choice(ports).to_bytes(2, "big")
    kind = rng.randrange(6)
    if kind < 3:
        return struct.pack("<H", 2) + port + rng.choice(_LOOPBACK) + bytes(8)
    if kind == 3:
        host = rng.choice((bytes(16), bytes(15) + b"\1", bytes(10) + b"\xff\xff\x7f\0\0\1"))
        return struct.pack("<H", 10) + port + bytes(4) + host + bytes(4)
    if kind == 4:
        return struct.pack("<H", 1) + rng.choice((b"\0a", b"\0b", b"/tmp/s\0", b"/none/x\0"))
    return rng.randbytes(rng.randrange(30))


class RandomCalls:
    """A process that makes calls of sockets without a plan."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.process = Process()
        self.process.limits["nofile"] = 100
        self.waits: list[Wait] = []

    def call(self, name: str, *arguments: int | bytes) -> None:
        result = self.process.start(name, *arguments)
        if isinstance(result, Wait):
            self.waits.append(result)

    def connect(self) -> None:
        """A new socket for one that listens."""
        listening = [each for each in self.process.net.sockets if each.listening]
        if listening:
            name = self.rng.choice(listening).name()
            fd = self.process.call("socket", name[0], 1 | self.rng.choice((0, 0o4000)), 0)
            if fd >= 0:
                self.call("connect", fd, name, len(name))

    def listen(self) -> None:
        """A new socket that listens."""
        fd = self.process.call("socket", 2, 1, 0)
        if fd >= 0:
            self.call("bind", fd, struct.pack("<HH", 2, 0) + _LOOPBACK[0] + bytes(8), 16)
            self.call("listen", fd, self.rng.choice((0, 1, 3)))

    def step(self) -> None:
        rng, process = self.rng, self.process
        fd = rng.choice([*process.files, 99])
        own = [each.local.port for each in process.net.sockets if hasattr(each, "local")]
        name = _name(rng, [0, 33000, *own])
        flags = rng.choice((0, 0, 0x40, 0x40, 0x4000, 2, 0x20, 0x100, 0x42, 1))
        size = process.put(struct.pack("<i", rng.choice((0, 16, 128, -1))))
        files = rng.choices([*process.files, 99], k=rng.choice((0, 1, 3)))
        control = struct.pack("<Qii", 16 + 4 * len(files), 1, rng.choice((1, 1, 2)))
        control += struct.pack(f"<{len(files)}i", *files)
        part = struct.pack("<QQ", 0x1000, rng.choice((0, 1, 5000)))
        out = (0, 0, process.put(part), 1, process.put(control), len(control), 0)
        inward = struct.pack("<QQ", _BUF, rng.choice((0, 1, 5000)))
        into = (_ROOM, 64, process.put(inward), 1, _ROOM + 4096, rng.choice((0, 16, 20, 100)), 0)
        message = "<QI4xQQQQI4x"
        count = rng.choice((0, 1, 1000, 70_000, 400_000))
        level, option = rng.choice((0, 1, 6, 17, 41)), rng.randrange(80)
        value = struct.pack("<ii", rng.choice((0, 1, -1, 100_000)), 1)
        kind = rng.choice((1, 2, 5, 3)) | rng.choice((0, 0o4000))
        calls: tuple[tuple[str, tuple[int | bytes, ...]], ...] = (
            ("socket", (rng.choice((1, 2, 10, 16)), kind, rng.choice((0, 0, 6, 17)))),
            ("socketpair", (1, kind, 0, _BUF)),
            ("bind", (fd, name, len(name))),
            ("listen", (fd, rng.choice((0, 1, -1)))),
            ("connect", (fd, name, len(name))),
            ("accept4", (fd, rng.choice((0, _ROOM)), size, rng.choice((0, 0o4000)))),
            ("sendto", (fd, 0x1000, count, flags, 0, 0)),
            ("sendto", (fd, 0x1000, count, flags, name, len(name))),
            ("recvfrom", (fd, _BUF, count, flags, _ROOM, size)),
            ("sendmsg", (fd, process.put(struct.pack(message, *out)), flags)),
            ("recvmsg", (fd, process.put(struct.pack(message, *into)), flags)),
            ("close", (fd,)),
            ("shutdown", (fd, rng.randrange(4))),
            ("getpeername", (fd, _ROOM, size)),
            ("setsockopt", (fd, level, option, value, rng.choice((4, 8, 1)))),
            ("getsockopt", (fd, level, option, _ROOM, size)),
            ("ioctl", (fd, rng.choice((0x541B, 0x5411, 0x8912, 0x8913)), _ROOM)),
            ("write", (fd, 0x1000, count)),
            ("read", (fd, _BUF, count)),
        )
        self.call(*_flat(rng.choice(calls)))
        rng.choice((self.connect, self.listen, self.look, self.look))()

    def look(self) -> None:
        """Whoever waits tries again."""
        for fd in self.process.files:
            self.process.files.get(fd).readiness()
        if self.waits:
            self.process.table["again"] = lambda ctx: self.waits.pop().poll() or 0
            self.process.call("again")


def _flat(
    call: tuple[str, tuple[int | bytes, ...]],
) -> tuple[str, *tuple[int | bytes, ...]]:
    return call[0], *call[1]


@pytest.mark.parametrize("seed", range(8))
def test_random_calls_leave_nothing_behind(seed: int) -> None:
    calls = RandomCalls(seed)
    for _ in range(250):
        calls.step()
    process = calls.process
    assert len(process.net.sockets) > 10
    for fd in list(process.files):
        process.call("close", fd)
    process.net.rights.collect()
    process.clock.now += 61 * 10**9
    process.net.expire()
    assert not process.net.sockets
    assert process.net.buffered == process.net.rights.count == 0
    assert not process.net.abstract
    assert not any(process.net.tcp.holders(port) for port in range(1 << 16))
    assert not any(process.net.udp.holders(port) for port in range(1 << 16))
