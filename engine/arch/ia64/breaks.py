"""Meaning of interruptions to Linux: ia64_bad_break, ia64_fault (arch/ia64/kernel/traps.c)."""

import struct
from typing import Final

from engine.arch.base import TrapKind

BREAK: Final = 0x81000 << 6
"""break 0x81000 (__IA64_BREAK_KPROBE, asm/break.h), the same word in M, I, F and B slots."""

_SIGILL, _SIGTRAP, _SIGFPE, _SIGSEGV = 4, 5, 8, 11
_NUMBERED: Final = {  # break immediates: (signal, si_code)
    0: (_SIGILL, 1),  # ILL_ILLOPC
    1: (_SIGFPE, 1),  # FPE_INTDIV
    2: (_SIGFPE, 2),  # FPE_INTOVF
    3: (_SIGFPE, 8),  # FPE_FLTSUB
    4: (_SIGSEGV, 1),  # SEGV_MAPERR
    5: (_SIGSEGV, 1),  # BUS_ADRALN, with this signal
    6: (_SIGFPE, 9),  # __FPE_DECOVF
    7: (_SIGFPE, 10),  # __FPE_DECDIV
    8: (_SIGFPE, 11),  # __FPE_DECERR
    9: (_SIGFPE, 12),  # __FPE_INVASC
    10: (_SIGFPE, 13),  # __FPE_INVDEC
    11: (_SIGSEGV, 4),  # __SEGV_PSTKOVF
}
_DEBUGGER: Final = 0x80000
_NAT_CONSUMPTION: Final = 26
_ISR_VALID: Final = 1
_REGISTER_NAT: Final = 1 << 4
_ISR_ACCESS: Final = {"execute": 1 << 32, "write": 1 << 33, "read": 1 << 34}


def break_kind(immediate: int) -> TrapKind:
    """Meaning of the immediate of a break; OTHER for those that Linux numbers."""
    return TrapKind.BREAKPOINT if immediate >= _DEBUGGER else TrapKind.OTHER


def exception(kind: TrapKind, number: int) -> tuple[int, int, bool] | None:
    """(signal, si_code, si_addr is the pc), where the kind alone does not tell.

    Args:
        kind: of the exception.
        number: the immediate of a break, the vector of anything else.
    """
    if kind is TrapKind.OTHER:
        if 0x3F000 <= number <= 0x3FFFF:
            return _SIGILL, 11, True  # __ILL_BNDMOD
        return *_NUMBERED.get(number, (_SIGILL, 10)), True  # __ILL_BREAK
    if kind is TrapKind.ILLEGAL and number == _NAT_CONSUMPTION:
        return _SIGILL, 2, True  # ILL_ILLOPN
    return None


def details(kind: TrapKind, number: int, access: str, pc: int) -> bytes:
    """si_imm, si_flags and si_isr, which stand behind si_addr (asm/siginfo.h).

    Of cr.isr there are the access and the slot (x, w, r, ei), and the code of a NaT.

    Args:
        kind: of the exception.
        number: the immediate of a break, the vector of anything else.
        access: that was refused, "" for none.
        pc: where the program stands.
    """
    slot = (pc & 3) << 41
    if kind in (TrapKind.OTHER, TrapKind.BREAKPOINT):
        return struct.pack("<iIQ", number, 0, 0)
    if kind is TrapKind.ILLEGAL and number == _NAT_CONSUMPTION:
        return struct.pack("<iIQ", number, _ISR_VALID, slot | _REGISTER_NAT)
    if kind is TrapKind.MEMORY:
        return struct.pack("<iIQ", 0, _ISR_VALID, slot | _ISR_ACCESS[access])
    return struct.pack("<iIQ", 0, 0, 0)
