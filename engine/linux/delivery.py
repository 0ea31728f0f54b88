"""Delivery of signals: into a handler, out of it again, or the end of the process."""

from typing import TYPE_CHECKING, Final

from engine.arch.base import SignalFrame
from engine.arch.machine import OUTSIDE
from engine.errors import GuestFaultError
from engine.linux import jobs
from engine.linux import signals as sig
from engine.linux.context import SyscallTable
from engine.linux.ending import Crash
from engine.linux.signals import PendingSignal
from engine.linux.thread import KeptSignal, Thread

if TYPE_CHECKING:
    from engine.linux.tracee import Suspended


_VIEWS: Final = 4
"""Shared objects that a frame may stand in at most, with one more."""


def deliver_all(k: Thread) -> None:
    """Every pending signal that is not blocked, before the program runs on."""
    state = k.signals
    kept, k.kept_signal = k.kept_signal, None
    if kept is not None and kept.passes:
        _deliver(k, kept.item, kept.crash)
    if k.original >= 0:
        _begin_restart(k)
    while k.process.exit is None and not k.stopped:
        if k.tracee is not None and k.tracee.traps():
            break
        if not state.deliverable():
            break
        item = state.take(~state.blocked & ((1 << 64) - 1))
        if item is None or _is_kept(k, item, None):
            break
        if k.tracee is not None and item.number != sig.SIGKILL and k.tracee.signal_stop(item):
            break
        _deliver(k, item, None)
    if (k.original >= 0 or k.restarting) and not k.stopped and k.process.exit is None:
        _settle_restart(k, None)
    if state.saved is not None and not k.stopped:
        state.blocked, state.saved = state.saved, None


def go_on(k: Thread, then: "Suspended") -> None:
    """A traced thread goes on behind a stop in front of a signal."""
    item = then.item
    if item is None or not then.number:
        return
    if k.signals.blocked & sig.bit(item.number):
        k.signals.pending.append(item)
    else:
        _deliver(k, item, then.crash)


def _begin_restart(k: Thread) -> None:
    from engine.linux import restarts  # only of threads that are traced

    restarts.begin(k)


def _settle_restart(k: Thread, action: sig.Action | None) -> None:
    from engine.linux import restarts

    restarts.settle(k, action)


def _is_kept(k: Thread, item: PendingSignal, crash: Crash | None) -> bool:
    """True if a debugger keeps a signal back, or drops it (Linux: ptrace_signal)."""
    stops, passes = k.machine.hooks.asked_signal(item.number)
    if stops:
        k.kept_signal = KeptSignal(item, crash, passes)
    return stops or not passes


def _deliver(k: Thread, item: PendingSignal, crash: Crash | None) -> None:
    """Deliver a signal; `crash` tells of one that the program cannot escape."""
    state, number = k.signals, item.number
    for listener in k.machine.moments.delivered:
        listener(k, item)
    action, bit = state.hand.action(number), 1 << number - 1
    if action.handler in (sig.SIG_DFL, sig.SIG_IGN):
        _without_handler(k, number, crash)
        return
    if crash is not None and state.blocked & bit:
        k.process.die(number, crash)
        return
    if k.original >= 0 or k.restarting:
        _settle_restart(k, action)
    flags, sp = action.flags, k.cpu.read_register(k.arch.roles.sp)
    fresh = False
    if flags & sig.SA_ONSTACK:
        fresh = not state.altstack[1] & sig.SS_DISABLE and not state.on_altstack(sp)
    frame = SignalFrame(
        number,
        item.info.ljust(128, b"\0"),
        action.handler,
        action.restorer if flags & sig.SA_RESTORER else 0,
        state.blocked if state.saved is None else state.saved,
        state.altstack[0] + state.altstack[2] if fresh else sp,
        state.altstack,
        *state.last_fault,
        fresh,
    )
    if k.memory.table.changed:
        k.memory.sync()
    pc = k.pc()
    k.machine.delivering = number
    try:
        _make_frame(k, frame)
    except GuestFaultError as error:
        why = "the stack has no room for a signal frame"
        k.process.die(sig.SIGSEGV, Crash(sig.SIGSEGV, pc, error.address, why))
        return
    finally:
        k.machine.delivering = 0
    k.cpu.expect(pc)  # entering the handler is a jump: a loop of faults takes time
    k.cpu.last_branches[0] = OUTSIDE
    if k.machine.recorder is not None:
        k.machine.recorder.signalled(number)
    k.machine.hooks.signalled()
    state.saved = None
    if fresh and state.altstack[1] & sig.SS_AUTODISARM:
        state.altstack = (0, sig.SS_DISABLE, 0)
    state.blocked |= action.mask if flags & sig.SA_NODEFER else action.mask | bit
    if flags & sig.SA_RESETHAND:
        state.hand.actions[number] = sig.Action(flags=flags)
    if k.tracee is not None:
        k.tracee.entered_handler()


def _without_handler(k: Thread, number: int, crash: Crash | None) -> None:
    """Do what a signal does that no handler is for."""
    if crash is not None:
        k.process.die(number, crash)
    elif not k.signals.ignored(number):
        if sig.stops(number):
            jobs.stop(k.process, number)
        else:
            k.process.die(number, None)


def _make_frame(k: Thread, frame: SignalFrame) -> None:
    """Put a signal's frame on the stack; GuestFaultError where that cannot be written."""
    enter, code = k.arch.linux.signals.enter, _return_code(k)
    for left in reversed(range(_VIEWS + 1)):
        try:
            if k.memory.watched:
                with k.memory.opened():
                    enter(k.framing, frame, code)
            else:
                enter(k.framing, frame, code)
            return
        except GuestFaultError as error:
            if not left or not k.memory.views.turn(error.address, "write"):
                raise
            k.memory.sync()  # it was refused only because others execute what it shares pages with


def _return_code(k: Thread) -> int:
    """Address that handlers without a restorer return to: in the vDSO or the first window."""
    start = k.space.start
    return start.returns if start is not None and start.returns else k.arch.plan.trampoline[0]


def rt_sigreturn(k: Thread) -> int:
    """rt_sigreturn: registers, mask and alternate stack come from the frame."""
    pc, sp, state = k.pc(), k.cpu.read_register(k.arch.roles.sp), k.signals
    abi, code = k.arch.linux.signals, _return_code(k)
    try:
        if k.memory.watched:
            with k.memory.opened():
                mask, altstack = abi.leave(k.framing, code)
        else:
            mask, altstack = abi.leave(k.framing, code)
    except GuestFaultError as error:
        why = "rt_sigreturn without a signal frame"
        force(k, sig.SIGSEGV, sig.SI_KERNEL, 0, Crash(sig.SIGSEGV, pc, error.address, why))
        return 0
    k.cpu.expect(pc)
    state.blocked = mask & ~sig.UNBLOCKABLE
    if state.on_altstack(sp):
        return 0  # restore_altstack fails silently
    if altstack[1] & sig.SS_DISABLE or altstack[2] >= abi.minimum_stack:
        state.altstack = altstack
    return 0


def force(
    k: Thread, number: int, code: int, address: int, crash: Crash, details: bytes = b""
) -> None:
    """A signal the program cannot escape: a blocked or ignored one kills (force_sig).

    `details` is what its siginfo has behind the address.
    """
    info = sig.info_fault(number, code, address) + details
    force_info(k, PendingSignal(number, info), crash)


def force_info(k: Thread, item: PendingSignal, crash: Crash) -> None:
    """The same with a siginfo of one's own (force_sig_info)."""
    if _is_kept(k, item, crash):
        return
    if k.tracee is not None:
        k.signals.expose(item.number)
        if k.tracee.signal_stop(item, crash):
            return
    _deliver(k, item, crash)


SYSCALLS: SyscallTable = {"rt_sigreturn": rt_sigreturn}
