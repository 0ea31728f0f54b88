"""Faults and exceptions of the CPU as signals to the program."""

from typing import Final

from msgspec.structs import replace

from engine.arch.base import TrapKind
from engine.arch.machine import TrapError
from engine.cpu.base import Stop, StopKind
from engine.cpu.ram import PAGE, READ, WRITE
from engine.errors import GuestFaultError
from engine.guest.memory import Mapping, MappingError
from engine.linux import delivery
from engine.linux import signals as sig
from engine.linux.ending import Crash
from engine.linux.thread import Thread

_BUS_ADRERR: Final = 2
"""BUS_ADRERR, the code of a fault where a file has no such page."""
_MAPERR: Final = 1
"""SEGV_MAPERR, the code of a fault where nothing is mapped."""
_ACCERR: Final = 2
"""SEGV_ACCERR, the code of a fault by permissions."""


def opened(k: Thread, stop: Stop) -> bool:
    """True if an access was refused for the engine's own reasons, and may be repeated now."""
    views = k.memory.views
    if not views.turn(stop.address, stop.access):
        return k.hooks.opened(stop.address, stop.access, k.pc())
    if stop.access == "write" and views.same(stop.address, k.pc()):
        views.open_both(stop.address)
    return True


def provided(k: Thread, stop: Stop) -> bool:
    """True if there were no pages yet and there are now: the access may be repeated.

    That is no moment of the guest's time: the access goes on where it was, also out of line.
    """
    try:
        return k.memory.first_touch.provide(stop.address, stop.access)
    except MappingError:
        return False


def fault(k: Thread, stop: Stop) -> None:
    """An access that the page table refuses."""
    if k.memory.first_touch.awaits(stop.address, stop.access):
        if not provided(k, stop):
            exhausted(k, stop.address)
        return
    if k.machine.hooks.excepted(stop):
        return
    if stop.address >= k.arch.plan.task_size and stop.access != "execute":
        # The emulator looks into its own tables where the processor has those of Linux.
        raised = _carried_out(k)
        if raised is None:
            return
        if raised.kind is StopKind.TRAP:
            _trap(k, raised)
            return
    raw = _instruction(k) if stop.access != "execute" else b""
    if stop.access == "read" and k.arch.rewrites(raw):
        stop = replace(stop, access="write")
    before = k.signals.last_fault[0]
    mapping = k.memory.find(stop.address)
    abi = k.arch.linux.signals
    number, code, address, why = _classify(stop, mapping)
    known = mapping is not None and mapping.perms != 0 and not mapping.reserved
    present = known and number == sig.SIGSEGV
    trap_number, error = abi.fault_codes(stop.access, present, stop.address)
    k.signals.last_fault = (stop.address, trap_number, error)
    if abi.canonical(stop.address):
        if stop.address >= k.arch.plan.task_size:
            why = f"{stop.access} at {stop.address:#x}, outside user space"
    else:
        # Not a page fault, and the processor does not say where.
        code, address = sig.SI_KERNEL, 0
        number, trap_number, error = abi.no_address(raw)
        k.signals.last_fault = (before, trap_number, error)
        why = f"{stop.access} at {stop.address:#x}, not a canonical address"
    details = abi.details(TrapKind.MEMORY, stop.number, stop.access, k.pc())
    crash = Crash(number, k.pc(), stop.address, why)
    delivery.force(k, number, code, address, crash, details)


def called(k: Thread, stop: Stop) -> int | None:
    """The number of the system call that is called by its address; -1 for none of that page."""
    calls = k.arch.linux.vsyscalls
    if calls is None or stop.access != "execute" or stop.address & -PAGE != calls[0]:
        return None
    return calls[1].get(stop.address - calls[0], -1)


def refuse_call(k: Thread, stop: Stop) -> None:
    """Such a call cannot be made (emulate_vsyscall): frames show the fault that was before."""
    why = f"call of {stop.address:#x}, in the vsyscall page"
    crash = Crash(sig.SIGSEGV, k.pc(), stop.address, why)
    delivery.force(k, sig.SIGSEGV, sig.SI_KERNEL, 0, crash)


def exhausted(k: Thread, address: int) -> None:
    """An access to a page that there is no memory for: SIGBUS for that of a file (shmem_fault)."""
    mapping = k.memory.find(address)
    if mapping is None or not mapping.shared or mapping.backing is None:
        k.machine.out_of_memory(k.space, address)
        return
    k.machine.memory_limit.note()
    k.signals.last_fault = (address, *k.arch.linux.signals.fault_codes("write", False, address))
    why = f"write at {address:#x}, in {mapping.name}: {k.machine.memory_used_up}"
    details = k.arch.linux.signals.details(TrapKind.MEMORY, 0, "write", k.pc())
    delivery.force(
        k, sig.SIGBUS, _BUS_ADRERR, address, Crash(sig.SIGBUS, k.pc(), address, why), details
    )


def _classify(stop: Stop, mapping: Mapping | None) -> tuple[int, int, int, str]:
    at, access = stop.address, stop.access
    if mapping is None:
        return sig.SIGSEGV, _MAPERR, at, f"{access} at {at:#x}, where nothing is mapped"
    if mapping.reserved:  # a program knows nothing of these
        return (
            sig.SIGSEGV,
            _MAPERR,
            at,
            f"{access} at {at:#x} in the engine's window {mapping.name}",
        )
    allowed = {"read": READ, "write": WRITE, "execute": 4}[access]
    if mapping.perms & allowed:
        return (
            sig.SIGBUS,
            _BUS_ADRERR,
            at,
            f"{access} at {at:#x}, behind the end of {mapping.name}",
        )
    what = mapping.name or "anonymous memory"
    permissions = "".join(
        letter if mapping.perms & 1 << index else "-" for index, letter in enumerate("rwx")
    )
    return sig.SIGSEGV, _ACCERR, at, f"{access} at {at:#x} in {what} ({permissions})"


def trap(k: Thread, stop: Stop) -> None:
    """An exception of the CPU; some are instructions that Linux carries out itself."""
    if k.machine.hooks.excepted(stop):
        return
    if stop.trap not in _TRAPS:
        raised = _carried_out(k)
        if raised is None:
            return
        if raised.kind is StopKind.FAULT:
            fault(k, raised)
            return
        stop = raised if raised is not _NOTHING else stop
    _trap(k, stop)


_TRAPS: Final = frozenset({TrapKind.BREAKPOINT, TrapKind.SINGLE_STEP, TrapKind.FLOAT})
"""Exceptions that come behind an instruction, or late."""
_NOTHING: Final = Stop(StopKind.HALTED)
"""Stands for no other exception than the one that was met."""


def _instruction(k: Thread) -> bytes:
    """The bytes at the program counter, without probes; fewer where the memory ends."""
    pc = k.pc()
    for size in range(k.arch.insn_max, 0, -1):
        try:
            return k.hooks.original(pc, k.memory.read(pc, size))
        except GuestFaultError:
            continue
    return b""


class _GuestRights:
    """The processor with the program's own rights to memory."""

    def __init__(self, k: Thread) -> None:
        self.read_register, self.write_register = k.cpu.read_register, k.cpu.write_register
        self.float_flags, self.clear_float_flags = k.cpu.float_flags, k.cpu.clear_float_flags
        self.execute, self.counter, self.entropy = k.cpu.execute, k.cpu.counter, k.cpu.entropy
        self.read, self.write = k.memory.read, k.memory.write


def _carried_out(k: Thread) -> Stop | None:
    """None if the instruction was carried out; else what it raises, if that is something else."""
    raw = _instruction(k)
    if k.refuses_counter and k.arch.reads_counter(raw):
        return _NOTHING
    try:
        after = k.arch.emulate_trapped(_GuestRights(k), raw, k.pc())
    except TrapError as error:
        kind = TrapKind.OTHER if error.own else k.arch.classify_trap(error.number)
        return Stop(StopKind.TRAP, kind, error.number, error=error.error)
    except GuestFaultError as error:
        return Stop(StopKind.FAULT, address=error.address, access=error.access)
    if after is None:
        return _NOTHING
    k.cpu.write_register(k.arch.roles.pc, after)
    k.machine.carried_out += 1
    return None


def _trap(k: Thread, stop: Stop) -> None:
    """The signal for an exception that is the program's own."""
    pc = k.pc()
    if stop.address and not stop.access:
        k.cpu.write_register(k.arch.roles.pc, stop.address)
        pc = k.pc()
    traps = k.arch.linux.signals.traps
    if pc % k.arch.insn_align:
        stop = Stop(StopKind.TRAP, TrapKind.ALIGNMENT, stop.number, detail="misaligned pc")
    known = k.arch.linux.signals.exception(k.cpu, stop.trap, stop.number)
    number, code, with_pc = known or traps.get(stop.trap, traps[TrapKind.OTHER])
    names = {
        TrapKind.ILLEGAL: "illegal instruction",
        TrapKind.PRIVILEGED: "privileged instruction or non-canonical address",
        TrapKind.BREAKPOINT: "breakpoint instruction",
        TrapKind.DIVIDE: "division by zero or overflow",
        TrapKind.FLOAT: "floating-point exception",
        TrapKind.SINGLE_STEP: "trap flag",
    }
    why = stop.detail or names.get(stop.trap, f"exception {stop.number}")
    crash = Crash(number, pc, None, why)
    unknown = 13 if stop.trap is TrapKind.PRIVILEGED else 6
    vector = stop.number if stop.number >= 0 else unknown
    k.signals.last_fault = k.arch.linux.signals.trap_codes(vector, k.signals.last_fault[0])
    if stop.error:
        k.signals.last_fault = (*k.signals.last_fault[:2], stop.error)
    where = pc if with_pc else 0
    if stop.trap is TrapKind.ALIGNMENT and not pc % k.arch.insn_align:
        refused = k.arch.linux.signals.misaligned(k.cpu, _instruction(k))
        if refused is not None:
            where, error = refused
            k.signals.last_fault = (where, k.signals.last_fault[1], error)
    details = k.arch.linux.signals.details(stop.trap, stop.number, stop.access, pc)
    delivery.force(k, number, code, stop.address if stop.access else where, crash, details)
