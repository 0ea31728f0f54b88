"""Probes in the programs of a booted system: what is called where their code comes to a place.

The kernel tells its own uprobes of each mapping of a file, of each that goes, and of tasks as they
fork and end (kernel/events/uprobes.c); the calls of these functions are told to us as well, so
that a probe stands wherever a uprobe of the kernel's would: in private mappings that may be
executed and are not writable, copied by fork. Nothing is planted; the memory, the stacks and the
time of programs stay as they are.

An instruction whose memory is not there yet is begun a second time behind the kernel's work on the
fault. That is no second hit.
"""

import struct
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from msgspec import Struct, field

from engine.cpu.unicorn_places import LOWEST
from engine.cpu.unicorn_system import PAGE, SystemCpu
from engine.errors import GuestFaultError
from engine.image.kernel.kernelimage import KernelImage
from engine.machine.addresses import KernelAddresses
from engine.machine.currenttask import TaskReader
from engine.machine.probing import WORD, MachineProbes
from engine.machine.records import KernelRecords

PROGRAMS_END: Final = 1 << 47
"""One past the last address of a program."""
NESTED_MOST: Final = 64
"""Calls of a task that Linux's uprobes follow at a time (MAX_URETPROBE_DEPTH)."""
_PENDING_MOST: Final = 1 << 16
"""Calls that are followed at a time, of all tasks."""
_MAPPINGS_MOST: Final = 1 << 16
"""Mappings of probed files that are known at a time; a kernel may make any number of them."""
_KEPT: Final = 256
"""Instructions that no program has, and that are still told."""
_RETURNS_KEPT: Final = 1 << 12
"""Places of returns likewise."""
_WRITE, _MAY_EXECUTE, _MAY_SHARE, _HUGE = 2, 0x40, 0x80, 0x400000
_LOOKED_AT: Final = _WRITE | _MAY_EXECUTE | _MAY_SHARE | _HUGE
"""VM_* of include/linux/mm.h that decide whether a uprobe stands in a mapping (`valid_vma`)."""
_VFORK: Final = 0x4000
"""CLONE_VFORK."""
_SAVED: Final = struct.Struct("<21Q")
"""`struct pt_regs` of x86-64."""
_SAVED_NAMES: Final = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx"),
    *("rsi", "rdi"),
)
"""The registers that begin it."""
_IP, _CS, _SP = 16, 17, 19
_PRIVILEGE: Final = 3
_FETCH: Final = 1 << 4
"""Bit of a page fault's error: the instruction itself is not there (Intel's manual)."""
_FUNCTIONS: Final = (
    *("uprobe_mmap", "uprobe_munmap", "uprobe_dup_mmap", "uprobe_copy_process"),
    *("uprobe_free_utask", "exc_page_fault"),
)
_MOVER: Final = "move_page_tables"
"""The function of mremap that takes pages to other addresses (mm/mremap.c)."""
_MOVE: Final = "pagetable_move_control"
"""The structure that says to it from where to where, since 6.15; arguments do before that."""


class ProgramReturn(Struct, eq=False):
    """A return probe of a function in programs.

    Attributes:
        capture: reads at the entry what the return records; None for nothing.
        returned: called at the return, with the address of the function, the one returned to, and
            what `capture` gave.
        hits: calls of the function.
        missed: those that were not followed.
    """

    capture: Callable[[int], Any] | None
    returned: Callable[..., None]
    hits: int = 0
    missed: int = 0


class ProgramPlace(Struct, eq=False):
    """A probed place of a file.

    Attributes:
        path: of the file, as it was given.
        offset: of the instruction in the file.
        hit: called at each hit with the instruction's address; None for a return probe.
        returning: what is done at returns; None for a probe of the place itself.
        mapped: a program has had the place in its memory.
    """

    path: str
    offset: int
    hit: Callable[[int], None] | None = None
    returning: ProgramReturn | None = None
    mapped: bool = False


class FileMapping(Struct, frozen=True):
    """A part of a file in a program's memory.

    Attributes:
        start: its address.
        end: one past its last one.
        offset: of its first byte in the file.
        paths: of the file, as places have them.
    """

    start: int
    end: int
    offset: int
    paths: tuple[str, ...]

    def within(self, start: int, end: int) -> "Iterable[FileMapping]":
        """Yield the part of the mapping in a stretch of addresses, if there is one."""
        first, last = max(self.start, start), min(self.end, end)
        if first < last:
            yield FileMapping(first, last, self.offset + first - self.start, self.paths)

    def cut(self, start: int, end: int) -> "Iterable[FileMapping]":
        """Yield the parts of it outside of a stretch of addresses."""
        if self.start < start:
            yield FileMapping(self.start, min(self.end, start), self.offset, self.paths)
        if self.end > end:
            begin = max(self.start, end)
            yield FileMapping(begin, self.end, self.offset + begin - self.start, self.paths)


class _PendingCall(Struct, eq=False):
    """A call that is followed.

    Attributes:
        slot: address of its return address.
        leads_to: the address returned to.
        function: address of the probed instruction.
        probes: what is done at the return, each with what it has read at the entry.
    """

    slot: int
    leads_to: int
    function: int
    probes: list[tuple[ProgramReturn, Any]] = field(default_factory=list)


class ProgramProbes:
    """The probes in the programs of one machine."""

    def __init__(
        self,
        image: KernelImage,
        cpu: SystemCpu,
        addresses: KernelAddresses,
        records: KernelRecords,
        reader: TaskReader,
        known: Callable[[int], Collection[str]],
        nested: int | None = None,
    ) -> None:
        """None yet.

        Args:
            image: the kernel.
            cpu: the processor.
            addresses: the memory as its kernel sees it.
            records: its structures.
            reader: tells which task runs.
            known: tells the paths of places that a `struct file` stands for.
            nested: calls of a task that are followed at a time; None for any number.
        """
        self._image, self._cpu, self._addresses, self._records = image, cpu, addresses, records
        self._reader, self._known, self._nested = reader, known, nested
        self._first = cpu.reader(("rdi", "rsi", "rdx"))
        self._move = cpu.reader(("rdi", "rsi", "rcx", "r8"))
        self._stack = cpu.reader(("rsp",))
        self._general = cpu.reader((*_SAVED_NAMES, "rsp"))
        self._saved = addresses.reader(_SAVED)
        self._load = addresses.reader(WORD)
        self._told = cpu.places.tell_instructions(self._came)
        self._places: dict[str, list[ProgramPlace]] = {}
        self._spaces: dict[int, list[FileMapping]] = {}  # by the address of the mm_struct
        self._mappings = 0
        self._here: dict[tuple[int, int], list[ProgramPlace]] = {}  # by it and a place's address
        self._users: dict[int, int] = {}  # by a place's address: programs that have it
        self._again: dict[int, tuple[int, ...]] = {}  # by task: registers at a fault
        self._calls: dict[int, list[_PendingCall]] = {}  # by task
        self._pending = 0
        self._waiting: dict[int, int] = {}  # by the place of a return
        self._follows = False

    @property
    def missing(self) -> str:
        """The reason why this kernel takes no probes in programs; "" where it does."""
        lacking = next((one for one in _FUNCTIONS if self._image.names.find(one) is None), "")
        if lacking:
            return f"the kernel has no {lacking}: it is built without uprobes (CONFIG_UPROBES)"
        has = self._records.has
        if not has("vm_area_struct", "vm_file") or not has("task_struct", "mm"):
            return "the kernel's types (BTF) do not tell the memory of its programs"
        return ""

    def add(self, place: ProgramPlace, probes: MachineProbes) -> None:
        """Add a place; before the machine runs.

        Of several at one instruction the newest is called first.

        Args:
            place: where `missing` is "".
            probes: in the machine's kernel.
        """
        if not self._follows:
            self._follows = True
            actions = (
                *(self._mapped, self._unmapped, self._forked, self._cloned),
                *(self._freed, self._faulted),
            )
            for name, action in zip(_FUNCTIONS, actions, strict=True):
                address = self._image.names.find(name)
                assert address is not None, "nothing is missing"
                probes.add(address, action, begins=True)
            mover = self._image.names.find(_MOVER)
            if mover is not None:
                probes.add(mover, self._moved, begins=True)
        self._places.setdefault(place.path, []).insert(0, place)

    @property
    def unreturned(self) -> int:
        """Calls that have not returned."""
        return self._pending

    def space(self) -> tuple[FileMapping, ...]:
        """The files in the memory of the program that runs, as far as they are known."""
        try:
            space = self._records.pointer("task_struct", "mm", self._reader.address())
        except GuestFaultError:
            return ()
        return tuple(self._spaces.get(space, ()))

    # -- memory of programs -----------------------------------------------------------------

    def _mapped(self) -> None:
        """uprobe_mmap(vma): a part of a file is in a program's memory."""
        vma = self._first()[0]
        record, pointer = "vm_area_struct", self._records.pointer
        try:
            file = pointer(record, "vm_file", vma)
            flags = pointer(record, "vm_flags", vma) & _LOOKED_AT
            if not file or flags != _MAY_EXECUTE:
                return
            paths = tuple(self._known(file))
            if not paths:
                return
            space, start = pointer(record, "vm_mm", vma), pointer(record, "vm_start", vma)
            end, page = pointer(record, "vm_end", vma), pointer(record, "vm_pgoff", vma)
        except GuestFaultError:
            return
        if LOWEST <= start < end <= PROGRAMS_END:
            self._cut(space, start, end)
            self._insert(space, FileMapping(start, end, page * PAGE, paths))

    def _unmapped(self) -> None:
        """uprobe_munmap(vma, start, end): a stretch of addresses goes."""
        vma, start, end = self._first()
        try:
            space = self._records.pointer("vm_area_struct", "vm_mm", vma)
        except GuestFaultError:
            return
        if space in self._spaces:
            self._cut(space, start, end)

    def _forked(self) -> None:
        """uprobe_dup_mmap(old, new): a program's memory is copied."""
        old, new, _ = self._first()
        self._cut(new, 0, PROGRAMS_END)
        for mapping in list(self._spaces.get(old, ())):
            self._insert(new, mapping)

    def _moved(self) -> None:
        """move_page_tables(vma, old, new_vma, new, length): mremap moves pages to new addresses.

        The breakpoints of Linux's uprobes move with their pages; a mapping that stays behind
        (MREMAP_DONTUNMAP), and what a mapping grows by, have none.
        """
        vma, old, new, length = self._move()
        pointer = self._records.pointer
        try:
            if self._records.has(_MOVE, "old_addr"):
                move, vma = vma, pointer(_MOVE, "old", vma)
                old, new = pointer(_MOVE, "old_addr", move), pointer(_MOVE, "new_addr", move)
                length = pointer(_MOVE, "old_end", move) - old
            space = pointer("vm_area_struct", "vm_mm", vma)
        except GuestFaultError:
            return
        if not LOWEST <= new <= PROGRAMS_END - length or length <= 0:
            return
        moving = [
            part
            for mapping in self._spaces.get(space, ())
            for part in mapping.within(old, old + length)
        ]
        self._cut(space, old, old + length)
        for part in moving:
            start, end = part.start - old + new, part.end - old + new
            self._insert(space, FileMapping(start, end, part.offset, part.paths))

    def _insert(self, space: int, mapping: FileMapping) -> None:
        if self._mappings >= _MAPPINGS_MOST:
            return
        self._mappings += 1
        self._spaces.setdefault(space, []).append(mapping)
        for address, place in self._in(mapping):
            place.mapped = True
            here = self._here.get((space, address))
            if here is None:
                here = self._here[space, address] = []
                self._users[address] = self._users.get(address, 0) + 1
                self._told.add(address)
            here.append(place)

    def _cut(self, space: int, start: int, end: int) -> None:
        """Forget a stretch of a program's addresses."""
        mappings = self._spaces.get(space, [])
        gone = [one for one in mappings if one.start < end and one.end > start]
        if not gone:
            return
        kept = [one for one in mappings if one not in gone]
        self._mappings -= len(gone)
        self._spaces[space] = kept
        for mapping in gone:
            for address, _ in self._in(mapping):
                if self._here.pop((space, address), None) is not None:
                    self._users[address] -= 1
        for mapping in gone:
            for rest in mapping.cut(start, end):
                self._insert(space, rest)
        if not self._spaces[space]:
            del self._spaces[space]
        if len(self._told) > _KEPT + len(self._here):
            self._forget_idle()

    def _in(self, mapping: FileMapping) -> Iterable[tuple[int, ProgramPlace]]:
        """The places in a mapping, with their addresses."""
        end = mapping.offset + mapping.end - mapping.start
        for path in mapping.paths:
            for place in self._places.get(path, ()):
                if mapping.offset <= place.offset < end:
                    yield mapping.start + place.offset - mapping.offset, place

    def _forget_idle(self) -> None:
        """Tell no longer of places that no program has: with random addresses they are many."""
        for address in [each for each, count in self._users.items() if not count]:
            del self._users[address]
            self._told.discard(address)

    # -- hits -------------------------------------------------------------------------------

    def _came(self, address: int) -> None:
        """Code of some program has come to a place of some program's."""
        self._addresses.forget()
        task = self._reader.address()
        try:
            space = self._records.pointer("task_struct", "mm", task)
        except GuestFaultError:
            return
        places = self._here.get((space, address))
        if not places:
            return
        again = self._again.pop(task, None)
        if again is not None and again == (address, *self._general()):
            return
        followed: list[ProgramReturn] = []
        for place in places:
            if place.hit is not None:
                place.hit(address)
            elif place.returning is not None:
                followed.append(place.returning)
        if followed:
            self._follow(task, address, followed)

    def _faulted(self) -> None:
        """exc_page_fault(regs, error): an instruction has found memory that is not there."""
        saved, error, _ = self._first()
        if error & _FETCH or not self._users:
            return
        try:
            words = self._saved(saved)
        except GuestFaultError:
            return
        if words[_CS] & _PRIVILEGE and words[_IP] in self._users:
            task = self._reader.address()
            if len(self._again) < _PENDING_MOST:
                self._again[task] = (words[_IP], *words[: len(_SAVED_NAMES)], words[_SP])

    # -- returns ----------------------------------------------------------------------------

    def _follow(self, task: int, function: int, followed: Sequence[ProgramReturn]) -> None:
        """Follow a call of a function."""
        for probe in followed:
            probe.hits += 1
        (slot,) = self._stack()
        try:
            (leads_to,) = self._load(slot)
        except GuestFaultError:
            leads_to = 0
        calls = self._calls.get(task, [])
        while calls and calls[-1].slot < slot:  # they never returned
            self._drop(calls.pop())
        for one in [each for each in calls if each.slot == slot]:
            # Two functions share a frame behind a tail call; one is entered anew.
            if one.leads_to != leads_to or one.function == function:
                calls.remove(one)
                self._drop(one)
        deep = self._nested is not None and len(calls) >= self._nested
        if deep or self._pending >= _PENDING_MOST or not LOWEST <= leads_to < PROGRAMS_END:
            for probe in followed:
                probe.missed += 1
            return
        call = _PendingCall(slot, leads_to, function)
        for probe in followed:
            entry = probe.capture(function) if probe.capture is not None else None
            call.probes.append((probe, entry))
        self._calls.setdefault(task, calls).append(call)
        self._keep(call)

    def _keep(self, call: _PendingCall) -> None:
        self._pending += 1
        leads_to = call.leads_to
        count = self._waiting.get(leads_to)
        if count is None:
            self._cpu.places.tell_block(leads_to, lambda: self._returned(leads_to))
        self._waiting[leads_to] = (count or 0) + 1

    def _drop(self, call: _PendingCall) -> None:
        self._pending -= 1
        self._waiting[call.leads_to] -= 1
        if not self._waiting[call.leads_to] and len(self._waiting) > _RETURNS_KEPT:
            for place in [each for each, count in self._waiting.items() if not count]:
                del self._waiting[place]
                self._cpu.places.forget_block(place)

    def _returned(self, leads_to: int) -> None:
        """Code of some program has come to where some call returns to."""
        if not self._waiting.get(leads_to):
            return
        self._addresses.forget()
        (sp,) = self._stack()
        calls = self._calls.get(self._reader.address())
        slot = sp - WORD.size
        if not calls or not any(one.slot == slot and one.leads_to == leads_to for one in calls):
            return
        # Frames below are gone, unless they are on another stack.
        gone = [one for one in calls if one.slot == slot and one.leads_to == leads_to]
        at = calls.index(gone[0])
        left = [one for one in calls[at:] if one.slot < slot]
        calls[:] = [one for one in calls if one not in gone and one not in left]
        for call in (*left, *gone):
            self._drop(call)
        for call in reversed(gone):
            for probe, entry in call.probes:
                given = () if probe.capture is None else (entry,)
                probe.returned(call.function, leads_to, *given)

    def _cloned(self) -> None:
        """uprobe_copy_process(task, flags): a child has the calls of its parent."""
        child, flags, _ = self._first()
        parent = self._reader.address()
        self._forget(child)
        calls = self._calls.get(parent)
        if not calls:
            return
        try:
            spaces = [self._records.pointer("task_struct", "mm", each) for each in (parent, child)]
        except GuestFaultError:
            return
        if (spaces[0] == spaces[1] and not flags & _VFORK) or self._pending >= _PENDING_MOST:
            return
        self._calls[child] = list(calls)
        for call in calls:
            self._keep(call)

    def _freed(self) -> None:
        """uprobe_free_utask(task): a task ends, or executes another program."""
        self._forget(self._first()[0])

    def _forget(self, task: int) -> None:
        self._again.pop(task, None)
        for call in self._calls.pop(task, ()):
            self._drop(call)
