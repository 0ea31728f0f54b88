"""The parts that a machine is made of: files of the host's, or a recorded boot."""

import os
from functools import cached_property
from typing import Final, Protocol

from msgspec.structs import replace

from engine.errors import CommandError, ImageError
from engine.history.bootrecord import RecordedBoot, read_boot
from engine.history.pieces import is_boot_record
from engine.hostlimits import because_of
from engine.image.headers import MACHINES, Buffer
from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.opening import open_kernel
from engine.image.kernel.recognition import is_kernel_image, mapped
from engine.machine.machine import DISKS_MOST
from engine.machine.ramdisk import Ramdisk, RamdiskRoot, assembled, unpacked
from engine.machine.rawdisk import DiskImage, HostImage
from engine.session.booted.files import BootFiles
from engine.session.protocol.kernels import BootRequest

COMMAND_LINE: Final = (
    "console=ttyS0 nokaslr nosmp noapic nolapic acpi=off mitigations=off tsc=reliable "
    "tsc_early_khz=1000000 lpj=4000000 panic=-1"
)
"""The words that a kernel is told unless a word of the user's says otherwise: this machine has one
processor, two 8259s and no ACPI tables, its counter counts nanoseconds, and a panic ends the
boot."""
_X86_64: Final = 62  # e_machine
_LOADER_SEEDS: Final = (6, 0)
"""The version from which on a kernel takes a seed from its loader."""


class Bootable(Protocol):
    """The parts that a machine is made of.

    Attributes:
        files: of the boot's first file system, as far as they are known.
        recorded: the recorded boot that they are from, None for none.
        memory: bytes.
        seed: what the kernel's random numbers follow from.
        disk_memory: bytes of changed blocks that are kept at the most.
    """

    files: BootFiles
    recorded: RecordedBoot | None
    memory: int
    seed: int
    disk_memory: int

    @property
    def kernel(self) -> KernelImage:
        """The image.

        Raises:
            ImageError: it cannot be read, or is of another architecture.
        """

    @property
    def packed_kernel(self) -> Buffer:
        """The bytes of the image's file."""

    @property
    def line(self) -> str:
        """The command line."""

    def initrd(self) -> bytes:
        """The initial ramdisk, as it is packed; b"" for none.

        Raises:
            CommandError, ImageError: it cannot be read, or made.
        """

    def images(self) -> list[DiskImage]:
        """The contents of its disks.

        Raises:
            CommandError, NotElfError: one of them cannot be read, or there are too many.
        """

    def with_words(self, words: str) -> "Bootable":
        """The same with other words behind the usual command line.

        Raises:
            CommandError: this kernel is not told other words.
        """


class HostBoot:
    """The parts of a machine in files of the host's; a `Bootable`."""

    recorded: RecordedBoot | None = None

    def __init__(self, request: BootRequest, kernel: KernelImage | None = None) -> None:
        """Take their paths.

        Args:
            request: what is to be booted.
            kernel: the image of the request, where it is open.
        """
        self.memory, self.seed = request.memory, request.seed
        self.disk_memory = request.disk_memory
        self.files = BootFiles(self._unpacked)
        self._request, self._kernel = request, kernel

    def _unpacked(self) -> RamdiskRoot:
        return unpacked(Ramdisk(self._request.initrd, self._request.init))

    @cached_property
    def kernel(self) -> KernelImage:
        """See `Bootable`."""
        return self._kernel or bootable_kernel(self._request.kernel)

    @property
    def packed_kernel(self) -> Buffer:
        """See `Bootable`."""
        try:
            return mapped(self._request.kernel)[0]
        except OSError as error:
            raise ImageError(f"{self._request.kernel}: {because_of(error)}") from error

    @property
    def line(self) -> str:
        """See `Bootable`."""
        return command_line(_seed_word(self.kernel, self.seed), self._request.append)

    def initrd(self) -> bytes:
        """See `Bootable`."""
        request = self._request
        if request.chosen and not request.modules:
            raise CommandError("--module names one of the modules in a folder: --modules DIR")
        looks = not any(word.startswith("rdinit=") for word in request.append.split())
        wanted = Ramdisk(request.initrd, request.init, request.modules, request.chosen, looks)
        return assembled(wanted, self.kernel.release.release if request.modules else "")

    def images(self) -> list[DiskImage]:
        """See `Bootable`."""
        if len(self._request.disks) > DISKS_MOST:
            raise CommandError(f"--disk: a machine has {DISKS_MOST} disks at the most")
        return [HostImage(path) for path in self._request.disks]

    def with_words(self, words: str) -> Bootable:
        """See `Bootable`."""
        return HostBoot(replace(self._request, append=words), self.kernel)


class AgainBoot:
    """The parts of a machine in a recorded boot; a `Bootable`."""

    def __init__(self, path: str) -> None:
        """Read the recorded boot.

        Raises:
            CommandError, RecordingError: as `read_boot`.
        """
        self.recorded: RecordedBoot | None = read_boot(path)
        self._recorded, self._path = self.recorded, path
        machine = self._recorded.machine
        self.memory, self.seed = machine.memory, machine.seed
        self.disk_memory = machine.disk_memory
        self.files = BootFiles(self._unpacked)

    def _unpacked(self) -> RamdiskRoot:
        root = RamdiskRoot()
        root.add_packed(self._recorded.initrd, self._path)
        return root

    @cached_property
    def kernel(self) -> KernelImage:
        """See `Bootable`."""
        kernel = self._recorded.image(self._path)
        check_bootable(kernel)
        return kernel

    @property
    def packed_kernel(self) -> Buffer:
        """See `Bootable`."""
        return self._recorded.kernel

    @property
    def line(self) -> str:
        """See `Bootable`."""
        return self._recorded.machine.line

    def initrd(self) -> bytes:
        """See `Bootable`."""
        return self._recorded.initrd

    def images(self) -> list[DiskImage]:
        """See `Bootable`."""
        return list(self._recorded.disks)

    def with_words(self, words: str) -> Bootable:
        """See `Bootable`: it has been told all of them, or cannot be any more."""
        missing = " ".join(word for word in words.split() if not self._is_told(word))
        if missing:
            raise CommandError(
                f"{self._path}: a recorded boot goes as it went, and its kernel was not told "
                f"{missing}: record it with --append '{missing}'"
            )
        return self

    def _is_told(self, word: str) -> bool:
        """True if a word, or all that is in its list, is on the command line."""
        name, _, values = word.partition("=")
        for told in self.line.split():
            begin, _, more = told.partition("=")
            listed = set(more.split(","))
            if begin == name and all(_is_listed(value, listed) for value in values.split(",")):
                return True
        return False


def _is_listed(value: str, listed: set[str]) -> bool:
    """True if a value is in a list, or GROUP:* is there for an event of the group."""
    return value in listed or f"{value.partition(':')[0]}:*" in listed


def bootable(request: BootRequest) -> Bootable:
    """The parts of the machine of a request.

    Raises:
        CommandError, RecordingError: a recorded boot cannot be read.
    """
    if is_boot_record(request.kernel):
        return AgainBoot(request.kernel)
    return HostBoot(request)


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
