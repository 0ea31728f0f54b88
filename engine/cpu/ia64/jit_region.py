"""Which slots make a region, and its LLVM text.

A region is what direct branches reach from its entries, up to a number of slots: blocks that run
together, as a rule. Calls, returns and far branches go on at an entry of this or another region.
An instruction that machine code does not do is executed by Python, which then goes back into the
region where that is possible.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from engine.arch.ia64.bundle import SIZE, next_slot
from engine.arch.ia64.decode import SlotInsn, decode_raw
from engine.cpu.ia64 import (
    jit_alat,
    jit_branch,
    jit_float,
    jit_memory,
    jit_moves,
)
from engine.cpu.ia64.insns_integer import COMPARES, RESULTS
from engine.cpu.ia64.jit_code import Emit, JitCode, stub
from engine.cpu.ia64.jit_value import Unsupported
from engine.cpu.ia64.memory import OFFSET, SHIFT, Ia64Memory
from engine.cpu.ia64.stops import OutOfMemory, PageFault
from engine.cpu.ia64.value import IllegalInsn

MOST: Final = 1024
"""Slots of a region at the most."""

_EMIT: Final[dict[str, Emit]] = {
    **{name: partial(JitCode.result, how=how) for name, how in RESULTS.items()},
    **COMPARES,
    **jit_moves.EMIT,
    **jit_float.EMIT,
    **jit_memory.EMIT,
    **jit_alat.EMIT,
}
_GUARDED: Final = RESULTS.keys() | {"I22", "I25", "I28", "M31"}
"""Formats that only write a general register: their predicate chooses a value."""
_COMPARES: Final = COMPARES.keys() | {"F4", "F5", "F6", "F7"}
_BREAKS: Final = frozenset(("I19", "M37", "F15", "B9", "X1"))
_GENERAL: Final = frozenset(("A9", "A10", "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I29"))
_FLOAT: Final = frozenset(f"F{at}" for at in range(1, 14))
_FLOAT_MEMORY: Final = frozenset(f"M{at}" for at in range(6, 13))


class RegionRegisters(Struct, frozen=True):
    """Registers that Python reads and writes to execute one instruction for machine code."""

    general: tuple[int, ...]
    floats: tuple[int, ...]
    predicates: tuple[int, ...]


def assisted(insn: SlotInsn) -> RegionRegisters | None:
    """The registers of an instruction that touches nothing else, else None."""
    general = tuple({insn.field(name) for name in ("r1", "r2", "r3")} - {0})
    floats = tuple({insn.field(name) for name in ("f1", "f2", "f3", "f4")} - {0, 1})
    if insn.format in _GENERAL:
        return RegionRegisters(general, (), (insn.qp,))
    if insn.format in _FLOAT:
        predicates = {insn.field("p1"), insn.field("p2")} if insn.format in _COMPARES else set()
        return RegionRegisters((), floats, tuple(predicates | {insn.qp}))
    if insn.format in _FLOAT_MEMORY:
        row = insn.word >> 32 & 15
        if row == 0 or insn.format in ("M9", "M10"):
            return RegionRegisters(general, floats, (insn.qp,))
    return None


class RegionSlot(Struct, frozen=True):
    """A slot of a region."""

    insn: SlotInsn | None
    behind: int


class JitRegion:
    """Slots by address, and entries that control may come to.

    Attributes:
        entries: where control may come to from elsewhere.
        places: in the order of discovery.
        leaders: the entries, and targets of branches.
        pages: virtual pages that it was read from.
    """

    def __init__(
        self,
        memory: Ia64Memory,
        entries: Sequence[int],
        outside: Callable[[int], bool],
        reached: Callable[[int], bool],
    ) -> None:
        """Find the region of some entries.

        Args:
            memory: the guest's.
            entries: where it begins; those that Python executes are left out.
            outside: says of a slot if this region's code may not go on there.
            reached: says of a branch's target if control has ever come to it.
        """
        self._memory, self._outside, self._reached = memory, outside, reached
        self.places: dict[int, RegionSlot] = {}
        self.leaders: dict[int, None] = dict.fromkeys(entries)
        self.pages: dict[int, bytes] = {}
        queue = list(entries)
        for leader in queue:
            for target in self._walk(leader):
                if target not in self.leaders and len(self.places) < MOST:
                    self.leaders[target] = None
                    queue.append(target)
        self.leaders = {leader: None for leader in self.leaders if leader in self.places}
        self.entries = [entry for entry in entries if self._does(entry)]

    def _walk(self, at: int) -> list[int]:
        """Follow the slots from an entry; targets of branches on the way."""
        found: list[int] = []
        while len(self.places) < MOST:
            if at in self.places:
                self.leaders[at] = None
                break
            place = self._place(at)
            if place is None:
                break
            self.places[at] = place
            insn = place.insn
            if insn is None or not _goes_on(insn):
                if insn is not None and insn.format in ("B1", "X3"):
                    found += self._target(insn, at)
                break
            if insn.format in ("B1", "B2", "X3", "M21", "M22", "M23"):
                found += self._target(insn, at)
            at = place.behind
        return found

    def _target(self, insn: SlotInsn, at: int) -> list[int]:
        target = insn.target(at & ~15)
        if target is None or self._outside(target):
            return []
        return [target] if target in self.places or self._reached(target) else []

    def _place(self, at: int) -> RegionSlot | None:
        page = at >> SHIFT
        if self._outside(at):
            return None
        if page not in self.pages:
            try:
                _, self.pages[page] = self._memory.fetch(page)
            except (PageFault, OutOfMemory):
                return None
        offset = at & OFFSET & ~15
        raw = self.pages[page][offset : offset + SIZE]
        bundle, insns = decode_raw(raw)
        insn = insns[at & 3]
        if insn is None or insn.form is None:
            return RegionSlot(None, at)
        return RegionSlot(insn, next_slot(at, bundle))

    def parts(self) -> list[tuple[list[int], list[int]]]:
        """Entries and leaders of those parts that no direct branch connects."""
        root: dict[int, int] = {leader: leader for leader in self.leaders}

        def find(leader: int) -> int:
            while root[leader] != leader:
                root[leader] = leader = root[root[leader]]
            return leader

        for leader in self.leaders:
            for target in self._goes_to(leader):
                root[find(target)] = find(leader)
        parts: dict[int, tuple[list[int], list[int]]] = {}
        entries = set(self.entries)
        for leader in self.leaders:
            part = parts.setdefault(find(leader), ([], []))
            part[1].append(leader)
            if leader in entries:
                part[0].append(leader)
        return [part for part in parts.values() if part[0]]

    def _goes_to(self, at: int) -> Iterator[int]:
        """Leaders that the code of a leader goes on at."""
        while (place := self.places.get(at)) is not None and place.insn is not None:
            yield from (to for to in self._target(place.insn, at) if to in self.leaders)
            if not _goes_on(place.insn):
                return
            at = place.behind
            if at in self.leaders:
                yield at
                return

    def text(self, code: Callable[[Container[int]], JitCode]) -> tuple[str, list[str]]:
        """The module's text, and names of the functions of its entries.

        Args:
            code: makes what collects a function with some leaders.
        """
        functions: list[str] = []
        helpers: set[str] = set()
        names = {entry: f"enter{at}" for at, entry in enumerate(self.entries)}
        for entries, leaders in self.parts():
            part = code(leaders)
            for leader in leaders:
                self._block(part, leader)
            helpers |= part.helpers
            labels = [f"at_{entry:x}" for entry in entries]
            if len(entries) == 1:
                functions.append(part.text(names[entries[0]], labels))
                continue
            name = f"part{len(functions)}"
            functions.append(part.text(name, labels))
            functions += [stub(names[entry], name, at) for at, entry in enumerate(entries)]
        return "\n".join([*sorted(helpers), *functions]), list(names.values())

    def _block(self, code: JitCode, at: int) -> None:
        code.label(f"at_{at:x}")
        code.frame = None
        while True:
            place = self.places.get(at)
            code.slot = at
            if place is None:
                code.behind = at
                jit_branch.go(code, at)
                return
            if place.insn is None:
                code.leave()
                return
            code.behind, code.ends = place.behind, False
            self._slot(code, place.insn)
            if code.ends:
                return
            at = place.behind
            if at in self.leaders:
                code.emit(f"br label %at_{at:x}")
                return

    def _slot(self, code: JitCode, insn: SlotInsn) -> None:
        mark = code.mark()
        try:
            emit(code, insn)
        except (Unsupported, IllegalInsn):
            code.back(mark)
            if assisted(insn) is None:
                if insn.qp and _may_be_passed(insn):
                    code.leave_if(code.predicate(insn.qp))
                    return
                code.leave()
                code.ends = True
            elif insn.format in _COMPARES:
                code.assist()
            else:
                with code.when(code.predicate(insn.qp)):
                    code.assist()

    def _does(self, entry: int) -> bool:
        """True if machine code does anything at an entry."""
        place = self.places.get(entry)
        insn = place.insn if place is not None else None
        return insn is not None and (insn.format in _EMIT or insn.format in jit_branch.EMIT)


def _goes_on(insn: SlotInsn) -> bool:
    """True if the next slot may be reached."""
    if insn.format in ("B1", "X3"):
        return bool(insn.qp) or (insn.format == "B1" and insn.field("btype") != 0)
    if insn.format in ("B3", "B4", "B5", "X4"):
        return bool(insn.qp)
    is_break = insn.format in _BREAKS and (insn.format != "B9" or not insn.word >> 37)
    return not is_break or bool(insn.qp)


def _may_be_passed(insn: SlotInsn) -> bool:
    """True if the instruction does nothing where its predicate is false."""
    if insn.format in _COMPARES or insn.format in jit_moves.NOT_PREDICATED:
        return False
    # br.wtop and br.wexit look at their predicate themselves.
    return insn.format not in ("B1", "M25") and insn.form is not None and insn.form.predicated


def emit(code: JitCode, insn: SlotInsn) -> None:
    """Text of one instruction.

    Raises:
        Unsupported: Python does it.
        IllegalInsn: Python reports it.
    """
    kind, qp = insn.format, insn.qp
    code.sources.clear()
    if kind in jit_branch.EMIT:
        jit_branch.EMIT[kind](code, insn)
        return
    how = _EMIT.get(kind)
    if how is None:
        raise Unsupported
    if not qp or kind in _COMPARES or kind in jit_moves.NOT_PREDICATED:
        how(code, insn)
    elif kind in _GUARDED:
        code.guard = code.predicate(qp)
        try:
            how(code, insn)
        finally:
            code.guard = ""
    else:
        with code.when(code.predicate(qp)):
            how(code, insn)
