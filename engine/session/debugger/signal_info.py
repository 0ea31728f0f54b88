"""`$_siginfo`: what a signal that has stopped the program tells (gdb/linux-tdep.c)."""

from functools import cache
from typing import TYPE_CHECKING, Final

from engine.arch.base import TrapKind
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.made_records import MadeAlias, MadeRecord, struct_of, union_of, vector_of
from engine.language.value_types import CType
from engine.language.values import TypedValue
from engine.linux.signals import SIGTRAP, info_fault, info_kill
from engine.session.debugger.stops import STEPPED, Catchpoint, UserWatchpoint

if TYPE_CHECKING:
    from engine.session.debugger.debugger import Debugger

_SIZE: Final = 128
_TRAP_TRACE, _TRAP_HWBKPT = 2, 4
"""si_code of SIGTRAP (asm-generic/siginfo.h)."""
_SYSCALL: Final = SIGTRAP | 0x80
"""si_code at a system call (PTRACE_O_TRACESYSGOOD)."""
_EVENTS: Final = {"fork": 1, "vfork": 2, "exec": 4}
"""Events of ptrace; si_code is SIGTRAP and the event in the next byte (kernel/signal.c)."""


def _alias(name: str, kind: CType) -> CType:
    return MadeAlias(kind.kind, kind.size, name, made_of=kind)


@cache
def siginfo_type(pointer: int) -> MadeRecord:
    """The type of siginfo_t (asm-generic/siginfo.h), with gdb's names."""
    word = ct.number(TypeKind.SIGNED, pointer, "long")
    void = ct.pointer_to(ct.VOID, pointer)
    pid, uid = _alias("__pid_t", ct.INT), _alias("__uid_t", ct.UNSIGNED)
    clock = _alias("__clock_t", word)
    value = _alias("sigval_t", union_of("sigval_t", ("sival_int", ct.INT), ("sival_ptr", void)))
    begin = 16 if pointer == 8 else 12
    fields = union_of(
        "",
        ("_pad", vector_of(ct.INT, (_SIZE - begin) // 4)),
        ("_kill", struct_of("", ("si_pid", pid), ("si_uid", uid))),
        (
            "_timer",
            struct_of("", ("si_tid", ct.INT), ("si_overrun", ct.INT), ("si_sigval", value)),
        ),
        ("_rt", struct_of("", ("si_pid", pid), ("si_uid", uid), ("si_sigval", value))),
        (
            "_sigchld",
            struct_of(
                "",
                *(("si_pid", pid), ("si_uid", uid), ("si_status", ct.INT)),
                *(("si_utime", clock), ("si_stime", clock)),
            ),
        ),
        (
            "_sigfault",
            struct_of(
                "",
                ("si_addr", void),
                ("_addr_lsb", ct.integer(2, signed=True)),
                ("_addr_bnd", struct_of("", ("_lower", void), ("_upper", void))),
            ),
        ),
        ("_sigpoll", struct_of("", ("si_band", word), ("si_fd", ct.INT))),
        (
            "_sigsys",
            struct_of("", ("_call_addr", void), ("_syscall", ct.INT), ("_arch", ct.UNSIGNED)),
        ),
    )
    return struct_of(
        "siginfo",
        *(("si_signo", ct.INT), ("si_errno", ct.INT), ("si_code", ct.INT)),
        ("_sifields", fields),
    )


def siginfo(debugger: "Debugger") -> TypedValue:
    """Return the siginfo of the thread that has stopped; void without a process."""
    if not debugger.started:
        return TypedValue(ct.VOID, lambda: b"", order=debugger.scope.order)
    session = debugger.control.session
    kept = session.machine.current.kept_signal
    raw = kept.item.info if kept is not None else _trap(debugger)
    whole = raw.ljust(_SIZE, b"\0")[:_SIZE]
    order = debugger.scope.order
    return TypedValue(siginfo_type(session.arch.bits // 8), lambda: whole, order=order)


def _trap(debugger: "Debugger") -> bytes:
    """The SIGTRAP by which a debugger's tracee stands: what has stopped it, and where."""
    session, reached = debugger.control.session, debugger.stops.reached
    thread = session.machine.current
    caught = next((one.catches for one in reached if isinstance(one, Catchpoint)), "")
    if caught:
        code = SIGTRAP | _EVENTS[caught] << 8 if caught in _EVENTS else _SYSCALL
        return info_kill(SIGTRAP, code, thread.pid, thread.uid)
    pc = session.cpu.read_register(session.arch.roles.pc)
    watched = [one for one in reached if isinstance(one, UserWatchpoint) and not one.temporary]
    if any(one.sense is not STEPPED for one in watched):
        return info_fault(SIGTRAP, _TRAP_HWBKPT, pc)
    if watched or debugger.control.sight.here.running.traced:
        return info_fault(SIGTRAP, _TRAP_TRACE, pc)
    number, code, tells_address = session.arch.linux.signals.traps[TrapKind.BREAKPOINT]
    return info_fault(number, code, pc if tells_address else 0)
