"""Signal frames of IA-64: struct sigframe of arch/ia64/kernel/signal.c.

Linux enters a handler through code in its gate page, which covers the interrupted frame and
calls the handler by its descriptor. Here the engine does the covering and enters the handler
itself, with the registers as that call leaves them; `_CODE` is what the handler returns to,
followed by the steps that only instructions can do to a register stack.
"""

import struct
from typing import Final

from engine.arch.base import SignalAbi, SignalFrame, TrapKind
from engine.arch.ia64.breaks import details, exception
from engine.arch.ia64.rse import CFM_MASK, frame_size, is_frame
from engine.arch.machine import ArchCpu
from engine.errors import GuestFaultError

_CODE: Final = bytes.fromhex(
    "11787400092400000002000000000020"  # mov r15=1181 (rt_sigreturn)
    "11000000000200000002000000000020"  # break.m 0x100000
    "11000000010000000002000000000800"  # cover
    "010000000c0000000002000000000400"  # flushrs
    "01000020280000000002000000000400"  # mov.m ar.rsc=0
    "01180026220400000002000000000400"  # mov.m r3=ar.rnat
    "010008242a0400000002000000000400"  # mov.m ar.bspstore=r2
    "09000000100000784050000000000400"  # invala; mov.m ar.rsc=15
    "010000000c0000000002000000000400"  # flushrs
    "01000020280000000002000000000400"  # mov.m ar.rsc=0
    "010008242a0400000002000000000400"  # mov.m ar.bspstore=r2
    "01000c262a0400000002000000000400"  # mov.m ar.rnat=r3
    "09000000100000784050000000000400"  # invala; mov.m ar.rsc=15
    "0100000001000010005500c030080007"  # mov.i ar.pfs=r2; mov b6=r3
    "11000000010000000002008068008400"  # br.ret.sptk.many b6
)
_COVER: Final = (0x20, 0x30)
"""(start, end) of a step in the code."""
_LEAVE_STORE: Final = (0x30, 0x80)
_ENTER_STORE: Final = (0x80, 0xD0)
_POP: Final = (0xD0, 0xF0)

RETURN_CODE: Final = _CODE[:0x20]
RETURN_PLACES: Final = (0, 1, 2, 16)
"""Distances of the places in it where a program may stand."""

# Offsets from sp while the handler runs: 16 bytes of scratch, four words, siginfo, sigcontext.
_SCRATCH: Final = 16
_INFO: Final = 32
_CONTEXT: Final = 160
_SIZE: Final = _CONTEXT + 2656
_GENERAL: Final = 200
_FLOATS: Final = 464
_STORE_BASE: Final = 2512
_AR25: Final = 2528
_MASK: Final = 2640

_FLAG_ONSTACK, _FLAG_FPH_VALID = 1, 4

_FIELDS: Final = {
    "ip": 40,
    "cfm": 48,
    "psr": 56,  # its user mask
    "rsc": 64,
    "bsp": 72,
    "rnat": 80,
    "ccv": 88,
    "unat": 96,
    "fpsr": 104,
    "pfs": 112,
    "lc": 120,
    "pr": 128,
    **{f"b{number}": 136 + 8 * number for number in range(8)},
    **{f"r{number}": _GENERAL + 8 * number for number in range(1, 32)},
    "csd": _AR25,
    "ssd": _AR25 + 8,
}
"""Offsets in struct sigcontext; bsp is what `cover` makes it."""

SAVED_REGISTERS: Final = {name: _SCRATCH + _CONTEXT + offset for name, offset in _FIELDS.items()}
"""Places of registers in a frame, as distances from sp once the handler has returned."""

_SCRATCH_FLOATS: Final = (*range(6, 16), *range(32, 128))
"""Registers that the kernel saves; a handler preserves the others."""
_RESTORED: Final = (
    *("psr", "rsc", "unat", "fpsr", "pfs", "ccv", "csd", "ssd", "b0", "b6", "b7"),
    *("r1", "r2", "r3"),
    *(f"r{number}" for number in range(8, 32)),
)
"""Registers that rt_sigreturn restores beside ip, cfm, pr and the register stack."""

_FPSR_DEFAULT: Final = 0x9804C0270033F
_WORD: Final = (1 << 64) - 1
_MINSIGSTKSZ: Final = 131027


def _run(cpu: ArchCpu, code: int, step: tuple[int, int]) -> None:
    cpu.execute(code + step[0], code + step[1])


def _on(frame: SignalFrame, bsp: int) -> bool:
    """True if the register stack already lies on the alternate stack."""
    start, _, size = frame.altstack
    return 0 <= bsp - start < size


def _enter(cpu: ArchCpu, frame: SignalFrame, code: int) -> None:
    read, write = cpu.read_register, cpu.write_register
    at = (frame.stack_top - _SIZE) & -16
    entry, gp = struct.unpack("<QQ", cpu.read(frame.handler, 16))
    cpu.write(at, bytes(_SIZE))  # room for all of it, before anything has changed
    values = {name: read(name) for name in _FIELDS}
    nats = sum(read(f"nat{number}") << number for number in range(32))
    _run(cpu, code, _COVER)
    # Nothing is rotated behind `cover`: this is what `mov r=pr` reads.
    values["pr"] = read("pr")
    values["bsp"] = read("bsp")
    floats = {number: read(f"f{number}") for number in _SCRATCH_FLOATS}
    base = 0
    if frame.on_altstack and not _on(frame, read("bspstore")):
        base = frame.altstack[0] + 7 & -8
        write("r2", base)
        _run(cpu, code, _LEAVE_STORE)
        values["rnat"] = read("r3")
    context = bytearray(_SIZE - _CONTEXT)
    sp, flags, size = frame.altstack
    onstack = _FLAG_ONSTACK if frame.on_altstack or 0 <= at - sp < size else 0
    struct.pack_into("<QQQIIQ", context, 0, onstack | _FLAG_FPH_VALID, nats, sp, flags, 0, size)
    for name, offset in _FIELDS.items():
        struct.pack_into("<Q", context, offset, values[name])
    for number, value in floats.items():
        start = _FLOATS + 16 * number
        context[start : start + 16] = value.to_bytes(16, "little")
    struct.pack_into("<Q", context, _STORE_BASE, base)
    struct.pack_into("<Q", context, _MASK, frame.mask)
    info, sigcontext = at + _INFO, at + _CONTEXT
    words = struct.pack("<4Q", frame.number, info, sigcontext, frame.handler)
    cpu.write(at, words + frame.siginfo.ljust(128, b"\0") + bytes(context))
    write("cfm", 3)
    for name, value in (
        ("r32", frame.number),
        ("r33", info),
        ("r34", sigcontext),
        ("r12", at - _SCRATCH),
        ("r1", gp),
        ("b0", code),
        ("b6", entry),
        ("pfs", 3 << 62 | read("ec") << 52 | 3),
        ("fpsr", _FPSR_DEFAULT),
        ("psr", values["psr"]),
        ("ip", entry & -16),
    ):
        write(name, value)


def _leave(cpu: ArchCpu, code: int) -> tuple[int, tuple[int, int, int]]:
    read, write = cpu.read_register, cpu.write_register
    at = read("r12") + _SCRATCH + _CONTEXT
    raw = cpu.read(at, _SIZE - _CONTEXT)
    values = {
        name: int.from_bytes(raw[offset : offset + 8], "little")
        for name, offset in _FIELDS.items()
    }
    flags, nats, sp, stack_flags, size = struct.unpack_from("<QQQIxxxxQ", raw, 0)
    (mask,) = struct.unpack_from("<Q", raw, _MASK)
    cfm = values["cfm"] & CFM_MASK
    if not is_frame(cfm):
        raise GuestFaultError(at + _FIELDS["cfm"], "read")
    if read("bsp") != values["bsp"]:
        write("r2", values["bsp"])
        write("r3", values["rnat"])
        _run(cpu, code, _ENTER_STORE)
    # br.ret takes back as many registers as its locals are: all of the frame here.
    count = frame_size(cfm)
    write("r2", 3 << 62 | read("ec") << 52 | count << 7 | count)
    write("r3", code + _POP[1])
    _run(cpu, code, _POP)
    scratch = range(6, 16) if not flags & _FLAG_FPH_VALID else _SCRATCH_FLOATS
    for number in scratch:
        start = _FLOATS + 16 * number
        value = int.from_bytes(raw[start : start + 16], "little")
        write(f"f{number}", value & (1 << 82) - 1)
    write("pr", values["pr"])
    write("cfm", cfm)
    for name in _RESTORED:
        write(name, values[name])
    for name in _RESTORED:
        if name[0] == "r" and name != "rsc":
            write(f"nat{name[1:]}", nats >> int(name[1:]) & 1)
    write("ip", values["ip"])
    return mask, (sp, stack_flags, size)


_SIGILL, _SIGTRAP, _SIGBUS, _SIGFPE = 4, 5, 7, 8
_SI_KERNEL: Final = 0x80

SIGNALS: Final = SignalAbi(
    enter=_enter,
    leave=_leave,
    return_code=_CODE,
    traps={  # arch/ia64/kernel/traps.c
        TrapKind.BREAKPOINT: (_SIGTRAP, 1, True),
        TrapKind.SINGLE_STEP: (_SIGTRAP, 2, False),
        TrapKind.ILLEGAL: (_SIGILL, 1, True),
        TrapKind.FLOAT: (_SIGFPE, 7, True),
        TrapKind.ALIGNMENT: (_SIGBUS, 1, True),
        TrapKind.PRIVILEGED: (_SIGILL, _SI_KERNEL, False),
        TrapKind.OTHER: (_SIGILL, _SI_KERNEL, False),
    },
    fault_codes=lambda access, present, address: (0, 0),
    canonical=lambda address: True,
    no_address=lambda raw: (11, 0, 0),
    trap_codes=lambda number, before: (0, 0, 0),
    minimum_stack=_MINSIGSTKSZ,
    saved_mask=_SCRATCH + _CONTEXT + _MASK,
    exception=lambda registers, kind, number: exception(kind, number),
    details=details,
)
