"""Call stacks of a booted kernel, by the unwind tables of its image."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property

from engine.cpu.unicorn_system import GENERAL, SystemCpu
from engine.errors import GuestFaultError
from engine.guest.modules import Module
from engine.image.kernel.orc import ENTRIES
from engine.machine.addresses import KernelAddresses
from engine.session.kernel.opened import OpenedKernel
from engine.session.tracing.stacks import LIMIT
from engine.unwind.unwinder import FORMATS, Unwinder, UnwindGuest


class BootStacks:
    """Walks the stack of what runs; the frames are the kernel's alone.

    Attributes:
        making: no system call is a frame of its own.
    """

    making = ""

    def __init__(self, opened: OpenedKernel, cpu: SystemCpu, addresses: KernelAddresses) -> None:
        """Take a kernel; its tables are read at the first stack.

        Args:
            opened: the kernel that is booted.
            cpu: the processor.
            addresses: the memory as the kernel sees it.
        """
        self._opened = opened
        self._names = (*GENERAL, "rip", "eflags")
        self._read = cpu.reader(self._names)
        self._addresses = addresses

    @cached_property
    def _unwinder(self) -> Unwinder:
        image = self._opened.live_image
        module = Module(image.name, image, 0)
        tables = self._opened.tables
        text = (*tables.text, *tables.gone)

        def code(address: int, size: int) -> bytes:
            found = b""
            with suppress(GuestFaultError):
                found = self._addresses.read(address, size)
            return found

        return Unwinder(
            UnwindGuest(
                self._opened.arch,
                lambda address: module if module.contains(address) else None,
                self._addresses.read,
                code,
                lambda address: any(low <= address < high for low, high in text),
            ),
            # The tables end where the kernel was entered from a program: other rules would guess.
            ("orc",) if image.section(ENTRIES) is not None else FORMATS,
        )

    def registers(self) -> dict[str, int]:
        """The registers now."""
        return dict(zip(self._names, self._read(), strict=True))

    def remembered(
        self, place: int, *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[int, ...] | None:
        """None: a stack is walked each time."""
        return None

    def places(
        self, registers: Mapping[str, int], *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[int, ...]:
        """Addresses of the frames, innermost first."""
        return self._unwinder.places(registers, limit=limit)

    def divided_places(
        self, registers: Mapping[str, int], *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[tuple[int, ...], int]:
        """The same, and their number: all of them are the kernel's."""
        found = self.places(registers, limit=limit)
        return found, len(found)
