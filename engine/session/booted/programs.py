"""The programs of a booted machine: probes in them, and names of what is in their memory."""

from collections.abc import Iterable
from contextlib import suppress

from engine.errors import ImageError, ProbeError
from engine.image.elf import ElfImage
from engine.image.symbols import SymbolTable
from engine.machine.addresses import KernelAddresses
from engine.machine.currenttask import TaskReader
from engine.machine.guestpaths import GuestPaths
from engine.machine.machine import BareMachine
from engine.machine.probing import MachineProbes
from engine.machine.programpages import ProgramPages
from engine.machine.programs import NESTED_MOST, FileMapping, ProgramPlace, ProgramProbes
from engine.machine.records import KernelRecords
from engine.machine.wantedfiles import WantedFiles
from engine.session.booted.files import BootFiles
from engine.session.kernel.opened import OpenedKernel


class MachinePrograms:
    """The probes in programs of one machine, and the files that they are in.

    Attributes:
        pages: the memory of the program that runs.
    """

    def __init__(
        self,
        opened: OpenedKernel,
        machine: BareMachine,
        addresses: KernelAddresses,
        reader: TaskReader,
        files: BootFiles,
        *,
        as_linux: bool = False,
    ) -> None:
        """None yet.

        Args:
            opened: the kernel in the machine.
            machine: the machine, which has not run.
            addresses: its memory as the kernel sees it.
            reader: tells which task runs.
            files: of the system, as far as the host has them.
            as_linux: no more calls of a task are followed than Linux follows.
        """
        records = KernelRecords(opened.image, addresses)
        paths = GuestPaths(opened.image, addresses, records, reader.address)
        self.pages = ProgramPages(opened.image, addresses, records, reader.address)
        self._wanted, self._files = WantedFiles(paths, records), files
        self._probes = ProgramProbes(
            *(opened.image, machine.cpu, addresses, records, reader, self._wanted.known),
            NESTED_MOST if as_linux else None,
        )

    def add(self, place: ProgramPlace, kernel: MachineProbes, told: str) -> None:
        """Place a probe; before the machine runs.

        Args:
            place: where.
            kernel: probes in the machine's kernel.
            told: the definition, for messages.

        Raises:
            ProbeError: the kernel has no uprobes.
        """
        if self._probes.missing:
            raise ProbeError(f"{told}: {self._probes.missing}")
        self._wanted.add(place.path, self._files.real_path(place.path))
        self._probes.add(place, kernel)

    def name_all(self) -> None:
        """Know all files of programs by their paths: `names` is going to be asked."""
        self._wanted.all_named = True

    @property
    def is_named(self) -> bool:
        """True after `name_all`."""
        return self._wanted.all_named

    def space(self) -> tuple[FileMapping, ...]:
        """The files in the memory of the program that runs, as far as they are known."""
        return self._probes.space()

    def names(
        self, address: int, space: Iterable[FileMapping]
    ) -> tuple[str, int, ElfImage, SymbolTable] | None:
        """The file at an address of a program, if its symbols are known.

        Returns:
            Its path, the link address of the place, and what is known of it.
        """
        for mapping in space:
            if not mapping.start <= address < mapping.end:
                continue
            for path in mapping.paths:
                with suppress(ImageError):
                    file = self._files.file(path)
                    if file is not None:
                        offset = address - mapping.start + mapping.offset
                        link = file.image.vaddr_of(offset)
                        return None if link is None else (path, link, file.image, file.symbols)
        return None

    def loaded_at(self, path: str, image: ElfImage) -> int | None:
        """The distance from link addresses of a file to addresses in the program that runs."""
        for mapping in self.space():
            link = image.vaddr_of(mapping.offset)
            if path in mapping.paths and link is not None:
                return mapping.start - link
        return None
