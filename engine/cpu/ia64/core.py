"""The IA-64 core behind the `Cpu` protocol.

Generated code is kept in two versions, with and without NaT bits; the quicker one runs while
no register is a NaT. A block's exceptions say what the engine has to see to.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final

from engine.arch.base import TrapKind
from engine.arch.ia64.bundle import next_slot, unpack
from engine.cpu.base import LEAVE, Access, StepAction, Stop, StopKind, Traps
from engine.cpu.ia64.alat import Alat
from engine.cpu.ia64.cache import Blocks, CodeCache
from engine.cpu.ia64.clock import Ia64Clock
from engine.cpu.ia64.described import described, float_trap, single_step_stop
from engine.cpu.ia64.emit_branch import SYSCALL
from engine.cpu.ia64.helpers import Helpers
from engine.cpu.ia64.jit import AFTER, Jit, available
from engine.cpu.ia64.memory import SHIFT, Ia64Memory
from engine.cpu.ia64.registers import Registers
from engine.cpu.ia64.state import State
from engine.cpu.ia64.stops import (
    BreakInterruption,
    CodeChanged,
    FloatTrap,
    Interruption,
    NarrowFrame,
    NatAppears,
    NatsGone,
    OutOfMemory,
    PageFault,
    Redirected,
    Stepped,
)
from engine.cpu.ia64.translate import LONGEST, Block
from engine.cpu.ia64.traps import Ia64Traps, stepping
from engine.cpu.pagetable import MappedMemory, PageTable
from engine.cpu.ram import Ram
from engine.errors import GuestFaultError

_LOOK: Final = 256
"""Blocks between two looks whether the last NaT has gone."""


class Ia64Cpu(Registers, MappedMemory):
    """One processor at user level; see `engine.cpu.base.Cpu` for the contract."""

    def __init__(
        self,
        ram: Ram,
        *,
        classify_break: Callable[[int], TrapKind],
        counter: Callable[[], int] = lambda: 0,
        entropy: Callable[[int], bytes] = bytes,
        emulate_unaligned: bool = False,
        jit_after: int = AFTER,
    ) -> None:
        """Make a core with all registers 0 and an empty frame.

        Args:
            ram: the guest's physical memory.
            classify_break: what the immediate of a break means.
            counter: what ar.itc shows.
            entropy: seeded random bytes.
            emulate_unaligned: plain unaligned accesses are carried out, as Linux does for
                programs, instead of stopping the core.
            jit_after: runs of a block after which machine code is made, where there is a
                library for it; 0 for never.
        """
        self.page_table = PageTable(ram)
        self.coarse: Container[int] = ()
        self.coarse_at: Callable[[int, int], bool] = lambda page, pc: False
        self._ram = ram
        self._memory = Ia64Memory(ram, self.page_table)
        self._memory.emulate_unaligned = emulate_unaligned
        self._code = CodeCache(self._memory, self.page_table)
        self.state = State(self._memory)
        self.alat = Alat()
        super().__init__(self.state, self.alat)
        self._classify = classify_break
        self._counter, self._entropy = counter, entropy
        self._clock = Ia64Clock()
        self._flags: list[None] = []
        self._carrying = False
        helpers = Helpers(self.state, self._memory, self.alat, counter)
        self._code.use(
            {**helpers.namespace(self._clock.expected), "H": self._flags, "hit": self._hit}
        )
        self._jits: tuple[Jit, ...] = ()
        if jit_after and available():
            parts = (self.state, self._memory, self.alat, self._clock, self._flags, self._code)
            self._jits = tuple(Jit(*parts, after=jit_after, nats=nats) for nats in (False, True))
            self._code.use_jits(self._jits)
        self._traps = Ia64Traps(self)

    @property
    def traps(self) -> Traps:
        """Breakpoints that are dealt with inside the run loop."""
        return self._traps

    def counter(self) -> int:
        """The guest's cycle counter."""
        return self._counter()

    def entropy(self, count: int) -> bytes:
        """Seeded random bytes."""
        return self._entropy(count)

    # -- running --------------------------------------------------------------------------------

    def run(self, quantum: int | None = None) -> Stop:
        """Run until something needs the engine; at most `quantum` ticks if given."""
        if quantum is not None:
            self.count_blocks(True)
        self._clock.grant(quantum)
        self._clock.enter(self.state.ip)
        while True:
            stop = self._stretch()
            if stop is not None:
                return stop

    def step(self, *, rewrites: bool = False) -> Stop | None:
        """Execute one slot; None if nothing but that happened."""
        at = self.state.ip
        stop = self.single_step() or self._behind_step(at)
        if stop is None:
            self._clock.stepped(self.state.ip)
        return stop

    def observe(
        self, places: Mapping[int, int], call: Callable[[], Stop | None] | None = None
    ) -> tuple[Stop | None, list[Access]]:
        """Execute one slot and see what it accesses; see `engine.cpu.base.Cpu`."""
        with self.page_table.opened(), self._memory.observed() as seen:
            stop = (call or self.step)()
        return stop, seen

    def sift(self, reads: Sequence[tuple[int, int]], writes: Sequence[tuple[int, int]]) -> bool:
        """Pages are all that this core tells apart."""
        return False

    def step_at(self, address: int, action: StepAction | None) -> None:
        """Execute the slot at an address with psr.ss; see `SingleSteps`."""
        if action is None:
            self._traps.steps.pop(address, None)
        else:
            self._traps.steps[address] = action
        self._code.drop_entry(address)

    def single_step(self) -> Stop | None:
        """Execute one slot with psr.ss; no action deals with its trap."""
        self._clock.grant(None)
        self._clock.enter(self.state.ip)
        return self._one()

    def _behind_step(self, address: int) -> Stop | None:
        """The slot at an address was executed: its trap, if psr.ss was set for it."""
        action = self._traps.steps.get(address)
        if action is None:
            return None
        target = action(self.state.ip)
        if target == LEAVE:
            return single_step_stop(address)
        self.state.ip = target
        return None

    def _one(self) -> Stop | None:
        """One slot; a predicate that is false also counts as executed."""
        while True:
            stop, done = self._single_slot()
            if stop is not None or done:
                return stop

    def _single_slot(self) -> tuple[Stop | None, bool]:
        ip = self.state.ip
        if self._flags:
            self._flags.clear()
            self._clock.stepped(ip)
            return Stop(StopKind.HALTED), False
        if self._clock.running and self._clock.tick(ip):
            return Stop(StopKind.QUANTUM), False
        try:
            blocks = self._code.single[self.state.nats]
            block = blocks.get(ip)
            if block is None:
                block = self._translate(blocks, ip, 1)
            self.state.ip = block()
            return None, True
        except Interruption as met:
            stop = self._handle(met, ip)
            return stop, stop is None and isinstance(met, CodeChanged | Redirected)

    def _stretch(self) -> Stop | None:
        """Blocks until an exception; None when the run goes on."""
        state, flags = self.state, self._flags
        nats = state.nats
        blocks = self._code.blocks[nats]
        ip = state.ip
        try:
            if nats:
                clock = self._clock
                for _ in range(_LOOK):
                    if flags:
                        break
                    if clock.running and ip != clock.expected[0] and clock.tick(ip):
                        state.ip = ip
                        return Stop(StopKind.QUANTUM)
                    ip = blocks[ip]()
                else:
                    state.ip = ip
                    state.ignore_nats()
                    return None
            elif self._clock.running:
                tick, expected = self._clock.tick, self._clock.expected
                while not flags:
                    if ip != expected[0] and tick(ip):
                        state.ip = ip
                        return Stop(StopKind.QUANTUM)
                    ip = blocks[ip]()
            else:
                while not flags:
                    ip = blocks[ip]()
        except KeyError as missing:
            trace = missing.__traceback__
            if trace is None or trace.tb_next is not None:  # not ours: an action's
                raise
            state.ip = ip
            try:
                self._translate(blocks, ip, LONGEST)
            except Interruption as met:
                return self._handle(met, ip)
            return None
        except NarrowFrame:
            state.ip = ip
            return self._one()
        except Stepped as met:
            state.ip = met.args[0]
            return single_step_stop(ip)
        except NatsGone as met:
            state.ip = met.args[0]
            state.ignore_nats()
            return None
        except Interruption as met:
            state.ip = ip
            stop = self._handle(met, ip)
            if stop is None and isinstance(met, CodeChanged):
                return self._behind_step(ip)
            return stop
        state.ip = ip
        self._clock.stepped(ip)
        flags.clear()
        return Stop(StopKind.HALTED)

    def _handle(self, met: Interruption, entry: int) -> Stop | None:
        """The stop that an exception means; None when the run goes on."""
        place, address = self._code.place(met.__traceback__, entry)
        state = self.state
        state.ip = place
        if not self._clock.inside(place):
            self._clock.expected[0] = place
        if isinstance(met, NatAppears):
            state.watch_nats()
        if isinstance(met, Redirected):
            state.ip, self._clock.expected[0] = met.args
            return None
        if isinstance(met, CodeChanged):
            return self._write_code(met.args[0])
        if isinstance(met, NatAppears | NarrowFrame):
            return None
        if isinstance(met, BreakInterruption):
            return self._broken(met.args[0], place)
        if isinstance(met, FloatTrap):
            state.ip = self._behind(place)
            return float_trap()
        if isinstance(met, PageFault | OutOfMemory):
            at = met.args[0]
            if address is not None and address >> SHIFT == at >> SHIFT:
                at = address
            if isinstance(met, OutOfMemory):
                return Stop(StopKind.OUT_OF_MEMORY, address=at)
            access = met.args[1]
            return Stop(
                StopKind.FAULT, address=place if access == "execute" else at, access=access
            )
        return described(met)

    def _write_code(self, offset: int, block: Callable[[], Block] | None = None) -> Stop | None:
        """Execute the slot that writes to a page with code, which may be its own."""
        unlocked = self._memory.unlocked
        unlocked.add(offset)
        self._code.drop_offset(offset)
        ip, single = self.state.ip, self._code.single[self.state.nats]
        try:
            self.state.ip = (block() if block else self._translate(single, ip, 1))()
        except Interruption as met:
            return self._handle(met, ip)
        finally:
            for changed in list(unlocked):
                self._code.drop_offset(changed)
            unlocked.clear()
        return None

    def _broken(self, immediate: int, place: int) -> Stop:
        """A break instruction; that of the B unit does not tell that it is a breakpoint."""
        if self._traps.find(place) is not None:
            return Stop(StopKind.TRAP, TrapKind.BREAKPOINT, immediate)
        return self._own_break(immediate, place)

    def _own_break(self, immediate: int, place: int) -> Stop:
        """A break instruction of the program's own."""
        if immediate == SYSCALL:
            self.state.ip = self._behind(place)
            return Stop(StopKind.SYSCALL)
        return Stop(StopKind.TRAP, self._classify(immediate), immediate)

    def _hit(self, place: int) -> int:
        """A breakpoint inside a block: where its action says to go on, or LEAVE."""
        entry = self._traps.find(place)
        if entry is None or self._carrying:
            return LEAVE
        state = self.state
        state.ip = place
        kind = (state.nats, self._clock.running)
        target = entry[0]()
        if target >= 0:
            follow = int(entry[1])
            self._clock.expected[0] = follow
            if (state.nats, self._clock.running) != kind:
                raise Redirected(target, follow)
        return target

    def carry_out(self, address: int, raw: bytes) -> Stop | None:
        """Execute one instruction as if it stood at an address, whatever stands there.

        Args:
            address: of the instruction.
            raw: its bundle.
        """
        state, clock, cache = self.state, self._clock, self._code
        expected, self._carrying = clock.expected[0], True
        try:
            while True:
                state.ip = address
                try:
                    state.ip = cache.apart(address, raw, state.nats)()
                    return None
                except BreakInterruption as met:
                    return self._own_break(met.args[0], address)
                except CodeChanged as met:
                    return self._write_code(
                        met.args[0], lambda: cache.apart(address, raw, state.nats)
                    )
                except Interruption as met:
                    stop = self._handle(met, address)
                if stop is not None:
                    return stop
        finally:
            clock.expected[0], self._carrying = expected, False

    def _behind(self, place: int) -> int:
        """The slot behind one that stands at a place."""
        return next_slot(place, unpack(self.read(place & ~15, 16)))

    def halt(self) -> None:
        """Make the current or next `run` stop; from any thread."""
        if not self._flags:
            self._flags.append(None)
        for jit in self._jits:
            jit.halt()

    def execute(self, address: int, end: int) -> None:
        """Run engine-owned code; GuestFaultError where it touches memory that is not there."""
        self.state.ip = address
        clock = self._clock
        running, clock.running = clock.running, False
        halted = False
        try:
            while self.state.ip != end:
                stop = self._one()
                if stop is None:
                    continue
                if stop.kind is not StopKind.HALTED:
                    raise GuestFaultError(stop.address, stop.access or "read")
                halted = True  # that is meant for the guest
        finally:
            if halted:
                self.halt()
            clock.running = running

    # -- the clock --------------------------------------------------------------------------------

    def count_blocks(self, enabled: bool) -> None:
        """Switch the clock; the version of the code that tells where it leaves is needed."""
        if enabled != self._clock.running:
            self._clock.running = enabled
            self.invalidate_all()

    def keep_branches(self) -> None:
        """The clock always does: it costs nothing here."""

    def blocks(self) -> int:
        """Ticks of the guest's clock while it was on."""
        return self._clock.ticks

    def now(self) -> int:
        """The same."""
        return self._clock.ticks

    def coming(self) -> int:
        """The tick in which the next instruction executes."""
        return self._clock.coming(self.read_register("ip"))

    def turn_back(self, blocks: int) -> None:
        """So many ticks have passed."""
        self._clock.ticks = blocks

    def run_to(self, address: int) -> Stop | None:
        """Run up to an address that lies straight ahead, slot by slot."""
        tick = self.coming()
        while self.read_register("ip") != address and self.coming() == tick:
            stop = self.step()
            if stop is not None:
                return stop
        return None

    @property
    def last_branches(self) -> memoryview:
        """Addresses behind the last two slots from which control went elsewhere, where to."""
        return self._clock.last_branches

    def trap_behind(self) -> Stop | None:
        """None: psr.ss is none of the bits that a program may set."""
        return None

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
        """(start, size) of windows of the machinery, in which no time passes."""
        self._clock.windows(*windows)
        self.invalidate_all()

    # -- translations -----------------------------------------------------------------------------

    def _translate(self, blocks: Blocks, ip: int, longest: int) -> Block:
        clocked = self._clock.running and not self._clock.inside(ip)
        action = self._traps.steps.get(ip) if longest > 1 else None
        if action is not None:
            longest = 1
        block = self._code.translate(blocks, ip, self.state.nats, clocked, longest)
        if action is not None:
            block = blocks[ip] = stepping(block, action)
        return block

    def flush_tlb(self) -> None:
        """Forget translations of addresses, after the page table has changed."""
        self._memory.flush()
        self._code.remapped()

    def flush_pages(self, start: int, size: int) -> None:
        """The same where it has changed in a range."""
        self.flush_tlb()

    def invalidate(self, start: int, size: int) -> None:
        """Forget translated code of a range whose bytes have changed."""
        self._code.invalidate(start, size)

    def invalidate_all(self) -> None:
        """Forget all translated code."""
        self._code.clear()
