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


def _enter(cpu: FrameCpu, frame: SignalFrame, code: int) -> None:
    at = (frame.stack_top - _SIZE) & -16
    sp, flags, size = frame.altstack
    floats = cpu.read_block(FLOAT_NAMES, 8)
    cpu.write(
        at,
        frame.siginfo.ljust(128, b"\0")
        + struct.pack("<QQQIIQQ", 0, 0, sp, flags, 0, size, frame.mask).ljust(176, b"\0")
        + cpu.read_block(_GENERAL, 8)
        + (floats + struct.pack("<I", cpu.read_register("fcsr"))).ljust(_FLOATS_SIZE, b"\0"),
    )
    for name, value in (
        ("a0", frame.number),
        ("a1", at),
        ("a2", at + _UCONTEXT),
        ("sp", at),
        ("ra", code),
        ("pc", frame.handler),
    ):
        cpu.write_register(name, value)


def _leave(cpu: FrameCpu, code: int) -> tuple[int, tuple[int, int, int]]:
    at = cpu.read_register("sp")
    sp, flags, _, size, mask = struct.unpack("<QIIQQ", cpu.read(at + _STACK, 32))
    pc, plain = struct.unpack("<Q248s", cpu.read(at + _MCONTEXT, 256))
    floats, fcsr = struct.unpack("<256sI", cpu.read(at + _FLOATS, 260))
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
    no_address=(0, 0),
    trap_codes=lambda number, before: (0, 0, 0),
    minimum_stack=_MINIMUM,
)
