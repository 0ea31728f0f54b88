"""A guest built from a configuration and loaded, ready to run: processor, memory, kernel."""

import errno
import os
import struct
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, TypeVar

from engine import arch as architectures
from engine.cpu import cores
from engine.cpu.base import Cpu
from engine.cpu.ram import EXECUTE, Ram
from engine.errors import CommandError, GuestFaultError, ImageError
from engine.guest.hooks import GuestHooks, SpaceHooks
from engine.guest.memory import Memory
from engine.guest.modules import Modules
from engine.image import ElfImage
from engine.insn.disasm import Disassembler
from engine.linux import loader
from engine.linux.clock import GuestClock, StillClock
from engine.linux.errno import LinuxError
from engine.linux.fs.data import Budget
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.host import HostAnswers
from engine.linux.fs.stdio import HostIO, HostStream, StreamStat, host_stdio
from engine.linux.fs.table import DescriptorUse, FileTable
from engine.linux.fs.terminal import Terminal
from engine.linux.fs.vfs import Directory, OpenFile, path_shown
from engine.linux.fs.view import View
from engine.linux.jobs import MachineJobs
from engine.linux.kernel import Kernel
from engine.linux.machine import Machine
from engine.linux.memorylimit import MemoryLimit
from engine.linux.net.network import Network
from engine.linux.process import Process
from engine.linux.procview import ProcView
from engine.linux.space import AddressSpace, ExecutedFile
from engine.linux.thread import Thread
from engine.session.program.libraries import GuestTree
from engine.session.program.opening import OpenedProgram, view_of
from engine.session.protocol.config import GuestConfig

if TYPE_CHECKING:
    from engine.history.registers import NotedRegisters
    from engine.image.corefile import CoreFile
    from engine.session.guest.kernel_stacks import KernelStacks
    from engine.session.guest.user_files import UserFiles
    from engine.session.guest.user_programs import UserPrograms
    from engine.session.kernel.opened import OpenedKernel
    from engine.session.kernel.supervisor import KernelSupervisor
    from engine.session.program.initramfs import InitramfsFiles

_IMAGE_MAX = 1 << 30
_WORD: Final = struct.Struct("<q")
Value = TypeVar("Value", int, bytes)
_STAT: Final = struct.Struct(f"<{len(StreamStat._fields)}q")


class _Inputs(HostIO):
    """The host's standard streams, with all that comes from them passed through the hooks.

    That is data, and every answer that depends on what a stream is, where it stands and how
    much it takes. An answer is a little-endian number of eight bytes, attributes are eight of
    them; a refusal comes as "errno", in place of the answer.
    """

    def __init__(self, hooks: GuestHooks) -> None:
        self._hooks = hooks

    def _data(self, source: str, call: Callable[[], bytes]) -> bytes:
        try:
            data = call()
        except OSError as error:
            code = self._hooks.host_input("errno", _WORD.pack(error.errno or errno.EIO))
            raise OSError(_WORD.unpack(code)[0], error.strerror) from error
        return self._hooks.host_input(source, data)

    def _number(self, source: str, call: Callable[[], int]) -> int:
        return int(_WORD.unpack(self._data(source, lambda: _WORD.pack(call())))[0])

    def read(self, fd: int, count: int) -> bytes:
        """Read a stream."""
        return self._data("read", lambda: os.read(fd, count))

    def write(self, fd: int, data: bytes) -> int:
        """Write; returns how much was taken."""
        return self._number("write", lambda: os.write(fd, data))

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        """Read a redirected file."""
        return self._data("read", lambda: os.pread(fd, count, offset))

    def pwrite(self, fd: int, data: bytes, offset: int) -> int:
        """Write a redirected file."""
        return self._number("write", lambda: os.pwrite(fd, data, offset))

    def seek(self, fd: int, offset: int, whence: int) -> int:
        """Move the position of a redirected file."""
        return self._number("seek", lambda: os.lseek(fd, offset, whence))

    def truncate(self, fd: int, size: int) -> None:
        """Cut a redirected file."""

        def cut() -> int:
            os.ftruncate(fd, size)
            return 0

        self._number("truncate", cut)

    def poll(self, fd: int, events: int) -> int:
        """POLL* bits that hold now."""
        return self._number("poll", lambda: super(_Inputs, self).poll(fd, events))

    def stat(self, fd: int) -> StreamStat:
        """Attributes of the descriptor."""
        return StreamStat(
            *_STAT.unpack(self._data("stat", lambda: _STAT.pack(*super(_Inputs, self).stat(fd))))
        )

    def status(self, fd: int) -> int:
        """Return the status flags of a file."""
        return self._number("flags", lambda: super(_Inputs, self).status(fd))

    def is_terminal(self, fd: int) -> bool:
        """True if it is a terminal."""
        return bool(self._number("terminal", lambda: super(_Inputs, self).is_terminal(fd)))

    def ioctl(self, fd: int, request: int, argument: bytes) -> bytes:
        """A terminal's or pipe's answer."""
        return self._data("ioctl", lambda: super(_Inputs, self).ioctl(fd, request, argument))


def watch(space: AddressSpace) -> None:
    """Have those who watch an address space told of code that comes and goes there."""
    memory, hooks = space.memory, space.hooks

    def changed(what: str, start: int, size: int) -> None:
        if what not in ("unmap", "data"):
            for mapping in memory.overlapping(start, start + size):
                if mapping.perms & EXECUTE:
                    hooks.mapped(start, size)
                    if what == "discard":
                        hooks.discarded(start, size)
                    return
        hooks.unmapped(start, size)

    memory.on_change = changed


class LoadedGuest:
    """A program in a processor and a memory of its own, under the guest's kernel.

    Attributes:
        config: how it was started.
        supervisor: calls the functions of a kernel image; None for a program.
        opened: its own file; `paths`, `image` and `arch` are that file's.
        hooks: where those above listen to all of its processes.
        machine: the computer it runs on.
        process: its first process.
        thread: that one's first thread.
        turns: decides whose turn it is.
        noted: the registers as calls have them, where the run can be recorded.
        core: the core file that it is, None for a program that can run.
        core_remarks: what is missing of that one, in words.
    """

    noted: "NotedRegisters"
    core_remarks: tuple[str, ...] = ()

    def __init__(
        self,
        config: GuestConfig,
        stdio: tuple[OpenFile | None, ...] | None = None,
        opened: OpenedProgram | None = None,
    ) -> None:
        """Load the program.

        Args:
            config: what to run and how.
            stdio: the guest's standard streams, None for one that is closed; the host's if
                not given.
            opened: the program, if it is open already.

        Raises:
            ImageError: the file cannot be run.
            CommandError: an option cannot be carried out.
        """
        self.config = config
        self.opened = opened or OpenedProgram.open(config)
        self.paths, self.arch = self.opened.paths, self.opened.arch
        self.supervisor: KernelSupervisor | None = None
        self.image = self.opened.image
        self.ram = self._make_ram()
        self.disassembler = Disassembler(self.arch)
        self.hooks = GuestHooks()
        self.clock = GuestClock(
            start=config.start,
            host=config.clock == "host",
            host_input=lambda source, data: self.hooks.host_input(source, data),
        )
        self.proc = ProcView()
        self.cpu: Cpu = self._make_cpu()
        memory = Memory(self.arch.plan, self.ram, self.cpu)
        modules = Modules(memory, self._open_guest_image)
        limit = MemoryLimit(config.memory, self.ram)
        self.machine = machine = Machine(
            self.arch,
            self.cpu,
            clock=self.clock,
            seed=config.randomness,
            memory_limit=limit,
            cpus=config.cpus,
        )
        machine.images = self.opened.images
        machine.images.damage = self.image.damage
        machine.hooks = self.hooks
        machine.attend = lambda: self.hooks.attention()
        self.view = self._make_view()
        self.fs = FileSystem(
            self.view,
            self.proc,
            clock=self.clock,
            random_bytes=machine.random_bytes,
            budget=Budget(config.memory, memory=limit),
            cpus=config.cpus,
            copies_clock=StillClock(self.clock),  # the host's took no time of the guest's
            host=self._host_answers(),
        )
        machine.fs = self.fs
        machine.net = Network(self.clock, self.fs.numbers, limit)
        if config.history:
            self._note_registers()
        space = AddressSpace(memory, modules, SpaceHooks())
        identity = (self.fs.identity.uid, self.fs.identity.gid)
        self.core = self._open_core()
        pid = machine.new_id() if self.core is None else self.core.pid
        self.process = Process(machine, pid, space, identity)
        self.process.files = FileTable(
            stdio or self._standard_streams(),
            lambda: self.process.limit("nofile"),
            DescriptorUse(limit),
        )
        tid = pid if self.core is None else self.core.threads[0].tid
        self.thread = machine.current = machine.caller = Thread(self.process, tid)
        machine.tid = machine.task = tid
        machine.first = self.process
        self._control_terminal()
        self.turns = config.turns.begin(config.seed)
        self.kernel = self._make_kernel()
        self.proc.machine = machine
        watch(space)
        try:
            if self.core is not None:
                self._load_core(self.core)
            elif self.opened.kernel is not None:
                self._load_kernel(self.opened.kernel)
            else:
                self._load()
        except GuestFaultError as error:
            raise CommandError(
                f"--memory {config.memory}: too little to load {config.guest}"
            ) from error
        self.cpu.exempt(*self._engine_windows())
        if self.initramfs is not None:
            self.modules.copies = self.user_files

    def _control_terminal(self) -> None:
        """A terminal among the standard streams is that of the first process's session."""
        jobs, process = MachineJobs(self.machine), self.process
        for fd in (0, 1, 2):
            file = process.files.peek(fd)
            if isinstance(file, HostStream) and file.is_terminal:
                if process.terminal is None:
                    process.terminal = Terminal(jobs, file.reopen)
                    process.terminal.session = process.terminal.group = process.pid
                file.terminal = process.terminal

    @property
    def space(self) -> AddressSpace:
        """The address space of the first process: another one after an exec."""
        return self.process.space

    @property
    def seen(self) -> AddressSpace:
        """The address space of the thread that runs, or the first process's at its end."""
        thread = self.machine.current
        return self.space if thread.ended else thread.space

    @property
    def memory(self) -> Memory:
        """The mappings of the first process."""
        return self.process.space.memory

    @property
    def modules(self) -> Modules:
        """The files in them."""
        return self.process.space.modules

    @cached_property
    def kernel_stacks(self) -> "KernelStacks | None":
        """The stacks of a kernel's tasks, where the program is a kernel; None elsewhere."""
        from engine.image.kernel.recognition import is_kernel  # most sessions do not ask

        if self.opened.kernel is not None or not is_kernel(self.image):
            return None
        from engine.session.guest.kernel_stacks import kernel_stacks  # few guests are kernels

        return kernel_stacks(self)

    @property
    def is_kernel(self) -> bool:
        """True if the guest is a kernel, one that is called or one that runs as a process."""
        return self.supervisor is not None or self.kernel_stacks is not None

    @property
    def runs_kernel(self) -> bool:
        """True while the kernel itself runs, none of its programs."""
        if self.supervisor is not None:
            return True
        return self.kernel_stacks is not None and self.seen is self.space

    @cached_property
    def initramfs(self) -> "InitramfsFiles | None":
        """The files of that kernel's initramfs; None where it has none."""
        return self.opened.initramfs()

    @cached_property
    def user_files(self) -> "UserFiles | None":
        """The files of that kernel's programs; None where nothing is known of them.

        Most sessions do not ask: those of a kernel with an initramfs, and those that probe.
        """
        if self.initramfs is None and self.user_programs is None:
            return None
        from engine.session.guest.user_files import UserFiles  # few guests are kernels

        return UserFiles(self)

    @cached_property
    def user_programs(self) -> "UserPrograms | None":
        """The programs of that kernel's; asked for before it runs."""
        if self.kernel_stacks is None:
            return None
        from engine.session.guest.user_programs import user_programs  # few guests are kernels

        return user_programs(self)

    def _note_registers(self) -> None:
        """Let what calls do to registers be seen by a recording."""
        from engine.history.recording import noted  # few runs are recorded

        self.noted = noted(self.machine, self.cpu)

    def _standard_streams(self) -> tuple[OpenFile | None, ...]:
        """Standard streams where none are given."""
        return host_stdio(_Inputs(self.hooks), self.clock)

    def _host_answers(self) -> HostAnswers:
        """Answers what the host is asked of its files."""
        return HostAnswers()

    def _make_view(self) -> View:
        return view_of(self.config)

    def _make_ram(self) -> Ram:
        return Ram(budget=self.config.memory)

    def _make_kernel(self) -> Kernel:
        return Kernel(self.machine, self.turns, self.config.max_blocks)

    def _make_cpu(self) -> Cpu:
        return cores.make(
            cores.Needs(
                self.arch,
                self.ram,
                self.disassembler.decode,
                counter=lambda: self._counter(),
                entropy=lambda count: self._entropy(count),
                seed=self.config.randomness,
            )
        )

    def _counter(self) -> int:
        """The cycle counter, for an instruction that reads it."""
        return self._given(self.clock.monotonic())

    def _entropy(self, count: int) -> bytes:
        """Random bytes for an instruction."""
        return self._given(self.machine.random_bytes(count))

    def _given(self, value: Value) -> Value:
        """A value from outside, noted where the run is recorded."""
        if self.machine.recorder is not None:
            self.machine.recorder.input(value)
        return value

    def tree(self) -> GuestTree:
        """The files of the guest's own tree."""
        return GuestTree(self.fs, self.machine.images)

    def _open_guest_image(self, path: str) -> ElfImage | None:
        """An ELF file of the guest's own tree; None if it is not there."""
        name = path.encode(errors="surrogateescape")
        try:
            file = self.fs.open(self.fs.root, name, 0)
            if not file.is_regular:
                return None
            source = file.mmap_source()
            if source.size > _IMAGE_MAX:
                return None
            return self.machine.images.open(source, path, os.fsdecode(self.view.root or b""))
        except LinuxError:
            return None

    def _inode(self, path: str) -> tuple[int, int]:
        """(device, inode) of a file of the guest; zeros where it has none there."""
        found = GuestTree(self.fs, self.machine.images).inode(path)
        return found if found is not None else (0, 0)

    def host_file(self, path: str) -> str | None:
        """The host's file behind a file of the guest, None where there is none."""
        name = path.encode(errors="surrogateescape")
        try:
            return self.fs.open(self.fs.root, name, 0).mmap_source().host_path
        except LinuxError:
            return None

    def _load(self) -> None:
        config = self.config
        path = self.paths.guest
        interpreter, name = None, self.image.interpreter or ""
        if self.image.interpreter is not None:
            interpreter = self._open_guest_image(name)
            if interpreter is None:
                raise ImageError(
                    f"{config.guest}: its loader {name!r} is not in the guest's view; "
                    f"give the tree it belongs to with --root DIR"
                )
            found = architectures.for_elf(
                interpreter.machine, interpreter.bits, interpreter.byteorder
            )
            if found is None or found.name != self.arch.name:
                raise ImageError(
                    f"{config.guest}: its loader {name} is for {interpreter.machine_name}, "
                    f"the program for {self.image.machine_name}; --root DIR gives another tree"
                )
        argv0 = self.paths.typed if config.argv0 is None else config.argv0
        process, space = self.process, self.space
        space.argv = tuple(os.fsencode(word) for word in (argv0, *config.args))
        space.env = tuple(os.fsencode(entry) for entry in config.env)
        space.exe = os.fsencode(self.paths.real)
        space.program = self._program_file(space.exe)
        self.thread.set_comm(os.path.basename(os.fsencode(path)))
        process.place.directory = self._working_directory()
        start = loader.load(
            loader.Executable(
                *(self.image, path, interpreter, name, self.paths.typed),
                (self._inode(path), self._inode(name)),
            ),
            self.arch,
            self.memory,
            self.modules,
            argv=space.argv,
            env=space.env,
            random=self.machine.random_bytes(16),
            identity=(process.uid, process.gid),
            stack_size=process.limit("stack"),
            ahead=self.clock.ahead,
        )
        space.start = start
        space.heap = (start.heap, start.heap)
        space.stack = start.stack
        self.cpu.write_register(self.arch.roles.pc, start.pc)
        self.cpu.write_register(self.arch.roles.sp, start.sp)
        for register, value in self.arch.linux.start:
            self.cpu.write_register(register, value)
        self.memory.sync()
        if config.count_blocks or config.turns.absolute or config.record_schedule is not None:
            self.cpu.count_blocks(True)

    def _program_file(self, path: bytes) -> ExecutedFile | None:
        """The file that the guest finds at its own path; None where it finds none."""
        try:
            place = self.fs.walk(self.fs.root, path)
        except LinuxError:
            return None
        node = place.node
        if node is None:
            return None
        return ExecutedFile(node, partial(path_shown, place.parent, place.name, node))

    def _open_core(self) -> "CoreFile | None":
        if self.config.core is None:
            return None
        from engine.image.corefile import open_core  # most guests have none

        return open_core(self.config.core)

    def _load_core(self, core: "CoreFile") -> None:
        """Put the program back to where a process was when its core was written."""
        from engine.session.guest.core_loading import CorePlace, LoadedCore

        process, space, path = self.process, self.space, self.paths.guest
        loaded = LoadedCore(
            core,
            CorePlace(
                self.arch,
                self.cpu,
                self.memory,
                self.modules,
                self.image,
                path,
                self._open_guest_image,
            ),
        )
        space.argv = tuple(core.arguments.split(b" "))
        space.exe = os.fsencode(self.paths.real)
        space.start = loaded.start
        space.heap = (loaded.start.heap, loaded.start.heap)
        process.place.directory = self.fs.root
        self.memory.sync()
        loaded.give_threads(process, self.thread)
        self.core_remarks = tuple(loaded.remarks)

    def _load_kernel(self, opened: "OpenedKernel") -> None:
        """Map a kernel image, whose functions are called as the arguments say."""
        from engine.session.kernel.supervisor import KernelSupervisor  # few guests are kernels

        path = self.paths.guest
        self.thread.set_comm(b"swapper")  # as the task that functions find to be the current one
        self.process.place.directory = self.fs.root
        self.space.exe = os.fsencode(self.paths.real)
        self.supervisor = supervisor = KernelSupervisor(opened, self.thread, path)
        supervisor.add(self.config.args)
        self.hooks.excepted = supervisor.excepted
        self.memory.sync()
        self.cpu.count_blocks(True)

    def _working_directory(self) -> Directory:
        wanted = self.config.cwd or ("/" if self.config.isolated else os.getcwd())
        name = os.fsencode(os.path.normpath(wanted))
        try:
            return self.fs.directory(name)
        except LinuxError:
            if self.config.cwd is not None:
                raise CommandError(
                    f"--cwd {self.config.cwd}: the guest has no such directory"
                ) from None
            return self.fs.root

    def _engine_windows(self) -> list[tuple[int, int]]:
        """(start, size) of the engine's windows: no time passes there."""
        plan = self.arch.plan
        start, end = plan.trampoline[0], sum(plan.detour)
        low = [
            (mapping.start, mapping.size)
            for mapping in self.memory.mappings
            if mapping.reserved and mapping.end <= start
        ]
        return [(start, end - start), *low[:1]]
