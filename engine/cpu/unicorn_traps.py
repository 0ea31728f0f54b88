"""Breakpoints that are dealt with inside the emulator's exception callback.

Leaving the emulator and entering it again costs more than everything else at a probe hit. So
each planted breakpoint has an action that says where the guest goes on; only an action that
needs the engine (or fails) makes the emulator return. A breakpoint that only leads the guest
elsewhere has none: host code sees to it (`leads`).
"""

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Final, Protocol, cast

from engine.arch.base import TrapKind
from engine.cpu import native, unicorn_live
from engine.cpu.base import LEAVE, TrapAction, TrapTable
from engine.cpu.leads import LeadTable
from engine.cpu.trap_actions import TrapActions
from engine.cpu.unicorn_clock import EXPECTED, UnicornClock
from engine.cpu.unicorn_live import LiveBank, LiveRegisters
from engine.cpu.unicorn_state import UnicornState

NUMBERS: Final = 256
"""Exceptions of the emulator's that are asked about, at most."""
_NONE: Final = 0x7FFF_FFFF
"""No exception of Unicorn's."""
_NOWHERE: Final = LeadTable()
"""Leads nowhere."""


class _ShownTraps(Protocol):
    """A table as the exception callback takes it."""

    actions: dict[int, tuple[TrapAction, int]]

    def find(self, pc: int) -> tuple[TrapAction, int] | None: ...


class UnicornTraps:
    """The breakpoints of one engine: those of the address space that it is in.

    Attributes:
        number: the emulator's exception for a breakpoint; -1 where it reports an invalid
            instruction instead.
        error: what an action raised; the engine raises it again outside the callback.
        leading: what host code in front of the exception callback reads; its `ask` is not set.
    """

    def __init__(
        self, state: UnicornState, clock: UnicornClock, stop: Callable[[], None], ahead: int = 0
    ) -> None:
        """Nothing is planted.

        Args:
            state: registers of the engine.
            clock: of the engine.
            stop: makes it return.
            ahead: bytes by which the emulator's pc is ahead of the processor's at a breakpoint.
        """
        arch = state.arch
        kinds = (arch.classify_trap(number) for number in range(NUMBERS))
        numbers = (at for at, kind in enumerate(kinds) if kind is TrapKind.BREAKPOINT)
        self.number = next(numbers, -1)
        self.error: BaseException | None = None
        self._state = state
        self._pc = arch.roles.pc
        self._back = len(arch.breakpoint) if arch.trap_advances_pc else ahead
        self._ticks = clock.words
        self._stop = stop
        self._first = self._shown = self._table()
        self._live: LiveRegisters | None = None
        self._looked = False
        self.reached = self._reached_slowly
        self.leading = native.Leading(number=_NONE)
        self.leading.expected = clock.address_of_expected
        self._ignoring = False
        self._show()

        self.plant, self.remove = self._first.plant, self._first.remove
        self.lead, self.expect, self.ask = self._first.lead, self._first.expect, self._first.ask
        self.hit, self.expect_each = self._first.hit, self._first.expect_each

    def _table(self) -> TrapActions:
        """A table by the pc that a trap leaves."""
        return TrapActions(self._back, self._planted, self._keep)

    def another(self) -> TrapTable:
        """The breakpoints of another address space: none yet."""
        return self._table()

    def use(self, table: TrapTable) -> None:
        """The engine is in the address space of a table, or of the first one, from now on."""
        self._shown = table if isinstance(table, TrapActions) else self._first
        if self._live is not None:
            self.reached = self._reaches(self._live)
        self._show()

    @contextmanager
    def ignored(self) -> Iterator[None]:
        """Breakpoints stop the emulator meanwhile: what runs is not the guest's own course."""
        reached, self.reached = self.reached, lambda: False
        self._ignoring = True
        self._show()
        try:
            yield
        finally:
            self.reached = reached
            self._ignoring = False
            self._show()

    def _show(self) -> None:
        """Host code looks breakpoints up in the table of the address space at hand."""
        self.leading.show(_NOWHERE if self._ignoring else self._shown.leads)

    def _planted(self) -> bool:
        """A breakpoint has been planted, or a table has grown; host code can save registers."""
        self._look()
        self._show()
        return bool(self.leading.scratch)

    def _keep(self, where: int) -> None:
        """Save the registers that detours use; the Python twin of what host code does."""
        jumps = self._state.arch.jumps
        assert jumps is not None, "there are detours"
        values = self._state.read_registers(jumps.scratch)
        ctypes.memmove(where, struct.pack(f"<{len(values)}Q", *values), 8 * len(values))

    def take_error(self) -> BaseException | None:
        """The exception that an action raised, once."""
        error, self.error = self.error, None
        return error

    def reader(self, names: Sequence[str]) -> Callable[[], tuple[int, ...]]:
        """The quickest way to read these registers again and again, also in an action."""
        self._look()
        found = self._live.reader(names) if self._live is not None else None
        if found is not None:
            return found
        key, state = tuple(names), self._state
        if len(key) == 1:
            return state.reader(key[0])
        if all(state.width(name) <= 8 for name in key):
            return lambda: state.read_registers(key)
        return lambda: tuple(state.read_register(name) for name in key)

    def writer(self, name: str) -> Callable[[int], None]:
        """The quickest way to write a register again and again, also in an action."""
        self._look()
        live = self._live
        if live is not None and name in live.index:
            return partial(live.words.__setitem__, live.index[name])
        return partial(self._state.write_register, name)

    def _look(self) -> None:
        """Find the emulator's registers at the first use: it takes milliseconds."""
        if self._looked:
            return
        self._looked = True
        state = self._state
        names = [
            register.name
            for register in state.arch.registers
            if register.group == "general" and register.bits == 64 and not register.constant
        ]
        self._live = unicorn_live.find(
            state.engine_address, names, state.read_register, state.write_register
        )
        if self._live is not None:
            self.reached = self._reaches(self._live)
            if self.number >= 0:
                self.leading.pc, self.leading.number = self._live.address(self._pc), self.number
                self.leading.scratch = self._scratch(self._live)
            state.use_live(self._live, self._banks(self._live))

    def _scratch(self, live: LiveRegisters) -> int:
        """The host address of the registers that detours use; 0 without, or one by one."""
        jumps = self._state.arch.jumps
        places = [live.address(name) for name in jumps.scratch] if jumps is not None else []
        side_by_side = len(places) == 2 and places[1] - places[0] == 8
        return places[0] if side_by_side else 0

    def _banks(self, general: LiveRegisters) -> list[LiveBank]:
        """Registers of floating point and vectors, as many as are at equal distances."""
        state, banks = self._state, list[LiveBank]()
        kinds = groupby(state.arch.registers, lambda one: (one.group, one.bits))
        for (group, bits), registers in kinds:
            names = [register.name for register in registers]
            if group in ("float", "vector") and bits in (64, 128) and len(names) > 1:
                found = unicorn_live.find_bank(
                    general, names, bits // 64, state.read_register, state.write_register
                )
                banks += [] if found is None else [found]
        return banks

    def _reaches(self, live: LiveRegisters) -> Callable[[], bool]:
        """The test that the exception callback makes, all at hand: it runs at each hit."""
        words, at = live.words, live.index[self._pc]
        # What follows may be an object: a word of the clock takes its index when it is set.
        shown = cast("_ShownTraps", self._shown)
        find, make = shown.actions.get, shown.find
        ticks, failed = self._ticks, self.failed
        leave, expected = LEAVE, EXPECTED

        def reached() -> bool:
            try:
                entry = find(words[at]) or make(words[at])
                if entry is None:
                    return False
                action, follow = entry
                target = action()
            except BaseException as error:
                return failed(error)
            if target == leave:
                return False
            ticks[expected] = follow
            words[at] = target
            return True

        return reached

    def _reached_slowly(self) -> bool:
        state = self._state
        try:
            entry = self._shown.find(state.read_register(self._pc))
            if entry is None:
                return False
            target = entry[0]()
        except BaseException as error:
            return self.failed(error)
        if target == LEAVE:
            return False
        self._ticks[EXPECTED] = int(entry[1])
        state.write_register(self._pc, target)
        return True

    def failed(self, error: BaseException) -> bool:
        """An exception must not get lost in the callback."""
        self.error = error
        self._stop()
        return True
