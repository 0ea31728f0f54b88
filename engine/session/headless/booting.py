"""Boot a kernel image as a machine, without probes: its console, and how it ends."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, GuestFaultError, ImageError
from engine.image.headers import MACHINES
from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.opening import open_kernel
from engine.image.kernel.recognition import is_kernel_image
from engine.machine.addresses import KernelAddresses
from engine.machine.console import ConsoleDescriptor
from engine.machine.consolelog import ConsoleLog
from engine.machine.kernelmodules import LoadedModule, ModuleReader, module_members
from engine.machine.kernelprobes import kprobe_table
from engine.machine.linuxboot import LEAST, MOST, Boot, prepare
from engine.machine.machine import DISKS_MOST, BareMachine, BootEnd, MachineEnd
from engine.machine.ramdisk import Ramdisk, assembled, unpacked
from engine.machine.rawdisk import DEFAULT_CHANGES, ChangeBudget, RawDisk
from engine.session.tracing.boot_files import BootFiles

COMMAND_LINE: Final = (
    "console=ttyS0 nokaslr nosmp noapic nolapic acpi=off mitigations=off tsc=reliable "
    "tsc_early_khz=1000000 lpj=4000000 panic=-1"
)
"""The words that a kernel is told unless a word of the user's says otherwise: this machine has one
processor, two 8259s and no ACPI tables, its counter counts nanoseconds, and a panic ends the
boot."""
DEFAULT_MEMORY: Final = 256 << 20
__all__ = ["COMMAND_LINE", "BootEnd", "BootRequest", "Booted", "MachineEnd", "ended"]

BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LINE_MOST: Final = 4096
"""Bytes of a line that are kept until it ends."""
_X86_64: Final = 62  # e_machine
_LOADER_SEEDS: Final = (6, 0)
"""The version from which on a kernel takes a seed from its loader."""


class BootRequest(Struct, frozen=True):
    """A kernel to be booted.

    Attributes:
        kernel: path of the image.
        initrd: path of the initial ramdisk, "" for none.
        append: more words of the command line, which win over the usual ones.
        memory: bytes.
        init: path of the first program, or of a folder that becomes the root; "" for none.
        modules: path of a folder of modules, "" for none.
        chosen: names of modules; none for all of the folder.
        seed: what the kernel's random numbers follow from.
        disks: paths of raw images.
        disk_memory: bytes of changed blocks that are kept at the most.
    """

    kernel: str
    initrd: str = ""
    append: str = ""
    memory: int = DEFAULT_MEMORY
    init: str = ""
    modules: str = ""
    chosen: tuple[str, ...] = ()
    seed: int = 0
    disks: tuple[str, ...] = ()
    disk_memory: int = DEFAULT_CHANGES


class Booted:
    """A machine with a kernel in it, ready to run.

    Attributes:
        kernel: the image.
        machine: with its memory laid out.
        log: of its console.
    """

    def __init__(
        self,
        request: BootRequest,
        put: Callable[[bytes], None],
        stdin: int | None,
        *,
        repeats: bool = False,
        kernel: KernelImage | None = None,
    ) -> None:
        """Lay the kernel out.

        Args:
            request: what is to be booted.
            put: takes what the console writes, in pieces.
            stdin: the descriptor that the console's input is read from; None for none.
            repeats: the machine may go back and run again; `log` has its console then.
            kernel: the image of the request, where it is open.

        Raises:
            CommandError: the memory is too little or too much, or this host boots no machine.
            ImageError: the image, or the ramdisk, cannot be read, or is of another architecture.
        """
        if not LEAST <= request.memory <= MOST:
            raise CommandError(
                f"--memory: a machine has {LEAST >> 20} MB to {MOST >> 20} MB, in steps of 4 KB"
            )
        if len(request.disks) > DISKS_MOST:
            raise CommandError(f"--disk: a machine has {DISKS_MOST} disks at the most")
        self.kernel = kernel or bootable_kernel(request.kernel)
        initrd = _ramdisk(request, self.kernel)
        self._put, self._waiting = put, bytearray()
        given = os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin
        self._input = ConsoleDescriptor(given, self.halt if os.isatty(given) else None)
        self.log = ConsoleLog(self._input, self._written)
        put, typed = (self.log.put, self.log) if repeats else (self._written, self._input)
        self.machine = BareMachine(request.memory & -4096, put, typed, BEGAN)
        self.log.clock = self.machine.clock
        budget = ChangeBudget(request.disk_memory)
        for path in request.disks:
            self.machine.add_disk(RawDisk(path, budget))
        line = command_line(_seed_word(self.kernel, request.seed), request.append)
        prepare(self.machine.cpu, Boot(self.kernel.elf, line, initrd, request.seed))

    def run(self) -> MachineEnd:
        """Run until the kernel switches the machine off, or it is halted."""
        try:
            return self.machine.run()
        finally:
            self.flush()

    def halt(self) -> None:
        """Stop the machine, from any thread."""
        self._input.close()
        self.machine.halt()

    @property
    def progress(self) -> str:
        """The blocks and the time so far, in words."""
        machine = self.machine
        blocks, now = machine.cpu.record.blocks, machine.clock.now
        return f"{blocks} blocks, {now / 1e9:.3f} s of the machine's time"

    def place(self, address: int) -> str:
        """The name of a place in the kernel; "" for other code of ring 0, such as a module's."""
        if self.machine.cpu.privilege:
            return "in a program"
        found = self.kernel.names.at(address)
        return f"{found.name}+{address - found.start:#x}" if found is not None else ""

    def kprobes(self) -> Iterator[str]:
        """Lines of the kernel's own kprobes, as its /sys/kernel/debug/kprobes/list has them.

        Raises:
            CommandError: the kernel does not tell where they are, or they cannot be read there.
        """
        table = kprobe_table(self.kernel)
        if table is None:
            raise CommandError(f"{self.kernel.elf.name}: its table of kprobes is not found")
        addresses = KernelAddresses(self.machine.cpu)
        try:
            members = module_members(self.kernel)
            modules = list(ModuleReader(addresses, members).listed()) if members else []
            for probe in table.read(addresses):
                yield probe.line(self._kprobe_place(probe.address, modules))
        except GuestFaultError as error:
            raise CommandError(f"the kernel's kprobes cannot be read: {error}") from error

    def _kprobe_place(self, address: int, modules: list[LoadedModule]) -> str:
        """Name, offset and module of a place, as `RegisteredProbe.line` wants them."""
        for module in modules:
            inner = module.at(address)
            if inner is not None:
                return f"{inner.name}+{address - inner.start:#x}  {module.name}"
        found = self.kernel.names.at(address)
        return f"{found.name}+{address - found.start:#x}   " if found is not None else ""

    def _written(self, data: bytes) -> None:
        """Collect a line: one byte a time would cost a system call each."""
        self._waiting += data
        if data == b"\n" or not self._input.over or len(self._waiting) > _LINE_MOST:
            self.flush()

    def flush(self) -> None:
        """Pass on what the console has of a line that has not ended."""
        if self._waiting:
            waiting, self._waiting = bytes(self._waiting), bytearray()
            self._put(waiting)


def boot_files(request: BootRequest) -> BootFiles:
    """The files of the first file system of a boot, but for modules, as far as the host has them.

    They are read when somebody asks.
    """
    return BootFiles(lambda: unpacked(Ramdisk(request.initrd, request.init)))


def bootable_kernel(path: str) -> KernelImage:
    """The kernel image at a path, which a machine boots.

    Raises:
        ImageError: it cannot be read, or is of another architecture.
    """
    if os.path.exists(path) and not is_kernel_image(path):
        raise ImageError(f"{path}: no kernel image; a program is not booted: kprobe-tui run")
    kernel = open_kernel(path)
    check_bootable(kernel)
    return kernel


def check_bootable(kernel: KernelImage) -> None:
    """Refuse a kernel image that no machine boots.

    Raises:
        ImageError: it is of another architecture, or for no machine.
    """
    elf = kernel.elf
    if elf.machine != _X86_64:
        name = MACHINES.get(elf.machine, hex(elf.machine))
        raise ImageError(f"{elf.name}: kernels of x86-64 are booted, and this one is {name}")
    if kernel.symbol("startup_64") is None:
        raise ImageError(
            f"{elf.name}: no kernel for a machine: it has no startup_64. User-mode Linux is a "
            "program: kprobe-tui run"
        )


def command_line(*append: str) -> str:
    """The usual command line, with more words behind: a kernel takes the last one of a name."""
    return " ".join(filter(None, (COMMAND_LINE, *append)))


def _seed_word(kernel: KernelImage, seed: int) -> str:
    """The word by which a seed comes to kernels that take none from their loader.

    Such kernels mix their command line into the pool (5.18, and the stable series of that time);
    a word with a dot is for a module, and nobody misses it.
    """
    return f"kprobe_tui.seed={seed}" if seed and kernel.version < _LOADER_SEEDS else ""


def ended(end: MachineEnd, place: str) -> str:
    """Put the end of a boot into words; "" where the kernel has switched the machine off."""
    at = f" at {end.pc:#x}" + (f" ({place})" if place else "")
    if end.reason is BootEnd.OFF:
        return ""
    if end.reason is BootEnd.PANIC:
        return f"the kernel has panicked: {end.text}"
    if end.reason is BootEnd.RESET:
        return str(end.reason.value)
    if end.reason is BootEnd.ASTRAY:
        return f"{end.reason.value}{at}: {end.text}"
    return f"{end.reason.value}{at}"


def _ramdisk(request: BootRequest, kernel: KernelImage) -> bytes:
    if request.chosen and not request.modules:
        raise CommandError("--module names one of the modules in a folder: --modules DIR")
    looks = not any(word.startswith("rdinit=") for word in request.append.split())
    wanted = Ramdisk(request.initrd, request.init, request.modules, request.chosen, looks)
    return assembled(wanted, kernel.release.release if request.modules else "")
