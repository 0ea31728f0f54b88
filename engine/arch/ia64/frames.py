"""Unwinding on IA-64: the register stack, signal frames."""

from collections.abc import Callable, Mapping
from typing import Final

from engine.arch.frames import ArchUnwind
from engine.arch.ia64.rse import CFM_MASK, frame_size, locals_size, skip_down, stacked
from engine.arch.ia64.signal_frames import RETURN_CODE, RETURN_PLACES, SAVED_REGISTERS
from engine.errors import GuestFaultError

_PRESERVED: Final = (
    *("r0", "r4", "r5", "r6", "r7", "r13"),
    *("b1", "b2", "b3", "b4", "b5"),
    *("pr", "pfs", "lc", "unat", "fpsr", "rsc", "bspstore", "rnat", "psr"),
    *(f"f{number}" for number in (*range(6), *range(16, 32))),
)
"""Registers that a function gives back as it found them; pfs is the caller's frame by then."""

_FIRST: Final = 32


def _popped(
    caller: dict[str, int],
    callee: Mapping[str, int],
    read: Callable[[int, int], bytes],
    signal: bool,
) -> None:
    """Return as br.ret and rt_sigreturn do: the frame marker and register stack come back.

    A return gives a frame its locals back, a signal's frame has covered all of it.
    """
    if signal:
        bsp, cfm = caller.get("bsp"), caller.get("cfm")
        if bsp is None or cfm is None:
            return
        count = frame_size(cfm)
    else:
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
    rotating = 8 * (cfm >> 14 & 15)
    base = cfm >> 18 & 127
    for number in range(count):
        at = (number + base) % rotating if number < rotating else number
        if at < count:
            caller[f"r{_FIRST + number}"] = values[at]


UNWIND: Final = ArchUnwind(
    read=lambda raw, address: None,  # tables tell, or the rule for leaves
    preserved=_PRESERVED,
    alignment=16,
    sigreturn=((RETURN_CODE, RETURN_PLACES),),
    saved={**SAVED_REGISTERS},
    strip=lambda address: address,
    popped=_popped,
    stacks=("bsp",),
    tables="ia64",
    formats=("cfi", "trampoline", "leaf"),
    padded=True,
)
