"""Probes in programs: where the kernel says that files are, who is hit, which calls return."""

import struct
from collections.abc import Callable
from typing import Any

import pytest

from engine.errors import GuestFaultError
from engine.machine import programs
from engine.machine.programs import FileMapping, ProgramPlace, ProgramProbes, ProgramReturn

PAGE = 4096
CODE, OTHER = 0x401000, 0x7F0000001000
ONE, TWO, THREE = 0xA000, 0xB000, 0xC000  # tasks
CHILD = 0xD000
MAY_EXECUTE, WRITE, MAY_SHARE = 0x40, 2, 0x80
VMA, FILE, REGISTERS = 0x100000, 0x200000, 0x300000
MEMBERS = {
    ("task_struct", "mm"): 8,
    **{
        ("vm_area_struct", name): 8 * at
        for at, name in enumerate(
            ("vm_start", "vm_end", "vm_pgoff", "vm_flags", "vm_file", "vm_mm")
        )
    },
}


class Machine:
    """A processor, its kernel's memory and functions: only what is asked of them is there."""

    def __init__(self) -> None:
        self.registers = dict.fromkeys(("rdi", "rsi", "rdx", "rsp", "rax", "rbx"), 0)
        self.words: dict[int, int] = {}
        self.task = ONE
        self.functions: dict[str, Callable[[], None]] = {}
        self.blocks: dict[int, Callable[[], None]] = {}
        self.told: set[int] = set()
        self.came: Callable[[int], None] = lambda address: None
        self.seen: list[object] = []
        for number, task in enumerate((ONE, TWO, THREE)):
            self.words[task + 8] = 0x5000 + number
        this: Any = self
        known = {FILE: ("/prog",)}
        self.probes = ProgramProbes(this, this, this, this, this, lambda file: known.get(file, ()))

    # -- of the processor -------------------------------------------------------------------

    def reader(self, given: Any) -> Callable[..., tuple[int, ...]]:
        """Registers by name, or a structure at an address."""
        if isinstance(given, struct.Struct):
            count = given.size // 8
            return lambda address: tuple(self.word_at(address + 8 * n) for n in range(count))
        return lambda: tuple(self.registers.get(name, 0) for name in given)

    @property
    def places(self) -> "Machine":
        return self

    def tell_instructions(self, action: Callable[[int], None]) -> "Machine":
        self.came = action
        return self

    def add(self, address: Any, action: Any = None, *, begins: bool = True) -> None:
        """A place in programs, or a function of the kernel's."""
        if action is None:
            self.told.add(address)
        else:
            self.functions[address] = action

    def discard(self, address: int) -> None:
        self.told.discard(address)

    def __len__(self) -> int:
        return len(self.told)

    def tell_block(self, address: int, action: Callable[[], None]) -> None:
        self.blocks[address] = action

    def forget_block(self, address: int) -> None:
        del self.blocks[address]

    # -- of the kernel ----------------------------------------------------------------------

    @property
    def names(self) -> "Machine":
        return self

    def find(self, name: str) -> Any:
        return name

    def forget(self) -> None:
        pass

    def word_at(self, address: int) -> int:
        if address not in self.words:
            raise GuestFaultError(address, "read")
        return self.words[address]

    def pointer(self, record: str, member: str, address: int) -> int:
        return self.word_at(address + MEMBERS[record, member])

    def has(self, record: str, member: str) -> bool:
        return (record, member) in MEMBERS

    def address(self) -> int:
        return self.task

    # -- what happens -----------------------------------------------------------------------

    def call(self, name: str, *arguments: int) -> None:
        before = dict(self.registers)
        self.registers.update(zip(("rdi", "rsi", "rdx"), arguments, strict=False))
        self.functions[name]()
        self.registers = before

    def maps(
        self, task: int, start: int, pages: int, offset: int, flags: int = MAY_EXECUTE
    ) -> None:
        end = start + pages * PAGE
        values = (start, end, offset // PAGE, flags, FILE, self.words[task + 8])
        self.words.update({VMA + 8 * at: value for at, value in enumerate(values)})
        self.call("uprobe_mmap", VMA)

    def comes(self, task: int, address: int, sp: int = 0, leads_to: int = 0) -> None:
        """Code of a program comes to a place, maybe by a call."""
        self.task = task
        self.registers["rsp"] = sp
        if leads_to:
            self.words[sp] = leads_to
        if address in self.told:
            self.came(address)

    def returns(self, task: int, leads_to: int, sp: int) -> None:
        self.task = task
        self.registers["rsp"] = sp
        if leads_to in self.blocks:
            self.blocks[leads_to]()

    def probe(self, offset: int) -> ProgramPlace:
        place = ProgramPlace("/prog", offset, hit=lambda address: self.seen.append(address))
        this: Any = self
        self.probes.add(place, this)
        return place

    def follow(self, offset: int, name: str = "") -> ProgramReturn:
        capture = (lambda address: name) if name else None
        followed = ProgramReturn(capture, lambda *hit: self.seen.append(hit))
        place = ProgramPlace("/prog", offset, returning=followed)
        this: Any = self
        self.probes.add(place, this)
        return followed


def test_a_place_is_hit_in_the_programs_that_map_it_and_nowhere_else() -> None:
    machine = Machine()
    place = machine.probe(0x1234)
    machine.comes(ONE, CODE + 0x234)
    assert machine.seen == []
    assert not place.mapped
    machine.maps(ONE, CODE, 2, 0x1000)
    machine.maps(TWO, OTHER, 1, 0x1000)
    assert place.mapped
    for task, address in ((ONE, CODE), (ONE, OTHER), (TWO, CODE), (TWO, OTHER), (THREE, CODE)):
        machine.comes(task, address + 0x234)
    assert machine.seen == [CODE + 0x234, OTHER + 0x234]


@pytest.mark.parametrize("flags", [MAY_EXECUTE | WRITE, MAY_EXECUTE | MAY_SHARE, 0, 0x400040])
def test_other_mappings_take_no_probe(flags: int) -> None:
    machine = Machine()
    machine.probe(0x1234)
    machine.maps(ONE, CODE, 1, 0x1000, flags)
    assert not machine.told


def test_what_is_unmapped_is_not_hit_and_the_rest_is() -> None:
    machine = Machine()
    for page in range(4):
        machine.probe(page * PAGE)
    machine.maps(ONE, CODE, 4, 0)
    machine.words[VMA + 8 * 5] = machine.words[ONE + 8]
    machine.call("uprobe_munmap", VMA, CODE + PAGE, CODE + 2 * PAGE)
    for page in range(4):
        machine.comes(ONE, CODE + page * PAGE)
    assert machine.seen == [CODE, CODE + 2 * PAGE, CODE + 3 * PAGE]


@pytest.mark.parametrize("is_structure", [False, True], ids=["arguments", "structure"])
def test_probes_move_with_their_pages(is_structure: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the arguments of move_page_tables, or by the structure that kernels from 6.15 on give."""
    machine = Machine()
    for page in range(3):
        machine.probe(page * PAGE + 8)
    machine.maps(ONE, CODE, 3, 0)
    machine.maps(TWO, CODE, 3, 0)
    machine.words[VMA + 8 * 5] = machine.words[ONE + 8]
    begin, length = CODE + PAGE, 2 * PAGE
    if is_structure:
        names = ("old", "old_addr", "old_end", "new_addr")
        move = "pagetable_move_control"
        for at, name in enumerate(names):
            monkeypatch.setitem(MEMBERS, (move, name), 8 * at)
        values = enumerate((VMA, begin, begin + length, OTHER))
        machine.words |= {REGISTERS + 8 * at: value for at, value in values}
        machine.call("move_page_tables", REGISTERS)
    else:
        machine.registers |= {"rcx": OTHER, "r8": length}
        machine.call("move_page_tables", VMA, begin)
    for task in (ONE, TWO):
        for page in range(3):
            machine.comes(task, CODE + page * PAGE + 8)
            machine.comes(task, OTHER + (page - 1) * PAGE + 8)
    kept = [CODE + page * PAGE + 8 for page in range(3)]
    assert machine.seen == [kept[0], OTHER + 8, OTHER + PAGE + 8, *kept]


@pytest.mark.parametrize("target", [0, 8, 1 << 47, (1 << 64) - PAGE])
def test_pages_do_not_move_to_where_no_program_is(target: int) -> None:
    machine = Machine()
    machine.probe(8)
    machine.maps(ONE, CODE, 1, 0)
    machine.registers |= {"rcx": target, "r8": PAGE}
    machine.call("move_page_tables", VMA, CODE)
    assert machine.told == {CODE + 8}


def test_a_mapping_is_cut_at_both_ends() -> None:
    whole = FileMapping(0x1000, 0x5000, 0x10000, ("/prog",))
    left, right = whole.cut(0x2000, 0x3000)
    assert (left.start, left.end, left.offset) == (0x1000, 0x2000, 0x10000)
    assert (right.start, right.end, right.offset) == (0x3000, 0x5000, 0x12000)
    assert list(whole.cut(0, 0x6000)) == []


def test_memory_is_copied_by_fork() -> None:
    machine = Machine()
    machine.probe(0x10)
    machine.maps(ONE, CODE, 1, 0)
    machine.call("uprobe_dup_mmap", machine.words[ONE + 8], machine.words[TWO + 8])
    machine.words[VMA + 8 * 5] = machine.words[ONE + 8]
    machine.call("uprobe_munmap", VMA, 0, 1 << 47)
    machine.comes(ONE, CODE + 0x10)
    machine.comes(TWO, CODE + 0x10)
    assert machine.seen == [CODE + 0x10]


def test_an_instruction_that_faults_is_one_hit() -> None:
    machine = Machine()
    machine.probe(0x10)
    machine.maps(ONE, CODE, 1, 0)
    saved = {REGISTERS + 8 * at: 0 for at in range(21)}
    saved |= {REGISTERS + 8 * 16: CODE + 0x10, REGISTERS + 8 * 17: 0x33}
    machine.words |= saved
    for error in (4, 0x14):  # of memory, and of the instruction itself, which has not been hit
        machine.comes(ONE, CODE + 0x10)
        machine.call("exc_page_fault", REGISTERS, error)
        machine.comes(TWO, CODE + 0x10)
        machine.comes(ONE, CODE + 0x10)
        machine.comes(ONE, CODE + 0x10)
    assert len(machine.seen) == 2 + 3
    machine.call("exc_page_fault", REGISTERS, 4)
    machine.registers["rbx"] = 5  # it is another execution
    machine.comes(ONE, CODE + 0x10)
    assert len(machine.seen) == 6


def test_calls_return_by_their_frames_the_newest_first() -> None:
    machine = Machine()
    machine.follow(0x10, "outer")
    machine.follow(0x20, "inner")
    machine.follow(0x20)
    machine.maps(ONE, CODE, 1, 0)
    machine.comes(ONE, CODE + 0x10, 0x9000, CODE + 0x800)
    machine.comes(ONE, CODE + 0x20, 0x8000, CODE + 0x900)
    machine.comes(ONE, CODE + 0x20, 0x7000, CODE + 0x900)
    machine.returns(ONE, CODE + 0x900, 0x8010)  # the code of the place, but no return
    machine.returns(TWO, CODE + 0x900, 0x7008)
    assert machine.seen == []
    machine.returns(ONE, CODE + 0x900, 0x7008)
    machine.returns(ONE, CODE + 0x900, 0x7008)
    inner = (CODE + 0x20, CODE + 0x900)
    assert machine.seen == [inner, (*inner, "inner")]
    machine.returns(ONE, CODE + 0x800, 0x9008)  # the one in between was left by longjmp
    assert machine.seen[2:] == [(CODE + 0x10, CODE + 0x800, "outer")]
    assert machine.probes.unreturned == 0


def test_functions_share_a_frame_behind_a_tail_call_and_one_that_was_left_does_not() -> None:
    machine = Machine()
    machine.follow(0x10, "first")
    machine.follow(0x20, "second")
    machine.maps(ONE, CODE, 1, 0)
    machine.comes(ONE, CODE + 0x10, 0x9000, CODE + 0x800)
    machine.comes(ONE, CODE + 0x10, 0x9000, CODE + 0x800)
    machine.comes(ONE, CODE + 0x20, 0x9000)
    machine.returns(ONE, CODE + 0x800, 0x9008)
    assert [hit[2] for hit in machine.seen if isinstance(hit, tuple)] == ["second", "first"]


@pytest.mark.parametrize(
    ("space", "flags", "both"), [(1, 0, True), (0, 0, False), (0, 0x4000, True)]
)
def test_a_child_has_its_parents_calls(space: int, flags: int, both: bool) -> None:
    """With memory of its own, or while its parent waits for it: no thread."""
    machine = Machine()
    machine.follow(0x10)
    machine.maps(ONE, CODE, 1, 0)
    machine.comes(ONE, CODE + 0x10, 0x9000, CODE + 0x800)
    machine.words[CHILD + 8] = machine.words[ONE + 8] + space
    machine.call("uprobe_copy_process", CHILD, flags)
    machine.returns(CHILD, CODE + 0x800, 0x9008)
    machine.returns(ONE, CODE + 0x800, 0x9008)
    assert len(machine.seen) == 1 + both


def test_calls_end_with_their_task() -> None:
    machine = Machine()
    machine.follow(0x10)
    machine.maps(ONE, CODE, 1, 0)
    machine.comes(ONE, CODE + 0x10, 0x9000, CODE + 0x800)
    machine.call("uprobe_free_utask", ONE)
    machine.returns(ONE, CODE + 0x800, 0x9008)
    assert machine.seen == []
    assert machine.probes.unreturned == 0


def test_programs_and_calls_without_end_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_KEPT", 8)
    monkeypatch.setattr(programs, "_PENDING_MOST", 16)
    monkeypatch.setattr(programs, "_RETURNS_KEPT", 8)
    machine = Machine()
    followed = machine.follow(0x10)
    for number in range(64):
        start = OTHER + number * PAGE
        machine.maps(ONE, start, 1, 0)
        machine.comes(ONE, start + 0x10, 0x9000 - 16 * number, CODE + 16 * number)
        machine.words[VMA + 8 * 5] = machine.words[ONE + 8]
        machine.call("uprobe_munmap", VMA, start, start + PAGE)
    assert len(machine.told) <= 9
    assert (followed.hits, followed.missed, machine.probes.unreturned) == (64, 48, 16)
    machine.call("uprobe_free_utask", ONE)
    assert len(machine.blocks) <= 8
