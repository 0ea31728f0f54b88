"""A processor and memory of dictionaries for what evaluates fetch arguments."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.arch import by_name
from engine.arch.base import Arch
from engine.errors import GuestFaultError
from engine.fetch.evaluate import FetchContext
from engine.trace.staging import Staging

PAGE = 4096


@dataclass
class FakeCpu:
    """Registers by name; those not given are zero."""

    registers: dict[str, int] = field(default_factory=dict)
    time: int = 0

    def reader(self, names: tuple[str, ...]) -> Callable[[], tuple[int, ...]]:
        return lambda: tuple(self.registers.get(name, 0) for name in names)

    def now(self) -> int:
        self.time += 1
        return self.time


@dataclass
class FakeMemory:
    """Pages by address, each of PAGE bytes; counts the bytes of every read."""

    pages: dict[int, bytes]
    longest: int = 0

    def read(self, address: int, size: int) -> bytes:
        self.longest = max(self.longest, size)
        parts = []
        while size:
            page = self.pages.get(address - address % PAGE)
            if page is None:
                raise GuestFaultError(address, "read")
            part = min(size, PAGE - address % PAGE)
            parts.append(page[address % PAGE : address % PAGE + part])
            address += part
            size -= part
        return b"".join(parts)

    def read_cstring(self, address: int, limit: int) -> bytes:
        parts = []
        while limit:
            size = min(limit, PAGE - address % PAGE)
            data, nul, _ = self.read(address, size).partition(b"\0")
            parts.append(data)
            if nul:
                break
            address += size
            limit -= size
        return b"".join(parts)

    def reader(self, layout: struct.Struct) -> Callable[[int], tuple[Any, ...]]:
        return lambda address: layout.unpack(self.read(address, layout.size))

    def text_reader(self, limit: int) -> Callable[[int], bytes]:
        return lambda address: self.read_cstring(address, limit)


def memory_of(pages: Mapping[int, bytes]) -> FakeMemory:
    """Memory of pages that are given from their start; the rest of each is zero."""
    return FakeMemory({address: data.ljust(PAGE, b"\0") for address, data in pages.items()})


@dataclass
class Bench:
    """What a recorder needs, and the rows it wrote."""

    memory: FakeMemory
    arch: Arch = field(default_factory=lambda: by_name("x86_64"))
    cpu: FakeCpu = field(default_factory=FakeCpu)
    comm: bytes = b"prog"
    capacity: int = 1 << 20
    drained: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.staging = Staging(self.drained.append, self.capacity)
        self.context = FetchContext(
            self.arch,
            self.cpu,
            self.memory,
            self.staging,
            lambda thread: self.comm,
            lambda address: f"sym_{address:x}+0x0/0x10",
        )

    def rows(self) -> bytes:
        """All rows so far."""
        self.staging.drain()
        return b"".join(self.drained)
