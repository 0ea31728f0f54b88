"""Traces of Linux's steps that it does not take back where it takes an instruction for another.

Kernel mode leaves them, too (see `engine.arch.uprobe_faults`).
"""

from contextlib import suppress

from engine.arch.plan import Fixup, InsnPlan
from engine.errors import GuestFaultError
from engine.probes.slots import XolArea
from engine.probes.target import ProbeTarget


class StepFaults:
    """Leaves them in one guest."""

    def __init__(self, target: ProbeTarget, area: XolArea) -> None:
        """Wire it.

        Args:
            target: the guest.
            area: slots of uprobes.
        """
        self._arch, self._cpu, self._overlay = target.arch, target.cpu, target.overlay
        self._step, self._area = target.step, area

    def settle(self, plan: InsnPlan, slot: int) -> int:
        """Leave what a plan's fix-ups say, behind its copy in a slot.

        Returns:
            Where the program goes on.
        """
        for fixup in plan.fixups:
            if fixup is Fixup.TRACE_FLAG:
                self.show_flag()
            elif fixup is Fixup.STEP_FLAG:
                self.keep_flag()
            elif fixup is Fixup.STRANDED:
                return self.strand(plan, slot)
        return plan.next

    def show_flag(self) -> None:
        """The pushed flags show the flag of a single step (Fixup.TRACE_FLAG)."""
        place = self._step.read_register(self._arch.roles.sp) + 1
        self._step.store(place, bytes([self._step.load(place, 1)[0] | 1]))

    def keep_flag(self) -> None:
        """The flag of a single step stays set (Fixup.STEP_FLAG)."""
        names = self._arch.engines.unicorn
        flag = names.trap_flag if names is not None else None
        assert flag is not None, "an architecture whose plans say so has one"
        value = self._cpu.read_register(flag.register)
        self._cpu.write_register(flag.register, value | flag.bit)

    def strand(self, plan: InsnPlan, slot: int) -> int:
        """The program runs on in a slot, which gets what it has under Linux (Fixup.STRANDED).

        Args:
            plan: of the instruction.
            slot: where its copy has run.

        Returns:
            Where the program goes on.
        """
        self._area.strand(slot, plan.copy + self._behind(plan))
        return slot + len(plan.copy)

    def _behind(self, plan: InsnPlan) -> bytes:
        """The program's bytes that Linux copies together with an instruction (MAX_UINSN_BYTES)."""
        page = self._arch.plan.page_size
        for end in (plan.address + self._arch.insn_max + 1, plan.next + -plan.next % page):
            if end > plan.next:
                with suppress(GuestFaultError):
                    return self._overlay.original(plan.next, end - plan.next)
        return b""
