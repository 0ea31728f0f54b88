"""What the unwinder needs of IA-64: the register stack, signal frames."""

from collections.abc import Callable, Mapping
from typing import Final

from engine.arch.ia64.rse import CFM_MASK, locals_size, skip_down, stacked
from engine.errors import GuestFaultError

PRESERVED: Final = (
    *("r0", "r4", "r5", "r6", "r7", "r13"),
    *("b1", "b2", "b3", "b4", "b5"),
    *("pr", "pfs", "lc", "unat", "fpsr", "rsc", "bspstore", "rnat", "um", "f0", "f1"),
    *(f"f{number}" for number in (*range(2, 6), *range(16, 32))),
)
"""Registers that a function gives back as it found them; pfs is the caller's frame by then."""

_FIRST: Final = 32


def popped(
    caller: dict[str, int], callee: Mapping[str, int], read: Callable[[int, int], bytes]
) -> None:
    """What br.ret does: frame marker and register stack come back from ar.pfs.

    Args:
        caller: what is known of the caller's registers, ar.pfs included; is completed.
        callee: the registers of the function that returns.
        read: the guest's memory, with the register stack written out.
    """
    bsp, pfs = callee.get("bsp"), caller.get("pfs")
    if bsp is None or pfs is None:
        return
    cfm = caller["cfm"] = pfs & CFM_MASK
    caller["ec"] = pfs >> 52 & 63
    count = locals_size(cfm)
    caller["bsp"] = bsp = skip_down(bsp, count)
    try:
        values = stacked(bsp, count, read)
    except GuestFaultError:
        return
    for number, value in enumerate(values, _FIRST):
        caller[f"r{number}"] = value
