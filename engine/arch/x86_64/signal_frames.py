"""Signal frames of x86-64: struct rt_sigframe of arch/x86/include/asm/sigframe.h.

The floating-point part is the 512-byte FXSAVE image; where the upper halves of AVX's registers
are in use, it is what XSAVE stores of all three, with Linux's words about it in the image's last
bytes (arch/x86/include/uapi/asm/sigcontext.h, struct _fpx_sw_bytes).
"""

import struct
from functools import cache
from types import ModuleType

from engine.arch.base import SignalAbi, SignalFrame, TrapKind
from engine.arch.machine import FrameCpu, RegisterFile
from engine.arch.x86_64.screen import show_float_flags
from engine.errors import GuestFaultError

_GENERAL = (
    *(f"r{number}" for number in range(8, 16)),
    "rdi",
    "rsi",
    "rbp",
    "rbx",
    "rdx",
    "rax",
    "rcx",
    "rsp",
    "rip",
    "eflags",
)
_PLAIN = _GENERAL[:-1]
"""The general registers that are written as they are."""
_SEGMENTS = ("cs", "gs", "fs", "ss")
_SAVED = (*_GENERAL, *_SEGMENTS)
_REGISTERS = struct.Struct("<" + "Q8x" * len(_SAVED))
_FLAGS = _GENERAL.index("eflags")
_RED_ZONE = 128
_UC_FLAGS = 6  # UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS
_UC_FP_XSTATE = 1
_UCONTEXT = 8  # offsets in the frame
_MCONTEXT = _UCONTEXT + 40
_FPSTATE = _MCONTEXT + 184
_SIGMASK = _UCONTEXT + 296
_SIGINFO = _UCONTEXT + 304
_SIZE = _SIGINFO + 128
_FRAME = struct.Struct(f"<16xQI4xQ136sQ{_FPSTATE - _MCONTEXT - 144}xQ{_SIGMASK - _FPSTATE - 8}xQ")
"""A ucontext: the alternate stack, registers, where the floating-point state is, the mask."""
_WHOLE = struct.Struct("<QQQQIIQ18Q4H5Q64xQ128s")
"""All of a frame: return address, ucontext, siginfo."""
SAVED_REGISTERS = {name: _MCONTEXT - 8 + 8 * number for number, name in enumerate(_GENERAL)}
"""Places of registers in a frame, as distances from sp once the handler has returned."""
_HANDLER_FLAGS = ~(1 << 10 | 1 << 16 | 1 << 8)  # DF, RF, TF are cleared

_SOFTWARE = 464  # of the image are software's
_SW_BYTES = struct.Struct("<IIQI28x")
_HEADER = struct.Struct("<Q56x")
_FEATURES, _AVX = 7, 4
_XSAVE_SIZE = 832
_MAGIC1, _MAGIC2 = 0x46505853, 0x46505845
_MAGIC2_SIZE = 4

_RETURN_CODE = bytes.fromhex("48c7c00f0000000f05")  # mov rax, 15; syscall


@cache
def _fxsave() -> ModuleType:
    from engine.arch.x86_64 import fxsave  # few programs handle signal_frames

    return fxsave


def enter(cpu: FrameCpu, frame: SignalFrame, code: int, *, extended: bool = False) -> None:
    """Build the frame and go to the handler.

    Args:
        cpu: of the program.
        frame: what is wanted.
        code: where `SignalAbi.return_code` stands.
        extended: programs are told of AVX: the frame is xsave's, whatever is in use.
    """
    fxsave = _fxsave()
    top = frame.stack_top - (0 if frame.on_altstack else _RED_ZONE)
    show_float_flags(cpu)
    image, upper, others = fxsave.save_all(cpu, _SAVED)
    registers = _REGISTERS.unpack(others)
    uses_avx = upper is not fxsave.NONE
    if uses_avx or extended:
        image = _with_upper(image, upper)
    fpstate = (top - len(image)) & -64
    at = ((fpstate - _SIZE) & -16) - 8
    cpu.write(fpstate, image)
    fxsave.renew(cpu, image)
    if uses_avx:
        fxsave.load_upper(cpu, fxsave.NONE)
    cpu.clear_float_flags()
    sp, flags, size = frame.altstack
    data = _WHOLE.pack(
        frame.restorer or code,
        *(_UC_FLAGS | (_UC_FP_XSTATE if extended else 0), 0, sp, flags, 0, size),
        *registers,
        frame.error_code,
        frame.trap_number,
        frame.mask & 0xFFFFFFFF,
        frame.fault_address,
        fpstate,
        frame.mask,
        frame.siginfo,
    )
    cpu.write(at, data)
    write = cpu.write_register
    write("rdi", frame.number)
    write("rsi", at + _SIGINFO)
    write("rdx", at + _UCONTEXT)
    write("rax", 0)
    write("rsp", at)
    eflags = registers[_FLAGS]
    if eflags & ~_HANDLER_FLAGS:
        write("eflags", eflags & _HANDLER_FLAGS)
    write("rip", frame.handler)


def _with_upper(image: bytes, upper: bytes) -> bytes:
    """An image of FXSAVE with what follows it."""
    words = _SW_BYTES.pack(_MAGIC1, _XSAVE_SIZE + _MAGIC2_SIZE, _FEATURES, _XSAVE_SIZE)
    header = _HEADER.pack(_FEATURES)
    return image[:_SOFTWARE] + words + header + upper + struct.pack("<I", _MAGIC2)


def _kept_upper(cpu: FrameCpu, at: int, image: bytes) -> bytes | None:
    """The upper halves that a frame keeps; None for those of a program that begins.

    As Linux reads it (check_xstate_in_sigframe): without both magic numbers, x87 and SSE alone.
    """
    magic, extended, _, size = _SW_BYTES.unpack_from(image, _SOFTWARE)
    if magic != _MAGIC1 or size != _XSAVE_SIZE or extended < size + _MAGIC2_SIZE:
        return None
    rest: bytes = cpu.read(at + len(image), _XSAVE_SIZE + _MAGIC2_SIZE - len(image))
    (features,), end = _HEADER.unpack_from(rest), rest[-_MAGIC2_SIZE:]
    if int.from_bytes(end, "little") != _MAGIC2 or not features & _AVX:
        return None
    return rest[_HEADER.size : -_MAGIC2_SIZE]


def _leave(cpu: FrameCpu, code: int) -> tuple[int, tuple[int, int, int]]:
    at = cpu.read_register("rsp") - 8  # the handler's ret has popped the return address
    kept = cpu.read(at + _UCONTEXT, _SIGINFO - _UCONTEXT)
    sp, flags, size, plain, flags_after, fpstate, mask = _FRAME.unpack(kept)
    if fpstate:
        fxsave = _fxsave()
        cpu.clear_float_flags()
        image = cpu.read(fpstate, fxsave.SIZE)
        if not fxsave.loadable(image):
            raise GuestFaultError(fpstate, "read")  # Linux kills for it as for a frame not there
        fxsave.load(cpu, image)
        upper = _kept_upper(cpu, fpstate, image)
        if upper is not None or fxsave.save_upper(cpu) is not fxsave.NONE:
            fxsave.load_upper(cpu, fxsave.NONE if upper is None else upper)
    flags_before = cpu.read_register("eflags")
    eflags = flags_before & ~_FIX_EFLAGS | flags_after & _FIX_EFLAGS
    cpu.write_block(_PLAIN, 8, plain)
    if eflags != flags_before:
        cpu.write_register("eflags", eflags)
    return mask, (sp, flags, size)


_FIX_EFLAGS = 0x50DD5
"""Flags that a signal frame may change (FIX_EFLAGS of arch/x86/kernel/signal.c)."""

_SIGILL, _SIGTRAP, _SIGBUS, _SIGFPE, _SIGSEGV = 4, 5, 7, 8, 11
_SI_KERNEL = 0x80
_STACK_FAULT, _PROTECTION_FAULT, _PAGE_FAULT = 12, 13, 14


def _fault_codes(access: str, present: bool, address: int) -> tuple[int, int]:
    """Exception 14 and its error code: present, write, user, instruction fetch.

    Kernel addresses always count as present, so that nobody learns what is there.
    """
    bits = {"read": 4, "write": 6, "execute": 20}[access]
    return _PAGE_FAULT, bits | (1 if present or address >> 63 else 0)


def _canonical(address: int) -> bool:
    return address >> 47 in (0, 0x1FFFF)


def _no_address(raw: bytes) -> tuple[int, int, int]:
    """#GP, or #SS for what belongs to the stack."""
    from engine.arch.x86_64.accesses import uses_stack  # few programs get here

    if uses_stack(raw):
        return _SIGBUS, _STACK_FAULT, 0
    return _SIGSEGV, _PROTECTION_FAULT, 0


def _trap_codes(number: int, before: int) -> tuple[int, int, int]:
    """An INT of a vector that programs may not use is a fault of the IDT entry."""
    if number >= 32:
        return before, _PROTECTION_FAULT, number << 3 | 2
    return before, number, 0


_DEBUG, _X87_FAULT = 1, 16
_TRAP_BRKPT = 1
# (flags, si_code) in the order in which Linux looks (arch/x86/kernel/fpu/core.c,
# fpu__exception_code): FPE_FLTINV, FPE_FLTDIV, FPE_FLTOVF, FPE_FLTUND, FPE_FLTRES.
_FLOAT_CODES = ((0x01, 7), (0x04, 3), (0x08, 4), (0x12, 5), (0x20, 6))


def _exception(
    registers: RegisterFile, kind: TrapKind, number: int
) -> tuple[int, int, bool] | None:
    """The si_code of int1, and of a floating-point exception: the first that is not masked."""
    if kind is TrapKind.OTHER and number == _DEBUG:
        return _SIGTRAP, _TRAP_BRKPT, True
    if kind is not TrapKind.FLOAT:
        return None
    if number == _X87_FAULT:
        found = registers.read_register("fstat") & ~registers.read_register("fctrl")
    else:
        mxcsr = registers.read_register("mxcsr")
        found = mxcsr & ~(mxcsr >> 7)
    code = next((code for flags, code in _FLOAT_CODES if found & flags), 0)
    return _SIGFPE, code, True


SIGNALS = SignalAbi(
    enter=enter,
    leave=_leave,
    return_code=_RETURN_CODE,
    traps={  # arch/x86/kernel/traps.c
        TrapKind.BREAKPOINT: (_SIGTRAP, _SI_KERNEL, False),
        TrapKind.SINGLE_STEP: (_SIGTRAP, 2, True),
        TrapKind.ILLEGAL: (_SIGILL, 2, True),
        TrapKind.DIVIDE: (_SIGFPE, 1, True),
        TrapKind.FLOAT: (_SIGFPE, 0, True),
        TrapKind.ALIGNMENT: (_SIGBUS, 1, False),
        TrapKind.PRIVILEGED: (_SIGSEGV, _SI_KERNEL, False),
        TrapKind.OTHER: (_SIGSEGV, _SI_KERNEL, False),
    },
    fault_codes=_fault_codes,
    canonical=_canonical,
    no_address=_no_address,
    trap_codes=_trap_codes,
    minimum_stack=1936,
    saved_mask=_SIGMASK - _UCONTEXT,
    exception=_exception,
)
