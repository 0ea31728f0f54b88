"""States of a run of the past, to go back to.

A checkpoint holds the contexts of all threads, what is known of them and of address spaces, and
the content of pages that hold something else than at the checkpoint before. So each costs what
has changed, and a page's content is that of the last one, up to it, which has the page.

When there are many, the pages that were saved first are compressed; when that is not enough, the
ones are given up whose neighbours are nearest to each other.
"""

import zlib
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from engine.cpu.ram import EXECUTE, PAGE, Ram
from engine.guest.mapping import Mapping
from engine.history.layout import NOWHERE
from engine.history.moment import Moment
from engine.history.replaying import ReplayKernel
from engine.linux.process import Process
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread

_ZERO: Final = bytes(PAGE)
BUDGET: Final = 512 << 20
"""Bytes that checkpoints may take."""
_FEWEST: Final = 8
"""So many are there at least, whatever they take."""
_ENTRY: Final = 150
"""Bytes that a page takes beside its content."""
_SQUEEZED: Final = 3
"""For each page that is saved so many are compressed, while there are many: about 50 us each."""
_LEFT: Final = 0.9
"""Part of a page below which its compressed content is worth it."""
_THREAD: Final = (
    *("tid", "comm", "process", "space", "memory", "hooks", "registers", "position", "call"),
    *("wait", "ended", "spent", "ran"),
)
_PROCESS: Final = ("exit", "space", "parent", "borrows", "spent", "ran", "group", "session")


class _Content(Struct, eq=False):
    """The content of a page: its bytes, or fewer that are compressed; b"" is zeros."""

    data: bytes

    def page(self) -> bytes:
        """The bytes; b"" for zeros."""
        data = self.data
        return data if len(data) in (0, PAGE) else zlib.decompress(data)


class _Versions(Struct, eq=False):
    """The contents of a page, each from a moment on."""

    marks: list[Moment]
    contents: list[_Content]

    def at(self, mark: Moment) -> bytes:
        """The bytes at a moment; b"" for zeros."""
        known = bisect_right(self.marks, mark)
        return self.contents[known - 1].page() if known else b""


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
        pages: numbers of the pages that may have been written to since the one before it.
    """

    clock: int
    at: int
    coming: int
    pc: int
    pages: list[int]
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
        marks: their moments.
        size: bytes that they take, about.
        budget: bytes that they may take; what is beyond is given up.
    """

    def __init__(self, kernel: ReplayKernel, ram: Ram, budget: int = BUDGET) -> None:
        """None is there; changes of pages are noticed from now on."""
        self.budget = budget
        self.taken: list[Checkpoint] = []
        self.marks: list[Moment] = []
        self.size = 0
        self._kernel = kernel
        self._machine = kernel.machine
        self._cpu = kernel.machine.cpu
        self._ram = ram
        self._versions: dict[int, _Versions] = {}
        self._whole: deque[_Content] = deque()
        self._base = -1
        ram.watch_changes()
        for start, end in self._stretches():
            for first, last in ram.touched_runs(start, end - start):
                ram.mark_changed(first, last - first)
        self._cpu.flush_tlb()

    # -- taking ---------------------------------------------------------------------------------

    def take(self) -> Moment:
        """The guest's state now, to which it has run; nothing of the machinery's is in it."""
        machine, kernel, cpu = self._machine, self._kernel, self._cpu
        pc = machine.current.hooks.original_pc(cpu.read_register(machine.arch.roles.pc))
        mark = Moment(kernel.at, cpu.coming(), pc)
        index = bisect_left(self.marks, mark)
        if self.marks[index : index + 1] == [mark]:
            return mark
        changed = self._changed()
        taken = Checkpoint(
            cpu.blocks(),
            kernel.at,
            mark.clock,
            pc,
            changed.copy(),
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
        following = self.taken[index] if index < len(self.taken) else None
        self.taken.insert(index, taken)
        self.marks.insert(index, mark)
        if following is not None:  # some have been written to before the one before this
            written = set(following.pages)
            taken.pages[:] = [page for page in changed if page in written]
        for page in taken.pages:
            data = self._ram.read(page * PAGE, PAGE)
            self._save(page, b"" if data == _ZERO else data, index)
        self._ram.settled(changed)
        cpu.flush_tlb()
        self._base = index
        if self.size > self.budget // 2:
            self._squeeze(_SQUEEZED * len(taken.pages))
        if self.size > self.budget:
            self._thin()
        return mark

    def _save(self, page: int, data: bytes, index: int) -> None:
        """Keep what a page holds at a checkpoint, if it is another content than before."""
        mark = self.marks[index]
        versions = self._versions.get(page)
        if versions is None:
            versions = self._versions[page] = _Versions([], [])
        before = versions.at(mark)
        if before == data:
            return
        place = bisect_left(versions.marks, mark)
        versions.marks.insert(place, mark)
        versions.contents.insert(place, self._content(data))
        behind = self.marks[index + 1 : index + 2]
        if behind and versions.marks[place + 1 : place + 2] != behind:
            # It holds the same there as at the one before this.
            versions.marks[place + 1 : place + 1] = behind
            versions.contents.insert(place + 1, self._content(before))

    def _content(self, data: bytes) -> _Content:
        made = _Content(data)
        self.size += len(data) + _ENTRY
        if data:
            self._whole.append(made)
        return made

    def _squeeze(self, count: int) -> None:
        """Compress so many pages, those that were saved first."""
        whole = self._whole
        for _ in range(min(count, len(whole))):
            content = whole.popleft()
            if content.data:
                small = zlib.compress(content.data, 1)
                if len(small) < _LEFT * PAGE:
                    self.size -= len(content.data) - len(small)
                    content.data = small

    def _thin(self) -> None:
        """Give some up, the first and the last stay: there is room for a while then."""
        aim = self.budget * 3 // 4
        while self.size > aim and len(self.taken) > _FEWEST:
            clocks = [one.clock for one in self.taken]
            self._give_up(
                min(
                    (index for index in range(1, len(clocks) - 1) if index != self._base),
                    key=lambda index: clocks[index + 1] - clocks[index - 1],
                )
            )

    def drop(self, mark: Moment) -> bool:
        """Give one up; False where the guest came from it, or it is the last one."""
        index = bisect_left(self.marks, mark)
        if self.marks[index : index + 1] != [mark] or not index:
            return True
        if index in (self._base, len(self.taken) - 1):
            return False
        self._give_up(index)
        return True

    def _give_up(self, index: int) -> None:
        """The pages of a checkpoint become the next one's, where that has none of its own."""
        gone, heir = self.taken[index], self.taken[index + 1]
        mark, later = self.marks[index], self.marks[index + 1]
        for page in gone.pages:
            versions = self._versions[page]
            place = bisect_left(versions.marks, mark)
            if versions.marks[place : place + 1] != [mark]:
                continue
            if versions.marks[place + 1 : place + 2] == [later]:
                content = versions.contents[place]
                self.size -= len(content.data) + _ENTRY
                content.data = b""
                del versions.marks[place], versions.contents[place]
            else:
                versions.marks[place] = later
        heir.pages[:] = {*heir.pages, *gone.pages}
        del self.taken[index], self.marks[index]
        if index < self._base:
            self._base -= 1

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
        mark = self.marks[index]
        code = self._code_pages()
        stale: list[int] = []
        for page in pages:
            versions = self._versions.get(page)
            self._ram.restore(page, b"" if versions is None else versions.at(mark))
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

    def can_lend(self, index: int) -> bool:
        """True if another guest of the run can begin there: nothing is to be made for that."""
        taken = self.taken[index]
        return (
            list(taken.spaces) == [0]
            and len(taken.threads) == len(taken.processes) == 1
            and not any(mapping.extent for mapping in taken.spaces[0].mappings)
            and taken.task is None
        )

    def lend(self, index: int, kernel: ReplayKernel, ram: Ram) -> None:
        """Bring another guest of the same run to a checkpoint that can be lent.

        Args:
            index: of the checkpoint.
            kernel: of the other guest, which stands in front of its first instruction.
            ram: its memory.
        """
        taken, mark = self.taken[index], self.marks[index]
        machine, space = kernel.machine, kernel.spaces[0]
        cpu, current, process = machine.cpu, machine.current, machine.current.process
        _replace(space, taken.spaces[0].mappings)
        space.modules.known[:] = taken.spaces[0].known
        for page, versions in self._versions.items():
            data = versions.at(mark)
            if data or ram.touched(page * PAGE, PAGE):
                ram.restore(page, data)
        own = {"process", "space", "memory", "hooks"}
        for name, value in zip(_THREAD, taken.threads[0].fields, strict=True):
            if name not in own:
                setattr(current, name, value)
        for name, value in zip(_PROCESS, taken.processes[0].fields, strict=True):
            if name not in own:
                setattr(process, name, value)
        machine.comms.update(taken.comms)
        machine.pids.update(taken.pids)
        machine.syscall_count = taken.calls
        kernel.go_back(taken.at, taken.inputs)
        current.memory.activate()
        cpu.restore(taken.registers)
        cpu.turn_back(taken.clock)
        cpu.go_on(taken.position)
        cpu.invalidate_all()
        cpu.flush_tlb()
        current.memory.sync()

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
