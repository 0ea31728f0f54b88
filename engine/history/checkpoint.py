"""States of a run of the past, to go back to.

A checkpoint holds the contexts of all threads, what is known of them and of address spaces, and
the content of pages that hold something else than at the checkpoint before. So each costs what
has changed, and a page's content is that of the last one, up to it, which has the page.

Contents are packed, see `pagestore`. When they take too much, those checkpoints are given up whose
neighbours are nearest to each other.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from engine.cpu.ram import EXECUTE, PAGE, Ram
from engine.guest.mapping import Mapping
from engine.history.layout import NOWHERE
from engine.history.livecheckpoints import BUDGET, LiveCheckpoint, LiveCheckpoints
from engine.history.moment import Moment
from engine.history.pagestore import PageContent, PageStore
from engine.history.replaying import ReplayKernel
from engine.linux.process import Process
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread
from engine.linux.wait import Wait

_ZERO: Final = bytes(PAGE)
_FEWEST: Final = 8
"""So many are there at least, whatever they take."""
_ROOM: Final = 16
"""When it is too much, one part of so many is given up at once."""
_THREAD: Final = (
    *("tid", "comm", "process", "space", "memory", "hooks", "registers", "position", "call"),
    *("wait", "ended", "spent", "ran"),
)
_HELD: Final = ("registers", "position", "call", "wait", "spent", "ran")
"""The fields that the journal does not tell."""
_PROCESS: Final = ("exit", "space", "parent", "borrows", "spent", "ran", "group", "session")


class _Versions(Struct, eq=False):
    """The contents of a page, each from a moment on."""

    marks: list[Moment]
    contents: list[PageContent]

    def at(self, mark: Moment) -> PageContent | None:
        """The content at a moment; None for zeros."""
        known = bisect_right(self.marks, mark)
        return self.contents[known - 1] if known else None


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
    turn: tuple[int, int]


class Checkpoints:
    """The checkpoints of one guest of the past.

    Attributes:
        taken: all, in order.
        marks: their moments.
        apart: ticks between two below which they would soon be given up again.
        budget: bytes that they may take; what is beyond is given up.
    """

    def __init__(
        self,
        kernel: ReplayKernel,
        ram: Ram,
        budget: int = BUDGET,
        live: LiveCheckpoints | None = None,
    ) -> None:
        """None is there; changes of pages are noticed from now on.

        Args:
            kernel: that of the guest, which stands in front of its first instruction.
            ram: its memory.
            budget: bytes that they may take.
            live: those of the run itself, which can be taken over, if there are any.
        """
        self.budget = budget
        self._turns = kernel.turns if live is None else live.turns
        self.taken: list[Checkpoint] = []
        self.marks: list[Moment] = []
        self.apart = 0
        self._store = PageStore() if live is None else live.store
        self._kernel = kernel
        self._machine = kernel.machine
        self._cpu = kernel.machine.cpu
        self._ram = ram
        self._versions: dict[int, _Versions] = {}
        self._base = -1
        ram.watch_changes()
        for start, end in self._stretches():
            for first, last in ram.touched_runs(start, end - start):
                ram.mark_changed(first, last - first)
        self._cpu.flush_tlb()

    @property
    def size(self) -> int:
        """Bytes that their pages take, about."""
        return self._store.size

    # -- taking ---------------------------------------------------------------------------------

    def take(self, *, brief: bool = False) -> Moment:
        """The guest's state now, to which it has run; nothing of the machinery's is in it.

        Args:
            brief: it will not be needed for long: that it costs little time matters more than
                what it takes.
        """
        machine, kernel, cpu = self._machine, self._kernel, self._cpu
        pc = machine.current.hooks.original_pc(cpu.read_register(machine.arch.roles.pc))
        mark = Moment(kernel.at, cpu.coming(), pc)
        index = bisect_left(self.marks, mark)
        if self.marks[index : index + 1] == [mark]:
            return mark
        changed = self._changed()
        held = (cpu.save(), cpu.position())
        taken = self._standing(mark, cpu.blocks(), kernel.inputs, changed.copy(), *held)
        following = self.taken[index] if index < len(self.taken) else None
        self.taken.insert(index, taken)
        self.marks.insert(index, mark)
        if following is not None:  # some have been written to before the one before this
            written = set(following.pages)
            taken.pages[:] = [page for page in changed if page in written]
        read, save = self._ram.read, self._save
        for page in taken.pages:
            data = read(page * PAGE, PAGE)
            save(page, b"" if data == _ZERO else data, index, brief=brief)
        self._ram.settled(changed)
        cpu.flush_tlb()
        self._base = index
        if self.size > self.budget:
            self._thin()
        return mark

    def _standing(
        self,
        mark: Moment,
        clock: int,
        inputs: int,
        pages: list[int],
        registers: object,
        position: object,
    ) -> Checkpoint:
        """A checkpoint with the threads and address spaces that there are now."""
        machine, kernel = self._machine, self._kernel
        return Checkpoint(
            clock,
            mark.at,
            mark.clock,
            mark.pc,
            pages,
            inputs,
            registers,
            position,
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
            machine.turn,
        )

    def adopt(self, live: LiveCheckpoints) -> None:
        """Take over what the run itself has kept; the guest has to be brought to one of all then.

        None of them may be in front of the last one there is.
        """
        last, turns = self.taken[-1], self._turns
        self._restore_spaces(last)
        self._restore_threads(last)
        at = last.at
        for one in live.take_over():
            self._kernel.walk(turns[bisect_left(turns, at) : bisect_left(turns, one.mark.at)])
            at = one.mark.at
            self._taken_over(one)
        if self.size > self.budget:
            self._thin()

    def _taken_over(self, live: LiveCheckpoint) -> None:
        """Keep a checkpoint of the run itself, whose threads there are now."""
        machine, mark = self._machine, live.mark
        registers = position = None
        for held in live.threads:
            thread = machine.threads[held.tid]
            thread.registers, thread.position = held.registers, held.position
            if held.tid == live.current:
                registers, position = held.registers, held.position
                thread.registers = thread.position = None
                machine.holds(thread)
            thread.call = held.call
            thread.wait = Wait(lambda: None) if held.waits else None
            thread.spent, thread.ran = held.spent, held.ran
        machine.syscall_count, machine.turn = live.calls, live.turn
        if machine.inner is not None:  # probes of the engine's own tell of its tasks
            machine.inner.task = live.task
            machine.comms.update(live.comms)
            machine.pids.update(live.pids)
        if mark > self.marks[-1]:
            pages = sorted(live.pages)
            self.taken.append(
                self._standing(mark, live.clock, live.inputs, pages, registers, position)
            )
            self.marks.append(mark)
        mark = self.marks[-1]
        known, give_up = self._versions, self._store.give_up
        for page, content in live.pages.items():
            versions = known.get(page)
            if versions is None or not versions.marks:
                if content.zeros:
                    give_up(content)
                else:
                    known[page] = _Versions([mark], [content])
                continue
            now = versions.contents[-1]  # there is no later mark
            there = versions.marks[-1] == mark  # the guest has been there: it is the same
            if there or content is now or (content.zeros and now.zeros):
                give_up(content)
            else:
                versions.marks.append(mark)
                versions.contents.append(content)

    def _save(self, page: int, data: bytes, index: int, *, brief: bool) -> None:
        """Keep what a page holds at a checkpoint, if it is another content than before."""
        mark, store = self.marks[index], self._store
        versions = self._versions.get(page)
        if versions is None:
            versions = self._versions[page] = _Versions([], [])
        marks, contents = versions.marks, versions.contents
        place = bisect_left(marks, mark)
        before = contents[place - 1] if place else None
        if before is None and not data:
            return
        content = store.keep_whole(data) if brief else store.keep(data, before)
        if content is before:
            return
        marks.insert(place, mark)
        contents.insert(place, content)
        behind = self.marks[index + 1 : index + 2]
        if behind and marks[place + 1 : place + 2] != behind:
            # It holds the same there as at the one before this.
            marks[place + 1 : place + 1] = behind
            contents.insert(place + 1, store.keep(b"", None) if before is None else before)
            if before is not None:
                before.users += 1

    def _thin(self) -> None:
        """Give some up, the first and the last stay: there is room for a while then."""
        aim = self.budget - self.budget // _ROOM
        clocks = [one.clock for one in self.taken]
        while self.size > aim and len(clocks) > _FEWEST:
            index = min(
                (index for index in range(1, len(clocks) - 1) if index != self._base),
                key=lambda index: clocks[index + 1] - clocks[index - 1],
            )
            self._give_up(index)
            self.apart = max(self.apart, (clocks[index + 1] - clocks[index - 1]) // 2)
            del clocks[index]

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
        store = self._store
        for page in gone.pages:
            versions = self._versions[page]
            marks, contents = versions.marks, versions.contents
            place = bisect_left(marks, mark)
            if marks[place : place + 1] != [mark]:
                continue
            if marks[place + 1 : place + 2] != [later]:
                marks[place] = later
                store.packed(contents[place])
                continue
            store.give_up(contents.pop(place))
            del marks[place]
            if place and contents[place - 1] is contents[place]:
                store.give_up(contents.pop(place))
                del marks[place]
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
        mark = self.marks[index]
        pages = self._changed()
        pages += self._others(self._base, index).difference(pages)
        code = self._code_pages()
        stale = False
        contents: list[tuple[int, bytes]] = []
        for page in pages:
            data = self._bytes_of(page, mark)
            contents.append((page, data))
            if page in code and not stale:
                stale = self._ram.read(page * PAGE, PAGE) != (data or _ZERO)
        self._ram.restore(contents)
        self._base = index
        self._restore_spaces(taken)
        if stale or code != self._code_pages():
            cpu.invalidate_all()
        self._restore_threads(taken)
        machine.exit = None
        kernel.go_back(taken.at, taken.inputs)
        machine.syscall_count, machine.turn = taken.calls, taken.turn
        machine.current.memory.activate()
        cpu.restore(taken.registers)
        cpu.turn_back(taken.clock)
        cpu.go_on(taken.position)
        cpu.flush_tlb()

    def _others(self, here: int, there: int) -> set[int]:
        """Pages that hold something else at another checkpoint."""
        low, high = sorted((here, there))
        between = self.taken[low + 1 : high + 1]
        now, then = self.marks[here], self.marks[there]
        many = sum(len(one.pages) for one in between) > len(self._versions)
        pages = self._versions if many else set().union(*(one.pages for one in between))
        found = set()
        for page in pages:
            versions = self._versions.get(page)
            if versions is not None and versions.at(now) is not versions.at(then):
                found.add(page)
        return found

    def _bytes_of(self, page: int, mark: Moment) -> bytes:
        """The bytes of a page at a checkpoint; b"" for zeros."""
        versions = self._versions.get(page)
        content = None if versions is None else versions.at(mark)
        return b"" if content is None else self._store.bytes_of(content)

    def can_lend(self, index: int) -> bool:
        """True if another guest of the run can begin there."""
        taken, ended = self.taken[index], _THREAD.index("ended")
        stands = any(
            kept.thread is taken.current and not kept.fields[ended] for kept in taken.threads
        )
        return taken.task is None and stands

    def lend(self, index: int, kernel: ReplayKernel, ram: Ram) -> None:
        """Bring another guest of the same run to a checkpoint that can be lent.

        Args:
            index: of the checkpoint.
            kernel: of the other guest, which stands in front of its first instruction.
            ram: its memory.
        """
        taken, mark, turns = self.taken[index], self.marks[index], self._turns
        machine = kernel.machine
        cpu = machine.cpu
        kernel.walk(turns[bisect_left(turns, kernel.at) : bisect_left(turns, taken.at)])
        contents = ((page, self._bytes_of(page, mark)) for page in self._versions)
        ram.restore(
            (page, data) for page, data in contents if data or ram.touched(page * PAGE, PAGE)
        )
        for kept in taken.threads:
            values = dict(zip(_THREAD, kept.fields, strict=True))
            if not values["ended"]:
                thread = machine.threads[values["tid"]]
                for name in _HELD:
                    setattr(thread, name, values[name])
                if kept.thread is taken.current:
                    machine.holds(thread)
        machine.syscall_count, machine.turn = taken.calls, taken.turn
        kernel.go_back(taken.at, taken.inputs)
        machine.current.memory.activate()
        cpu.restore(taken.registers)
        cpu.turn_back(taken.clock)
        cpu.go_on(taken.position)
        cpu.invalidate_all()
        cpu.flush_tlb()
        machine.current.memory.sync()

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
