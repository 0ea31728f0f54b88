"""A kernel of the past: it carries no call out, but does to the program what the journal says."""

import ctypes
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from engine.arch.machine import OUTSIDE
from engine.cpu.base import Stop, StopKind
from engine.cpu.ram import PAGE
from engine.errors import EngineError, GuestFaultError, KprobeTuiError
from engine.guest.hooks import SpaceHooks
from engine.guest.mapping import Mapping, SharedExtent
from engine.guest.memory import Memory
from engine.guest.modules import Module
from engine.history.journal import (
    CAUSES,
    WORDS,
    Entry,
    EntryCause,
    InstructionInput,
    Journal,
    Op,
    Remarks,
)
from engine.history.layout import mapping_of, show
from engine.image import ElfImage
from engine.linux import faults, vdso
from engine.linux.ending import Crash, Exit
from engine.linux.kernel import Kernel
from engine.linux.loader import Start
from engine.linux.machine import Machine
from engine.linux.process import Process
from engine.linux.schedule import Why
from engine.linux.space import AddressSpace
from engine.linux.thread import SystemCall, Thread
from engine.linux.turns import Turns
from engine.linux.wait import Wait

_WHYS: Final = {why.value: why for why in Why}
_STRUCTURE: Final = (
    *(Op.MAPPINGS, Op.NOTICE, Op.SPACE, Op.LENT, Op.REPLACED, Op.ENDED, Op.PROGRAM, Op.THREAD),
    *(Op.FIRST, Op.LEAVES, Op.EXIT, Op.NAME),
)
"""The entries that tell of threads, address spaces and mappings, and not of what these hold."""
_NONSENSE: Final = (
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, BufferError),
    *(MemoryError, struct.error, ctypes.ArgumentError, EngineError),
)
"""Errors of carrying out what a damaged journal says."""
_PATIENCE: Final = 64
"""Stops at a tick's end before the entry that is due there is missed."""


class DivergenceError(KprobeTuiError):
    """A run of the past does not do what was recorded."""

    hint = (
        "a replay has met something that the recording does not know: probes that change the "
        "program (handlers, semaphores of static probes, --mode kernel, --returns) may do that; "
        "otherwise please report it"
    )


class Cutoff(Exit, frozen=True):
    """The end of a recording that was cut off."""


def _crash(value: Sequence[Any]) -> Crash | None:
    if not value:
        return None
    number, pc, address, why = value
    return Crash(number, pc, None if address < 0 else address, why)


class ReplayKernel(Kernel):
    """Lets threads run as a journal has it.

    Attributes:
        at: number of the entry that comes next.
        inputs: number of the next thing that an instruction gets.
        output: told (descriptor of the host's, bytes) of what the guest writes.
        reached: the tick that a journal without an end went up to, behind its last entry.
        spaces: address spaces by the journal's numbers.
        arena: bytes of the recorded guest's physical memory.
        zeroed: pages that were given back since somebody emptied this.
        limit: a tick that no stretch goes beyond the end of; None for none.
        acting: told of an entry at which the program does not arrive by itself, before it is done.
        turns: numbers of the entries that it has come to at which threads, address spaces or
            mappings have changed.
    """

    def __init__(
        self,
        machine: Machine,
        turns: Turns,
        journal: Journal,
        open_image: Callable[[str], ElfImage | None],
        arena: int,
    ) -> None:
        """Stand in front of everything: no entry has been done.

        Args:
            machine: with its first thread, in an empty address space.
            turns: nobody asks them.
            journal: what is to happen.
            open_image: gives the file of a guest's path.
            arena: bytes of the recorded guest's physical memory.
        """
        super().__init__(machine, turns)
        self.journal = journal
        self.at = self.inputs = self.reached = 0
        self.output: Callable[[int, bytes], object] = lambda descriptor, data: None
        self.spaces: dict[int, AddressSpace] = {0: machine.current.space}
        machine.current.memory.first_touch.provider = self._provide
        self.extents: dict[int, SharedExtent] = {}
        self._open_image = open_image
        self.arena = arena
        self.zeroed: set[int] = set()
        self.limit: int | None = None
        self.acting: Callable[[Entry], object] | None = None
        self._tries = 0
        self._stepped = False  # the thread has been let go one instruction since the last entry
        self._known: tuple[int, Entry | None] | None = None
        self._saved: list[object] = []
        self._do: dict[int, Callable[..., None]] = {
            Op.WRITE: self._write,
            Op.POKE: self._poke,
            Op.FILL: self._fill,
            Op.CONTENT: lambda at, digest: self._fill(at, journal.contents[digest]),
            Op.ZERO: self._zero,
            Op.COPY: self._copy,
            Op.REGISTER: self._cpu.write_register,
            Op.BLOCK: self._cpu.write_block,
            Op.SAVE: self._save,
            Op.RESTORE: self._restore,
            Op.EXECUTE: self._execute,
            Op.EXPECT: self._cpu.expect,
            Op.BEGIN: lambda: self._cpu.go_on(None),
            Op.CLEAR_FLAGS: self._cpu.clear_float_flags,
            Op.SWITCH: self._switch,
            Op.RETURN: self._return,
            Op.WAIT: self._wait,
            Op.MAPPINGS: self._mappings,
            Op.NOTICE: self._notice,
            Op.SPACE: self._space,
            Op.LENT: self._lent,
            Op.REPLACED: self._replaced,
            Op.ENDED: self._ended,
            Op.PROGRAM: self._program,
            Op.THREAD: self._thread,
            Op.FIRST: self._first,
            Op.LEAVES: self._leaves,
            Op.EXIT: self._exit,
            Op.SWITCHING: self._switching,
            Op.WOKEN: self._woken,
            Op.EXECUTED: self._executed,
            Op.NAME: self._name,
            Op.SIGNAL: self._signal,
            Op.OUTPUT: self._output,
            Op.END: self._finish,
        }
        self.turns = array("Q")
        self._structure = {kind: self._do[kind] for kind in _STRUCTURE}
        self._structure[Op.SAVE] = lambda: self._saved.append(None)
        for kind in _STRUCTURE:
            self._do[kind] = partial(self._turned, self._do[kind])

    def _turned(self, do: Callable[..., None], *values: Any) -> None:
        """Do something that changes threads, address spaces or mappings."""
        if not self.turns or self.turns[-1] < self.at - 1:
            self.turns.append(self.at - 1)
        do(*values)

    # -- for checkpoints: `engine.history.livecheckpoints.ToldRun` --------------------------------

    @property
    def is_told(self) -> bool:
        """True if the journal tells what happens now."""
        return self.at < len(self.journal)

    @property
    def passed(self) -> tuple[int, int]:
        """Entries and inputs of instructions that have happened."""
        return self.at, self.inputs

    def mappings(self) -> Iterator[tuple[AddressSpace, Mapping]]:
        """The mappings of the recorded guest's memory, each with its address space."""
        for space in self.spaces.values():
            for mapping in space.memory.mappings:
                if mapping.physical is not None and mapping.physical < self.arena:
                    yield space, mapping

    # -- running --------------------------------------------------------------------------------

    @property
    def next(self) -> Entry | None:
        """The entry that comes next."""
        known = self._known
        if known is None or known[0] != self.at or known[1] is None:  # it may have grown
            journal = self.journal
            entry = journal[self.at] if self.at < len(journal) else None
            known = self._known = (self.at, entry)
        return known[1]

    def load(self) -> None:
        """Do the first entry: the program stands in front of its first instruction."""
        self._apply(self.journal[0])
        self._cpu.count_blocks(True)

    def _here(self) -> tuple[int, int]:
        """(clock, pc) of the current thread, by the program's own addresses."""
        pc = self.machine.current.hooks.original_pc(self._cpu.read_register(self._pc))
        return self._cpu.blocks(), pc

    def _due(self, entry: Entry) -> bool:
        """True if an entry that the program does not come to by itself is next."""
        clock, pc = self._here()
        if entry.cause == EntryCause.ANYWHERE:
            clock = self._cpu.coming()
        elif entry.cause == EntryCause.STEP and not self._stepped:
            return False
        return not EntryCause(entry.cause).expected and (clock, pc) == (entry.clock, entry.pc)

    def _resume(self, *, alone: bool) -> None:
        thread = self._stands()
        if thread is None:
            return
        held = thread.hooks.hold()  # in any case: code in the guest learns of the thread
        entry = self.next
        if entry is None:
            self._to_the_cut(thread)
            return
        if self._due(entry) and not held:
            if self.acting is not None and entry.cause == EntryCause.ANYWHERE:
                self.acting(entry)
            self._apply(entry)
            return
        thread.memory.sync()
        limit = self.limit
        if self.going is not None and not held:
            most = self._cpu.blocks() + self.going()
            limit = most if limit is None else min(limit, most)
        stop = self._stretch(entry, limit)
        if stop is not None:
            self.handle(stop)

    def _to_the_cut(self, thread: Thread) -> None:
        """Run on behind the last entry of a journal that was cut off."""
        now = self._cpu.blocks()
        if now >= self.reached:
            self._cut_off()
            return
        thread.memory.sync()
        end = self.reached if self.limit is None else min(self.reached, max(self.limit, now))
        stop = self._cpu.run(end - now)
        if stop.kind is StopKind.QUANTUM and end < self.reached:
            return
        if stop.kind is StopKind.QUANTUM:
            self._cut_off()
        else:
            self.handle(stop)

    def resume(self, *, alone: bool = False) -> None:
        """Run one stretch of a thread up to the next thing that the journal has."""
        self._resume(alone=alone)

    def walk(self, entries: Iterable[int]) -> None:
        """Let there be the threads, address spaces and mappings that the journal tells of.

        What they hold is the caller's care.

        Args:
            entries: numbers of those that tell of them, in order.

        Raises:
            DivergenceError: they make no sense.
        """
        machine, saved, do = self.machine, self._saved, self._structure
        for number in entries:
            saved.clear()
            entry = self.journal[number]
            try:
                for op in entry.ops:
                    if op[0] in do:
                        do[op[0]](*op[1:])
            except _NONSENSE as error:
                raise DivergenceError(
                    f"entry {number} of the recording, {entry}, makes no sense: {error!r}"
                ) from error
        saved.clear()
        machine.serving = None

    def go_back(self, at: int, inputs: int) -> None:
        """Stand at an entry again; all else is the caller's care."""
        self.at, self.inputs = at, inputs
        self._tries, self._stepped = 0, False
        self._known = None
        self._saved.clear()

    def _hold(self, thread: Thread) -> None:
        # Saved registers may be those of a checkpoint, and are not written over.
        self._spare = None
        super()._hold(thread)
        self._spare = None

    def _stands(self) -> Thread | None:
        """The current thread, None where the run is over."""
        if self._host.waiting():
            self._hear_host()
        return None if self.machine.exit is not None else self.machine.current

    def _stretch(self, entry: Entry, limit: int | None) -> Stop | None:
        """Run towards an entry, but not beyond the end of a tick."""
        now = self._cpu.blocks()
        rest = entry.clock - now
        if rest < 0:
            raise self._diverged(entry, "the program has gone on")
        if entry.cause == EntryCause.STEP:
            return self._step_of_tracer(entry)
        if limit is not None and limit < entry.clock:
            return self._cpu.run(max(limit - now, 0))
        if EntryCause(entry.cause) is not EntryCause.ANYWHERE:
            stop = self._cpu.run(rest)
            if stop.kind is StopKind.QUANTUM and rest == 0:
                self._try(entry)
            return stop
        coming = self._cpu.coming()
        if coming < entry.clock:
            return self._cpu.run(max(rest - 1, 0))
        if coming > entry.clock:
            raise self._diverged(entry, "the program has gone on")
        return self._cpu.step()

    def _step_of_tracer(self, entry: Entry) -> Stop | None:
        """Let the thread go the one instruction that a tracer has let it go.

        Where a probe stands that may take several.
        """
        thread = self.machine.current
        if self._stepped and not thread.hooks.hold():
            raise self._diverged(entry, "the program has gone on")
        self._stepped = True
        return self._cpu.step()

    def _try(self, entry: Entry) -> None:
        """The program has come to the end of a tick again; not too often."""
        self._tries += 1
        if self._tries > _PATIENCE:
            raise self._diverged(entry, "the program comes to the end of that tick")

    def step(self) -> None:
        """One instruction, with the entry behind it or in front of it."""
        thread = self._stands()
        if thread is None:
            return
        held = thread.hooks.hold()
        entry = self.next
        if entry is not None and self._due(entry) and not held:
            self._apply(entry)
            return
        if entry is None and self._cpu.coming() > self.reached:
            self._cut_off()
            return
        thread.memory.sync()
        self._stepped = True
        stop = self._cpu.step()
        if stop is not None:
            self.handle(stop)

    def wait(self) -> None:
        """Return at once: the thread that the journal has next goes on."""

    def _cut_off(self) -> None:
        self.machine.exit = Cutoff(limit="recording")

    def take(self, stop: Stop, *, asked: bool = False) -> None:
        """Do what the journal says about a stop."""
        cause = CAUSES.get(stop.kind)
        if cause is None or cause is EntryCause.QUANTUM:
            return
        thread, entry = self.machine.current, self.next
        if entry is None:
            self._cut_off()
            return
        here = self._here()
        if entry.cause != cause or here != (entry.clock, entry.pc) or entry.thread != thread.tid:
            raise self._diverged(entry, WORDS[cause], stop)
        if cause is EntryCause.SYSCALL:
            self._enter_call(thread)
        self._apply(entry)

    def handle(self, stop: Stop) -> None:
        """Do what a stop of the CPU asks for."""
        thread = self.machine.current
        if stop.kind is StopKind.FAULT:
            refused = thread.hooks.watched(stop)
            if refused is None or (
                refused.kind is StopKind.FAULT
                and (faults.opened(thread, refused) or faults.provided(thread, refused))
            ):
                return
            stop = refused
        left = thread.hooks.stopped(stop)
        if left is not None:
            self.take(left)

    def _provide(self, address: int, access: str) -> bool:
        """Memory is touched first: the journal has the pages; False where it has none for it."""
        entry = self.next
        if entry is None or entry.cause != EntryCause.FAULT or entry.pc != self._here()[1]:
            return False
        self._apply(entry)
        return True

    def _enter_call(self, thread: Thread) -> None:
        machine = self.machine
        registers = self._calls.read()
        number, arguments = registers[0], registers[1:-1]
        name = self._linux.syscalls.get(number)
        self._calls.clobber(registers)
        machine.syscall_count += 1
        machine.caller = thread
        machine.hooks.syscall_enter(number, name or f"#{number}", arguments)
        entry = self._calls.table[name] if name is not None else None
        count = len(arguments) if entry is None else entry[1]
        thread.call = SystemCall(number, name or "", arguments[:count])

    def _diverged(self, entry: Entry, what: str, stop: Stop | None = None) -> DivergenceError:
        clock, pc = self._here()
        detail = ""
        if stop is not None and stop.kind is StopKind.SYSCALL:
            number = self._calls.read()[0]
            detail = f" ({self._linux.syscalls.get(number, f'#{number}')})"
        elif stop is not None and stop.access:
            detail = f" ({stop.access} at {stop.address:#x})"
        return DivergenceError(
            f"the replay differs from the recording at its entry {self.at}: recorded was {entry}; "
            f"replayed is {what}{detail} at tick {clock}, pc {pc:#x}, "
            f"thread {self.machine.current.tid}"
        )

    def input(self) -> Any:
        """The value that the instruction at hand got.

        Raises:
            DivergenceError: none did, here.
        """
        inputs = self.journal.inputs
        if self.inputs >= len(inputs) or inputs[self.inputs][0] != self._cpu.blocks():
            known = inputs[self.inputs][0] if self.inputs < len(inputs) else None
            told = "none" if known is None else f"one at tick {known}"
            raise DivergenceError(
                "the replay differs from the recording: an instruction asks for its input at tick "
                f"{self._cpu.blocks()}, recorded was {told}"
            )
        found = InstructionInput(*inputs[self.inputs]).value
        self.inputs += 1
        return found

    # -- what the journal says ------------------------------------------------------------------

    def _apply(self, entry: Entry) -> None:
        self.at += 1
        self._tries, self._stepped = 0, False
        self._saved.clear()
        machine, do = self.machine, self._do
        machine.serving = machine.current if entry.cause == EntryCause.SYSCALL else None
        try:
            for op in entry.ops:
                do[op[0]](*op[1:])
        except _NONSENSE as error:
            raise DivergenceError(
                f"entry {self.at - 1} of the recording, {entry}, makes no sense: {error!r}"
            ) from error
        except GuestFaultError as error:
            raise DivergenceError(
                f"the replay differs from the recording at its entry {self.at - 1}, {entry}: "
                f"{error}"
            ) from error
        finally:
            machine.serving = None

    def _write(self, address: int, data: bytes) -> None:
        self.machine.current.memory.write(address, data)

    def _poke(self, space: int, address: int, data: bytes) -> None:
        self.spaces[space].memory.poke(address, data)

    def _fill(self, offset: int, data: bytes) -> None:
        ram = self._ram
        self._check(offset, len(data))
        ram.touch(offset, len(data))
        ram.write(offset, data)
        self._forget_code(offset, len(data))

    @property
    def _ram(self) -> Any:
        return self.machine.current.memory.ram

    def _check(self, offset: int, size: int) -> None:
        """Pages of a journal are in the recorded arena, whoever has written it."""
        if not (0 <= offset <= offset + size <= self.arena):
            raise ValueError(f"memory at {offset:#x}")

    def _zero(self, offset: int, size: int) -> None:
        self._check(offset, size)
        self._forget_code(offset, size)
        for first, last in self._ram.touched_runs(offset, size):
            self.zeroed.update(range(first // PAGE, last // PAGE))
        self._ram.discard(offset, size)

    def _copy(self, source: int, target: int, size: int) -> None:
        self._check(source, size)
        self._check(target, size)
        self._ram.copy(source, target, size)
        self._cpu.flush_tlb()

    def _forget_code(self, offset: int, size: int) -> None:
        """Forget translations of code in pages that get other bytes."""
        memory = self.machine.current.memory
        for mapping in memory.mappings:
            if mapping.perms & 4 and mapping.physical is not None:
                low = max(mapping.physical, offset)
                high = min(mapping.physical + mapping.size, offset + size)
                if low < high:
                    memory.forget(mapping.start + low - mapping.physical, high - low)

    def _save(self) -> None:
        self._saved.append(self._cpu.save())

    def _restore(self, number: int) -> None:
        self._cpu.restore(self.machine.blank if number < 0 else self._saved[number])

    def _execute(self, address: int, end: int) -> None:
        memory = self.machine.current.memory
        memory.sync()
        with memory.opened():
            self._cpu.execute(address, end)

    def _switch(self, tid: int) -> None:
        thread = self.machine.threads[tid]
        if thread.memory.table.changed:
            thread.memory.sync()
        self._hold(thread)
        self.scheduler.switched(thread, self._cpu.blocks())

    def _return(self, result: int, restarts: bool) -> None:
        thread, linux, cpu = self.machine.current, self._linux, self._cpu
        thread.wait = None
        call = thread.call
        name = call.name or f"#{call.number}"
        if restarts:
            pc = cpu.read_register(self._pc)
            before = linux.syscall_before
            again = pc - linux.syscall_size if before is None else before(pc)
            cpu.write_register(self._pc, again)
            self.machine.hooks.left_call(call.number, name, result)
            return
        self.machine.hooks.left_call(call.number, name, result)
        if linux.error:
            cpu.write_register(linux.error, 0xFFFFFFFFFFFFFFFF if result < 0 else 0)
            result = abs(result)
        cpu.write_register(linux.result, result & 0xFFFFFFFFFFFFFFFF)

    def _output(self, descriptor: int, data: bytes) -> None:
        self.output(descriptor, data)

    def _wait(self) -> None:
        self.machine.current.wait = Wait(lambda: None)

    # -- address spaces -------------------------------------------------------------------------

    def _mappings(self, space: int, start: int, end: int, values: Sequence[Any]) -> None:
        memory = self.spaces[space].memory
        mappings = [mapping_of(value, self.extents) for value in values]
        for mapping in mappings:
            if mapping.physical is not None:
                self._check(mapping.physical, mapping.size)
        show(memory, start, end, mappings)

    def _notice(self, space: int, what: str, start: int, size: int) -> None:
        there = self.spaces[space]
        if what == "copy":
            self.machine.spaces.copied(self.spaces[start], there)
        else:
            there.memory.on_change(what, start, size)

    def _space(self, number: int, copy_of: int) -> None:
        if number in self.spaces:
            return
        current = self.machine.current.space
        old = self.spaces.get(copy_of)
        memory: Memory = (old or current).memory.fresh()
        modules = old.modules.copy(memory) if old is not None else current.modules.fresh(memory)
        memory.first_touch.provider = self._provide
        made = self.spaces[number] = AddressSpace(memory, modules, SpaceHooks())
        if old is not None:
            made.heap, made.start = old.heap, old.start
            made.exe, made.argv, made.env = old.exe, old.argv, old.env

    def _program(
        self,
        space: int,
        files: Sequence[tuple[str, int]],
        exe: bytes,
        argv: Sequence[bytes],
        env: Sequence[bytes],
        heap: Sequence[int],
        code: Sequence[int],
        auxv: bytes,
    ) -> None:
        made = self.spaces[space]
        made.exe, made.argv, made.env = exe, tuple(argv), tuple(env)
        made.heap = (heap[0], heap[1])
        made.start = Start(0, 0, heap[0], auxv, (code[0], code[1]))
        for path, bias in files:
            image = self._image(path)
            if image is not None:
                made.modules.add(Module(path, image, bias))

    def _image(self, path: str) -> ElfImage | None:
        """The file of a guest's path, or the vDSO."""
        abi = self.machine.arch.linux.vdso
        if path == vdso.NAME and abi is not None:
            return vdso.image_of(abi)
        return self._open_image(path)

    def _lent(self, space: int, thread: int, child: int) -> None:
        self.machine.spaces.lent(self.spaces[space], thread, child)

    def _replaced(self, pid: int, old: int, new: int) -> None:
        process, before, space = self.machine.processes[pid], self.spaces[old], self.spaces[new]
        before.users -= 1
        process.borrows = False
        process.enter(space)
        space.memory.activate()
        self.machine.spaces.replaced(before, space)

    def _ended(self, number: int) -> None:
        self.machine.spaces.ended(self.spaces.pop(number))

    # -- threads --------------------------------------------------------------------------------

    def _thread(
        self, maker: int, tid: int, pid: int, parent: int, space: int, name: bytes, saved: int
    ) -> None:
        machine = self.machine
        first, by = machine.first, machine.threads[maker]
        process = machine.processes.get(pid)
        if process is None or not process.threads:
            process = Process(machine, pid, self.spaces[space], (first.uid, first.gid))
            process.files, process.place = first.files, first.place
            process.parent = machine.processes.get(parent)
            if process.parent is not None:
                process.parent.children[pid] = process
            process.group, process.session = by.process.group, by.process.session
        thread = Thread(process, tid, name)
        thread.registers = self._saved[saved]
        for listener in machine.moments.started:
            listener(by, thread)
        machine.hooks.renamed(tid)

    def _first(self, tid: int) -> None:
        self.machine.becomes_first(self.machine.threads[tid])

    def _leaves(self, tid: int, last: bool, spent: int, ran: int) -> None:
        machine = self.machine
        thread = machine.threads[tid]
        for listener in machine.moments.leaving:
            listener(thread, last)
        process = thread.process
        process.spent += spent
        process.ran += ran
        if thread is machine.current:
            machine.turn_over()
        thread.ended, thread.wait = True, None
        process.threads.pop(tid, None)
        process.last = thread
        machine.threads.pop(tid, None)

    def _exit(self, pid: int, code: int, number: int, crash: Sequence[Any]) -> None:
        process = self.machine.processes[pid]
        process.exit = Exit(None if code < 0 else code, number, crash=_crash(crash))

    def _switching(self, before: int, after: int, why: str) -> None:
        threads = self.machine.threads
        current = self.machine.current
        one = current if before else None  # it may have ended
        self._idle = not after
        for listener in self.machine.moments.switching:
            listener(one, threads[after] if after else None, _WHYS[why])

    def _woken(self, tid: int) -> None:
        thread = self.machine.threads[tid]
        for listener in self.machine.moments.woken:
            listener(thread)

    def _executed(self, tid: int, before: int, path: bytes) -> None:
        for listener in self.machine.moments.executed:
            listener(self.machine.threads[tid], before, path)

    def _name(self, tid: int, name: bytes) -> None:
        thread = self.machine.threads[tid]
        thread.set_comm(name)

    def _signal(self, number: int) -> None:
        self._cpu.last_branches[0] = OUTSIDE
        self.machine.delivering = number
        self.machine.hooks.signalled()
        self.machine.delivering = 0

    def _finish(
        self,
        code: int,
        number: int,
        limit: str,
        by_user: bool,
        crash: Sequence[Any],
        said: Sequence[Any],
    ) -> None:
        remarks, machine = Remarks(*said), self.machine
        machine.crashes[:], machine.crash_count = remarks.crashes, remarks.crashed
        machine.missing.update(remarks.missing)
        self.machine.exit = Exit(None if code < 0 else code, number, limit, _crash(crash), by_user)
