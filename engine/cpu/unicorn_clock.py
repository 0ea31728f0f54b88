"""The guest's clock in one Unicorn engine: ticks, quanta, and pauses of the engine's own.

What a tick is: `native.BlockClock`. The clock costs a call per block, so it runs only when
somebody needs it.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

from engine.cpu import hostmemory as host
from engine.cpu import native
from engine.cpu import unicorn_api as api
from engine.cpu.ram import PAGE, RamControl
from engine.cpu.unicorn_library import uc_const

FOREVER: Final = 1 << 62
_BEGINNING: Final = (0, 0, 0, 0, False, False)
"""The position of a thread that has not run."""
EXPECTED: Final = 4
"""Index of `BlockClock.expected` among the words."""


class UnicornClock:
    """Counts ticks and ends a run after a number of them.

    Attributes:
        ticks: tells those so far, also from inside a callback; every recorded hit asks.
        page: address of a shared page of the host's whose last two words are the ticks at the
            end of what was granted and those left of it. The guest may be shown this page:
            what must be kept from it stands behind. In the page in front of it stands
            `last_branches`, which code in the guest may write to.
        last_branches: what `native.BlockClock` says; nothing before `keep_branches`.
    """

    def __init__(
        self,
        handle: Any,
        hooks: api.Hooks,
        control: RamControl,
        code: native.HostCode | None,
        flush: Callable[[], None],
    ) -> None:
        """`flush` drops all translations: the call is built into them."""
        self._handle = handle
        self._hooks = hooks
        self._control = control
        self._code = code
        self._flush = flush
        stop = ctypes.cast(api.emu_stop, api.VOID).value or 0
        # Its address and the callback's are as long as `unicorn_blocks` expects them to be.
        memory = host.distant(3 * PAGE)
        self._memory = view = memoryview(memory).cast("B")
        start = ctypes.addressof(memory)
        self.page = start + PAGE
        self.shared = native.BlockClock.from_buffer(self._memory, 2 * PAGE - 8)
        self.shared.remaining, self.shared.stop, self.shared.last_branches = FOREVER, stop, start
        self.words = memoryview(self.shared).cast("B").cast("Q")
        self.last_branches = view[:16].cast("Q")
        self._hook = 0
        # Ticks when nothing of what was granted is left; in the page, in front of `remaining`.
        self._end = end = view[2 * PAGE - 16 : 2 * PAGE - 8].cast("Q")
        end[0] = FOREVER
        words = self.words

        def ticks() -> int:
            return end[0] - words[0]

        self.ticks = ticks
        self._stops = self._deaf = 0
        self._gate = threading.Lock()
        self._stopped = self._told = False
        self._choose_stop()

    @property
    def address_of_expected(self) -> int:
        """Host address of `BlockClock.expected`."""
        return ctypes.addressof(self.shared) + 8 * EXPECTED

    @property
    def running(self) -> bool:
        """True if ticks are counted."""
        return bool(self._hook)

    def windows(self, *windows: tuple[int, int]) -> None:
        """(start, size) of up to two windows of the machinery, in which nothing ticks."""
        padded = (*windows, (0, 0), (0, 0))
        self.shared.high, self.shared.high_size = padded[0]
        self.shared.low, self.shared.low_size = padded[1]
        if self._hook:  # translations may know where they are
            self._flush()

    def switch(self, enabled: bool) -> None:
        """Count or do not count."""
        if enabled == bool(self._hook):
            return
        if enabled:
            kind = uc_const.UC_HOOK_BLOCK
            if self._code is not None:
                self._hook = self._hooks.add(kind, self._code.block, ctypes.addressof(self.shared))
            else:
                self._hook = self._hooks.add(kind, api.OnCode(self._on_block))
        else:
            self._hooks.remove(self._hook)
            self._hook = 0
        self._choose_stop()
        self._flush()

    def keep_branches(self) -> None:
        """From now on `last_branches` is kept: so far nothing is known."""
        if not self.shared.keeps_branches:
            self.shared.keeps_branches = 1
            self.last_branches[0] = self.last_branches[1] = 0
            if self._hook:
                self._flush()

    def _choose_stop(self) -> None:
        """Choose how the fill callback stops the emulator.

        A stop from outside takes effect inside a block, which the clock has counted by then
        and would count again; so while it runs, its own stop is used.
        """
        if not self._hook:
            self._control.argument = self._handle.value
            self._control.stop = ctypes.cast(api.emu_stop, api.VOID).value or 0
        elif self._code is not None:
            self._control.argument = ctypes.addressof(self.shared)
            self._control.stop = self._code.pause

    # -- halts ----------------------------------------------------------------------------

    def halt(self) -> bool:
        """Let no block begin any more; from any thread. False if there is no clock to do it."""
        with self._gate:
            if self._hook and not self._deaf:
                self.shared.halted = 1
            return bool(self._hook)

    def heard(self) -> None:
        """The halt has been seen to."""
        self.shared.halted = 0

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """The engine runs something of its own, which no halt is meant for."""
        with self._gate:
            self._deaf += 1
            self.shared.halted, kept = 0, self.shared.halted
        try:
            yield
        finally:
            with self._gate:
                self._deaf -= 1
                self.shared.halted = kept

    def pause(self) -> None:
        """Stop at the fill callback's limit, where it is not host code."""
        shared = self.shared
        if not self._hook:
            api.emu_stop(self._handle)
        elif shared.remaining:
            shared.aside, shared.remaining = shared.remaining, 0

    def expect(self, address: int) -> None:
        """Between two runs, or in a system call: only going on at this address is no tick."""
        self.words[EXPECTED] = address
        self.shared.repeated = 0
        self._told = True

    def carried(self, behind: int) -> None:
        """An instruction has been carried out for the emulator, which goes on behind it.

        What the machinery executes in a probe's place leaves alone what is expected behind the
        probe.
        """
        if not self.inside(behind - 1):
            self.expect(behind)

    def told(self) -> bool:
        """True, once, if `expect` has been called since the emulator was entered."""
        told, self._told = self._told, False
        return told

    def _on_block(self, uc: int, address: int, size: int, data: int) -> None:
        if native.tick(self.shared, address, size):
            api.emu_stop(self._handle)

    # -- threads --------------------------------------------------------------------------

    def position(self) -> object:
        """The part of its state that is the running thread's."""
        shared, left = self.shared, self.last_branches
        repeated = shared.repeated if shared.repeated_at == shared.remaining else 0
        last, before = left if shared.keeps_branches else (0, 0)
        return (shared.expected, repeated, last, before, self._stopped, self._told)

    def go_on(self, position: object) -> None:
        """Go on with another thread; None for one that begins."""
        shared, left = self.shared, self.last_branches
        state = cast(tuple[int, int, int, int, bool, bool], position or _BEGINNING)
        shared.expected, shared.repeated, left[0], left[1], self._stopped, self._told = state
        shared.repeated_at = shared.remaining

    def coming(self, pc: int) -> int:
        """The tick in which the instruction at `pc` executes, where the program stands."""
        jumped = (self._stopped or self._told) and self.shared.expected != pc
        return self.ticks() + (jumped and not self.inside(pc))

    def inside(self, pc: int) -> bool:
        """True for a place in the machinery."""
        shared = self.shared
        low, high = pc - shared.low, pc - shared.high
        return bool(0 <= high < shared.high_size or 0 <= low < shared.low_size)

    def turn_back(self, ticks: int) -> None:
        """So many have passed."""
        self._end[0] = ticks + self.shared.remaining

    # -- around runs ----------------------------------------------------------------------

    def grant(self, quantum: int | None) -> None:
        """Before a run: how many ticks it may take."""
        granted, shared = FOREVER if quantum is None else quantum, self.shared
        if shared.repeated_at != shared.remaining:
            shared.repeated = 0
        self._end[0] += granted - shared.remaining
        shared.remaining = shared.repeated_at = granted

    def enter(self, pc: int) -> None:
        """Before the emulator starts at `pc`, which is where it was: no tick.

        After a stop of the clock's own the same block is asked about again; inside the
        machinery what was expected behind it still is.
        """
        shared = self.shared
        inside = pc - shared.high < shared.high_size if pc >= shared.high else False
        inside = inside or 0 <= pc - shared.low < shared.low_size
        if not (self._stopped or self._told or inside):
            shared.expected = pc
        if not (inside and self._stopped):
            shared.repeated = 0  # entered again, not repeated
        self._told = False
        self._stops = shared.stops

    def leave(self) -> bool:
        """After the emulator has returned: whether the granted ticks have run out."""
        shared = self.shared
        self._stopped = shared.stops != self._stops
        paused = shared.aside
        if paused:
            shared.remaining, shared.aside = paused, 0
        return self._stopped and not paused

    def suspend(self) -> tuple[int, int, int, int]:
        """The engine runs something of its own; give the result to `resume`."""
        shared = self.shared
        kept = shared.remaining, shared.expected, shared.repeated, shared.repeated_at
        shared.remaining = FOREVER
        return kept

    def resume(self, kept: tuple[int, int, int, int]) -> None:
        """The guest's time goes on."""
        shared = self.shared
        shared.remaining, shared.expected, shared.repeated, shared.repeated_at = kept
