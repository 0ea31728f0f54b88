"""System calls that one architecture has, each made on registers and memory alone."""

import errno
import struct

from engine.arch import by_name


class Bare:
    """Registers and a page of memory at 0x1000."""

    def __init__(self) -> None:
        self.registers: dict[str, int] = {}
        self.page = bytearray(64)

    def read_register(self, name: str) -> int:
        return self.registers.get(name, 0)

    def write_register(self, name: str, value: int) -> None:
        self.registers[name] = value

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.page[address - 0x1000 : address - 0x1000 + size])

    def write(self, address: int, data: bytes) -> None:
        self.page[address - 0x1000 : address - 0x1000 + len(data)] = data


def _call(arch: str, name: str, bare: Bare, *arguments: int) -> int:
    return by_name(arch).linux.own_calls[name](bare, bare, *arguments)


def test_segment_bases() -> None:
    bare = Bare()
    assert _call("x86_64", "arch_prctl", bare, 0x1002, 0x5000) == 0
    assert _call("x86_64", "arch_prctl", bare, 0x1001, 0x6000) == 0
    assert bare.registers == {"fs_base": 0x5000, "gs_base": 0x6000}
    assert _call("x86_64", "arch_prctl", bare, 0x1003, 0x1000) == 0
    assert _call("x86_64", "arch_prctl", bare, 0x1004, 0x1008) == 0
    assert struct.unpack_from("<2Q", bare.page) == (0x5000, 0x6000)
    assert _call("x86_64", "arch_prctl", bare, 0x1002, 1 << 47) == -errno.EPERM
    assert _call("x86_64", "arch_prctl", bare, 0x1005, 0) == -errno.EINVAL


def test_what_the_hardware_has() -> None:
    bare = Bare()
    struct.pack_into("<qQqQ", bare.page, 0, 4, 77, 99, 77)
    assert _call("riscv64", "riscv_hwprobe", bare, 0x1000, 2, 0, 0, 0) == 0
    assert struct.unpack_from("<qQqQ", bare.page) == (4, 3, -1, 0)
    assert _call("riscv64", "riscv_hwprobe", bare, 0x1000, 2, 8, 0, 0) == -errno.EINVAL
    assert _call("riscv64", "riscv_hwprobe", bare, 0x1000, 2, 0, 0, 1) == -errno.EINVAL


def test_flushing_needs_nothing() -> None:
    assert _call("riscv64", "riscv_flush_icache", Bare(), 0, 4096, 1) == 0
    assert _call("riscv64", "riscv_flush_icache", Bare(), 0, 4096, 2) == -errno.EINVAL
