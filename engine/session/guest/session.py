"""Builds a guest from a configuration and runs it."""

import os
from collections.abc import Callable

from engine import arch as architectures
from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.cpu import cores
from engine.cpu.base import Cpu
from engine.cpu.ram import EXECUTE, Ram
from engine.errors import CommandError, GuestFaultError, ImageError
from engine.guest.hooks import GuestHooks
from engine.guest.memory import Memory
from engine.guest.modules import Modules
from engine.image import ElfImage
from engine.insn.disasm import Disassembler
from engine.linux import loader
from engine.linux.clock import GuestClock
from engine.linux.ending import Exit
from engine.linux.errno import LinuxError
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.stdio import HostIO, host_stdio, restore_terminals
from engine.linux.fs.table import FileTable
from engine.linux.fs.vfs import OpenFile
from engine.linux.fs.view import View
from engine.linux.kernel import Kernel
from engine.linux.process import Process
from engine.linux.procview import ProcView
from engine.session.guest.probing import Probing, exempt_windows
from engine.session.program.paths import locate
from engine.session.protocol import report
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report, Reports

_GUEST_ID = 1000
_IMAGE_MAX = 1 << 30


class _Inputs(HostIO):
    """The host's standard streams, with what is read passed through the hooks."""

    def __init__(self, hooks: GuestHooks) -> None:
        self._hooks = hooks

    def read(self, fd: int, count: int) -> bytes:
        """Read a stream."""
        return self._hooks.host_input("read", super().read(fd, count))

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        """Read a redirected file."""
        return self._hooks.host_input("read", super().pread(fd, count, offset))


class Session:
    """A guest from its start to its end.

    `interrupt` and `stop` may be called from any thread, everything else from one.
    """

    def __init__(
        self, config: GuestConfig, stdio: tuple[OpenFile | None, ...] | None = None
    ) -> None:
        """Load the program.

        Args:
            config: what to run and how.
            stdio: the guest's standard streams, None for one that is closed; the host's if
                not given.

        Raises:
            ImageError: the file cannot be run.
            CommandError: an option cannot be carried out.
        """
        self.config = config
        self.paths = locate(config.guest, config.root)
        self.image = ElfImage.open(self.paths.host)
        self.arch = self._find_arch(self.image)
        self.ram = Ram(budget=config.memory)
        self.disassembler = Disassembler(self.arch)
        self.hooks = GuestHooks()
        self.clock = GuestClock(
            host=config.clock == "host",
            host_input=lambda source, data: self.hooks.host_input(source, data),
        )
        self.proc = ProcView()
        self.cpu: Cpu = self._make_cpu()
        self.memory = Memory(self.arch.plan, self.ram, self.cpu)
        self.memory.on_change = self._memory_changed
        self.modules = Modules(self.memory, self._open_guest_image)
        self.process = Process(
            self.arch,
            self.cpu,
            self.memory,
            clock=self.clock,
            seed=config.seed,
            hooks=self.hooks,
            identity=(_GUEST_ID, _GUEST_ID),
            memory_budget=config.memory,
        )
        self.kernel = Kernel(self.process, config.max_blocks)
        self.proc.only = self.process
        self.view = self._make_view()
        self.fs = FileSystem(
            self.view,
            self.proc,
            uid=_GUEST_ID,
            gid=_GUEST_ID,
            clock=self.clock,
            random_bytes=self.process.random_bytes,
        )
        self.process.fs = self.fs
        self.process.files = FileTable(
            stdio or host_stdio(_Inputs(self.hooks)), lambda: self.process.limit("nofile")
        )
        self._load()
        self.cpu.exempt(*exempt_windows(self))
        self.probing: Probing | None = None
        self.remarks: list[Report] = []
        self.at_end: list[Callable[[], object]] = []

    def probes(self, mode: Mode = Mode.STRICT) -> Probing:
        """The probes of this guest; the first call, before it runs, says how strictly."""
        if self.probing is None:
            self.probing = Probing(self, mode)
        return self.probing

    def _memory_changed(self, what: str, start: int, size: int) -> None:
        """Tell those above about code that comes and goes."""
        if what != "unmap" and any(
            mapping.perms & EXECUTE for mapping in self.memory.overlapping(start, start + size)
        ):
            self.hooks.mapped(start, size)
        else:
            self.hooks.unmapped(start, size)

    def _find_arch(self, image: ElfImage) -> Arch:
        found = architectures.for_elf(image.machine, image.bits, image.byteorder)
        if found is None:
            known = ", ".join(architectures.names())
            raise ImageError(
                f"{self.config.guest}: machine {image.machine_name} ({image.bits} bits, "
                f"{image.byteorder}-endian) is not supported; supported are {known}"
            )
        return found

    def _make_cpu(self) -> Cpu:
        return cores.make(
            cores.Needs(
                self.arch,
                self.ram,
                self.disassembler.decode,
                counter=lambda: self.clock.monotonic(),
                entropy=lambda count: self.process.random_bytes(count),
                seed=self.config.seed,
            )
        )

    def _make_view(self) -> View:
        config = self.config
        if config.root is not None and not os.path.isdir(config.root):
            raise CommandError(f"--root {config.root}: not a directory")
        for path, _ in config.shares:
            if not os.path.exists(path):
                raise CommandError(f"--share {path}: no such file or directory")
        return View.make(
            config.guest,
            cwd=None if config.isolated else os.getcwd(),
            root=config.root,
            shares=config.shares,
        )

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
            return ElfImage.from_bytes(source.read(0, source.size), path)
        except LinuxError:
            return None

    def host_file(self, path: str) -> str | None:
        """The host's file behind a file of the guest, None where there is none."""
        name = path.encode(errors="surrogateescape")
        try:
            source = self.fs.open(self.fs.root, name, 0).mmap_source()
        except LinuxError:
            return None
        return None if source.host_fd is None else os.readlink(f"/proc/self/fd/{source.host_fd}")

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
            if (
                architectures.for_elf(interpreter.machine, interpreter.bits, interpreter.byteorder)
                is not self.arch
            ):
                raise ImageError(
                    f"{config.guest}: its loader {name} is for {interpreter.machine_name}, "
                    f"the program for {self.image.machine_name}; --root DIR gives another tree"
                )
        argv0 = self.paths.typed if config.argv0 is None else config.argv0
        process = self.process
        process.argv = tuple(os.fsencode(word) for word in (argv0, *config.args))
        process.env = tuple(os.fsencode(entry) for entry in config.env)
        process.exe = os.fsencode(self.paths.real)
        process.comm = os.path.basename(os.fsencode(path))[:15]
        process.cwd = self._working_directory()
        start = loader.load(
            loader.Executable(self.image, path, interpreter, name, self.paths.typed),
            self.arch,
            self.memory,
            self.modules,
            argv=process.argv,
            env=process.env,
            random=process.random_bytes(16),
            identity=(process.uid, process.gid),
            stack_size=process.limit("stack"),
        )
        process.start = start
        process.heap = (start.heap, start.heap)
        self.cpu.write_register(self.arch.roles.pc, start.pc)
        self.cpu.write_register(self.arch.roles.sp, start.sp)
        for register, value in self.arch.linux.start:
            self.cpu.write_register(register, value)
        self.memory.sync()
        if config.count_blocks:
            self.cpu.count_blocks(True)

    def _working_directory(self) -> bytes:
        wanted = self.config.cwd or ("/" if self.config.isolated else os.getcwd())
        name = os.fsencode(os.path.normpath(wanted))
        try:
            self.fs.directory(name)
        except LinuxError:
            if self.config.cwd is not None:
                raise CommandError(
                    f"--cwd {self.config.cwd}: the guest has no such directory"
                ) from None
            return b"/"
        return name

    # -- running ---------------------------------------------------------------------------

    def run(self) -> Reports:
        """Run the program to its end."""
        try:
            end = self.kernel.run()
        finally:
            restore_terminals()
        for call in self.at_end:
            call()
        return self.report(end)

    def report(self, end: Exit) -> Reports:
        """What is to be said about a run that has ended."""
        pc = end.crash.pc if end.crash else self.cpu.read_register(self.arch.roles.pc)
        remarks = (
            report.ending(end, lambda: self.describe(self.hooks.original_pc(pc))),
            report.missing(self.process.missing),
            report.refused(
                [(item.path, item.option) for item in self.view.refused.listed()],
                self.view.refused.dropped,
            ),
        )
        found = tuple(remark for remark in remarks if remark is not None)
        return Reports(end, (*self.remarks, *found))

    def describe(self, pc: int) -> str:
        """An instruction's address, symbol, source line or file, and text, in one line."""
        location = self.modules.locate(pc)
        parts = [f"{pc:#x}"]
        if location.module is not None:
            line = location.module.line_at(pc)
            where = f"{line[0]}:{line[1]}" if line else location.module.name
            parts.append(f"{location} ({where})")
        insn = next(iter(self.disassembler.decode(pc, self.code_at(pc))), None)
        if insn is not None:
            parts.append(insn.text)
        return ": ".join((" ".join(parts[:2]), *parts[2:]))

    def code_at(self, pc: int) -> bytes:
        """Original bytes of the instruction at an address; fewer where the memory ends.

        Where several share a bundle they are all of its bytes.
        """
        pc &= -self.arch.code_unit
        for size in range(self.arch.insn_max, 0, -1):
            try:
                return self.hooks.original(pc, self.memory.read(pc, size))
            except GuestFaultError:
                continue
        return b""

    def interrupt(self, number: int) -> None:
        """Send the guest a signal, as a user at a terminal does; from any thread."""
        self.kernel.host_signal(number)

    def stop(self, limit: str) -> None:
        """End the run for a limit; from any thread."""
        self.kernel.host_stop(limit)

    def waiting(self) -> bool:
        """Whether the engine has not yet seen the last `interrupt` or `stop`."""
        return self.kernel.attention.is_set()

    def nudge(self) -> None:
        """Ask again: a stop that reaches the emulator between two runs is lost."""
        self.cpu.halt()

    def close(self) -> None:
        """Give back what belongs to the host."""
        self.process.close()
        self.ram.close()
