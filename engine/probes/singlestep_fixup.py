"""Fix-ups behind a copy that the processor has single-stepped (Linux on IA-64).

Where the processor's own step ends a copy, it ends wherever the instruction leads, so calls and
branches are copied like anything else. This is the fast executor's side; `breakpoint_machine` has
its own.
"""

from typing import Final

from engine.arch.machine import RegisterFile
from engine.arch.plan import Fixup, InsnPlan
from engine.cpu.base import StepAction

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF


def settler(plan: InsnPlan, slot: int, registers: RegisterFile) -> StepAction:
    """The fix-ups of a plan behind its copy: from the pc that it came to, to the next one.

    Args:
        plan: of the instruction.
        slot: address of its copy.
        registers: of the processor.
    """
    distance, last = plan.base - slot, slot + len(plan.copy)
    link = plan.link if {Fixup.CALL, Fixup.VALUE} & set(plan.fixups) else ""

    def moved(came: int) -> int:
        return came + distance & _MASK

    def moved_if_left(came: int) -> int:
        return came + distance & _MASK if slot <= came <= last else came

    if Fixup.IP in plan.fixups:
        follow = moved
    elif Fixup.NOT_TAKEN in plan.fixups:
        follow = moved_if_left
    else:
        follow = _stay
    if not link:
        return follow

    def linked(came: int) -> int:
        value = registers.read_register(link)
        if value in (slot, last):
            registers.write_register(link, value + distance & _MASK)
        return follow(came)

    return linked


def _stay(came: int) -> int:
    return came
