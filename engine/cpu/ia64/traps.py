"""Breakpoints that are dealt with inside the run loop."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Protocol

from engine.cpu.base import LEAVE, StepAction, TrapTable
from engine.cpu.ia64.stops import Stepped
from engine.cpu.ia64.translate import Block
from engine.cpu.trap_actions import TrapActions


class _Owner(Protocol):
    def getters(self, names: Sequence[str]) -> tuple[Callable[[], int], ...]: ...
    def write_register(self, name: str, value: int) -> None: ...


class Ia64Traps:
    """Actions by slot address.

    Attributes:
        find: action of a breakpoint, and the address at which going on takes no time.
        steps: actions behind the slots that are executed with psr.ss.
    """

    def __init__(self, owner: _Owner) -> None:
        self._first = TrapActions()
        self.find = self._first.find
        self.plant, self.remove = self._first.plant, self._first.remove
        self.lead, self.expect, self.ask = self._first.lead, self._first.expect, self._first.ask
        self.expect_each = self._first.expect_each
        self.hit = self._first.hit
        self.steps: dict[int, StepAction] = {}
        self._owner = owner

    def another(self) -> TrapTable:
        """The breakpoints of another address space: none yet."""
        return TrapActions()

    def use(self, table: TrapTable) -> None:
        """The core is in the address space of a table, or of the first one, from now on."""
        self.find = (table if isinstance(table, TrapActions) else self._first).find

    def reader(self, names: Sequence[str]) -> Callable[[], tuple[int, ...]]:
        """The quickest way to read these registers again and again."""
        getters = self._owner.getters(names)
        return lambda: tuple([get() for get in getters])

    def writer(self, name: str) -> Callable[[int], None]:
        """The quickest way to write a register again and again."""
        return partial(self._owner.write_register, name)


def stepping(block: Block, action: StepAction) -> Block:
    """A block of one slot, and the trap of psr.ss behind it."""

    @wraps(block)
    def stepped() -> int:
        came = block()
        target = action(came)
        if target == LEAVE:
            raise Stepped(came)
        return target

    return stepped
