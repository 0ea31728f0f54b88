"""The stops of the core, as the engine is told of them."""

from typing import Final

from engine.arch.base import TrapKind
from engine.cpu.base import Stop, StopKind
from engine.cpu.ia64.stops import (
    FloatFault,
    Illegal,
    Interruption,
    NatConsumption,
    Privileged,
    Unaligned,
)

_VECTORS: Final = {
    "illegal": 24,
    "nat": 26,
    "unaligned": 30,
    "fault": 32,
    "trap": 33,
    "step": 36,
}
"""Interruption vectors that stops carry as their number; a break carries its immediate."""


def described(met: Interruption) -> Stop:
    """A stop for an exception that is the program's own fault."""
    detail = str(met.args[0]) if met.args else ""
    if isinstance(met, Unaligned):
        address, access = met.args
        return Stop(
            StopKind.TRAP, TrapKind.ALIGNMENT, _VECTORS["unaligned"], address, access, "unaligned"
        )
    if isinstance(met, FloatFault):
        return Stop(StopKind.TRAP, TrapKind.FLOAT, _VECTORS["fault"], detail="unmasked fault")
    if isinstance(met, NatConsumption):
        return Stop(StopKind.TRAP, TrapKind.ILLEGAL, _VECTORS["nat"], detail="a NaT is consumed")
    if isinstance(met, Privileged):
        return Stop(
            StopKind.TRAP,
            TrapKind.PRIVILEGED,
            _VECTORS["illegal"],
            detail="a privileged operation",
        )
    assert isinstance(met, Illegal)
    return Stop(StopKind.TRAP, TrapKind.ILLEGAL, _VECTORS["illegal"], detail=detail)


def float_trap() -> Stop:
    """An unmasked floating-point trap: the slot has executed."""
    return Stop(StopKind.TRAP, TrapKind.FLOAT, _VECTORS["trap"], detail="unmasked trap")


def single_step_stop(address: int) -> Stop:
    """The trap of psr.ss behind the slot at an address."""
    return Stop(StopKind.TRAP, TrapKind.SINGLE_STEP, _VECTORS["step"], address)
