"""The stops that the emulator makes by itself: exceptions, system calls, refused instructions."""

import ctypes
from collections.abc import Callable
from typing import Any, Final

from engine.arch.base import Arch, TrapKind
from engine.cpu import native
from engine.cpu import unicorn_api as api
from engine.cpu.base import Stop, StopKind
from engine.cpu.unicorn_library import uc_const
from engine.cpu.unicorn_machines import UnicornMachine
from engine.cpu.unicorn_state import UnicornState
from engine.cpu.unicorn_traps import UnicornTraps
from engine.errors import GuestFaultError

_CALL: Final = Stop(StopKind.SYSCALL)
_REFUSED: Final = frozenset({TrapKind.ILLEGAL, TrapKind.PRIVILEGED})
BY_INSTRUCTION: Final = -1
"""Stands for the exception of a system call that makes none."""


def add_stops(
    arch: Arch,
    machine: UnicornMachine,
    hooks: api.Hooks,
    traps: UnicornTraps,
    stop: "Callable[[Stop, object], None]",
    served: Callable[[int], bool],
    counted: Callable[[], bool],
    registers: UnicornState,
    code: native.HostCode | None,
) -> None:
    """Have an engine stop where the guest needs somebody.

    Args:
        arch: of the guest.
        machine: says which instructions are hooked and what Unicorn reports oddly.
        hooks: of the engine.
        traps: breakpoints that are dealt with inside the emulator.
        stop: is given the reason, and the registers to go back to if the emulator goes on to
            the end of the block, else None.
        served: carries out a system call that the exception of this number makes, if it can.
        counted: carries out a refused instruction that reads the counter, if it is one.
        registers: of the engine, and its memory.
        code: host code, which leads the guest on at breakpoints where there is any.
    """
    breakpoint_number = traps.number
    pc = arch.roles.pc
    advances = dict(machine.names.advances)
    kinds: dict[int, TrapKind] = {}
    refused = machine.names.refused_breakpoints

    def on_interrupt(uc: int, number: int, data: int) -> None:
        if number == breakpoint_number and traps.reached():
            return
        if number in advances:
            registers.write_register(pc, registers.read_register(pc) - advances[number])
        kind = kinds.get(number)
        if kind is None:
            kind = kinds[number] = arch.classify_trap(number)
        if kind is TrapKind.SYSCALL:
            if not served(number):
                stop(_CALL, None)
        elif kind not in _REFUSED or not counted():
            stop(Stop(StopKind.TRAP, kind, number), None)

    def on_invalid(uc: int, data: int) -> bool:
        if refused:
            if traps.reached():
                return True
            at = registers.read_register(pc)
            if any(_stands(registers, at, code) for code in refused):
                stop(Stop(StopKind.TRAP, TrapKind.BREAKPOINT), None)
                return True
        stop(Stop(StopKind.TRAP, TrapKind.ILLEGAL), None)
        return True

    def on_syscall(uc: int, data: int) -> None:
        if not served(BY_INSTRUCTION):
            stop(_CALL, None)

    def on_illegal(uc: int, data: int) -> None:
        stop(Stop(StopKind.TRAP, TrapKind.ILLEGAL), None)

    def on_port() -> int:
        """Unicorn would run it at any level, and what follows in the block."""
        at = registers.read_register(pc)
        detail = "port input or output"
        stop(Stop(StopKind.TRAP, TrapKind.PRIVILEGED, address=at, detail=detail), registers.save())
        return 0

    def on_out(uc: int, port: int, size: int, value: int, data: int) -> None:
        on_port()

    asked = api.OnInterrupt(on_interrupt)
    if code is not None:
        traps.leading.ask = ctypes.cast(asked, api.VOID).value or 0
        hooks.keep(asked)
        hooks.add(uc_const.UC_HOOK_INTR, code.interrupt, ctypes.addressof(traps.leading))
    else:
        hooks.add(uc_const.UC_HOOK_INTR, asked)
    hooks.add(uc_const.UC_HOOK_INSN_INVALID, api.OnInvalid(on_invalid))
    callbacks: dict[str, Any] = {
        "syscall": api.OnInsn(on_syscall),
        "illegal": api.OnInsn(on_illegal),
        "in": api.OnIn(lambda uc, port, size, data: on_port()),
        "out": api.OnOut(on_out),
    }
    for insn, role in machine.instruction_hooks:
        hooks.add(uc_const.UC_HOOK_INSN, callbacks[role], extra=insn)


def _stands(memory: UnicornState, address: int, code: bytes) -> bool:
    """Tell whether these bytes are at an address."""
    try:
        return memory.read(address, len(code)) == code
    except GuestFaultError:
        return False
