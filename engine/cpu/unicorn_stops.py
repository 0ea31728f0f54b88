"""What makes the emulator stop by itself: exceptions, system calls, refused instructions."""

from collections.abc import Callable
from typing import Any

import unicorn.unicorn_const as uc_const

from engine.arch.base import Arch, TrapKind
from engine.cpu import unicorn_api as api
from engine.cpu.base import Stop, StopKind
from engine.cpu.unicorn_machines import Machine
from engine.cpu.unicorn_traps import UnicornTraps


def add_stops(
    arch: Arch,
    machine: Machine,
    hooks: api.Hooks,
    traps: UnicornTraps,
    stop: Callable[[Stop], None],
    pc: Callable[[], int],
) -> None:
    """Have an engine stop where the guest needs somebody.

    Args:
        arch: of the guest.
        machine: says which instructions are hooked.
        hooks: of the engine.
        traps: breakpoints that are dealt with inside the emulator.
        stop: is given the reason.
        pc: reads the program counter.
    """
    breakpoint_number = traps.number

    def on_interrupt(uc: int, number: int, data: int) -> None:
        if number == breakpoint_number and traps.reached():
            return
        kind = arch.classify_trap(number)
        if kind is TrapKind.SYSCALL:
            stop(Stop(StopKind.SYSCALL))
        else:
            stop(Stop(StopKind.TRAP, kind, number))

    def on_invalid(uc: int, data: int) -> bool:
        stop(Stop(StopKind.TRAP, TrapKind.ILLEGAL))
        return True

    def on_syscall(uc: int, data: int) -> None:
        stop(Stop(StopKind.SYSCALL))

    def on_illegal(uc: int, data: int) -> None:
        stop(Stop(StopKind.TRAP, TrapKind.ILLEGAL))

    def on_port() -> int:
        """Unicorn would run it at any level; pc goes on past it."""
        detail = "port input or output"
        stop(Stop(StopKind.TRAP, TrapKind.PRIVILEGED, address=pc(), detail=detail))
        return 0

    def on_out(uc: int, port: int, size: int, value: int, data: int) -> None:
        on_port()

    hooks.add(uc_const.UC_HOOK_INTR, api.OnInterrupt(on_interrupt))
    hooks.add(uc_const.UC_HOOK_INSN_INVALID, api.OnInvalid(on_invalid))
    callbacks: dict[str, Any] = {
        "syscall": api.OnInsn(on_syscall),
        "illegal": api.OnInsn(on_illegal),
        "in": api.OnIn(lambda uc, port, size, data: on_port()),
        "out": api.OnOut(on_out),
    }
    for insn, role in machine.instruction_hooks:
        hooks.add(uc_const.UC_HOOK_INSN, callbacks[role], extra=insn)
