"""Checkpoints that a run keeps while it goes on, for the guest of the past to begin at.

A guest of the past has to live through a run to come to a state of it. The run itself has been in
all of them. So it keeps some: what threads hold, and pages that have changed since the one before,
without the bytes that probes have planted there. What threads and address spaces there are then is
told by the journal: `ReplayKernel.walk`.

That takes a twentieth of the processor's time, at most, and room that is shared with them.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from engine.cpu.ram import EXECUTE, PAGE
from engine.guest.mapping import Mapping
from engine.history.moment import Moment
from engine.history.pagestore import PageContent, PageStore
from engine.linux.kernel import Kernel
from engine.linux.space import AddressSpace
from engine.linux.thread import SystemCall

if TYPE_CHECKING:
    from array import array

BUDGET: Final = 512 << 20
"""Bytes that all checkpoints of a run may take."""
_LOOK: Final = 200_000
"""Ticks between two looks at whether one is due: some milliseconds."""
_SECONDS: Final = 0.1
"""Processor time of the host's between two, at least."""
_SHARE: Final = 20
"""So many times the time that the last one has taken goes by before the next."""
_ZERO: Final = bytes(PAGE)
_FEWEST: Final = 8
"""So many are there at least, whatever they take."""


class LiveThread(Struct, eq=False):
    """The state of a thread that the journal does not tell.

    Attributes:
        tid: its id.
        registers: see `Thread.registers`.
        position: see `Thread.position`.
        call: the system call that it makes, or has made last.
        waits: the call is not over.
        spent: see `Thread.spent`.
        ran: see `Thread.ran`.
    """

    tid: int
    registers: object
    position: object
    call: SystemCall
    waits: bool
    spent: int
    ran: int


class LiveCheckpoint(Struct, eq=False):
    """A moment of a run at which its program goes on.

    Attributes:
        mark: it.
        clock: ticks at it.
        inputs: things that instructions have got from outside before it.
        current: id of the thread that has the processor.
        turn: see `Machine.turn`.
        calls: system calls before it.
        task: see `InnerKernel.task`; None where there is no kernel inside.
        comms: see `Machine.comms`.
        pids: see `Machine.pids`.
        threads: all that have not ended.
        pages: those that may have changed since the one before, with what they hold; None where
            that is the same.
    """

    mark: Moment
    clock: int
    inputs: int
    current: int
    turn: tuple[int, int]
    calls: int
    task: int | None
    comms: dict[int, bytes]
    pids: dict[int, int]
    threads: list[LiveThread]
    pages: dict[int, PageContent | None]


class ToldRun(Protocol):
    """A run of which a journal tells.

    Attributes:
        turns: numbers of the entries at which threads, address spaces or mappings have changed.
    """

    turns: "array[int]"

    @property
    def is_told(self) -> bool:
        """True if the journal tells what happens now."""

    @property
    def passed(self) -> tuple[int, int]:
        """Entries of the journal, and inputs of instructions, that have happened."""

    def mappings(self) -> Iterator[tuple[AddressSpace, Mapping]]:
        """The mappings that the program's memory is in, each with its address space."""


class LiveCheckpoints:
    """Takes the checkpoints of one run while it goes on.

    Attributes:
        pending: those that nobody has taken over yet, in order.
        budget: bytes that all may take; every other one is given up when there are more.
        store: keeps what pages hold.
        turns: see `ToldRun`.
    """

    def __init__(self, kernel: Kernel, run: ToldRun) -> None:
        """Begin, in front of the first instruction.

        Args:
            kernel: that of the guest.
            run: how the journal tells of it.
        """
        self.pending: list[LiveCheckpoint] = []
        self.budget = BUDGET
        self.turns = run.turns
        self._run = run
        self._kernel = kernel
        self._machine = kernel.machine
        self._cpu = kernel.machine.cpu
        self._ram = kernel.machine.current.memory.ram
        self._pc = kernel.machine.arch.roles.pc
        self.store = PageStore()
        self._contents: dict[int, PageContent] = {}
        self._apart = 0
        self._last = 0
        self._next = _LOOK
        self._due = time.thread_time() + _SECONDS
        self._ram.watch_changes()
        self._cpu.flush_tlb()
        kernel.going = self._going

    def _going(self) -> int:
        """The program is about to go on: ticks that it may take before it is asked again."""
        rest = max(self._next, self._last + self._apart) - self._cpu.blocks()
        if rest > 0:
            return rest
        if time.thread_time() >= self._due and self._run.is_told:
            self._take()
        self._next = self._cpu.blocks() + _LOOK
        return _LOOK

    def _take(self) -> None:
        began, first = time.thread_time(), not self._contents
        machine, cpu = self._machine, self._cpu
        current, pc = machine.current, cpu.read_register(self._pc)
        if current.hooks.hold() or current.hooks.original_pc(pc) != pc:
            return  # it is in the machinery
        at, inputs = self._run.passed
        mark = Moment(at, cpu.coming(), pc)
        threads = self._threads()
        self.pending.append(
            LiveCheckpoint(
                mark,
                cpu.blocks(),
                inputs,
                current.tid,
                machine.turn,
                machine.syscall_count,
                None if machine.inner is None else machine.inner.task,
                dict(machine.comms),
                dict(machine.pids),
                threads,
                self._pages(),
            )
        )
        if self.store.size > self.budget:
            self._thin()
        self._last = cpu.blocks()
        now = time.thread_time()
        # All pages are new to the first one: so much is not to be done again.
        self._due = now + max(_SECONDS, 0.0 if first else _SHARE * (now - began))

    def _threads(self) -> list[LiveThread]:
        """The states of all threads."""
        cpu, current = self._cpu, self._machine.current
        own, found = cpu.save(), []
        for thread in self._machine.threads.values():
            registers, position = own, cpu.position()
            if thread is not current:  # the kernel will write over those that it has
                cpu.restore(thread.registers)
                registers, position = cpu.save(), thread.position
            waits = thread.wait is not None or thread.answer is not None
            spent, ran = thread.spent, thread.ran
            found.append(
                LiveThread(thread.tid, registers, position, thread.call, waits, spent, ran)
            )
        if len(found) > 1:
            cpu.restore(own)
        return found

    def _pages(self) -> dict[int, PageContent | None]:
        """The pages that may have changed, with what they hold if it is something else."""
        ram, known, store = self._ram, self._contents, self.store
        found: dict[int, PageContent | None] = {}
        code: dict[int, bytes] = {}
        for space, mapping in self._run.mappings():
            assert mapping.physical is not None, "it was seen to"
            changed = ram.changed(mapping.physical, mapping.size)
            if mapping.perms & EXECUTE:
                for page in changed:
                    data = code.get(page) or ram.read(page * PAGE, PAGE)
                    at = mapping.start + page * PAGE - mapping.physical
                    code[page] = space.hooks.original(at, data)
            found |= dict.fromkeys(changed)
        for page in found:
            data = code.get(page) or ram.read(page * PAGE, PAGE)
            before = known.get(page)
            content = store.keep(b"" if data == _ZERO else data, before)
            if content is not before:
                if before is not None:
                    store.give_up(before)
                content.users += 1
                found[page] = known[page] = content
        ram.settled(found)
        self._cpu.flush_tlb()
        return found

    def _thin(self) -> None:
        """Give every other one up: what it holds is the next one's."""
        if len(self.pending) <= _FEWEST:
            return
        kept: list[LiveCheckpoint] = []
        for index, one in enumerate(self.pending):
            if index % 2 and index + 1 < len(self.pending):
                heir = self.pending[index + 1].pages
                for page, content in one.pages.items():
                    if heir.get(page) is None:
                        heir[page] = content
                    elif content is not None:
                        self.store.give_up(content)
            else:
                kept.append(one)
        self.pending[:] = kept
        self._apart = (kept[-1].clock - kept[0].clock) // (len(kept) - 1)

    def take_over(self) -> list[LiveCheckpoint]:
        """All that are pending; they are somebody else's then."""
        pending = self.pending.copy()
        self.pending.clear()
        return pending
