"""The walk: from the registers of a stop down the stack, by whichever rules fit.

Return addresses are looked up at address - 1, because a call may be the last instruction of a
function; the pc of a stop, and of code that a signal has interrupted, is exact.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.frames import Flow
from engine.errors import EngineError
from engine.guest.modules import Module
from engine.image import ElfImage
from engine.unwind.dwarf import DwarfTables
from engine.unwind.expression import ReadMemory
from engine.unwind.framepointer import FramePointers
from engine.unwind.functions import Functions
from engine.unwind.prologue import Prologues, ReadCode
from engine.unwind.returnchain import ReturnChain
from engine.unwind.rows import Caller, CfaRegister, CfiRow, Unreadable
from engine.unwind.sigreturn import SignalFrames

if TYPE_CHECKING:  # most guests are no kernels, and not of IA-64
    from engine.image.kernel.orc import OrcEntry
    from engine.unwind.ia64 import Ia64Tables
    from engine.unwind.orc import OrcTables

LIMIT: Final = 1 << 17
"""Frames of one walk, if nobody says otherwise."""
_UNCALLED: Final = 16
"""Return addresses in a row with no call in front of them, after which a walk ends."""


class EndReason(Enum):
    """Why a walk ended."""

    OUTERMOST = "outermost"
    """The last frame has no caller: its table says so, or the kernel entered the program there."""
    ZERO = "zero"
    """The return address is 0, as code without tables marks its end."""
    NOT_CODE = "not-code"
    """The return address is not in executable memory."""
    UNREADABLE = "unreadable"
    """The rules lead to memory or registers that are not there."""
    LOOP = "loop"
    """The same frame comes again."""
    STALLED = "stalled"
    """The CFA is below the stack pointer: the stack would grow upwards."""
    UNALIGNED = "unaligned"
    """The CFA is not aligned."""
    UNCALLED = "uncalled"
    """No call stands in front of several return addresses in a row, and no table led there."""
    LIMIT = "limit"
    """So many frames were asked for."""


class UnwindEnd(Struct, frozen=True):
    """The end of a walk: what it is and the same in words."""

    reason: EndReason
    text: str


class Frame(Struct, frozen=True):
    """One activation of a function.

    Attributes:
        pc: the next instruction of this frame, by the program's own addresses.
        cfa: the canonical frame address; None where nothing could find it.
        registers: what is known of the registers in this frame.
        source: what found its CFA: "orc", "cfi", "leaf", "prologue", "framepointer", "trampoline"
            (signal return code, the trampoline of return probes); "" where nothing did.
        exact: `pc` is where execution stands or was interrupted, not a return address.
        signal: this is the frame that a signal has put there.
        trampoline: a return probe catches the callee's return to here.
        padded: a return address lies in the function that called.
    """

    pc: int
    cfa: int | None
    registers: Mapping[str, int]
    source: str
    exact: bool = False
    signal: bool = False
    trampoline: bool = False
    padded: bool = False

    @property
    def lookup(self) -> int:
        """The address that belongs to the running statement: for names, lines and tables."""
        return self.pc if self.exact else self.pc - 1

    @property
    def place(self) -> int:
        """The address that belongs to the function."""
        return self.pc if self.padded else self.lookup


class Walk(Struct, frozen=True):
    """A backtrace: the frames, innermost first, and why there are no more."""

    frames: tuple[Frame, ...]
    end: UnwindEnd


ResolveReturn = Callable[[int, int, int], int | None]
"""(return address as found, sp at the entry of the function that returns there, or what
`engine.arch.returns.FrameKeys` makes of it, calls with the same that the walk has found caught) to
the place to go on at where a return probe catches this return; None where none does.

That place is the real return address, or the trampoline where that has unwind data."""


class UnwindGuest(Struct, frozen=True):
    """All that the unwinder sees of a guest.

    Attributes:
        arch: its architecture.
        module_at: the file around an address.
        read: its memory; raises `GuestFaultError`.
        code: its code without planted bytes; fewer bytes where it ends.
        executable: whether code may run at an address.
        resolve_return: see `ResolveReturn`.
        original_pc: the program's own address for a place in a slot or detour.
        unwind_info: (start, an information block of the architecture's tables) of the engine's
            own code around an address.
        layout: another object each time when memory is mapped otherwise.
        outermost: where a function returns to that nobody has called; None where there is no
            such address.
        ends_at: whether a stack ends at a CFA, so that nobody has called whose frame it is; None
            where no such stacks are known.
        orc_outside: the ORC entry at an address in no file, which a kernel has made or loaded;
            None of a guest that is no kernel.
        entered_from: whether a frame above an address was entered from a program of less
            privilege, where no frames of this guest are.
        ends_in: whether the stack ends with a frame, by an address in its function and by its
            registers, whatever tables say of it.
    """

    arch: Arch
    module_at: Callable[[int], Module | None]
    read: ReadMemory
    code: ReadCode
    executable: Callable[[int], bool]
    resolve_return: ResolveReturn = lambda address, slot, met: None
    original_pc: Callable[[int], int] = lambda address: address
    unwind_info: Callable[[int], tuple[int, bytes] | None] = lambda pc: None
    layout: Callable[[], object] = lambda: None
    outermost: int | None = None
    ends_at: Callable[[int], bool] | None = None
    orc_outside: "Callable[[int], OrcEntry | None] | None" = None
    entered_from: Callable[[int], bool] = lambda address: False
    ends_in: Callable[[int, Mapping[str, int]], bool] | None = None


_ORC: Final = ".orc_unwind"
"""The section of a kernel's file with its tables."""

FORMATS: Final = ("orc", "cfi", "trampoline", "leaf", "prologue", "framepointer")
"""The order in which rules are asked for."""


def _has_orc(image: ElfImage) -> bool:
    return image.section(_ORC) is not None


def _tables(arch: Arch, module_at: Callable[[int], Module | None]) -> "DwarfTables | Ia64Tables":
    """The reader of the unwind tables that an architecture's files carry."""
    assert arch.unwind is not None, "its frames are known"
    if arch.unwind.tables == "dwarf":
        return DwarfTables(arch, module_at)
    from engine.unwind.ia64 import Ia64Tables

    return Ia64Tables(arch, module_at)


class _UnwindStep(Struct):
    """A row that was carried out.

    Attributes:
        source: what the row is from.
        row: the rules.
        caller: the caller's registers.
        caught: the slot of a return that a probe catches.
        called: whether a table led to the return address, or a call stands in front of it.
    """

    source: str
    row: CfiRow
    caller: Caller
    caught: int | None = None
    called: bool = True


class _Known(Struct, frozen=True):
    """The memory of a walk: things known from the frames it has passed.

    Attributes:
        stale: what each register held last.
        caught: number of returns found caught, by slot.
    """

    stale: dict[str, int]
    caught: dict[int, int]


class Unwinder:
    """Walks the stacks of one guest; keeps what it has read of tables and code.

    Attributes:
        chain: finds the addresses of plain stacks; None where no others are to be expected.
    """

    def __init__(self, view: UnwindGuest, formats: tuple[str, ...] = FORMATS) -> None:
        """Nothing is read yet.

        Args:
            view: the guest.
            formats: which rules to use, of `FORMATS`.

        Raises:
            EngineError: the architecture does not say how its frames look.
        """
        arch = view.arch
        if arch.unwind is None:
            raise EngineError(f"no frames are known of {arch.name}")
        self._view = view
        self._arch = arch
        self._unwind = arch.unwind
        self._formats = tuple(name for name in formats if name in arch.unwind.formats)
        self._pushed = 0 if arch.roles.link else arch.bits // 8
        # Where code without an entry has saved nothing, by convention.
        self._leaf = CfiRow(CfaRegister(arch.roles.sp, 0), {}, arch.roles.link or "")
        functions = Functions(arch, view.module_at)
        self._tables = _tables(arch, view.module_at)
        self._signals = SignalFrames(arch, view.code)
        self._prologues = Prologues(arch, view.code, functions.at, functions.is_entry)
        self._pointers = FramePointers(arch)
        # Of register stacks there is more to know than words in memory.
        plain = formats == FORMATS and arch.unwind.popped is None
        self.chain = ReturnChain(view, self._table_row, self._certain) if plain else None

    def walk(
        self, registers: Mapping[str, int], *, limit: int = LIMIT, exact: bool = True
    ) -> Walk:
        """The frames from some registers on.

        Args:
            registers: by name, with pc and sp.
            limit: of frames of the program, trampolines not counted.
            exact: the pc is not a return address.
        """
        frames: list[Frame] = []
        pc = self._arch.roles.pc
        known = dict(registers)
        known[pc] = self._view.original_pc(known[pc])
        self._prologues.begin_walk()
        end = self._follow(frames, known, exact, limit)
        return Walk(tuple(frames), end)

    def places(
        self, registers: Mapping[str, int], *, limit: int = LIMIT, exact: bool = True
    ) -> tuple[int, ...]:
        """The addresses of the same frames alone, which are found more quickly; see `walk`."""
        return self.stack(registers, limit=limit, exact=exact)[0]

    def stack(
        self, registers: Mapping[str, int], *, limit: int = LIMIT, exact: bool = True
    ) -> tuple[tuple[int, ...], bool]:
        """The same, and whether the last of them has no caller."""
        if self.chain is not None:
            found = self.chain.places(registers, limit=limit, exact=exact)
            if found is not None:
                return found, len(found) < limit
        walk = self.walk(registers, limit=limit, exact=exact)
        whole = walk.end.reason is EndReason.OUTERMOST
        return tuple(frame.pc for frame in walk.frames), whole

    def _follow(
        self,
        frames: list[Frame],
        registers: Mapping[str, int],
        exact: bool,
        limit: int,
    ) -> UnwindEnd:
        roles = self._arch.roles
        trampoline = False
        own = 0  # frames of the program
        uncalled = 0
        known = _Known({}, {})
        stacks = roles.sp, *self._unwind.stacks
        seen: set[tuple[int | None, ...]] = set()
        ends_in = self._view.ends_in
        while True:
            pc = registers[roles.pc]
            if own >= limit:
                return UnwindEnd(EndReason.LIMIT, f"the limit of {limit} frames")
            key = pc, *(registers.get(name) for name in stacks)
            if key in seen:
                return UnwindEnd(EndReason.LOOP, f"the frame at {pc:#x} comes again")
            seen.add(key)
            own += self._view.unwind_info(pc) is None
            known.stale.update(registers)
            if ends_in is not None and ends_in(pc if exact else pc - 1, registers):
                frames.append(Frame(pc, None, registers, "", exact, False, trampoline))
                return UnwindEnd(EndReason.OUTERMOST, "the outermost frame has no caller")
            # A leaf needs no table where a return address lies in its own function.
            here = exact or (self._unwind.padded and not frames)
            step, end = self._step(pc, registers, here, known)
            cfa = step.caller.cfa if step is not None else None
            source = step.source if step is not None else ""
            signal = step is not None and step.row.signal_frame
            # Nobody calls the code that a handler returns to: its address is exact.
            exact = exact or signal
            padded = self._unwind.padded
            frames.append(Frame(pc, cfa, registers, source, exact, signal, trampoline, padded))
            if step is None or end is not None:
                assert end is not None, "a walk without a next frame has an end"
                return end
            uncalled = 0 if step.called else uncalled + 1
            if uncalled >= _UNCALLED:
                text = f"no call stands in front of the last {uncalled} return addresses"
                return UnwindEnd(EndReason.UNCALLED, text)
            registers, exact, trampoline = step.caller.registers, signal, step.caught is not None
            if step.caught is not None:
                known.caught[step.caught] = known.caught.get(step.caught, 0) + 1

    # -- one frame -------------------------------------------------------------------------

    def _step(
        self, pc: int, registers: Mapping[str, int], exact: bool, known: "_Known"
    ) -> tuple[_UnwindStep | None, UnwindEnd | None]:
        """The first row that leads to a caller, or the end that the best row names.

        A table may rely on what its callees leave alone against the ABI (glibc's rawmemchr keeps
        its return address in x15 over a call): it sees what registers held last.
        """
        second: tuple[_UnwindStep | None, UnwindEnd | None] | None = None
        doubtful: _UnwindStep | None = None
        for source, row in self._candidates(pc, registers, exact):
            seen = known.stale if source == "cfi" else registers
            step, end = self._try(source, row, seen, known.caught)
            if step is not None and end is None:
                if source in ("orc", "cfi", "trampoline") or self._is_called(step):
                    return step, None
                doubtful = doubtful or step
            elif end is not None and end.reason is EndReason.OUTERMOST:
                return step, end
            elif second is None or (second[0] is None and step is not None):
                second = step, end
        if doubtful is not None:
            doubtful.called = False
            return doubtful, None
        if second is not None:
            return second
        return None, UnwindEnd(EndReason.UNREADABLE, f"no rules are known at {pc:#x}")

    def _candidates(
        self, pc: int, registers: Mapping[str, int], exact: bool
    ) -> Iterator[tuple[str, CfiRow]]:
        for name in self._formats:
            if name == "orc":
                row = self._orc_row(pc, exact)
                if row is not None:
                    yield name, row
            elif name == "cfi":
                row = self._tables.row(pc, exact)
                if row is None:
                    continue
                better = self._better(pc, row, registers) if exact else None
                if better is not None:
                    yield "prologue", better
                yield name, row
            elif name == "trampoline":
                row = self._signals.row(pc) or self._engine_row(pc)
                if row is not None:
                    yield name, row
                    return
            elif name == "leaf":
                if exact:
                    yield name, self._leaf
            elif name == "prologue":
                for row in self._prologues.rows(pc, exact):
                    yield name, row
            else:
                yield name, self._pointers.row(pc, exact)

    def _table_row(self, pc: int, exact: bool) -> CfiRow | None:
        """The rules of the first table that has any."""
        return self._orc_row(pc, exact) or self._tables.row(pc, exact)

    def _orc_row(self, pc: int, exact: bool) -> CfiRow | None:
        """The rules of a kernel's own tables."""
        if self._view.orc_outside is None:
            module = self._view.module_at(pc if exact else pc - 1)
            if module is None or not module.image.once(_has_orc):
                return None
        return self._orc.row(pc, exact)

    @cached_property
    def _orc(self) -> "OrcTables":
        """The tables of a kernel and its modules."""
        from engine.unwind.orc import OrcTables

        view = self._view
        outside = view.orc_outside or (lambda address: None)
        return OrcTables(view.arch, view.module_at, view.code, outside)

    def _engine_row(self, pc: int) -> CfiRow | None:
        """The rules in code of the engine's own; so far IA-64's alone has any."""
        found = self._view.unwind_info(pc)
        if found is None:
            return None
        from engine.unwind.ia64 import described

        return described(found[1], pc - found[0])

    def _better(self, pc: int, row: CfiRow, registers: Mapping[str, int]) -> CfiRow | None:
        """The row by the instructions, where that is certain and the table says otherwise."""
        if row.signal_frame or "prologue" not in self._formats:
            return None
        if self._arch.roles.sp in row.rules:
            return None  # longjmp: the caller is not whoever has called
        certain = self._certain(pc)
        if certain is None:
            return None
        said = row.caller(self._arch, registers, self._view.read)
        found = certain.caller(self._arch, registers, self._view.read)
        if isinstance(found, Unreadable) or isinstance(said, Unreadable) or said.pc is None:
            return None
        return certain if (said.cfa, said.pc) != (found.cfa, found.pc) else None

    def _certain(self, pc: int) -> CfiRow | None:
        """The row by the instructions where they leave no doubt."""
        return self._prologues.certain(pc, self._begins_plainly)

    def _begins_plainly(self, start: int) -> bool:
        """True if a table says of a function's first place that it is as a call leaves it."""
        row = self._tables.row(start, True)
        return row is not None and row.cfa == CfaRegister(self._arch.roles.sp, self._pushed)

    def _try(
        self, source: str, row: CfiRow, registers: Mapping[str, int], caught: Mapping[int, int]
    ) -> tuple[_UnwindStep | None, UnwindEnd | None]:
        caller = row.caller(self._arch, registers, self._view.read)
        if isinstance(caller, Unreadable):
            return None, UnwindEnd(EndReason.UNREADABLE, caller.reason)
        step = _UnwindStep(source, row, caller)
        if caller.pc is None:
            return step, UnwindEnd(EndReason.OUTERMOST, "the outermost frame has no caller")
        end = self._stack_end(row, caller, registers)
        if end is not None:
            return None, end
        if not row.signal_frame:
            slot = self._slot(caller.cfa, registers)
            if slot is not None:
                real = self._view.resolve_return(caller.pc, slot, caught.get(slot, 0))
                if real is not None:
                    pc = self._arch.roles.pc
                    caller = Caller(caller.cfa, real, {**caller.registers, pc: real})
                    step = _UnwindStep(source, row, caller, slot)
        assert caller.pc is not None, "there is a caller"
        ends_at = self._view.ends_at
        if ends_at is not None and not row.signal_frame and ends_at(caller.cfa):
            return step, UnwindEnd(EndReason.OUTERMOST, "the stack begins here")
        if caller.pc == self._view.outermost:
            return step, UnwindEnd(EndReason.OUTERMOST, "the outermost frame has no caller")
        if caller.pc == 0:
            return step, UnwindEnd(EndReason.ZERO, "the return address is 0")
        if row.signal_frame and self._view.entered_from(caller.pc):
            text = f"entered from a program, at {caller.pc:#x}"
            return step, UnwindEnd(EndReason.OUTERMOST, text)
        lookup = caller.pc if row.signal_frame else caller.pc - 1
        if not self._view.executable(lookup) and self._signals.row(caller.pc) is None:
            text = f"the return address {caller.pc:#x} is not in executable memory"
            return step, UnwindEnd(EndReason.NOT_CODE, text)
        return step, None

    def _slot(self, cfa: int, registers: Mapping[str, int]) -> int | None:
        """The key that return probes know a frame by; None where that has been lost."""
        sp, returns = cfa - self._pushed, self._arch.returns
        if returns is None:
            return sp
        others = [registers.get(name) for name in returns.keys.entry[1:]]
        known = [value for value in others if value is not None]
        return returns.keys.entered([sp, *known]) if len(known) == len(others) else None

    def _stack_end(
        self, row: CfiRow, caller: Caller, registers: Mapping[str, int]
    ) -> UnwindEnd | None:
        """The end of the walk at a CFA that cannot be right."""
        if row.signal_frame or self._arch.roles.sp in row.rules:
            return None  # interrupted anywhere, on any stack; longjmp, between two frames
        cfa, sp = caller.cfa, registers.get(self._arch.roles.sp)
        if cfa % self._unwind.alignment:
            return UnwindEnd(EndReason.UNALIGNED, f"the CFA {cfa:#x} is not aligned")
        if sp is not None and cfa < sp + self._pushed:
            text = f"the CFA {cfa:#x} is below the stack pointer {sp:#x}"
            return UnwindEnd(EndReason.STALLED, text)
        return None

    def _is_called(self, step: _UnwindStep) -> bool:
        """True if a call stands in front of the return address, or a trampoline at it."""
        pc = step.caller.pc or 0
        if step.caught is not None or self._signals.row(pc) is not None:
            return True
        arch = self._arch
        for size in range(arch.insn_align, arch.insn_max + 1, arch.insn_align):
            raw = self._view.code(pc - size, size)
            insn = self._unwind.read(raw, pc - size) if len(raw) == size else None
            if insn is not None and insn.size == size and insn.flow is Flow.CALL:
                return True
        return False
