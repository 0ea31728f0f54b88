"""System calls of Linux/RISC-V: their numbers, and those that no other architecture has."""

import errno
import struct
from typing import Final

from engine.arch.base import OwnCall
from engine.arch.machine import MemoryAccess, RegisterFile
from engine.arch.unistd import GENERIC

# Makers' numbers; IMA; F and D, C; misaligned accesses are fast; no block to be zeroed.
_HWPROBE: Final = {0: 0, 1: 0, 2: 0, 3: 1, 4: 3, 5: 3, 6: 0}

SYSCALLS: Final = {**GENERIC, 258: "riscv_hwprobe", 259: "riscv_flush_icache"}


def _flush_icache(
    registers: RegisterFile, memory: MemoryAccess, start: int, end: int, flags: int
) -> int:
    """Nothing to do: the emulator sees stores to code."""
    return -errno.EINVAL if flags & ~1 else 0


def _hwprobe(
    registers: RegisterFile,
    memory: MemoryAccess,
    pairs: int,
    count: int,
    size: int,
    cpus: int,
    flags: int,
) -> int:
    """Values for pairs (key, value); a key that is not known becomes -1 (asm/hwprobe.h)."""
    if flags or bool(size) != bool(cpus):
        return -errno.EINVAL
    for at in range(pairs, pairs + 16 * count, 16):
        (key,) = struct.unpack("<q", memory.read(at, 8))
        known = key in _HWPROBE
        memory.write(at, struct.pack("<qQ", key if known else -1, _HWPROBE.get(key, 0)))
    return 0


OWN_CALLS: Final[dict[str, OwnCall]] = {
    "riscv_flush_icache": _flush_icache,
    "riscv_hwprobe": _hwprobe,
}
