"""States of a run of the past, to go back to.

A checkpoint holds the contexts of all threads, what is known of them and of address spaces, and
the pages that were written to since the checkpoint before. So each costs what has changed, and a
page's content at any of them is that of the last one, up to it, which has the page.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from engine.cpu.ram import EXECUTE, PAGE, Ram
from engine.guest.mapping import Mapping
from engine.history.layout import NOWHERE
from engine.history.replaying import ReplayKernel
from engine.linux.process import Process
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread

_ZERO: Final = bytes(PAGE)
BUDGET: Final = 512 << 20
"""Bytes that checkpoints may take."""
_FEWEST: Final = 8
"""So many are there at least, whatever they take."""
_ENTRY: Final = 100
"""Bytes that a page takes beside its content."""
_THREAD: Final = (
    *("tid", "comm", "process", "space", "memory", "hooks", "registers", "position", "call"),
    *("wait", "ended", "spent", "ran"),
)
_PROCESS: Final = ("exit", "space", "parent", "borrows", "spent", "ran", "group", "session")


class _SavedThread(Struct):
    thread: Thread
    fields: tuple[Any, ...]


class _SavedProcess(Struct):
    process: Process
    threads: dict[int, Thread]
    children: dict[int, Process]
    last: Thread
    fields: tuple[Any, ...]


class _SavedSpace(Struct):
    space: AddressSpace
    mappings: tuple[Mapping, ...]
    users: int
    known: list[Any]


class Checkpoint(Struct):
    """A moment that can be gone back to.

    Attributes:
        clock: ticks at it.
        at: entries of the journal before it.
        coming: the tick of the instruction in front of which the guest stands.
        pc: the address of that.
        pages: numbers of the pages that had changed since the one before it.
        size: bytes that it takes, about.
    """

    clock: int
    at: int
    coming: int
    pc: int
    pages: list[int]
    size: int
    inputs: int
    registers: object
    position: object
    current: Thread
    threads: list[_SavedThread]
    processes: list[_SavedProcess]
    spaces: dict[int, _SavedSpace]
    comms: dict[int, bytes]
    pids: dict[int, int]
    task: int | None
    calls: int


class Checkpoints:
    """The checkpoints of one guest of the past.

    Attributes:
        taken: all, in order.
        size: bytes that they take, about.
        budget: bytes that they may take; beyond, every other one is given up.
    """

    def __init__(self, kernel: ReplayKernel, ram: Ram, budget: int = BUDGET) -> None:
        """None is there; changes of pages are noticed from now on."""
        self.budget = budget
        self.taken: list[Checkpoint] = []
        self.size = 0
        self._kernel = kernel
        self._machine = kernel.machine
        self._cpu = kernel.machine.cpu
        self._ram = ram
        self._versions: dict[int, tuple[list[int], list[bytes]]] = {}
        self._base = -1
        self._serial = 0
        self._serials: list[int] = []
        ram.watch_changes()
        for start, end in self._stretches():
            for first, last in ram.touched_runs(start, end - start):
                ram.mark_changed(first, last - first)
        self._cpu.flush_tlb()

    # -- taking ---------------------------------------------------------------------------------

    def take(self) -> None:
        """The guest's state now, behind all those taken; nothing of the machinery's is in it."""
        machine, kernel, cpu = self._machine, self._kernel, self._cpu
        changed = self._changed()
        self._serial += 1
        size = 0
        for page in changed:
            data = self._ram.read(page * PAGE, PAGE)
            kept = b"" if data == _ZERO else data
            serials, contents = self._versions.setdefault(page, ([], []))
            serials.append(self._serial)
            contents.append(kept)
            size += len(kept) + _ENTRY
        self._ram.settled(changed)
        cpu.flush_tlb()
        taken = Checkpoint(
            cpu.blocks(),
            kernel.at,
            cpu.coming(),
            machine.current.hooks.original_pc(cpu.read_register(machine.arch.roles.pc)),
            changed,
            size,
            kernel.inputs,
            cpu.save(),
            cpu.position(),
            machine.current,
            [
                _SavedThread(one, tuple(getattr(one, name) for name in _THREAD))
                for one in {id(one): one for one in self._all_threads()}.values()
            ],
            [
                _SavedProcess(
                    one,
                    dict(one.threads),
                    dict(one.children),
                    one.last,
                    tuple(getattr(one, name) for name in _PROCESS),
                )
                for one in machine.processes.values()
            ],
            {
                number: _SavedSpace(
                    one,
                    tuple(each for each in one.memory.mappings if not each.reserved),
                    one.users,
                    list(one.modules.known),
                )
                for number, one in kernel.spaces.items()
            },
            dict(machine.comms),
            dict(machine.pids),
            None if machine.inner is None else machine.inner.task,
            machine.syscall_count,
        )
        self.taken.append(taken)
        self._serials.append(self._serial)
        self.size += size
        self._base = len(self.taken) - 1
        if self.size > self.budget and len(self.taken) > _FEWEST:
            self._thin()

    def _thin(self) -> None:
        """Give up every other one; the first and the last stay."""
        last = len(self.taken) - 1
        for index in range(last - 1, 0, -2):
            self._give_up(index)
        self._base = len(self.taken) - 1
        self.size = sum(one.size for one in self.taken)

    def _give_up(self, index: int) -> None:
        """The pages of a checkpoint become the next one's, where that has none of its own."""
        gone, heir = self.taken[index], self.taken[index + 1]
        serial, later = self._serials[index], self._serials[index + 1]
        there = set(heir.pages)
        for page in gone.pages:
            serials, contents = self._versions[page]
            place = bisect_right(serials, serial) - 1
            if page in there:
                del serials[place], contents[place]
            else:
                serials[place] = later
                heir.pages.append(page)
                heir.size += len(contents[place]) + _ENTRY
        del self.taken[index], self._serials[index]

    def _all_threads(self) -> Iterator[Thread]:
        yield from self._machine.threads.values()
        yield self._machine.current
        for process in self._machine.processes.values():
            yield process.last

    def _changed(self) -> list[int]:
        """Pages that were written to since the last checkpoint, or the last way back."""
        found: set[int] = set(self._kernel.zeroed)
        self._kernel.zeroed.clear()
        for start, end in self._stretches():
            found.update(self._ram.changed(start, end - start))
        return sorted(found)

    def _stretches(self) -> list[tuple[int, int]]:
        """The stretches of the arena that are mapped anywhere."""
        stretches = sorted(
            (mapping.physical, mapping.physical + mapping.size)
            for space in self._kernel.spaces.values()
            for mapping in space.memory.mappings
            if mapping.physical is not None and mapping.physical < self._kernel.arena
        )
        joined: list[tuple[int, int]] = []
        for start, end in stretches:
            if joined and start <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(end, joined[-1][1])
            else:
                joined.append((start, end))
        return joined

    # -- going back -----------------------------------------------------------------------------

    def before(self, clock: int, at: int) -> int:
        """Index of the last one that is not behind a tick's begin and an entry."""
        low, high = 0, len(self.taken)
        while low < high:
            middle = (low + high) // 2
            one = self.taken[middle]
            if one.clock < clock and one.at <= at:
                low = middle + 1
            else:
                high = middle
        return max(low - 1, 0)

    def restore(self, index: int) -> None:
        """Go to a checkpoint; no probe may be armed."""
        taken = self.taken[index]
        machine, kernel, cpu = self._machine, self._kernel, self._cpu
        pages = set(self._changed())
        low, high = sorted((self._base, index))
        for other in self.taken[low + 1 : high + 1]:
            pages.update(other.pages)
        serial = self._serials[index]
        code = self._code_pages()
        stale: list[int] = []
        for page in pages:
            serials, contents = self._versions.get(page, ([], []))
            known = bisect_right(serials, serial)
            self._ram.restore(page, contents[known - 1] if known else b"")
            if page in code:
                stale.append(page)
        self._base = index
        self._restore_spaces(taken)
        if stale or code != self._code_pages():
            cpu.invalidate_all()
        self._restore_threads(taken)
        machine.exit = None
        kernel.go_back(taken.at, taken.inputs)
        machine.syscall_count = taken.calls
        machine.current.memory.activate()
        cpu.restore(taken.registers)
        cpu.turn_back(taken.clock)
        cpu.go_on(taken.position)
        cpu.flush_tlb()

    def _code_pages(self) -> set[int]:
        """Pages of the arena from which code may run."""
        return {
            page
            for space in self._kernel.spaces.values()
            for mapping in space.memory.mappings
            if mapping.perms & EXECUTE and mapping.physical is not None
            for page in range(mapping.physical // PAGE, (mapping.physical + mapping.size) // PAGE)
        }

    def _restore_spaces(self, taken: Checkpoint) -> None:
        kernel = self._kernel
        for number in [each for each in kernel.spaces if each not in taken.spaces]:
            del kernel.spaces[number]
        for number, kept in taken.spaces.items():
            space = kernel.spaces[number] = kept.space
            table = space.memory.table
            now = [each for each in table.mappings if not each.reserved]
            if now != list(kept.mappings):
                _replace(space, kept.mappings)
            space.users = kept.users
            space.modules.known[:] = kept.known

    def _restore_threads(self, taken: Checkpoint) -> None:
        machine = self._machine
        machine.threads.clear()
        for kept in taken.threads:
            for name, value in zip(_THREAD, kept.fields, strict=True):
                setattr(kept.thread, name, value)
            if not kept.thread.ended:
                machine.threads[kept.thread.tid] = kept.thread
        machine.processes.clear()
        for one in taken.processes:
            process = one.process
            for name, value in zip(_PROCESS, one.fields, strict=True):
                setattr(process, name, value)
            process.threads.clear()
            process.threads.update(one.threads)
            process.children.clear()
            process.children.update(one.children)
            process.last = one.last
            machine.processes[process.pid] = process
        for now, before in ((machine.comms, taken.comms), (machine.pids, taken.pids)):
            now.clear()
            now.update(before)  # type: ignore[arg-type]
        if machine.inner is not None:
            machine.inner.task = taken.task
        machine.holds(taken.current)


def _replace(space: AddressSpace, mappings: Iterable[Mapping]) -> None:
    """Let an address space have these mappings beside the engine's windows."""
    table = space.memory.table
    wanted = {mapping.start: mapping for mapping in mappings}
    for mapping in space.memory.overlapping(0, NOWHERE):
        if not mapping.reserved and wanted.get(mapping.start) != mapping:
            table.remove(mapping)
        else:
            wanted.pop(mapping.start, None)
    for mapping in wanted.values():
        table.insert(mapping)
