"""Machines with a few instructions in place of a kernel."""

import struct
from collections.abc import Callable
from datetime import UTC, datetime

from engine.machine.machine import BareMachine, MachineEnd, NoInput

BEGAN = datetime(2026, 1, 1, 13, 14, 15, tzinfo=UTC)
CODE, STACK, TABLE = 0x10000, 0x18000, 0x4000
PRESENT, WRITABLE, NX = 1, 2, 1 << 63
CLI_HLT = b"\xfa\xf4"
_CODE_DESCRIPTOR, _DATA_DESCRIPTOR = 0x00AF9B000000FFFF, 0x00CF93000000FFFF


def word(machine: BareMachine, address: int, value: int) -> None:
    """Write eight bytes of physical memory."""
    struct.pack_into("<Q", machine.cpu.memory, address, value)


def map_page(machine: BareMachine, address: int, physical: int, flags: int) -> None:
    """Map a page below 2 MB."""
    word(machine, TABLE + 8 * (address >> 12), physical | flags)


def bare(code: bytes, put: Callable[[bytes], None] = lambda data: None) -> BareMachine:
    """A machine of 16 MB in long mode with 2 MB mapped one to one, in front of code at ring 0."""
    machine = BareMachine(16 << 20, put, NoInput(), BEGAN)
    for at, to in ((0x1000, 0x2000), (0x2000, 0x3000), (0x3000, TABLE)):
        word(machine, at, to | PRESENT | WRITABLE)
    for page in range(512):
        map_page(machine, page << 12, page << 12, PRESENT | WRITABLE)
    word(machine, 0x6010, _CODE_DESCRIPTOR)
    word(machine, 0x6018, _DATA_DESCRIPTOR)
    machine.cpu.memory[CODE : CODE + len(code)] = code
    machine.cpu.enter_long_mode(0x1000, 0x6000, 0x10, 0x18)
    machine.cpu["rsp"], machine.cpu["rip"] = STACK, CODE
    return machine


def ran(code: bytes) -> tuple[BareMachine, MachineEnd]:
    """Run code to its end."""
    machine = bare(code)
    return machine, machine.run()


def gate(machine: BareMachine, table: int, vector: int, handler: int) -> None:
    """Write an interrupt gate."""
    low = handler & 0xFFFF | 0x10 << 16 | 0x8E00 << 32 | (handler >> 16 & 0xFFFF) << 48
    word(machine, table + 16 * vector, low)
    word(machine, table + 16 * vector + 8, handler >> 32)
