"""Registers of x86-64 as ptrace shows them (arch/x86/kernel/ptrace.c, fpu/regset.c)."""

import errno
import struct
from typing import Final

from engine.arch.machine import ArchCpu, MemoryAccess, RegisterFile
from engine.arch.ptrace import (
    NT_PRFPREG,
    NT_PRSTATUS,
    ORIGINAL,
    PtraceAbi,
    RegisterSet,
    TracedRegisters,
    read_general,
)
from engine.arch.x86_64 import fxsave
from engine.arch.x86_64.screen import show_float_flags
from engine.arch.x86_64.syscalls import TASK_SIZE

_GENERAL: Final = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx"),
    *("rsi", "rdi", ORIGINAL, "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base"),
    *("ds", "es", "fs", "gs"),
)
_SEGMENTS: Final = {"cs": 0x33, "ss": 0x2B, "ds": 0, "es": 0, "fs": 0, "gs": 0}
"""Selectors of a 64-bit program."""
_FLAGS: Final = 0x1 | 0x4 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 0x800 | 0x4000 | 0x10000 | 0x40000
"""Flags that a debugger may change (FLAG_MASK)."""
_NT_X86_XSTATE: Final = 0x202
_HEADER: Final = 64
_XSTATE: Final = fxsave.SIZE + _HEADER + fxsave.UPPER_SIZE
_FEATURES: Final = 7
"""Components of the extended state: x87, SSE and AVX."""
_UPPER: Final = tuple(f"ymm{number}h" for number in range(16))
_SOFTWARE: Final = 464
"""Place of the features' mask in the bytes that FXSAVE leaves to software."""
_XMM: Final = tuple(f"xmm{number}" for number in range(16))


def _put(registers: TracedRegisters, name: str, value: int) -> int:
    if name == ORIGINAL:
        registers.original = value
        return 0
    if name in _SEGMENTS:
        value &= 0xFFFF
        if (value and value & 3 != 3) or (not value and name in ("cs", "ss")):
            return errno.EIO
        return 0  # there is no other segment to be had
    if name in ("fs_base", "gs_base"):
        if value >= TASK_SIZE:
            return errno.EIO
    elif name == "eflags":
        value = registers.read_register(name) & ~_FLAGS | value & _FLAGS
    registers.write_register(name, value)
    return 0


def _general(registers: TracedRegisters) -> bytes:
    words = bytearray(read_general(registers, _GENERAL))
    for name, value in _SEGMENTS.items():
        struct.pack_into("<Q", words, 8 * _GENERAL.index(name), value)
    return bytes(words)


def _set_general(registers: TracedRegisters, data: bytes) -> int:
    for name, value in zip(_GENERAL, struct.unpack(f"<{len(data) // 8}Q", data), strict=False):
        error = _put(registers, name, value)
        if error:
            return error
    return 0


def _float(registers: TracedRegisters) -> bytes:
    """The image that FXSAVE stores."""
    read = registers.read_register
    head = fxsave.head(read("fctrl"), read("fstat"), read("ftag"), read("mxcsr"))
    values = b"".join(read(f"st{n}").to_bytes(10, "little").ljust(16, b"\0") for n in range(8))
    vectors = b"".join(read(name).to_bytes(16, "little") for name in _XMM)
    return (head + values + vectors).ljust(fxsave.SIZE, b"\0")


def _set_float(registers: TracedRegisters, data: bytes) -> int:
    write = registers.write_register
    control, status, kept, _, _, _, mxcsr = struct.unpack_from("<HHBxHQQI", data)
    write("fstat", status)
    write("fctrl", control)
    for number in range(8):
        write(f"st{number}", int.from_bytes(data[32 + 16 * number :][:10], "little"))
    write("ftag", sum(3 << 2 * number for number in range(8) if not kept >> number & 1))
    write("mxcsr", mxcsr & fxsave.MXCSR_MASK)
    for number, name in enumerate(_XMM):
        write(name, int.from_bytes(data[160 + 16 * number :][:16], "little"))
    return 0


def _extended(registers: TracedRegisters) -> bytes:
    """The image that XSAVE stores, with its features where FXSAVE leaves room."""
    image = bytearray(_float(registers) + struct.pack("<Q", _FEATURES).ljust(_HEADER, b"\0"))
    struct.pack_into("<Q", image, _SOFTWARE, _FEATURES)
    upper = (registers.read_register(name).to_bytes(16, "little") for name in _UPPER)
    return bytes(image) + b"".join(upper)


def _set_extended(registers: TracedRegisters, data: bytes) -> int:
    features, form = struct.unpack_from("<QQ", data, fxsave.SIZE)
    (mxcsr,) = struct.unpack_from("<I", data, 24)
    if (
        features & ~_FEATURES
        or form
        or any(data[fxsave.SIZE + 16 : fxsave.SIZE + _HEADER])
        or mxcsr & ~fxsave.MXCSR_MASK
    ):
        return errno.EINVAL
    fresh = fxsave.FRESH
    image = bytearray(data[: fxsave.SIZE])
    if not features & 1:
        image[:24], image[32:160] = fresh[:24], fresh[32:160]
    if not features & 2:
        image[160:416] = fresh[160:416]
    upper = data[fxsave.SIZE + _HEADER :] if features & 4 else fxsave.NONE
    for number, name in enumerate(_UPPER):
        value = int.from_bytes(upper[16 * number : 16 * number + 16], "little")
        registers.write_register(name, value)
    return _set_float(registers, bytes(image))


def _show(cpu: ArchCpu) -> None:
    show_float_flags(cpu)
    cpu.clear_float_flags()


def _after_step(raw: bytes, registers: RegisterFile, memory: MemoryAccess) -> None:
    """PUSHF has stored the trap flag that the step was made with."""
    if raw[:1] == b"\x9c" or raw[:2] == b"\x66\x9c":
        at = registers.read_register("rsp")
        (low,) = memory.read(at + 1, 1)
        memory.write(at + 1, bytes((low | 1,)))


PTRACE: Final = PtraceAbi(
    general=_GENERAL,
    put=_put,
    sets={
        NT_PRSTATUS: RegisterSet(8 * len(_GENERAL), 8, _general, _set_general),
        NT_PRFPREG: RegisterSet(fxsave.SIZE, 8, _float, _set_float, errno.EINVAL),
        _NT_X86_XSTATE: RegisterSet(_XSTATE, 8, _extended, _set_extended, errno.EFAULT),
    },
    requests={
        3: "PEEKUSR",
        6: "POKEUSR",
        12: "GETREGS",
        13: "SETREGS",
        14: "GETFPREGS",
        15: "SETFPREGS",
        30: "ARCH_PRCTL",
        31: "SYSEMU",
        32: "SYSEMU_SINGLESTEP",
        33: "SINGLEBLOCK",
        25: "GET_THREAD_AREA",
        26: "SET_THREAD_AREA",
        21: "SETOPTIONS",
    },
    entry_result=-errno.ENOSYS & 0xFFFF_FFFF_FFFF_FFFF,
    user_size=928,
    user_debug=848,
    exit_step=1,  # TRAP_BRKPT
    show=_show,
    after_step=_after_step,
)
