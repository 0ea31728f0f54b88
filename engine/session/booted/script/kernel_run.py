"""The run of a script on a booted kernel: what its actions ask for while the machine stands."""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from engine.errors import GuestFaultError
from engine.image.elf import ElfImage
from engine.image.symtab import Symbol
from engine.machine.addresses import KernelAddresses
from engine.machine.currenttask import NOBODY, TaskReader
from engine.machine.kernelmodules import KernelModules
from engine.machine.machine import BareMachine
from engine.machine.programpages import ProgramPages
from engine.machine.programs import PROGRAMS_END, FileMapping
from engine.session.booted.programs import MachinePrograms
from engine.session.booted.script.task_facts import TaskFacts
from engine.session.booted.stacks import BootStacks
from engine.session.kernel.opened import OpenedKernel
from engine.session.tracing.script.running import ScriptExit
from engine.trace.bpftrace.captures import Action
from engine.trace.bpftrace.value_names import SymbolName, ValueNames

_NAMES_MOST: Final = 1 << 16
"""Tasks whose names are known at a time."""
_PATH_MOST: Final = 1 << 12
"""PATH_MAX of Linux."""
_FIRST_TASK: Final = "init_task"
_PARENT, _LEADER = "real_parent", "group_leader"
_MASK: Final = (1 << 64) - 1


FindSymbol = Callable[[str, str], "tuple[str, ElfImage, Symbol] | None"]


class KernelRun:
    """One run of a script; `captures.RunSurroundings` says what actions ask of it.

    Attributes:
        memory_readers: functions that expressions of hits use to read memory.
        over: exit() was called.
        code: what it was called with.
        find_symbol: finds a symbol in the file of a probe: (file, name) to path, file, symbol.
        printed: called when what actions have printed is to come out.
        started: when the script began.
        ends_machine: exit() ends the machine, too.
    """

    def __init__(
        self,
        opened: OpenedKernel,
        machine: BareMachine,
        addresses: KernelAddresses,
        reader: TaskReader,
        began: int,
        seed: int,
    ) -> None:
        """Set up for a machine that has not begun.

        Args:
            opened: the kernel in it.
            machine: the machine.
            addresses: its memory as the kernel sees it.
            reader: tells which task runs.
            began: nanoseconds since 1970 at power-on.
            seed: of the script's random numbers.
        """
        self.over, self.ends_machine = False, True
        self.code = 0
        self.printed: Callable[[], object] = lambda: None
        self.find_symbol: FindSymbol = lambda target, name: None
        self.started = 0
        self.modules: KernelModules | None = None
        self.programs: MachinePrograms | None = None
        self.stacks: BootStacks | None = None
        self.memory_readers: dict[str, Any] = {
            "string_in": self.string,
            "bytes_at": lambda address, size: self.memory(address, size) or b"",
            "number_at": self._number,
        }
        self._opened, self._machine, self._addresses = opened, machine, addresses
        self._reader, self._began = reader, began
        self._task = NOBODY
        self._comms: dict[int, bytes] = {}
        self._spaces: dict[int, tuple[FileMapping, ...]] = {}
        self._facts = TaskFacts(opened, addresses, lambda: self._task.address)
        self._random = random.Random(seed)
        self._told = False

    # -- hits -----------------------------------------------------------------------------

    def hit(self, actions: Sequence[Action], data: Any = b"", *, told: bool = False) -> None:
        """Run actions at a hit.

        Args:
            actions: of a place.
            data: what its readers ask for.
            told: the machine stands where the record of an event is made.
        """
        if self.over:
            return
        task = self._task = self._reader.now()
        thread = task.pid
        self._told = told
        if self._comms.get(thread) != task.comm:
            self._learn(thread, task.comm)
        if self.programs is not None and self.programs.is_named:
            self._look_around(task.tgid, self.programs)
        try:
            for action in actions:
                action(data, 0, thread)
        except ScriptExit:
            self.end()
        self.printed()

    def _learn(self, thread: int, comm: bytes) -> None:
        if len(self._comms) >= _NAMES_MOST:
            self._comms.clear()
        self._comms[thread] = comm

    def _look_around(self, process: int, programs: MachinePrograms) -> None:
        """Keep which files a process has in its memory: its addresses may be printed later."""
        space = programs.space()
        if space:
            if len(self._spaces) >= _NAMES_MOST:
                self._spaces.clear()
            self._spaces[process] = space

    def look(self, actions: Sequence[Action]) -> None:
        """Run actions at a time of the machine's."""
        self._addresses.forget()
        self.hit(actions)

    def end(self) -> None:
        """No action runs any more, and the machine ends where it is."""
        self.over = True
        if self.ends_machine:
            self._machine.halt()

    # -- what actions ask -----------------------------------------------------------------

    def memory(self, address: int, size: int) -> bytes | None:
        """Bytes of the kernel's, or of the program that runs; None where they cannot be read."""
        address &= _MASK
        try:
            pages = self._pages(address)
            return (self._addresses if pages is None else pages).read(address, size)
        except GuestFaultError:
            return None

    def _pages(self, address: int) -> ProgramPages | None:
        """The memory of a program that is at a place of its own, where that is what is asked."""
        if address < PROGRAMS_END and self.programs is not None and self.user_mode():
            return self.programs.pages
        return None

    def string(self, address: int, size: int) -> bytes:
        """A string of at most so many bytes with its NUL, which is left out."""
        if size <= 1:
            return b""
        try:
            pages = self._pages(address & _MASK)
            memory = self._addresses if pages is None else pages
            return memory.read_cstring(address & _MASK, size - 1)
        except GuestFaultError:
            return b""

    def _number(self, address: int, size: int = 8, signed: bool = False) -> int:
        return int.from_bytes(self.memory(address, size) or b"", "little", signed=signed)

    def register(self, name: str) -> int:
        """A register at the hit."""
        names = self._opened.arch.probes.fetch_registers
        return self._machine.cpu[names.get(name, name)]

    def process(self, thread: int) -> int:
        """The process of the task that runs."""
        return self._task.tgid if thread == self._task.pid else thread

    def parent(self, thread: int) -> int:
        """The process of its parent."""
        return self._facts.relative(_PARENT)[0]

    def comm(self, thread: int) -> bytes:
        """The name of a task that is near the one that runs, or was seen; "" of others."""
        if thread == self._task.pid:
            return self._task.comm
        for member in (_LEADER, _PARENT):
            process, name = self._facts.relative(member)
            if process == thread:
                return name
        return self._comms.get(thread, b"")

    def user_mode(self) -> bool:
        """The processor runs a program, no kernel."""
        return bool(self._machine.cpu.privilege)

    def user(self, thread: int) -> int:
        """The user of the task that runs."""
        return self._facts.user()

    def group(self, thread: int) -> int:
        """The group of the task that runs."""
        return self._facts.group()

    def task(self) -> int:
        """The address of its `struct task_struct`; at power-on the kernel's first task runs."""
        return self._task.address or self._opened.names.find(_FIRST_TASK) or 0

    def cgroup(self, thread: int) -> int:
        """The id of its control group."""
        return self._facts.cgroup()

    def path(self, where: int | bytes, size: int) -> bytes:
        """The path that a `struct path` stands for; the end of one that is too long (d_path)."""
        where = where if isinstance(where, bytes) else where & _MASK
        found = self._facts.path(where, _PATH_MOST)
        return found[-(size - 1) :] if size > 1 else b""

    def stack(self, space: Literal["user", "kernel"], limit: int) -> tuple[int, ...]:
        """The addresses of the call stack, innermost first."""
        if space == "user" and self.stacks is not None and self._machine.cpu.privilege:
            return self.stacks.program_places(self.stacks.registers(), limit)
        if space == "user":
            return self._facts.user_stack(limit)
        if self.stacks is None or self._machine.cpu.privilege:
            return ()
        self.stacks.telling = self._told
        found = self.stacks.places(self.stacks.registers(), limit=limit)
        self.stacks.telling = False
        return found

    def build_ids(self, frames: tuple[int, ...], process: int) -> tuple[tuple[bytes, int], ...]:
        """The addresses alone: files of the system are not read."""
        return tuple([(b"", frame) for frame in frames])

    def main_process(self) -> int:
        """The first program of the system."""
        return 1

    def function(self, address: int) -> bytes:
        """The name of the function at an address."""
        named = self._named(address) if address >= PROGRAMS_END else None
        found = (named,) if named is not None else self._user_symbols(address, self._task.tgid)
        return found[0].name.encode() if found else f"{address:#x}".encode()

    def symbol_address(self, name: str, target: str) -> int:
        """The address of a symbol: of the kernel, or in the file of a probe in a program."""
        known = self.find_symbol(target, name) if target else None
        if known is None or self.programs is None:
            return self._opened.names.find(name) or 0
        path, image, symbol = known
        bias = 0 if image.kind == "exec" else self.programs.loaded_at(path, image)
        return 0 if bias is None else symbol.address + bias

    def processors(self) -> int:
        """The one processor of the machine."""
        return 1

    def wall(self) -> int:
        """Nanoseconds since 1970 at power-on."""
        return self._began

    def random(self) -> int:
        """A number of 32 bits."""
        return self._random.getrandbits(32)

    def exit(self, code: int) -> None:
        """End the run.

        Raises:
            ScriptExit: always: the action goes no further.
        """
        self.code = code
        raise ScriptExit

    def signal(self, number: int, thread: int) -> None:
        """No task is sent anything: a script that asks for it is refused."""

    def file(self, path: bytes) -> bytes | None:
        """None: files of the system are not read, and a script that asks for it is refused."""
        return None

    def unwatch(self, address: int) -> None:
        """There are no watchpoints."""

    def syscall_name(self, number: int) -> bytes:
        """The name of a system call by its number; "" if there is none."""
        return self._opened.arch.linux.syscalls.get(number, "").encode()

    # -- names ----------------------------------------------------------------------------

    def names(self) -> ValueNames:
        """The names of what actions print; the time of the day is Greenwich's."""
        return ValueNames(
            self._user_symbols,
            self._kernel_symbols,
            localtime=time.gmtime,
            booted_at=self._began,
        )

    def _user_symbols(self, address: int, process: int) -> tuple[SymbolName, ...]:
        programs = self.programs
        space = self._spaces.get(process, ())
        found = programs.names(address, space) if programs is not None else None
        if found is None:
            return ()
        path, link, _, symbols = found
        symbol = symbols.at(link)
        return () if symbol is None else (SymbolName(symbol.name, link - symbol.address, path),)

    def _kernel_symbols(self, address: int) -> tuple[SymbolName, ...]:
        found = self._named(address)
        return () if found is None else (found,)

    def _named(self, address: int) -> SymbolName | None:
        bounds = self._opened.names.bounds(address)
        if bounds is not None:
            return SymbolName(bounds[0], address - bounds[1])
        found = self.modules.at(address) if self.modules is not None else None
        if found is None:
            return None
        return SymbolName(found[1].name, address - found[1].start, found[0].name)
