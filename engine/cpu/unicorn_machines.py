"""Set-up per architecture that makes Unicorn run a program as Linux would start it.

Unicorn opens at ring 0, EL1 or machine level, where privileged instructions execute and some can
crash the host process. So each engine is brought to user level once, by the instruction its
kernel would use (iretq, eret, mret), from pages that are mapped for that moment only. Names and
code come from the architecture's record (`engine.arch.engines`).
"""

import contextlib
import ctypes
import struct
from collections.abc import Callable
from functools import cache, reduce
from operator import or_
from typing import Final

from engine.arch.engines import USER_START, HiddenFlags, Setting, UnicornNames, UserStart
from engine.cpu import native, unicorn_locks, unicorn_operands
from engine.cpu import unicorn_linkage as linkage
from engine.cpu.native_code import TELL
from engine.cpu.pagetable import PageTable, Region
from engine.cpu.ram import PAGE, Ram
from engine.cpu.unicorn_library import Emulator, SavedContext, UnicornError, constants, uc_const
from engine.errors import EngineError

_NO_FAULT: Final = b"\xff\xff\xff\xff"
_FEATURES_END: Final = 0xA800
"""Bytes of a CPUState of the pinned build in which its features are."""
_FEATURES_WORD: Final = 8
_ERROR_BEFORE: Final = 0x70
"""Bytes before the note of the last fault: its error code, whether an instruction asked for it,
and where the program goes on behind it."""


def refuse_more(names: UnicornNames, engine: int) -> None:
    """Have an engine refuse what a processor refuses and Unicorn lets pass.

    Args:
        names: of the architecture.
        engine: the engine's address.
    """
    if names.wide_operands:
        unicorn_operands.watch(engine, names.target)
    if names.locks:
        unicorn_locks.refuse(names.target)


class UnicornMachine:
    """One architecture as Unicorn emulates it; `machine_of` keeps one of each.

    Attributes:
        names: the record's names.
        instruction_hooks: (number of an instruction, role) with role syscall, illegal, in or out.
    """

    def __init__(self, names: UnicornNames) -> None:
        """Look the names up.

        Raises:
            EngineError: this Unicorn does not know one of them.
        """
        self.names = names
        try:
            self._constants = constants(names.arch.lower())
            self._arch = getattr(uc_const, f"UC_ARCH_{names.arch}")
            self._mode = reduce(or_, (getattr(uc_const, mode) for mode in names.modes), 0)
            self._cpu = getattr(self._constants, names.cpu) if names.cpu else None
            self.instruction_hooks = tuple(
                (getattr(self._constants, insn), role) for insn, role in names.hooks
            )
        except (ImportError, AttributeError) as error:
            raise EngineError(f"this Unicorn has no {names.arch}: {error}") from error
        self._spelled = dict(names.registers)
        self._writable = {name: (free, fixed) for name, free, fixed in names.writable}
        self._flags_known = names.hidden_flags is None
        self._flags_at = -1  # in a saved context, once learnt and if anywhere
        self._fault_at = -1
        self._features_at = -1  # in an engine's CPUState, once learnt
        self._register_ids: dict[str, int] = {}
        self._note_at = -1  # the same note from the engine's CPUState on

    def open(self, memory: int) -> Emulator:
        """Make an emulator for so many bytes of a guest's memory, before anything is mapped."""
        uc = Emulator(self._arch, self._mode)
        uc.set_translations(memory)
        if self._cpu is not None:
            uc.set_cpu_model(self._cpu)
        if self.names.page_size:
            uc.set_page_size(self.names.page_size)
        return uc

    def register_id(self, name: str) -> int:
        """Unicorn's number of one of our registers.

        Raises:
            EngineError: it has none of that name.
        """
        number = self._register_ids.get(name)
        if number is None:
            number = self._register_ids[name] = self._id(self._spelled.get(name, name.upper()))
        return number

    def mask_write(self, name: str, value: int) -> int:
        """The part of a value that may be written to a register from outside."""
        if name not in self._writable:
            return value
        free, fixed = self._writable[name]
        return value & free | fixed

    def enter_user_mode(
        self, uc: Emulator, ram: Ram, table: PageTable, secret: bytes, engine: int
    ) -> None:
        """Bring a new emulator to user level; the fill hook is in place.

        Args:
            uc: the emulator.
            ram: the guest's physical memory.
            table: the guest's page table, empty.
            secret: bytes for registers that hold a run's secrets.
            engine: its handle.

        Raises:
            EngineError: it does not get there.
        """
        names, start = self.names, self.names.start
        for setting in start.settings:
            self._set(uc, setting)
        for index, (register, key) in enumerate(start.secrets):
            value = int.from_bytes(secret[8 * index : 8 * index + 8], "little")
            uc.write_register(self._id(register), value, key)
        if names.hidden_flags is not None and not self._flags_known:
            self._learn_flags(uc, ram, table, start, names.hidden_flags)
        fault = names.lasting_fault
        then = (lambda: None) if fault is None else lambda: self._learn_fault(uc, fault, engine)
        _run_stub(uc, ram, table, start, start.at + start.entry, USER_START, then)
        if start.level is not None:
            register, mask, value = start.level
            if uc.read_register(self._id(register)) & mask != value:
                raise EngineError("the emulator did not reach user level")
        for register in start.cleared:
            uc.write_register(self._id(register), 0)

    def extend(self, engine: int) -> bool:
        """Have an emulator execute more than its processor model has, before it runs anything.

        Args:
            engine: its handle.

        Returns:
            False, and nothing is changed, where there is nothing more, the host has no vectors to
            lend, or the model's features are not where they should be.
        """
        extension = self.names.extension
        cpu = linkage.cpu_of(engine) if extension is not None and native.lends() else 0
        if extension is None or not cpu:
            return False
        wanted = struct.pack(f"={len(extension.features)}Q", *extension.features)
        at = self._features_at
        if at < 0 or ctypes.string_at(cpu + at, len(wanted)) != wanted:
            state = ctypes.string_at(cpu, _FEATURES_END)
            at = state.find(wanted)
            if at < 0 or at % _FEATURES_WORD or state.find(wanted, at + 1) >= 0:
                return False
            self._features_at = at
        if not _silenced(extension.tells):
            return False
        for index, bits in extension.added:
            word = ctypes.c_uint64.from_address(cpu + at + _FEATURES_WORD * index)
            word.value |= bits
        return True

    def float_flags(self, uc: Emulator) -> int:
        """Sticky floating-point exceptions that no register shows; 0 where there are none."""
        flags = self.names.hidden_flags
        if flags is None or self._flags_at < 0:
            return 0
        return _context_bytes(uc.save())[self._flags_at] & flags.mask

    def clear_float_flags(self, uc: Emulator) -> None:
        """Forget them."""
        if self._flags_at >= 0:
            context = uc.save()
            ctypes.c_uint8.from_address(_context_at(context) + self._flags_at).value = 0
            uc.restore(context)

    def settle(self, uc: Emulator) -> tuple[int, bool]:
        """Make the emulator forget the exception that was just taken out of it.

        Returns:
            Its error code, and whether an instruction has asked for it by its number.
        """
        if self._fault_at < 0:
            return 0, False
        context = uc.save()
        at = _context_at(context) + self._fault_at
        ctypes.c_int32.from_address(at).value = -1
        error, own = struct.unpack("=ii", ctypes.string_at(at - _ERROR_BEFORE, 8))
        uc.restore(context)
        return error, own != 0

    def _id(self, name: str) -> int:
        number = getattr(self._constants, f"UC_{self.names.arch}_REG_{name}", None)
        if number is None:
            raise EngineError(f"Unicorn has no register {name} of {self.names.arch}")
        return int(number)

    def _set(self, uc: Emulator, setting: Setting) -> None:
        number, value = self._id(setting.register), setting.value
        if setting.adds and isinstance(value, int):
            old = uc.read_register(number, setting.key)
            value |= old
        uc.write_register(number, value, setting.key)

    def _learn_flags(
        self, uc: Emulator, ram: Ram, table: PageTable, start: UserStart, flags: HiddenFlags
    ) -> None:
        """Find the byte that a division by zero changes; the registers are put back.

        Asked once and not of every engine, and of two divisions: a context holds pointers too,
        whose bytes differ by chance as the flags do. Where the register shows the division there
        is no such byte.
        """
        context = uc.save()
        changed: list[set[int]] = []
        for _ in range(2):
            before = _context_bytes(uc.save())
            _run_stub(uc, ram, table, start, start.at + flags.entry, start.at + flags.end)
            after = enumerate(_context_bytes(uc.save()))
            shown = uc.read_register(self._id(flags.register)) & flags.mark
            changed.append(
                {at for at, new in after if (before[at], new) == (0, flags.mark) and not shown}
            )
            uc.restore(context)
        found = changed[0] & changed[1]
        if not shown:
            if len(found) != 1:
                raise EngineError("the emulator's floating-point flags are not where they were")
            (self._flags_at,) = found
        self._flags_known = True

    def forgetful(self, engine: int) -> Callable[[], None] | None:
        """Return a function by which an engine forgets the fault just taken; None where none can.

        It may be called from the engine's callbacks.

        Args:
            engine: its handle.
        """
        if self.names.lasting_fault is None:
            return lambda: None
        cpu = linkage.cpu_of(engine) if self._note_at >= 0 else 0
        if not cpu:
            return None
        note = ctypes.c_int32.from_address(cpu + self._note_at)

        def forget() -> None:
            note.value = -1

        return forget

    def _learn_fault(self, uc: Emulator, number: int, engine: int) -> None:
        """Raise one fault and see where the emulator notes it.

        Unicorn never forgets a fault it has handed out, so that the next one would be a double
        fault and the third would stop the processor: the note is taken back after each.
        """
        before = uc.save()
        cpu = linkage.cpu_of(engine) if self._fault_at < 0 else 0
        state = ctypes.string_at(cpu, _FEATURES_END) if cpu else b""
        with contextlib.suppress(UnicornError):
            uc.run(USER_START, 0)
        if state:
            self._note_at = _noted(state, ctypes.string_at(cpu, _FEATURES_END), number)
        if self._fault_at < 0:
            first, second = _context_bytes(before), _context_bytes(uc.save())
            noted = number.to_bytes(4, "little")
            found = [
                index
                for index in range(0, len(first) - 3, 4)
                if (first[index : index + 4], second[index : index + 4]) == (_NO_FAULT, noted)
            ]
            at = found[0] - _ERROR_BEFORE + 8 if len(found) == 1 else -1
            if at < 0 or second[at : at + 8] != struct.pack("=Q", USER_START):
                raise EngineError("the emulator's note of the last fault is not where it was")
            self._fault_at = found[0]
        uc.restore(before)


def _noted(before: bytes, after: bytes, number: int) -> int:
    """The offset of the note of a fault in an engine's state; -1 where it is not sure."""
    noted, found = number.to_bytes(4, "little"), list[int]()
    at = after.find(noted)
    while at >= 0:
        known = after[at + 8 - _ERROR_BEFORE :][:8] == struct.pack("=Q", USER_START)
        if not at % 4 and before[at : at + 4] == _NO_FAULT and known:
            found.append(at)
        at = after.find(noted, at + 1)
    return found[0] if len(found) == 1 else -1


@cache
def _silenced(name: str) -> bool:
    """Keep Unicorn's CPUID, for the whole process, from telling of more than the model has."""
    slots = linkage.slots_of((name.encode(),))
    own = linkage.address_of(name)
    placed = native.place((TELL + struct.pack("=Q", own),)) if slots is not None else None
    if slots is None or placed is None or not linkage.redirect(slots, placed[0]):
        return False
    _KEPT.append(placed[1])
    return True


_KEPT: Final[list[object]] = []
"""The memory with that code: Unicorn runs it as long as the process lives."""


@cache
def machine_of(names: UnicornNames) -> UnicornMachine:
    """The machine of these names, and with it what was learnt of this Unicorn."""
    return UnicornMachine(names)


def _run_stub(
    uc: Emulator,
    ram: Ram,
    table: PageTable,
    start: UserStart,
    entry: int,
    end: int,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Run code from temporary pages until `end`, which is mapped too; `then` comes last."""
    pages = start.pages.ljust(-(-len(start.pages) // PAGE) * PAGE, b"\0")
    size = len(pages) + PAGE
    physical = ram.allocate(size)
    if physical is None:
        raise EngineError("no guest memory for the emulator's start")
    ram.write(physical, pages)
    landing = physical + len(pages)
    ram.write(landing, start.landing)
    table.load(
        [
            # Unicorn looks up the page before `until` too when a run ends there.
            Region(USER_START - PAGE, USER_START, landing, 5),
            Region(USER_START, USER_START + PAGE, landing, 5),
            Region(start.at, start.at + len(pages), physical, 7),
        ]
    )
    try:
        uc.run(entry, end)
    except UnicornError as error:
        raise EngineError(f"the emulator does not reach user level: {error}") from error
    then()
    uc.flush_code()
    table.load([])
    ram.release(physical, size)


def _context_at(context: SavedContext) -> int:
    return ctypes.cast(context.context, ctypes.c_void_p).value or 0


def _context_bytes(context: SavedContext) -> bytes:
    return ctypes.string_at(_context_at(context), context.size)
