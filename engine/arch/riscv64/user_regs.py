"""Registers of RISC-V as ptrace shows them (arch/riscv/kernel/ptrace.c)."""

import struct
from typing import Final

from engine.arch.ptrace import (
    NT_PRFPREG,
    NT_PRSTATUS,
    PtraceAbi,
    RegisterSet,
    TracedRegisters,
    read_general,
)

_GENERAL: Final = (
    *("pc", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{number}" for number in range(8)),
    *(f"s{number}" for number in range(2, 12)),
    *(f"t{number}" for number in range(3, 7)),
)
_FLOAT: Final = (
    *(f"ft{number}" for number in range(8)),
    *("fs0", "fs1"),
    *(f"fa{number}" for number in range(8)),
    *(f"fs{number}" for number in range(2, 12)),
    *(f"ft{number}" for number in range(8, 12)),
)


def _put(registers: TracedRegisters, name: str, value: int) -> int:
    registers.write_register(name, value)
    return 0


def _general(registers: TracedRegisters) -> bytes:
    return read_general(registers, _GENERAL)


def _set_general(registers: TracedRegisters, data: bytes) -> int:
    for name, value in zip(_GENERAL, struct.unpack(f"<{len(data) // 8}Q", data), strict=False):
        registers.write_register(name, value)
    return 0


def _float(registers: TracedRegisters) -> bytes:
    """Struct __riscv_d_ext_state, with the padding behind it."""
    status = struct.pack("<Q", registers.read_register("fcsr"))
    return read_general(registers, _FLOAT) + status


def _set_float(registers: TracedRegisters, data: bytes) -> int:
    image = data + _float(registers)[len(data) :]
    words = struct.unpack("<33Q", image)
    for name, value in zip((*_FLOAT, "fcsr"), words, strict=True):
        registers.write_register(name, value)
    return 0


PTRACE: Final = PtraceAbi(
    general=_GENERAL,
    put=_put,
    sets={
        NT_PRSTATUS: RegisterSet(8 * len(_GENERAL), 8, _general, _set_general),
        NT_PRFPREG: RegisterSet(264, 8, _float, _set_float),
    },
)
