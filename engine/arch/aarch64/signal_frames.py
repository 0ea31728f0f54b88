"""Signal frames of AArch64: struct rt_sigframe of arch/arm64/kernel/signal.c.

The frame record in front of it is what frame-pointer unwinders walk.
"""

import struct
from typing import Final

from engine.arch.base import SignalAbi, SignalFrame, TrapKind
from engine.arch.machine import FrameCpu, RegisterFile

_PLAIN = (*(f"x{number}" for number in range(31)), "sp")
"""Registers that are written as they are."""
_GENERAL = (*_PLAIN, "pc", "cpsr")
_VECTORS = tuple(f"v{number}" for number in range(32))
_UCONTEXT = 128  # offsets in the frame
_STACK = _UCONTEXT + 16
_SIGMASK = _UCONTEXT + 40
_MCONTEXT = _UCONTEXT + 176
_RESERVED = _MCONTEXT + 288
_SIZE = _RESERVED + 4096
_FPSIMD_MAGIC, _FPSIMD_SIZE = 0x46508001, 528
_ESR_MAGIC = 0x45535201
SAVED_REGISTERS = {name: _MCONTEXT + 8 + 8 * number for number, name in enumerate(_GENERAL)}
"""Places of registers in a frame, as distances from sp once the handler has returned."""
_NZCV = 0xF0000000

_RETURN_CODE = struct.pack("<II", 0xD2801168, 0xD4000001)  # mov x8, 139; svc 0


_WHOLE = struct.Struct("<128s16xQI4xQQ128xQ272s8xIIII512sIIQ3552xQQ")
"""All of a frame: siginfo, ucontext, its records, and the frame record."""
_FLOAT = ("fpsr", "fpcr")
_RECORD = struct.Struct("<II")
_LINK = struct.Struct("<QQ")
_FRAME_POINTER = 8 * _PLAIN.index("x29")
_KEPT = struct.Struct("<QI4xQQ136x256sQQ")
"""A frame from its alternate stack to its records: that which is restored."""


def _enter(cpu: FrameCpu, frame: SignalFrame, code: int) -> None:
    general = cpu.read_block(_GENERAL, 8)
    record = (frame.stack_top - 16) & -16
    at = record - _SIZE
    error = (_ESR_MAGIC, 16, frame.error_code) if frame.error_code else (0, 0, 0)
    status = _LINK.unpack(cpu.read_block(_FLOAT, 8))
    data = _WHOLE.pack(
        frame.siginfo,
        *frame.altstack,
        frame.mask,
        frame.fault_address,
        general,
        *(_FPSIMD_MAGIC, _FPSIMD_SIZE, *status),
        cpu.read_block(_VECTORS, 16),
        *error,
        *_LINK.unpack_from(general, _FRAME_POINTER),
    )
    cpu.write(at, data)
    write = cpu.write_register
    write("x0", frame.number)
    write("x1", at)
    write("x2", at + _UCONTEXT)
    write("sp", at)
    write("x29", record)
    write("x30", frame.restorer or code)
    write("pc", frame.handler)


def _leave(cpu: FrameCpu, code: int) -> tuple[int, tuple[int, int, int]]:
    at = cpu.read_register("sp")
    data = cpu.read(at + _STACK, _SIZE - _STACK)
    sp, flags, size, mask, plain, pc, cpsr = _KEPT.unpack_from(data)
    offset = _RESERVED - _STACK
    while offset <= len(data) - 8:
        magic, length = _RECORD.unpack_from(data, offset)
        if not magic or length < 8:
            break
        if magic == _FPSIMD_MAGIC and offset + _FPSIMD_SIZE <= len(data):
            status = _RECORD.unpack_from(data, offset + 8)
            cpu.write_block(_FLOAT, 8, _LINK.pack(*status))
            cpu.write_block(_VECTORS, 16, data[offset + 16 : offset + _FPSIMD_SIZE])
        offset += length
    cpu.write_block(_PLAIN, 8, plain)
    cpu.write_register("pc", pc)
    cpu.write_register("cpsr", cpsr)
    return mask, (sp, flags, size)


_SIGILL, _SIGTRAP, _SIGBUS, _SIGFPE = 4, 5, 7, 8


def _fault_codes(access: str, present: bool, address: int) -> tuple[int, int]:
    """ESR_EL1 of an abort from EL0: class, WnR, translation or permission fault at level 3."""
    status = 0xF if present else 0x7
    if access == "execute":
        return 0, 0x82000000 | status
    return 0, 0x92000000 | (1 << 6 if access == "write" else 0) | status


_SP: Final = 31
_MISALIGNED: Final = 0x92000021
"""ESR_EL1 of an alignment fault of a load, as which atomics count, too."""


def _misaligned(registers: RegisterFile, raw: bytes) -> tuple[int, int] | None:
    """FAR_EL1 and ESR_EL1 of an exclusive load or an atomic.

    The emulator refuses no other access for its alignment (do_alignment_fault of
    arch/arm64/mm/fault.c). The address is that of the base register, bits 5 to 9.
    """
    if len(raw) < 4:
        return None
    word = int.from_bytes(raw[:4], "little")
    base = word >> 5 & 31
    return registers.read_register("sp" if base == _SP else f"x{base}"), _MISALIGNED


SIGNALS = SignalAbi(
    enter=_enter,
    leave=_leave,
    return_code=_RETURN_CODE,
    traps={  # arch/arm64/kernel/traps.c, debug-monitors.c
        TrapKind.BREAKPOINT: (_SIGTRAP, 1, True),
        TrapKind.SINGLE_STEP: (_SIGTRAP, 2, True),
        TrapKind.ILLEGAL: (_SIGILL, 1, True),
        TrapKind.FLOAT: (_SIGFPE, 0, True),
        TrapKind.ALIGNMENT: (_SIGBUS, 1, True),
        TrapKind.PRIVILEGED: (_SIGILL, 1, True),
        TrapKind.OTHER: (_SIGILL, 1, True),
    },
    fault_codes=_fault_codes,
    canonical=lambda address: True,
    no_address=lambda raw: (11, 0, 0),
    trap_codes=lambda number, before: (0, 0, 0),
    minimum_stack=_SIZE + 32,
    saved_mask=_SIGMASK,
    misaligned=_misaligned,
)
