"""Registers of AArch64 as ptrace shows them (arch/arm64/kernel/ptrace.c)."""

import errno
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

_GENERAL: Final = (*(f"x{number}" for number in range(31)), "sp", "pc", "cpsr")
_VECTORS: Final = tuple(f"v{number}" for number in range(32))
_NT_ARM_TLS, _NT_ARM_SYSTEM_CALL = 0x401, 0x404
_MODE: Final = 0x3DF
"""Bits of PSTATE that name the exception level and mask interrupts: none of a program's."""
_CONDITIONS: Final = 0xF000_0000
_FPSIMD: Final = 528


def _put(registers: TracedRegisters, name: str, value: int) -> int:
    if name == "cpsr":
        if value & _MODE:
            return errno.EINVAL
        value &= _CONDITIONS
    registers.write_register(name, value)
    return 0


def _general(registers: TracedRegisters) -> bytes:
    return read_general(registers, _GENERAL)


def _set_general(registers: TracedRegisters, data: bytes) -> int:
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    if len(words) == len(_GENERAL) and words[-1] & _MODE:
        return errno.EINVAL
    for name, value in zip(_GENERAL, words, strict=False):
        _put(registers, name, value)
    return 0


def _float(registers: TracedRegisters) -> bytes:
    """Struct user_fpsimd_state."""
    read = registers.read_register
    vectors = b"".join(read(name).to_bytes(16, "little") for name in _VECTORS)
    return vectors + struct.pack("<II8x", read("fpsr"), read("fpcr"))


def _set_float(registers: TracedRegisters, data: bytes) -> int:
    image = data + _float(registers)[len(data) :]
    for number, name in enumerate(_VECTORS):
        registers.write_register(name, int.from_bytes(image[16 * number :][:16], "little"))
    fpsr, fpcr = struct.unpack_from("<II", image, 512)
    registers.write_register("fpsr", fpsr)
    registers.write_register("fpcr", fpcr)
    return 0


def _thread(registers: TracedRegisters) -> bytes:
    return struct.pack("<Q", registers.read_register("tpidr"))


def _set_thread(registers: TracedRegisters, data: bytes) -> int:
    registers.write_register("tpidr", int.from_bytes(data[:8], "little"))
    return 0


def _call(registers: TracedRegisters) -> bytes:
    return struct.pack("<I", registers.original & 0xFFFF_FFFF)


def _set_call(registers: TracedRegisters, data: bytes) -> int:
    (registers.original,) = struct.unpack("<i", data)
    return 0


PTRACE: Final = PtraceAbi(
    general=_GENERAL,
    put=_put,
    sets={
        NT_PRSTATUS: RegisterSet(8 * len(_GENERAL), 8, _general, _set_general),
        NT_PRFPREG: RegisterSet(_FPSIMD, 4, _float, _set_float),
        _NT_ARM_TLS: RegisterSet(8, 8, _thread, _set_thread),
        _NT_ARM_SYSTEM_CALL: RegisterSet(4, 4, _call, _set_call),
    },
    requests={31: "SYSEMU", 32: "SYSEMU_SINGLESTEP"},
    entry_mark="x7",
    restarts_first=True,
)
