"""The CPU as everything above sees it: one protocol for Unicorn and for our own cores."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol, SupportsIndex, runtime_checkable

from msgspec import Struct

from engine.arch.base import TrapKind
from engine.arch.machine import ArchCpu, Insn, RegisterFile
from engine.cpu.pagetable import PageTable

Decode = Callable[[int, bytes], tuple[Insn, ...]]
"""Disassembles bytes at an address up to the first that does not decode."""

LEAVE: Final = -1
"""Returned by a trap's action when the engine has to see to it."""

StepAction = Callable[[int], int]
"""Deals with the trap behind a single step, from where it came to: where to go on, or LEAVE."""

TrapAction = Callable[[], int]
MakeAction = Callable[[int], "tuple[TrapAction, SupportsIndex] | None"]
"""Makes the action of a breakpoint: see `TrapTable.ask`."""
"""Deals with a breakpoint inside the emulator: the address to go on at, or LEAVE."""


EntryAction = Callable[[int], None]
"""Sees, outside the emulator, that a block is about to begin at an address."""


class StopKind(Enum):
    """Why the CPU stopped."""

    SYSCALL = auto()
    TRAP = auto()
    FAULT = auto()
    OUT_OF_MEMORY = auto()
    QUANTUM = auto()
    HALTED = auto()


class Stop(Struct, frozen=True):
    """One stop of the CPU.

    Attributes:
        kind: why.
        trap: what the exception means, for TRAP.
        number: the emulator's exception number, for TRAP.
        address: the address of the access, for FAULT and OUT_OF_MEMORY.
        access: "read", "write" or "execute", for FAULT.
        detail: what was met, in words, where the CPU knows more than the number says.
        error: the exception's error code, where it is not the one that its number has anyway.
    """

    kind: StopKind
    trap: TrapKind = TrapKind.OTHER
    number: int = -1
    address: int = 0
    access: str = ""
    detail: str = ""
    error: int = 0


class Access(NamedTuple):
    """One access of an instruction to memory.

    Attributes:
        write: it stores; else it loads.
        address: of its first byte.
        size: bytes.
        old: the bytes that stood there before, of one that stores.
    """

    write: bool
    address: int
    size: int
    old: bytes = b""


class TrapTable(Protocol):
    """Breakpoints of one address space that are dealt with without leaving the CPU."""

    def plant(self, address: int, action: TrapAction, follow: SupportsIndex) -> None:
        """Let `action` deal with the breakpoint at `address`.

        `follow` is the program's own address behind the instruction at hand: that the guest
        goes on there takes no time. Where that is another one at each hit, it is asked for it
        behind the action. Not to be called from an action.
        """

    def hit(self, address: int) -> int:
        """Inside an action: do what is done at another breakpoint.

        Returns:
            The address at which the guest goes on; LEAVE where that is the engine's to say.
        """

    def expect(self, address: int) -> None:
        """Have the action of a breakpoint made when it is hit: it has none until then."""

    def expect_each(self, addresses: Iterable[int]) -> None:
        """The same for many of them."""

    def ask(self, make: MakeAction) -> None:
        """Have `make` plant the actions of breakpoints that are expected.

        It is given the address of any breakpoint that is hit and has no action, inside the
        processor; what it does not know is the program's own. In place of planting an action it
        may return one, and what follows (see `plant`), for this hit alone.
        """

    def lead(self, address: int, target: int, follow: int, saves: int = 0) -> None:
        """The same for an action that does nothing but go on at `target`: nobody is asked.

        Where `saves` is not 0, `engine.arch.jump.ArchJumps.scratch` is written to the host's
        memory there.
        """

    def remove(self, address: int) -> None:
        """Forget a breakpoint: its exception stops the CPU again."""


class Traps(TrapTable, Protocol):
    """The breakpoints of the address space that the processor begins in, and those of others."""

    def another(self) -> TrapTable:
        """The breakpoints of another address space: none yet."""

    def use(self, table: TrapTable) -> None:
        """The processor is in the address space of these from now on."""

    def reader(self, names: Sequence[str]) -> Callable[[], tuple[int, ...]]:
        """The quickest way to read these registers again and again, also in an action."""

    def writer(self, name: str) -> Callable[[int], None]:
        """The quickest way to write a register of 64 bits again and again, likewise.

        The values are unsigned.
        """


class Cpu(ArchCpu, Protocol):
    """A processor that runs guest code at user level.

    `halt` may be called from any host thread; everything else belongs to one thread.
    """

    page_table: PageTable
    coarse: Container[int]
    """Pages of which a refused access is reported by the page alone, which is quicker."""
    coarse_at: Callable[[int, int], bool]
    """Tells of a page and a pc whether a refused access there, by code here, is reported so."""

    @property
    def traps(self) -> Traps:
        """The breakpoints."""

    def read_registers(self, names: Sequence[str]) -> tuple[int, ...]:
        """Several registers at once."""

    def read_block(self, names: Sequence[str], size: int) -> bytes:
        """Registers as bytes; see `engine.arch.machine.FrameCpu`."""

    def write_block(self, names: Sequence[str], size: int, data: bytes) -> None:
        """Set registers from bytes; likewise."""

    def run(self, quantum: int | None = None) -> Stop:
        """Run until something needs the engine; at most `quantum` ticks of the clock if given."""

    def step(self, *, rewrites: bool = False) -> Stop | None:
        """Execute one instruction; None if nothing but that happened.

        Where it is a halt that it returns, nothing has been executed.

        Args:
            rewrites: it may store to the code it stands in; of a repeated one more than one
                iteration may be executed then.
        """

    def observe(
        self, places: Mapping[int, int], call: Callable[[], Stop | None] | None = None
    ) -> tuple[Stop | None, list[Access]]:
        """Execute one instruction, one iteration of a repeated one, and see what it accesses.

        Pages are as open to it as they are without `PageTable.behind`.

        Args:
            places: arena offset of each page of interest to its address in the guest.
            call: executes it otherwise than by a step, where a processor can do that.

        Returns:
            As `step`, and the accesses to these pages in order; others may be among them. Where
            there is a stop, nothing has been executed, though some may have been tried.
        """

    def sift(self, reads: Sequence[tuple[int, int]], writes: Sequence[tuple[int, int]]) -> bool:
        """Refuse accesses to some bytes in front of their instructions, as the page table does.

        Args:
            reads: (first address, address behind the last) of bytes that loads are refused of.
            writes: the same for stores.

        Returns:
            False if it cannot: their pages are to refuse the accesses. In the page table what a
            page allows must be in `Region.sifted` then, beside what it keeps.
        """

    def halt(self) -> None:
        """Make the current or next `run` stop; from any thread."""

    def count_blocks(self, enabled: bool) -> None:
        """Switch the guest's clock on or off.

        It ticks whenever control goes elsewhere than to the next instruction: the number of
        the program's own basic blocks but for those that were fallen into.
        """

    def keep_branches(self) -> None:
        """Have the running clock keep `last_branches` from now on, which costs it time."""

    def blocks(self) -> int:
        """Ticks of the clock while it was on."""

    def now(self) -> int:
        """The same as `blocks`, for whoever asks at each hit."""

    def coming(self) -> int:
        """The tick in which the next instruction executes, of a processor that stands still.

        One more than `blocks` where control has just gone elsewhere and that is not counted yet.
        """

    def turn_back(self, blocks: int) -> None:
        """So many ticks have passed: registers, memory and `go_on` are the caller's care."""

    def run_to(self, address: int) -> Stop | None:
        """Run up to an address that lies straight ahead, in the tick that comes or goes on.

        None where it has come there, or to the end of that tick.
        """

    @property
    def last_branches(self) -> memoryview:
        """Addresses behind the last two instructions from which control went elsewhere.

        The last one first; only what the running clock has seen since `keep_branches`, and 0 for
        what is not known. Whoever asks may write 0 to see later what has come since; who sends
        the program elsewhere from outside writes OUTSIDE in front of it. Where calls may depend
        on predicates there is a third address: where the last of the two led to.
        """

    def trap_behind(self) -> "Stop | None":
        """The trap behind an instruction of a program that steps itself; None if it does not."""

    def expect(self, address: int) -> None:
        """An instruction that ends here was carried out from outside; elsewhere is a tick."""

    def exempt(self, *windows: tuple[int, int]) -> None:
        """(start, size) of up to two windows of the machinery, in which no time passes."""

    def flush_tlb(self) -> None:
        """Forget translations of addresses, after the page table has changed."""

    def flush_pages(self, start: int, size: int) -> None:
        """The same where it has changed in a range of whole pages, and the others stay."""

    def invalidate(self, start: int, size: int) -> None:
        """Forget translated code of a range whose bytes have changed; it must be mapped."""

    def invalidate_all(self) -> None:
        """Forget all translated code: cheaper than many ranges."""

    def position(self) -> object:
        """For the clock: where the program is; of a thread that another one takes turns with."""

    def go_on(self, position: object) -> None:
        """Go on with another thread, whose registers are restored; None for one that begins."""

    def save(self, into: object = None) -> object:
        """All registers, visible or not.

        Args:
            into: saved registers that nobody needs any more; they may be written over.
        """

    def restore(self, state: object) -> None:
        """Go back to saved registers."""


@runtime_checkable
class SharesTime(Protocol):
    """A processor whose clock code in the guest may read."""

    @property
    def time_page(self) -> int:
        """Host address of a page that may be shown to the guest.

        Its last two words are the ticks at the end of what was granted and those left of it. The
        page in front of it begins with the words of `Cpu.last_branches`, and may be written to.
        """


@runtime_checkable
class Borrows(Protocol):
    """A processor for which the host executes what the emulated one has not."""

    @property
    def lent(self) -> int:
        """Number of instructions that it has executed so far."""


class EntryTable(Protocol):
    """Addresses at which the program may not begin to execute unnoticed."""

    def watch(self, addresses: Iterable[int], action: EntryAction) -> None:
        """Have an action called, with the address, before the program goes on there.

        It is called wherever the program comes from but for the instruction in front. What
        stands there must have been written just now.
        """

    def forget(self, addresses: Iterable[int]) -> None:
        """Watch addresses no longer."""


@runtime_checkable
class WatchesEntries(Protocol):
    """A processor that can tell where the program comes to without a trap standing there."""

    @property
    def entries(self) -> EntryTable:
        """The addresses that are watched."""


@runtime_checkable
class CarriesOut(Protocol):
    """A processor that can be given an instruction apart from memory."""

    def carry_out(self, address: int, raw: bytes) -> Stop | None:
        """Execute one instruction as if it stood at an address, whatever stands there.

        May be called from an action. pc is behind it afterwards, or where its stop leaves it;
        the clock is the caller's care.

        Args:
            address: of the instruction.
            raw: its bytes; those of all its bundle where several share one.

        Returns:
            What the engine has to see to, None for nothing.
        """


@runtime_checkable
class ServesCalls(Protocol):
    """A processor that can have system calls carried out without being left."""

    def serve(self, action: Callable[[], bool] | None, *, counts: bool = False) -> None:
        """Let an action carry out the program's system calls during `run`.

        It finds pc behind the instruction. Where it is done and the program goes on it returns
        True; else the processor stops as it does without an action. It may read and write
        general registers and memory, change the page table, and have translations forgotten,
        but do nothing else with the processor.

        Args:
            action: called at each system call; None for none.
            counts: refused reads of the guest's counter are carried out in the same way. A
                recording notes each as the exception that it is, and wants to see it.
        """


@runtime_checkable
class SingleSteps(Protocol):
    """A processor with a trap of its own behind each instruction that is stepped (psr.ss)."""

    def step_at(self, address: int, action: StepAction | None) -> None:
        """Execute what stands at an address one instruction at a time.

        Where the action leaves, the core stops with SINGLE_STEP and the address, pc being where
        the instruction came to.

        Args:
            address: of the instruction.
            action: deals with the trap behind it; None = it is an instruction like any other.
        """

    def single_step(self) -> Stop | None:
        """Execute one instruction; no action deals with the trap behind it."""


@runtime_checkable
class OpensSaved(Protocol):
    """A processor whose saved registers can be read and changed where they are."""

    def open_saved(self, state: object) -> RegisterFile:
        """The registers of a value of `Cpu.save`; they are changed in it."""


@runtime_checkable
class RegisterStack(Protocol):
    """A processor that writes stacked registers to memory when it likes."""

    def with_stack(self, address: int, data: bytes) -> bytes:
        """Bytes of memory with what its register stack has not yet written to there."""
