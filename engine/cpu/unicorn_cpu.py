"""Unicorn behind the `Cpu` protocol: the only module that runs it.

How it is kept fast and right (measurements in the project's history, Unicorn 2.1.4):

- Virtual-TLB mode with a callback that searches our own page table: stores in translated
  code take the fast path, and a refused access ends the run with exact registers.
- Own ctypes prototypes for what is called often; the binding only for what is rare.
- No Python hook runs per instruction or per block. Each *translated* block is sieved by host
  code; Python looks at those that may hold an instruction that Unicorn executes wrongly.
- System calls and exceptions leave `uc_emu_start`, but for calls that are served in the
  callback (`unicorn_calls`); nothing re-enters Unicorn from a callback.
- `until` is 0: Unicorn drops the block that ends at `until` after each run.
"""

import ctypes
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from engine.arch.base import Arch, TrapKind
from engine.arch.engines import UnicornNames
from engine.cpu import native, unicorn_float
from engine.cpu import unicorn_api as api
from engine.cpu import unicorn_linkage as linkage
from engine.cpu.base import Access, Decode, EntryTable, Stop, StopKind, Traps
from engine.cpu.pagetable import PageTable, RegionTable
from engine.cpu.ram import ACCESS_NAMES, EXECUTE, NO_LIMIT, OUT_OF_MEMORY, PAGE, Ram
from engine.cpu.unicorn_accesses import AccessLog
from engine.cpu.unicorn_blocks import BlockTable
from engine.cpu.unicorn_calls import ServedCalls
from engine.cpu.unicorn_checks import StopChecks
from engine.cpu.unicorn_clock import UnicornClock
from engine.cpu.unicorn_faults import FaultLocator, fetchable
from engine.cpu.unicorn_footprint import forget_tables, join_pages, small_pages
from engine.cpu.unicorn_guard import ABORTED, Guard
from engine.cpu.unicorn_library import UnicornError, uc_const
from engine.cpu.unicorn_machines import UnicornMachine, machine_of, refuse_more
from engine.cpu.unicorn_refusals import admit
from engine.cpu.unicorn_screen import Screen, readable
from engine.cpu.unicorn_sieve import AccessSieve
from engine.cpu.unicorn_state import WIDE, UnicornState
from engine.cpu.unicorn_stops import add_stops
from engine.cpu.unicorn_trap_flag import UnicornTrapFlag
from engine.cpu.unicorn_traps import UnicornTraps
from engine.errors import EngineError, GuestFaultError

if TYPE_CHECKING:
    from engine.cpu.unicorn_lent import LentTranslations

_MISSES: Final = 1 << 16
"""TLB misses after which it is flushed: Unicorn enlarges it at no other time."""
_FEW: Final = 8 * PAGE
"""Bytes of a range that are cheaper to forget page by page than with all that is remembered."""
_SMALL: Final = 512
"""TLB misses that a small guest stays below."""
_APPROACHES: Final = 4096
"""Untranslatable blocks after which all is dropped: each leaves a piece in Unicorn's buffer."""
_PATIENCE: Final = 1000  # stops without a reason at one place before that is called a failure


def _breakpoint_ahead(arch: Arch, names: UnicornNames, engine: int) -> int:
    """Bytes by which Unicorn's pc is ahead of the processor's when it reports a breakpoint."""
    advances = dict(names.advances)
    for number, ahead in advances.items():
        if arch.classify_trap(number) is TrapKind.BREAKPOINT:
            reported = not names.refused_breakpoints or admit(engine, number)
            return ahead if reported else 0
    return 0


class UnicornCpu(UnicornState):
    """One Unicorn instance at user level; see `engine.cpu.base.Cpu` for the contract."""

    def __init__(
        self,
        arch: Arch,
        ram: Ram,
        decode: Decode,
        *,
        counter: Callable[[], int] = lambda: 0,
        entropy: Callable[[int], bytes] = bytes,
        secret: bytes = bytes(80),
    ) -> None:
        """Open the emulator and bring it to user level.

        Args:
            arch: what to emulate.
            ram: the guest's physical memory.
            decode: disassembler, for screening.
            counter: what the guest's cycle counter shows.
            entropy: seeded random bytes for instructions that ask for them.
            secret: seeded bytes for registers that hold secrets, as keys that sign pointers.

        Raises:
            EngineError: Unicorn lacks the architecture or fails.
        """
        names = arch.engines.unicorn
        if names is None:
            raise EngineError(f"no emulator for {arch.name}")
        machine = machine_of(names)
        forget_tables()
        try:
            uc = machine.open(ram.budget)
            with small_pages():
                uc.use_own_translations()  # it sets all up now
            uc.map_memory(ram.control.physical_base, ram.size, 7, ram.base)
        except UnicornError as error:
            raise EngineError(f"the emulator does not start: {error}") from error
        super().__init__(arch, machine, uc, ram, PageTable(ram))
        self._counter = counter
        self._entropy = entropy
        self._hooks = api.Hooks(self._handle)
        self._joined = False  # the pages of translated code
        self._misses = 0  # TLB misses at which it is flushed again
        self._halted = False
        self._stop: Stop | None = None
        self._before_stop: tuple[object, int] | None = None
        self._progress = True
        self._checks = StopChecks(self._handle.value or 0, names.target)
        self._ways = BlockTable(self.engine_address, names.target)
        self._counted = False  # whether the translations count instructions
        self._inside = False  # Unicorn runs: from its callbacks it cannot be entered again
        self._idle = (0, 0)
        self._approaches = 0
        self._decode = decode
        host_float = names.host_float and unicorn_float.install(names.target)
        if not names.host_float:
            from engine.cpu import unicorn_softfloat  # many routines, for some targets

            unicorn_softfloat.install(names.target)
        refuse_more(names, self.engine_address)
        self._screen = Screen(
            arch,
            decode,
            self._uc,
            self._hooks,
            self._ask_to_stop,
            self.page_table,
            host_float=host_float,
            lends=machine.extend(self.engine_address),
            lend=partial(self._lend, names if host_float else None),
        )
        self.coarse: Container[int] = ()
        self.coarse_at: Callable[[int, int], bool] = lambda page, pc: False
        self._accesses = AccessLog(ram, self.page_table, self._hooks)
        self._faults = FaultLocator(ram, self._hooks)
        self._guard = Guard(self._handle, self.engine_address, names.target)
        self._flush_page = (
            linkage.page_flusher(self.engine_address, names.target) if native.possible() else None
        )
        self._sieve = AccessSieve(self._handle, self.engine_address, names.target)
        self._code = native.build()
        self._clock = UnicornClock(
            self._handle, self._hooks, ram.control, self._code, self.invalidate_all
        )
        self.now = self._clock.ticks
        ahead = _breakpoint_ahead(arch, names, self.engine_address)
        self._traps = UnicornTraps(self, self._clock, self._ask_to_stop, ahead)
        self._trap_flag = UnicornTrapFlag(self, names.trap_flag)
        self._calls = ServedCalls(
            self._clock, self._ask_to_stop, self._traps.failed, self._trap_flag
        )
        self._add_fill_hook()
        machine.enter_user_mode(self._uc, ram, self.page_table, secret, self.engine_address)
        self.flush_tlb()
        add_stops(
            arch,
            machine,
            self._hooks,
            self._traps,
            self._stop_with,
            self._calls.called,
            self._counted_here(machine),
            self,
            self._code,
        )
        self._screen.watch(ram, self._code, self.read)
        forget_tables()

    def _counted_here(self, machine: UnicornMachine) -> Callable[[], bool]:
        """Return the callback that carries out refused reads of the counter, if it can."""
        forget = machine.forgetful(self.engine_address)
        if forget is None:
            return lambda: False
        return partial(self._calls.counted, self, self.arch, forget)

    def _lend(self, names: UnicornNames | None) -> "LentTranslations":
        """From now on the host's instructions are called in translations, if that can be done."""
        from engine.cpu.unicorn_lent import LentTranslations  # few programs have such

        lent = names.lent() if names is not None and names.lent is not None else None
        return LentTranslations(names.target if names is not None else "", lent, self._ways)

    @property
    def lent(self) -> int:
        """Number of instructions that the host has lent so far."""
        return self._screen.lent

    @property
    def traps(self) -> Traps:
        """Breakpoints that are dealt with inside the emulator."""
        return self._traps

    @property
    def entries(self) -> EntryTable:
        """Addresses at which no block may begin unnoticed."""
        return self._screen.entries

    def counter(self) -> int:
        """The guest's cycle counter."""
        return self._counter()

    def entropy(self, count: int) -> bytes:
        """Seeded random bytes."""
        return self._entropy(count)

    def execute(self, address: int, end: int) -> None:
        """Run engine-owned code; GuestFaultError where it touches memory that is not there."""
        control = self._ram.control
        control.fault_access = 0
        self._screen.off = True
        kept = self._clock.suspend()
        at = address
        try:
            # A `halt` that comes now is meant for the guest: go on where it stopped this.
            with self._deaf():
                for _ in range(_PATIENCE):
                    self._start(at, end)
                    at = self.read_register(self.arch.roles.pc)
                    met = self._sieve.met() if self._sieve.watching else None
                    if met is not None:
                        raise GuestFaultError(*met)
                    if at == end or control.fault_access:
                        break
        finally:
            self._screen.off = False
            self._clock.resume(kept)
            self._stop = None
        if at != end:
            raise GuestFaultError(control.fault_address, "write")

    # -- running --------------------------------------------------------------------------

    def run(self, quantum: int | None = None) -> Stop:
        """Run until something needs the engine; at most `quantum` guest blocks if given."""
        if quantum is not None:
            self._clock.switch(True)
        self._clock.grant(quantum)
        control = self._ram.control
        control.limit = self._misses
        try:
            while True:
                stop = self._run_once(0)
                if stop is not None:
                    if control.fills > _SMALL and not self._joined:
                        self._joined = True
                        join_pages()
                    return stop
                if control.fills >= control.limit:
                    # A call that was carried out meanwhile may have flushed, and moved what the
                    # emulator does not stop at yet: left behind, each miss would stop it.
                    if control.fills >= self._misses:
                        self.flush_tlb()
                    control.limit = self._misses
        finally:
            control.limit = NO_LIMIT

    def serve(self, action: Callable[[], bool] | None, *, counts: bool = False) -> None:
        """Have system calls carried out; see `engine.cpu.base.ServesCalls`.

        They all stop the engine where its registers are not found in place, or where the screen
        has to look at them between one and the next.
        """
        calls = self._calls
        if action is not None and not calls.known:
            pc = self.arch.roles.pc
            self._traps.reader((pc,))
            found = self._live is not None and self._trap_flag.find(self._live)
            calls.know(self._places.get(pc) if found and not self._screen.attunes else None)
        calls.action = action if calls.pc is not None else None
        calls.counts = counts and calls.action is not None

    def trap_behind(self) -> Stop | None:
        """The trap behind an instruction that the program steps itself; None if it does not."""
        return self._trap_flag.trap()

    def step(self, *, rewrites: bool = False) -> Stop | None:
        """Execute one instruction; None if nothing but that happened.

        Args:
            rewrites: it may store to the code it stands in. Unicorn then begins it again in a
                new translation, and counts both, so that a step of one comes to nothing.
        """
        self._clock.grant(None)
        if self._halted:
            return self._halt_now()
        with self._deaf():  # one that comes now is for what follows
            before = self._all_registers() if rewrites else None
            while True:
                stop = self._run_once(1)
                if before is not None and stop is None and self._all_registers() == before:
                    stop = self._run_once(2)
                if stop is not None or self._progress:
                    return stop

    def observe(
        self, places: Mapping[int, int], call: Callable[[], Stop | None] | None = None
    ) -> tuple[Stop | None, list[Access]]:
        """Execute one instruction and see what it accesses; see `engine.cpu.base.Cpu`.

        Most are run up to the next one: counted runs drop all translations, before and after.
        """
        if self._halted:
            return self._halt_now(), []
        pc, most = self.read_register(self.arch.roles.pc), self.arch.insn_max
        insn = next(iter(self._decode(pc, readable(self, pc, most))), None)
        emulated = self._screen.seen = []
        self.invalidate(pc, most)
        try:
            with (
                self._accesses.kept(places) as accesses,
                self._checks.kept(),
                self.page_table.opened(),
            ):
                if insn is None or insn.unknown or self.arch.goes_elsewhere(insn):
                    stop = self._one()
                else:
                    stop = self._up_to(pc, pc + insn.size)
        finally:
            self._screen.seen = None
            self.flush_tlb()
            self.invalidate(pc, most)
        seen = [*emulated, *accesses]
        if stop is not None and stop.kind is StopKind.QUANTUM and (seen or self._moved(pc)):
            stop = None  # the block behind it may not begin any more
        return stop, seen

    def _one(self) -> Stop | None:
        """Execute one instruction in the time that is left."""
        with self._deaf():
            while True:
                stop = self._run_once(1)
                if stop is not None or self._progress:
                    return stop

    def sift(self, reads: Sequence[tuple[int, int]], writes: Sequence[tuple[int, int]]) -> bool:
        """Refuse accesses to some bytes; see `engine.cpu.base.Cpu`."""
        self._sieve.choose(reads, writes)
        return self._sieve.watching

    def _up_to(self, pc: int, end: int) -> Stop | None:
        """Execute the instruction at pc, which ends at an address and goes on there."""
        self._idle = (0, 0)  # it may be this one's turn again and again
        with self._deaf():
            for _ in range(_PATIENCE):
                stop = self._run_once(0, end)
                moved = self._moved(pc)
                if stop is not None and stop.kind is StopKind.HALTED and moved:
                    self._halted, stop = True, None  # for what follows
                if stop is not None or moved:
                    return stop
        raise EngineError(f"the emulator does not execute the instruction at {pc:#x}")

    def _all_registers(self) -> tuple[int, ...]:
        """General registers and pc."""
        names = [one.name for one in self.arch.registers if one.group == "general"]
        return self.read_registers((*names, self.arch.roles.pc))

    def _run_once(self, count: int, end: int = 0) -> Stop | None:
        """One stretch inside Unicorn, up to `end` if not 0.

        None when the engine itself wants to go on.
        """
        if self._halted and not count:
            return self._halt_now()
        self._stop = None
        self._calls.stopping = False
        self._progress = True
        control = self._ram.control
        control.fault_access = 0
        api.reg_read(self._handle, self._pc_id, self._buffer_at)
        pc = int.from_bytes(self._buffer.raw[:8], "little")
        self._clock.enter(pc)
        self._screen.attune(self)
        error = self._start(pc, end, count)
        if error == ABORTED:
            with self._deaf():
                error = self._approach(count)
        if end:
            self.invalidate(pc, end - pc)  # the stop is built into the translation
        if self._calls.pending:
            self._calls.settle()
            self._idle = (0, 0)
        screening = self._screen.waiting
        used_up = self._clock.leave()
        if self._traps.error is not None:
            raise self._traps.take_error() or EngineError("a trap's action failed")
        if screening:
            self._screen.install()
        if self._stop is not None:
            if self._before_stop is not None:
                state, control.count = self._before_stop
                self._before_stop = None
                self.flush_tlb()
                self.restore(state)
                self.write_register(self.arch.roles.pc, self._stop.address)
            if self._stop.number >= 0 and self._stop.trap is not TrapKind.BREAKPOINT:
                self._stop = self._raised(self._stop, *self._machine.settle(self._uc))
            return self._stop
        if screening:  # the block that was jumped to has not run
            self._clock.expect(self._clock.shared.expected)
            self._progress = self._moved(pc)
            return None
        if self._screen.met is not None:
            stop, self._progress = self._screen.handle(self)
            if self._progress:
                self._clock.carried(self._screen.behind)
                stop = self._trap_flag.trap()
            return stop
        if self._halted and (not count or self._held(pc)):
            return self._halt_now()
        if used_up:
            return Stop(StopKind.QUANTUM)
        if self._sieve.watching and (met := self._sieve.met()) is not None:
            return Stop(StopKind.FAULT, address=met[0], access=met[1])
        if error == api.ERROR_EXCEPTION and control.fault_access:
            at = self.read_register(self.arch.roles.pc)
            if at in self._screen.entries:  # decoding it went on behind the page
                self._screen.entries.reached(at)
                self._clock.expect(self._clock.shared.expected)
                self._progress = at != pc
                return None
            last = 0 if end else self._fetchable(count)
            return self._run_once(count, last) if last else self._fault()
        if control.fills >= control.limit:
            return None
        if (error and error != api.ERROR_EXCEPTION) or (not count and self._stuck(pc)):
            at = self.read_register(self.arch.roles.pc)
            raise EngineError(f"the emulator failed at {at:#x}: error {error}")
        return None

    def _raised(self, stop: Stop, error: int, own: bool) -> Stop:
        """A stop at an exception with this error code; `own`: an instruction has asked for it."""
        refused = self._machine.names.interrupts(stop.number) if own else None
        if refused is None:
            return replace(stop, error=error) if error else stop
        number, error, size = refused
        pc = self.arch.roles.pc
        self.write_register(pc, self.read_register(pc) - size)
        return Stop(StopKind.TRAP, self.arch.classify_trap(number), number, error=error)

    def _moved(self, pc: int) -> bool:
        """True if the instruction at an address, where the emulator was, has jumped elsewhere."""
        return self.read_register(self.arch.roles.pc) != pc

    def _start(self, pc: int, end: int = 0, count: int = 0) -> int:
        """Enter the emulator, for `count` instructions if not 0.

        Counting is built into the translations: Unicorn drops those that count before it runs
        without, but not those that don't before it counts, and would run past the end of them.
        """
        if count and not self._counted:
            self._uc.flush_code()
        self._counted = count != 0
        self._checks.choose(needed=self._counted or self._screen.hooked)
        if self._sieve.watching:
            self._sieve.enter(on=not self.page_table.is_open)
        if self._inside:
            raise EngineError("the guest runs: nothing called from inside can make it run")
        self._inside = True
        try:
            error = self._guard.start(pc, end, count)
        finally:
            self._inside = False
        if self._sieve.watching:
            self._sieve.leave()
        return error

    def _approach(self, count: int) -> int:
        """Unicorn could not translate a block: execute its first instruction, or refuse it.

        Blocks that end behind the instruction are tried, as Unicorn alone knows its length.
        """
        pc = self.arch.roles.pc
        at = self.read_register(pc)
        if at in self._screen.entries:  # what stands there is not the program's
            self._screen.enter(at)
            return 0
        self._approaches += 1
        if not self._approaches % _APPROACHES:
            self.invalidate_all()
        for size in range(self.arch.insn_align, self.arch.insn_max + 1, self.arch.insn_align):
            error = self._start(at, at + size, count)
            self.invalidate(at, size)
            if error != ABORTED:
                return error
            if self.read_register(pc) != at:  # it went on to the next such block
                self._clock.expect(self._clock.shared.expected)
                return 0
        self._stop = Stop(StopKind.TRAP, TrapKind.ILLEGAL, detail="not an instruction")
        return 0

    def _stuck(self, pc: int) -> bool:
        """True if the emulator keeps returning to one place without a reason."""
        before, times = self._idle
        self._idle = (pc, times + 1 if pc == before else 0)
        return self._idle[1] > _PATIENCE

    def halt(self) -> None:
        """Make the current or next `run` stop; from any thread, to be repeated until it does.

        Unicorn forgets a stop that arrives before it starts, so the caller asks again while
        `run` has not returned. While the clock runs it is the clock that stops, between a block
        and the jump to the next: time does not depend on when a halt comes.
        """
        hears = self._clock.halt()
        self._halted = True
        if not hears:
            api.emu_stop(self._handle)

    def _halt_now(self) -> Stop:
        self._halted = False
        self._clock.heard()
        return Stop(StopKind.HALTED)

    def _held(self, pc: int) -> bool:
        """True if a halt may have come before a step, which only the clock is deaf to."""
        return not self._clock.running and self.read_register(self.arch.roles.pc) == pc

    @contextmanager
    def _deaf(self) -> Iterator[None]:
        """The engine runs something of its own: a halt waits until that is done."""
        with self._clock.deaf():
            yield
        if self._halted:
            self._clock.halt()

    # -- the clock ------------------------------------------------------------------------

    def count_blocks(self, enabled: bool) -> None:
        """Switch the clock; translated code is dropped, as it has the call built in."""
        self._clock.switch(enabled)

    def keep_branches(self) -> None:
        """Note from now on where control comes from; translated code is dropped the first time."""
        self._clock.keep_branches()

    def blocks(self) -> int:
        """Ticks of the guest's clock while it was on."""
        return self._clock.ticks()

    def coming(self) -> int:
        """The tick in which the next instruction executes."""
        return self._clock.coming(self.read_register(self.arch.roles.pc))

    def turn_back(self, blocks: int) -> None:
        """So many ticks have passed."""
        self._clock.turn_back(blocks)

    def run_to(self, address: int) -> Stop | None:
        """Run up to an address that lies straight ahead."""
        pc = self.arch.roles.pc
        self._clock.grant(self._clock.coming(self.read_register(pc)) - self._clock.ticks())
        if self.read_register(pc) == address:
            return None
        self._idle = (0, 0)
        self.invalidate(address, 1)  # a block that goes on behind it does not stop there
        try:
            for _ in range(_PATIENCE):
                stop = self._run_once(0, address)
                if stop is not None and stop.kind is StopKind.QUANTUM:
                    return None
                if stop is not None or self.read_register(pc) == address:
                    return stop
        finally:
            self.invalidate(address, 1)
        raise EngineError(f"the emulator does not come to {address:#x}")

    @property
    def time_page(self) -> int:
        """Host address of the page with the clock's words."""
        return self._clock.page

    @property
    def last_branches(self) -> memoryview:
        """Addresses behind the last two instructions from which control went elsewhere."""
        return self._clock.last_branches

    def expect(self, address: int) -> None:
        """The instruction just carried out ends here: going on elsewhere is a tick."""
        self._clock.expect(address)

    def position(self) -> object:
        """For the clock: where the program is."""
        return self._clock.position()

    def go_on(self, position: object) -> None:
        """Go on with another thread, whose registers have been restored."""
        self._clock.go_on(position)

    def exempt(self, *windows: tuple[int, int]) -> None:
        """(start, size) of up to two windows of the machinery, in which no time passes."""
        self._clock.windows(*windows)

    # -- translations ---------------------------------------------------------------------

    def flush_tlb(self) -> None:
        """Forget translations of addresses, after the page table has changed."""
        self._calls.moved = True
        self._uc.flush_translations()
        self._misses = self._ram.control.fills + _MISSES

    def flush_pages(self, start: int, size: int) -> None:
        """Forget translations of addresses of a range; of many, of all."""
        flush = self._flush_page
        if flush is None or size > _FEW:
            self.flush_tlb()
            return
        self._calls.moved = True
        for page in range(start, start + size, PAGE):
            flush(page)

    def invalidate(self, start: int, size: int) -> None:
        """Forget translated code of a mapped range."""
        if self._calls.inside:
            self._calls.later(partial(self._invalidate_of, self.page_table.shown, start, size))
            return
        end = start + size
        while start < end:  # Unicorn looks up the first page only
            region = self.page_table.find(start)
            if region is None:
                start = (start + PAGE) & -PAGE
                continue
            stop = min(end, region.end)
            if region.perms & EXECUTE:
                at = region.physical + start - region.start
                first = start + self._ram.untouched_lead(at, stop - start)
                if first < stop:
                    self._uc.remove_code(first, stop)  # which touches the first page
            start = stop

    def _invalidate_of(self, regions: RegionTable, start: int, size: int) -> None:
        """Forget a range of an address space, if it is still shown as it was; else all."""
        if regions is self.page_table.shown and not self._calls.moved:
            self.invalidate(start, size)
        else:
            self.invalidate_all()

    def invalidate_all(self) -> None:
        """Forget all translated code."""
        if self._calls.inside:
            self._calls.later(self.invalidate_all)
            return
        self._uc.flush_code()

    # -- faults ---------------------------------------------------------------------------

    def _fetchable(self, count: int) -> int:
        """The address to stop at so that what can be fetched is executed; 0 if that is nothing."""
        pc = self.read_register(self.arch.roles.pc)
        return fetchable(self._ram.control, pc, self._decode, self.read, single=count != 0)

    def _fault(self) -> Stop:
        control = self._ram.control
        page, access = control.fault_address & -PAGE, control.fault_access
        if access == OUT_OF_MEMORY:
            return Stop(StopKind.OUT_OF_MEMORY, address=page)
        pc = self.read_register(self.arch.roles.pc)
        if access == 18:
            # Nothing there has run: that control came is a tick if it is repeated and may go on.
            self._clock.expect(self._clock.shared.expected)
            if page < pc & -PAGE:
                # A block whose first instruction is none ends, to Unicorn, in front of it.
                return Stop(StopKind.TRAP, TrapKind.ILLEGAL)
            at = pc if pc & -PAGE == page else page
            return Stop(StopKind.FAULT, address=at, access="execute")
        if page in self.coarse or self.coarse_at(page, pc):
            return Stop(StopKind.FAULT, address=page, access=ACCESS_NAMES.get(access, "read"))
        address = self._faults.locate(
            page,
            lambda: self._repeat(pc, page),
            lambda: self.arch.stores_byte(readable(self, pc, self.arch.insn_max)),
        )
        self.flush_tlb()
        return Stop(StopKind.FAULT, address=address, access=ACCESS_NAMES.get(access, "read"))

    def _repeat(self, pc: int, page: int) -> None:
        """Execute the faulting instruction again and put everything back.

        A store that crosses into the page may leave a part in front of it this time.
        """
        state = self.save()
        front = page - WIDE
        try:
            kept = self.read(front, WIDE)
        except GuestFaultError:
            kept = b""
        kept_clock = self._clock.suspend()
        if self._screen.covers(pc):
            self._screen.let_pass(pc)
        self.flush_tlb()
        self.invalidate(pc, self.arch.insn_max)
        try:
            with self._traps.ignored(), self._deaf(), self._checks.kept():
                self._start(pc)
        finally:
            self.invalidate(pc, self.arch.insn_max)
            self._clock.resume(kept_clock)
            self.restore(state)
            if kept and self.read(front, WIDE) != kept:
                self.write(front, kept)
            self._stop = None
            self._screen.met = None

    # -- hooks ----------------------------------------------------------------------------

    def _ask_to_stop(self) -> None:
        api.emu_stop(self._handle)

    def _add_fill_hook(self) -> None:
        kind = uc_const.UC_HOOK_TLB_FILL
        if self._code is not None:
            self._hooks.add(kind, self._code.fill, ctypes.addressof(self._ram.control))
            return

        def on_fill(uc: int, address: int, access: int, entry: Any, data: int) -> bool:
            if self._before_stop is not None:
                return False
            control = self._ram.control
            done = native.fill(self._ram, self.page_table, address, access, entry.contents)
            if done and control.fills >= control.limit:
                self._clock.pause()
            return done

        self._hooks.add(kind, api.OnFill(on_fill))

    def _stop_with(self, stop: Stop, state: object) -> None:
        self._calls.stopping = True
        if self._stop is None:
            self._stop = stop
            if state is not None:  # what stands behind in the block is not to touch memory
                control = self._ram.control
                self._before_stop, control.count = (state, control.count), 0
                self.flush_tlb()
        api.emu_stop(self._handle)
