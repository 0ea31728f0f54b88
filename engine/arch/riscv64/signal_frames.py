"""Signal frames of RISC-V: struct rt_sigframe of arch/riscv/kernel/signal.c."""

import struct

from engine.arch.base import SignalAbi, SignalFrame, TrapKind
from engine.arch.machine import FrameCpu
from engine.arch.riscv64.decode import FLOAT_NAMES, NAMES

_PLAIN = NAMES[1:]
_GENERAL = ("pc", *_PLAIN)
_UCONTEXT = 128  # offsets in the frame
_STACK = _UCONTEXT + 16
_SIGMASK = _UCONTEXT + 40
_MCONTEXT = _UCONTEXT + 176
_FLOATS = _MCONTEXT + 256
_FLOATS_SIZE = 528  # union __riscv_fp_state, as large as its quad-precision member
_SIZE = _FLOATS + _FLOATS_SIZE
SAVED_REGISTERS = {name: _MCONTEXT + 8 * number for number, name in enumerate(_GENERAL)}
"""Places of registers in a frame, as distances from sp once the handler has returned."""

_MINIMUM = 2048  # MINSIGSTKSZ

_RETURN_CODE = struct.pack("<II", 0x08B00893, 0x00000073)  # li a7, 139; ecall


_WHOLE = struct.Struct(f"<128s16xQI4xQQ128x256s256sI{_FLOATS_SIZE - 260}x")
"""All of a frame: siginfo and ucontext."""
_KEPT = struct.Struct("<QI4xQQ128xQ248s256sI")
"""One from its alternate stack on: that which is restored."""


def _enter(cpu: FrameCpu, frame: SignalFrame, code: int) -> None:
    at = (frame.stack_top - _SIZE) & -16
    data = _WHOLE.pack(
        frame.siginfo,
        *frame.altstack,
        frame.mask,
        cpu.read_block(_GENERAL, 8),
        cpu.read_block(FLOAT_NAMES, 8),
        cpu.read_register("fcsr"),
    )
    cpu.write(at, data)
    write = cpu.write_register
    write("a0", frame.number)
    write("a1", at)
    write("a2", at + _UCONTEXT)
    write("sp", at)
    write("ra", code)
    write("pc", frame.handler)


def _leave(cpu: FrameCpu, code: int) -> tuple[int, tuple[int, int, int]]:
    at = cpu.read_register("sp")
    data = cpu.read(at + _STACK, _KEPT.size)
    sp, flags, size, mask, pc, plain, floats, fcsr = _KEPT.unpack(data)
    cpu.write_block(_PLAIN, 8, plain)
    cpu.write_register("pc", pc)
    cpu.write_block(FLOAT_NAMES, 8, floats)
    cpu.write_register("fcsr", fcsr)
    return mask, (sp, flags, size)


_SIGILL, _SIGTRAP, _SIGBUS, _SIGFPE = 4, 5, 7, 8

SIGNALS = SignalAbi(
    enter=_enter,
    leave=_leave,
    return_code=_RETURN_CODE,
    traps={  # arch/riscv/kernel/traps.c
        TrapKind.BREAKPOINT: (_SIGTRAP, 1, True),
        TrapKind.SINGLE_STEP: (_SIGTRAP, 2, True),
        TrapKind.ILLEGAL: (_SIGILL, 1, True),
        TrapKind.PRIVILEGED: (_SIGILL, 1, True),
        TrapKind.ALIGNMENT: (_SIGBUS, 1, True),
        TrapKind.FLOAT: (_SIGFPE, 0, True),
        TrapKind.OTHER: (_SIGILL, 1, True),
    },
    fault_codes=lambda access, present, address: (0, 0),  # frames do not show them
    canonical=lambda address: True,
    no_address=lambda raw: (11, 0, 0),
    trap_codes=lambda number, before: (0, 0, 0),
    minimum_stack=_MINIMUM,
    saved_mask=_SIGMASK,
)
