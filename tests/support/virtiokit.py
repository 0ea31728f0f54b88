"""A driver for a virtio block device, as the specification tells drivers to behave."""

import mmap
import struct
from pathlib import Path

from engine.cpu.unicorn_system import MachineRecord
from engine.machine.clock import MachineClock
from engine.machine.rawdisk import ChangeBudget, HostImage, RawDisk
from engine.machine.virtioblock import VirtioBlock
from engine.machine.virtiopci import VirtioFunction
from engine.machine.virtqueue import SplitQueue

MEMORY = 1 << 20
TABLE, AVAILABLE, USED, INNER, BUFFERS = 0x1000, 0x2000, 0x3000, 0x4000, 0x10000
NEXT, WRITE, INDIRECT = 1, 2, 4
VERSION_1 = 1 << 32


class BlockDriver:
    """A disk, its registers and the memory of a guest without a processor."""

    def __init__(self, image: Path, size: int = 8) -> None:
        self.memory = mmap.mmap(-1, MEMORY)
        self.clock = MachineClock(MachineRecord())
        self.disk = RawDisk(HostImage(str(image)), ChangeBudget(1 << 20))
        block = VirtioBlock(self.disk, "disk0", self.memory, self.store)
        self.device = VirtioFunction(block, SplitQueue(self.memory, self.store), self.clock)
        self.size, self.sent = size, 0

    def store(self, address: int, data: bytes) -> None:
        self.memory[address : address + len(data)] = data

    def start(self, features: int = VERSION_1) -> None:
        """Section 3.1.1: acknowledge, agree on features, lay the queue out, go."""
        write = self.device.write
        write(0x14, 1, 0)
        write(0x14, 1, 3)
        for half in (0, 1):
            write(8, 4, half)
            write(0xC, 4, features >> 32 * half & 0xFFFFFFFF)
        write(0x14, 1, 11)
        write(0x18, 2, self.size)
        for at, address in ((0x20, TABLE), (0x28, AVAILABLE), (0x30, USED)):
            write(at, 4, address)
        write(0x1C, 2, 1)
        write(0x14, 1, 15)

    def describe(self, number: int, row: tuple[int, int, int, int], table: int = TABLE) -> None:
        """Write a descriptor: address, size, flags, next."""
        struct.pack_into("<QI2H", self.memory, table + 16 * number, *row)

    def send(self, head: int = 0) -> None:
        """Make a chain available and tell the device."""
        at = AVAILABLE + 4 + 2 * (self.sent % self.size)
        struct.pack_into("<H", self.memory, at, head)
        self.sent += 1
        struct.pack_into("<H", self.memory, AVAILABLE + 2, self.sent & 0xFFFF)
        self.device.write(0x3C, 2, 0)

    def request(self, kind: int, sector: int, data: bytes | int) -> tuple[int, bytes]:
        """Carry a request out; its status and what the device has written.

        Args:
            kind: of the request.
            sector: where.
            data: what the device is to read, or the number of bytes that it is to write.
        """
        struct.pack_into("<I4xQ", self.memory, BUFFERS, kind, sector)
        size = data if isinstance(data, int) else len(data)
        if not isinstance(data, int):
            self.store(BUFFERS + 512, data)
        end = BUFFERS + 512 + size
        self.memory[end] = 0xEE
        self.describe(0, (BUFFERS, 16, NEXT, 1 if size else 2))
        flags = NEXT | WRITE * isinstance(data, int)
        self.describe(1, (BUFFERS + 512, size, flags, 2))
        self.describe(2, (end, 1, WRITE, 0))
        self.send()
        return self.memory[end], self.memory[BUFFERS + 512 : end]

    @property
    def used(self) -> tuple[int, int, int]:
        """The used ring's index, and the last entry."""
        (index,) = struct.unpack_from("<H", self.memory, USED + 2)
        entry = struct.unpack_from("<2I", self.memory, USED + 4 + 8 * ((index - 1) % self.size))
        return index, *entry
