"""The exact address of a refused access.

The TLB-fill callback is told the page only. The instruction runs once more while refused
accesses are sent to a physical address where nothing is, and Unicorn's own hook for such
accesses reports the whole address. Registers are put back afterwards; no memory changes.

The hook is there for that one run only: while one exists, Unicorn takes the slow path for every
access of the guest.

A store that crosses into the refused page is done byte by byte, the last one first, so that the
address reported is that of its last byte: the page's start is where a processor says it is.
"""

from collections.abc import Callable
from typing import Final

from engine.cpu import unicorn_api as api
from engine.cpu.base import Decode
from engine.cpu.ram import PAGE, Ram, RamControl
from engine.cpu.unicorn_library import uc_const
from engine.cpu.unicorn_state import WIDE

_TRIES: Final = 8
_HOLE: Final = 0x1000
"""A guest-physical page below the arena: the emulator has nothing mapped there."""


class FaultLocator:
    """Finds addresses of faults for one engine."""

    def __init__(self, ram: Ram, hooks: api.Hooks) -> None:
        self._control = ram.control
        self._hooks = hooks
        self._callback = api.OnMemory(self._on_hole)
        self._found = 0
        self._hit = self._byte = False

    def locate(self, page: int, run: Callable[[], None], bytewise: Callable[[], bool]) -> int:
        """The address of the access that `run` repeats; the page's start if it does not.

        Args:
            page: the page that was refused.
            run: executes the instruction again, with the TLB flushed.
            bytewise: tells whether the instruction stores single bytes.
        """
        kinds = uc_const.UC_HOOK_MEM_READ_UNMAPPED | uc_const.UC_HOOK_MEM_WRITE_UNMAPPED
        hook = self._hooks.add(kinds, self._callback)
        self._found = page
        self._hit = self._byte = False
        self._control.hole = _HOLE
        try:
            for _ in range(_TRIES):  # a `halt` may end a run before the access
                run()
                if self._hit:
                    break
        finally:
            self._control.hole = 0
            self._hooks.remove(hook)
        if self._byte and self._found & (PAGE - 1) < WIDE and not bytewise():
            return page
        return self._found

    def _on_hole(self, uc: int, kind: int, address: int, size: int, value: int, data: int) -> bool:
        if not self._hit:  # an instruction that stores in several pieces goes on
            self._byte = kind == uc_const.UC_MEM_WRITE_UNMAPPED and size == 1
            self._found = self._found & -PAGE | address & (PAGE - 1)
        self._hit = True
        return False


def fetchable(
    control: RamControl,
    pc: int,
    decode: Decode,
    read: Callable[[int, int], bytes],
    *,
    single: bool,
) -> int:
    """The address to stop at so that what can be fetched is executed; 0 if that is nothing.

    Translation met a page that cannot be fetched: the block behind pc has not run, though
    all of it in front of that page is to.

    Args:
        control: says which access was refused.
        pc: the program counter.
        decode: disassembler.
        read: the guest's memory by address.
        single: only one instruction is to run.
    """
    page = control.fault_address & -PAGE
    if control.fault_access != 18 or not 0 < page - pc < PAGE:
        return 0
    last = pc
    for insn in decode(pc, read(pc, page - pc)):
        last = insn.address + insn.size
        if single:
            break
    return last if last != pc else 0
