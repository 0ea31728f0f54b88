"""Makes the journal of a run while it runs."""

from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from engine.cpu.base import Cpu, StopKind
from engine.cpu.ram import PAGE
from engine.guest.mapping import Mapping
from engine.history.inputs import ActKind, HostInputs, UserAct
from engine.history.journal import CAUSES, EntryCause, Journal, Op, Remarks
from engine.history.layout import Extents, MappingLog
from engine.history.moment import Moment
from engine.history.registers import NotedRegisters
from engine.linux.ending import Crash, Exit
from engine.linux.fs.stdio import HostStream
from engine.linux.machine import Machine
from engine.linux.process import Process
from engine.linux.schedule import Why
from engine.linux.space import AddressSpace
from engine.linux.thread import Thread

_PIECE: Final = 256
"""Pages of the program at its start that are told at once."""
_LONG: Final = 64 << 10
"""Bytes from which on a content is told once, and by its digest then."""


def noted(machine: Machine, cpu: Cpu) -> NotedRegisters:
    """The registers of a machine as its calls have them from now on, which can be recorded."""
    registers = NotedRegisters(cpu, lambda: machine.blank)
    machine.registers = registers
    return registers


def _crash(crash: Crash | None) -> tuple[Any, ...]:
    if crash is None:
        return ()
    return (crash.signal, crash.pc, -1 if crash.address is None else crash.address, crash.why)


class RunRecorder:
    """Records one machine; an `engine.linux.recorder.KernelRecorder`.

    Attributes:
        journal: what has been recorded.
        grown: told of each entry that has been added, by its bytes.
        wrote: told of what the guest has written to the host, by its bytes.
        mapped: told (address space, start, size) of mappings that have come or changed.
        full: the budget was used up, and nothing is recorded any more.
        end: the tick up to which there is something then.
        turns: numbers of the entries at which threads, address spaces or mappings have changed.
        inputs: what comes from the host; None where that is not kept.
    """

    def __init__(
        self,
        machine: Machine,
        registers: NotedRegisters,
        journal: Journal,
        budget: int | None = None,
        inputs: HostInputs | None = None,
    ) -> None:
        """Begin, in front of the first instruction.

        Args:
            machine: it, with its first thread.
            registers: those that `noted` has given it.
            journal: it goes there.
            budget: bytes that the journal may take; None for any number.
            inputs: takes what comes from the host, so that the run can be carried out again.
        """
        self.full = False
        self.inputs = inputs
        if inputs is not None:
            inputs.attach(machine.first, machine.host)
            inputs.now = lambda: (journal.total, machine.cpu.blocks())
        self._left = budget
        self._added = 0  # bytes of contents that this entry has brought
        self.journal = journal
        self.grown: Callable[[int], object] = lambda size: None
        self.wrote: Callable[[int], object] = lambda size: None
        self.mapped: Callable[[AddressSpace, int, int], object] = lambda space, at, size: None
        self._machine = machine
        self._cpu = machine.cpu
        self._ram = machine.current.memory.ram
        self._registers = registers
        self._pc = machine.arch.roles.pc
        self._active = False
        self._cause: EntryCause = EntryCause.ANYWHERE
        self._ops: list[Any] | None = None
        self._head = (0, 0, 0, 0)
        self._extents = Extents()
        self._numbers: dict[AddressSpace, int] = {}
        self._spaces = 0
        self.end = 0
        self._layouts: list[tuple[int, MappingLog, list[tuple[int, int]]]] = []
        self.turns = array("Q")
        self._turns = False  # this entry is one
        self._begin()
        machine.recorder = self
        moments = machine.moments
        moments.started.append(self._started)
        moments.leaving.append(self._leaving)
        moments.switching.append(self._switching)
        moments.woken.append(self._woken)
        moments.executed.append(self._executed)

    def _begin(self) -> None:
        """Tell how the program stands before its first instruction."""
        machine = self._machine
        thread, space, arch = machine.current, machine.current.space, machine.arch
        self.enter()
        self._add(space)
        self._program(space)
        self._map(space)
        original = space.hooks.original
        for mapping in space.memory.mappings:
            if mapping.physical is None or (mapping.reserved and not mapping.perms):
                continue
            for at in range(mapping.start, mapping.end, _PIECE * PAGE):
                size = min(_PIECE * PAGE, mapping.end - at)
                offset = mapping.physical + at - mapping.start
                if not self._ram.touched(offset, size):
                    continue
                for first, last in self._ram.touched_runs(offset, size):
                    place = mapping.start + first - mapping.physical
                    data = original(place, space.memory.peek(place, last - first))
                    self.filled(first, data)
        names = (self._pc, arch.roles.sp, *(name for name, _ in arch.linux.start))
        for name in names:
            self._op(Op.REGISTER, name, self._cpu.read_register(name))
        self._turn(Op.NAME, thread.tid, thread.comm)
        for file in {id(file): file for file in map(thread.files.peek, range(3))}.values():
            if isinstance(file, HostStream):
                file.io.told = self._output
        self.leave()

    # -- entries --------------------------------------------------------------------------------

    def _open(self) -> list[Any]:
        thread = self._machine.current
        pc = thread.hooks.original_pc(self._cpu.read_register(self._pc))
        # Where the kernel comes by itself there may be a jump that is not counted yet.
        anywhere = self._cause is EntryCause.ANYWHERE
        clock = self._cpu.coming() if anywhere else self._cpu.blocks()
        self._head = (clock, pc, thread.tid, self._cause)
        ops: list[Any] = []
        self._ops = ops
        return ops

    def _op(self, *op: Any) -> None:
        ops = self._ops
        if ops is None:
            ops = self._open()
        ops.append(op)

    def _turn(self, *op: Any) -> None:
        """Threads, processes, address spaces or mappings have changed."""
        self._turns = True
        self._op(*op)

    def _note(self, *op: Any) -> None:
        """A register is about to be changed; `NotedRegisters.note`."""
        self._op(*op)

    def stopped(self, kind: StopKind) -> None:
        """The program has stopped."""
        if self._ops is None:
            self._cause = CAUSES.get(kind, EntryCause.ANYWHERE)

    def stepped(self, *, ends: bool) -> None:
        """The program has been let go one instruction: that tells ticks from those of a run."""
        if self._ops is None:
            self._cause = EntryCause.STEP
            if not ends:
                self._open()

    def begins_call(self, pc: int) -> None:
        """The same as `stopped`, `enter` and `called` for a call of a program nobody watches."""
        machine = self._machine
        if self._ops is None:
            self._head = (self._cpu.blocks(), pc, machine.tid, EntryCause.SYSCALL)
            self._ops = []
        self._active = True
        self._ram.effects = self
        self._registers.note = self._note

    def enter(self) -> None:
        """The kernel works from here on."""
        self._active = True
        self._ram.effects = self
        self._registers.note = self._note

    def pause(self) -> None:
        """Record no more for now."""
        self._active = False
        self._ram.effects = None
        self._registers.note = None

    def leave(self) -> None:
        """The program goes on."""
        if self.full:
            return
        for _, _, changes in self._layouts:
            if changes:
                self._remap()
                break
        ops = self._ops
        if ops is not None:
            size = self.journal.add((*self._head, ops)) + self._added
            if self._turns:
                self.turns.append(len(self.journal) - 1)
            self._ops, self._added, self._turns = None, 0, False
            self._registers.saved.clear()
            self.grown(size)
            if self._left is not None:
                self._left -= size
                self.full = self._left < 0
        self._cause = EntryCause.ANYWHERE
        self._active = False
        self._ram.effects = None
        self._registers.note = None
        if self.full:
            self._stop()

    def _stop(self) -> None:
        """Record no more."""
        machine = self._machine
        machine.recorder = None
        for space in self._numbers:
            space.memory.table.changes = None
            space.memory.bytes.written = space.memory.recorded = None
        moments = machine.moments
        moments.started.remove(self._started)
        moments.leaving.remove(self._leaving)
        moments.switching.remove(self._switching)
        moments.woken.remove(self._woken)
        moments.executed.remove(self._executed)
        self.end = self._cpu.blocks()

    def sync(self) -> None:
        """Have all that has happened in the journal, of a guest that stands."""
        if not self._active:
            self.leave()

    @contextmanager
    def edited(self) -> Iterator[None]:
        """The user changes registers, as calls do, or memory meanwhile: that is recorded, too."""
        working = self._active  # the call of a thread that waits is carried out
        self.leave()
        if self.full:
            yield
            return
        ops, moment = self._open(), self._now()
        self.enter()
        try:
            yield
        finally:
            self.pause()
            if ops:
                self._act(moment, ActKind.EDIT, tuple(ops))
            else:
                self._ops = None
            if working:
                self.enter()

    def _now(self) -> Moment:
        """The moment at which the guest stands, of which all is in the journal."""
        pc = self._machine.current.hooks.original_pc(self._cpu.read_register(self._pc))
        return Moment(self.journal.total, self._cpu.coming(), pc)

    def _act(self, moment: Moment, kind: ActKind, value: object) -> None:
        if self.inputs is not None:
            self.inputs.acts.append(UserAct(moment, kind, value))

    def interrupted(self, number: int) -> None:
        """The host's user sends the first process a signal now."""
        working = self._active
        self.leave()
        if self.full:
            return
        self._act(self._now(), ActKind.SIGNAL, number)
        if working:
            self.enter()

    def preferred(self, tid: int, *, at_once: bool) -> None:
        """The host's user has a thread run whenever it can from now on; 0 for none."""
        self.sync()
        if not self.full:
            kind = ActKind.PREFER if at_once else ActKind.PREFER_NEXT
            self._act(self._now(), kind, tid)

    @property
    def open_ops(self) -> int:
        """Things that have happened at this moment and are not in the journal yet."""
        return len(self._ops or ())

    def space(self, number: int) -> AddressSpace:
        """An address space by the journal's number.

        Raises:
            LookupError: there is none.
        """
        return next(space for space, known in self._numbers.items() if known == number)

    # -- for checkpoints: `engine.history.livecheckpoints.ToldRun` --------------------------------

    @property
    def is_told(self) -> bool:
        """True if what happens now is recorded."""
        return self._machine.recorder is self

    @property
    def passed(self) -> tuple[int, int]:
        """Entries and inputs of instructions so far."""
        return len(self.journal), len(self.journal.inputs)

    def mappings(self) -> Iterator[tuple[AddressSpace, Mapping]]:
        """The mappings whose content is told, each with its address space."""
        layouts = {number: layout for number, layout, _ in self._layouts}
        for space, number in self._numbers.items():
            for mapping in space.memory.mappings:
                if mapping.physical is not None and layouts[number].tells(mapping):
                    yield space, mapping

    # -- memory ---------------------------------------------------------------------------------

    def filled(self, offset: int, data: bytes) -> None:
        """Bytes have been put into the arena."""
        if len(data) < _LONG:
            self._op(Op.FILL, offset, bytes(data))
            return
        digest, is_new = self.journal.content(bytes(data))
        if is_new:
            self._added += len(data)
        self._op(Op.CONTENT, offset, digest)

    def zeroed(self, offset: int, size: int) -> None:
        """Pages are zeros now."""
        self._op(Op.ZERO, offset, size)

    def pages_copied(self, source: int, target: int, size: int) -> None:
        """Fresh pages hold what others do."""
        self._op(Op.COPY, source, target, size)

    def _written(
        self, space: AddressSpace, number: int, address: int, data: bytes, forced: bool
    ) -> None:
        if not self._active:
            return
        if forced or space is not self._machine.current.space:
            self._op(Op.POKE, number, address, bytes(data))
        else:
            self._op(Op.WRITE, address, bytes(data))

    def _add(self, space: AddressSpace, copy_of: int = -1) -> int:
        """Follow an address space from now on."""
        number = self._numbers[space] = self._spaces
        self._spaces += 1
        self._turn(Op.SPACE, number, copy_of)
        memory = space.memory
        layout = MappingLog(memory, self._extents, self._machine.arch.plan)
        assert memory.table.changes is not None
        self._layouts.append((number, layout, memory.table.changes))
        memory.bytes.written = partial(self._written, space, number)
        memory.recorded = partial(self._noticed, space, number)
        return number

    def _map(self, space: AddressSpace) -> None:
        self._remap()
        for mapping in space.memory.mappings:
            if mapping.name.startswith("/"):
                self.mapped(space, mapping.start, mapping.size)

    def _remap(self) -> None:
        """Tell of all mappings that have changed."""
        for number, layout, changes in self._layouts:
            if changes:
                for start, end, values in layout.changes():
                    self._turn(Op.MAPPINGS, number, start, end, values)

    def _noticed(self, space: AddressSpace, number: int, what: str, start: int, size: int) -> None:
        if what == "provide":
            self._provided()
            return
        if not self._active:
            return
        self._remap()
        self._turn(Op.NOTICE, number, what, start, size)
        if what == "map" or what == "protect":
            self.mapped(space, start, size)

    def _provided(self) -> None:
        """Memory that is touched first has got pages; maybe by the program, at a fault."""
        working = self._active
        if not working:
            self.stopped(StopKind.FAULT)
            self.enter()
        self._remap()
        if not working:
            self.leave()

    def _program(self, space: AddressSpace) -> None:
        start = space.start
        self._turn(
            Op.PROGRAM,
            self._numbers[space],
            tuple((module.name, module.bias) for module in space.modules.known),
            space.exe,
            space.argv,
            space.env,
            space.heap,
            (0, 0) if start is None else start.code,
            b"" if start is None else start.auxv,
        )

    # -- calls and threads ------------------------------------------------------------------------

    def called(self) -> None:
        """The current thread makes a system call, or the exception is its own."""
        if self._ops is None:
            self._open()

    @property
    def call(self) -> tuple[int, int] | None:
        """Tick and pc behind the system call that is carried out; None where an entry is none."""
        clock, pc, thread, cause = self._head
        if self._ops is None or cause != EntryCause.SYSCALL or thread != self._machine.tid:
            return None
        return clock, pc

    def switches(self, thread: Thread) -> None:
        """Take note that another thread gets the processor."""
        if self._active:
            self._op(Op.SWITCH, thread.tid)

    def returned(self, result: int, *, restarts: bool) -> None:
        """The current thread's call has this result, or is made again."""
        self._op(Op.RETURN, result, restarts)

    def waits(self) -> None:
        """The current thread's call waits."""
        self._op(Op.WAIT)

    def renamed(self, thread: Thread) -> None:
        """A thread has another name."""
        self._turn(Op.NAME, thread.tid, thread.comm)

    def signalled(self, number: int) -> None:
        """A signal's handler is next."""
        self._op(Op.SIGNAL, number)

    def copied(self, old: AddressSpace, new: AddressSpace) -> None:
        """An address space has been copied."""
        self._add(new, self._numbers[old])
        self._remap()
        self._turn(Op.NOTICE, self._numbers[new], "copy", self._numbers[old], 0)

    def lent(self, space: AddressSpace, thread: int, child: int) -> None:
        """A child borrows its parent's memory."""
        self._turn(Op.LENT, self._numbers[space], thread, child)

    def replaced(self, process: Process, old: AddressSpace, new: AddressSpace) -> None:
        """A process has begun another program."""
        self._add(new)
        self._program(new)
        self._map(new)
        self._turn(Op.REPLACED, process.pid, self._numbers[old], self._numbers[new])

    def ended(self, space: AddressSpace) -> None:
        """Take note that no thread runs in an address space any more."""
        number = self._numbers.pop(space)
        self._turn(Op.ENDED, number)
        self._layouts = [each for each in self._layouts if each[0] != number]
        space.memory.table.changes = None
        space.memory.bytes.written = space.memory.recorded = None

    def became_first(self, tid: int, thread: Thread) -> None:
        """A thread has its process's id now."""
        self._turn(Op.FIRST, tid)

    def _started(self, maker: Thread, thread: Thread) -> None:
        saved = next(
            at for at, each in enumerate(self._registers.saved) if each is thread.registers
        )
        process = thread.process
        self._turn(
            Op.THREAD,
            maker.tid,
            thread.tid,
            process.pid,
            process.ppid,
            self._numbers[thread.space],
            thread.comm,
            saved,
        )

    def _leaving(self, thread: Thread, last: bool) -> None:
        self._turn(Op.LEAVES, thread.tid, last, thread.cpu_time(), thread.ticks())

    def _switching(self, before: Thread | None, thread: Thread | None, why: Why) -> None:
        self._op(
            Op.SWITCHING,
            0 if before is None else before.tid,
            0 if thread is None else thread.tid,
            why.value,
        )

    def _woken(self, thread: Thread) -> None:
        self._op(Op.WOKEN, thread.tid)

    def _executed(self, thread: Thread, before: int, path: bytes) -> None:
        self._op(Op.EXECUTED, thread.tid, before, path)

    def process_ended(self, process: Process) -> None:
        """A process has ended."""
        end = process.exit
        if end is not None:
            code = -1 if end.code is None else end.code
            self._turn(Op.EXIT, process.pid, code, end.signal, _crash(end.crash))

    def _output(self, descriptor: int, data: bytes) -> None:
        if self.full:
            return
        self._op(Op.OUTPUT, descriptor, data)
        self.wrote(len(data))

    def finished(self, end: Exit) -> None:
        """The run is over."""
        if self.journal.complete:
            return
        code = -1 if end.code is None else end.code
        machine = self._machine
        said = Remarks(tuple(machine.crashes), machine.crash_count, dict(machine.missing))
        self._op(Op.END, code, end.signal, end.limit, end.by_user, _crash(end.crash), said)
        self.leave()
        self.journal.complete = True

    def input(self, value: Any) -> None:
        """An instruction got something from outside."""
        if not self._active:
            self.journal.put(self._cpu.blocks(), value)
