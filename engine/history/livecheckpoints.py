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
from engine.linux.thread import SystemCall, Thread

if TYPE_CHECKING:
    from array import array

BUDGET: Final = 512 << 20
"""Bytes that all checkpoints of a run may take."""
_LOOK: Final = 200_000
"""Ticks between two looks at whether one is due: some milliseconds."""
_FIRST: Final = 0.5
"""Processor time of the host's before the first one, to which all pages are new."""
_SECONDS: Final = 0.1
"""The same between two, at least."""
_SHARE: Final = 20
"""So many times the time that the last one has taken goes by before the next."""
_ZERO: Final = bytes(PAGE)
_MOST: Final = 1 << 16
"""Pages that one may have to keep: the program stands for a second meanwhile."""
_LEAST: Final = 4
"""The part of the budget that those may bring, at least, that are not taken over."""


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
        mark: the moment.
        clock: ticks at it.
        inputs: things that instructions have got from outside before it.
        current: id of the thread that has the processor.
        turn: see `Machine.turn`.
        calls: system calls before it.
        task: see `InnerKernel.task`; None where there is no kernel inside.
        comms: see `Machine.comms`.
        pids: see `Machine.pids`.
        threads: all that have not ended.
        pages: those that may have changed since the one before, with what they hold.
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
    pages: dict[int, PageContent]


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
        budget: bytes that these may bring; every other one is given up when there are more, and
            all, for good, where one brings more.
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
        self._zeros = self.store.keep(b"", None)
        self._contents: dict[int, PageContent] = {}
        self._stood: dict[int, LiveThread] = {}
        self._size = 0  # bytes that those that are pending have brought
        self._apart = 0
        self._last = 0
        self._next = _LOOK
        self._due = time.thread_time() + _FIRST
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
        changed = self._changed()
        if len(changed) > _MOST:
            self._stop()
            return
        at, inputs = self._run.passed
        mark = Moment(at, cpu.coming(), pc)
        threads = self._threads()
        size = self.store.size
        pages = self._keep(changed)
        self._size += self.store.size - size
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
                pages,
            )
        )
        while self._size > self.budget and len(self.pending) > 1:
            self._thin()
        if self._size > self.budget:
            self._stop()
            return
        self._last = cpu.blocks()
        now = time.thread_time()
        # All pages are new to the first one: so much is not to be done again.
        self._due = now + max(_SECONDS, 0.0 if first else _SHARE * (now - began))

    def _threads(self) -> list[LiveThread]:
        """The states of all threads."""
        cpu, current = self._cpu, self._machine.current
        own, found = cpu.save(), []
        for thread in self._machine.threads.values():
            waits = thread.wait is not None or thread.answer is not None
            state = (waits, thread.spent, thread.ran)
            if thread is current:
                found.append(LiveThread(thread.tid, own, cpu.position(), thread.call, *state))
            else:
                found.append(self._held(thread, state))
        if len(found) > 1:
            cpu.restore(own)
        self._stood = {held.tid: held for held in found if held.tid != current.tid}
        return found

    def _held(self, thread: Thread, state: tuple[bool, int, int]) -> LiveThread:
        """The state of a thread that does not run: the one of before, if it has not since."""
        cpu, before = self._cpu, self._stood.get(thread.tid)
        known = None if before is None else (before.call, before.waits, before.spent, before.ran)
        if before is not None and known == (thread.call, *state) and thread.tracee is None:
            return before
        cpu.restore(thread.registers)
        registers = cpu.save()  # the kernel will write over those that the thread has
        return LiveThread(thread.tid, registers, thread.position, thread.call, *state)

    def _changed(self) -> list[int]:
        """Numbers of the pages that may have changed."""
        found: dict[int, None] = {}
        for _, mapping in self._run.mappings():
            assert mapping.physical is not None, "it was seen to"
            found |= dict.fromkeys(self._ram.changed(mapping.physical, mapping.size))
        return list(found)

    def _keep(self, changed: list[int]) -> dict[int, PageContent]:
        """Keep what pages hold."""
        ram, known, store, zeros = self._ram, self._contents, self.store, self._zeros
        found: dict[int, PageContent] = {}
        code = self._code()
        for page in changed:
            data = code.get(page) or ram.read(page * PAGE, PAGE)
            before = known.get(page)
            content = zeros if data == _ZERO else store.keep(data, before)
            if content is before or content is zeros:
                content.users += 1
            if content is not before:
                if before is not None:
                    store.give_up(before)
                content.users += 1
                known[page] = content
            found[page] = content
        ram.settled(changed)
        self._cpu.flush_tlb()
        return found

    def _code(self) -> dict[int, bytes]:
        """The contents of changed pages with code, without what probes have planted there."""
        found: dict[int, bytes] = {}
        for space, mapping in self._run.mappings():
            if mapping.physical is not None and mapping.perms & EXECUTE:
                for page in self._ram.changed(mapping.physical, mapping.size):
                    data = found.get(page) or self._ram.read(page * PAGE, PAGE)
                    at = mapping.start + page * PAGE - mapping.physical
                    found[page] = space.hooks.original(at, data)
        return found

    def _thin(self) -> None:
        """Give every other one up: what it holds is the next one's."""
        kept: list[LiveCheckpoint] = []
        before = self.store.size
        for index, one in enumerate(self.pending):
            if index % 2 == 0 and index + 1 < len(self.pending):
                heir = self.pending[index + 1].pages
                for page, content in one.pages.items():
                    if page in heir:
                        self.store.give_up(content)
                    else:
                        heir[page] = content
            else:
                kept.append(one)
        self._size -= before - self.store.size
        self.pending[:] = kept
        self._apart = (kept[-1].clock - kept[0].clock) // max(len(kept) - 1, 1)

    def _stop(self) -> None:
        """Keep none any more: the guest writes to more memory than may be kept."""
        self._kernel.going = None
        for one in self.pending:
            for content in one.pages.values():
                self.store.give_up(content)
        self.pending.clear()
        for content in self._contents.values():
            self.store.give_up(content)
        self._contents.clear()

    def take_over(self) -> list[LiveCheckpoint]:
        """All that are pending; they are somebody else's then."""
        pending = self.pending.copy()
        self.pending.clear()
        self.budget = max(BUDGET - self.store.size, BUDGET // _LEAST)
        self._size = 0
        return pending
