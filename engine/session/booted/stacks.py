"""Call stacks of a booted kernel, by the unwind tables of its image and of its modules."""

import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Final

from engine.cpu.unicorn_system import GENERAL, SystemCpu
from engine.errors import GuestFaultError, ImageError
from engine.guest.modules import Module
from engine.image.kernel.orc import ENTRIES, OrcTable
from engine.machine.addresses import KernelAddresses
from engine.machine.kernelcode import KernelCode
from engine.machine.kernelmodules import KnownModules
from engine.session.kernel.opened import OpenedKernel
from engine.session.tracing.stacks import LIMIT
from engine.unwind.unwinder import FORMATS, Unwinder, UnwindGuest, Walk

_FRAME: Final = struct.Struct("<2Q")
"""The frame pointer of the caller, and the address returned to."""
_WORD: Final = 8
_PAD: Final = bytes.fromhex("f30f1efa")
_ENTRIES: Final = (b"\x55", _PAD)
"""Beginnings of functions that have a frame pointer: a push, a landing pad."""
TELLING: Final = ("trace_event_", "__traceiter_", "perf_trace_", "__trace_event_")
"""Functions between a tracepoint and the record of its event."""
_PROGRAMS: Final = 1 << 47
"""End of the addresses of programs; the kernel's have their highest bits set."""


class BootStacks:
    """Walks the stack of what runs; the frames are the kernel's alone, or the program's.

    Attributes:
        making: no system call is a frame of its own.
        telling: the machine stands where the kernel makes a record of an event of its own; what
            lies between the tracepoint and that place is no frame, as in the kernel's own stacks.
    """

    making = ""

    def __init__(
        self,
        opened: OpenedKernel,
        cpu: SystemCpu,
        addresses: KernelAddresses,
        modules: KnownModules | None,
        task: Callable[[], int],
    ) -> None:
        """Take a kernel; its tables are read at the first stack.

        Args:
            opened: the kernel that is booted.
            cpu: the processor.
            addresses: the memory as the kernel sees it.
            modules: those that the kernel loads; None where they are not known.
            task: address of the task that runs.
        """
        self.telling = False
        self._modules, self._task = modules, task
        self._opened = opened
        self._names = (*GENERAL, "rip", "eflags")
        self._cpu, self._read = cpu, cpu.reader(self._names)
        self._addresses = addresses

    @cached_property
    def _unwinder(self) -> Unwinder:
        image = self._opened.live_image
        module = Module(image.name, image, 0)
        tables = self._opened.tables
        text = (*tables.text, *tables.gone)
        has_orc, table = image.section(ENTRIES) is not None, None
        with suppress(ImageError):  # the unwinder notes it
            table = image.once(OrcTable) if has_orc else None
        made = KernelCode(self._opened.image, table, self._addresses, self._modules, self._task)

        def executable(address: int) -> bool:
            in_image = any(low <= address < high for low, high in text)
            return in_image or made.entry(address) is not None

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
                executable,
                resolve_return=lambda address, slot, met: made.caught(address, slot),
                orc_outside=made.entry,
                entered_from=lambda address: address < _PROGRAMS,
            ),
            # The tables end where the kernel was entered from a program: other rules would guess.
            ("orc",) if has_orc else FORMATS,
        )

    def registers(self) -> dict[str, int]:
        """The registers now."""
        return dict(zip(self._names, self._read(), strict=True))

    def walk(self, limit: int = LIMIT, registers: Mapping[str, int] | None = None) -> Walk:
        """The frames of what runs now, and why there are no more.

        Args:
            limit: of frames.
            registers: of a task that does not run, whose pc is a return address; None for what
                runs.
        """
        if registers is not None:
            return self._unwinder.walk(registers, limit=limit, exact=False)
        return self._unwinder.walk(self.registers(), limit=limit)

    def remembered(
        self, place: int, *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[int, ...] | None:
        """None: a stack is walked each time."""
        return None

    def places(
        self, registers: Mapping[str, int], *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[int, ...]:
        """Addresses of the frames, innermost first."""
        if self._cpu.privilege:
            return self.program_places(registers, limit)
        if self.telling:
            found = self._unwinder.places(registers, limit=limit + len(TELLING))
            while found and self._is_telling(found[0]):
                found = found[1:]
            return found[:limit]
        return self._unwinder.places(registers, limit=limit)

    def _is_telling(self, address: int) -> bool:
        bounds = self._opened.names.bounds(address)
        return bounds is not None and bounds[0].startswith(TELLING)

    def program_places(self, registers: Mapping[str, int], limit: int) -> tuple[int, ...]:
        """Addresses of a program's frames by its frame pointers, as Linux walks them.

        Where a function begins the caller's frame pointer is still in its register, and the
        return address on top of the stack (is_uprobe_at_func_entry of arch/x86/events/core.c).
        """
        found, frame = [registers["rip"]], registers["rbp"]
        with suppress(GuestFaultError):
            if self._addresses.read(found[0], len(_PAD)).startswith(_ENTRIES):
                top = self._addresses.read(registers["rsp"], _WORD)
                found.append(int.from_bytes(top, "little"))
            while len(found) < limit and 0 < frame < _PROGRAMS:
                before, leads_to = _FRAME.unpack(self._addresses.read(frame, _FRAME.size))
                if not 0 < leads_to < _PROGRAMS:
                    break
                found.append(leads_to)
                if before <= frame:
                    break
                frame = before
        return tuple(found[:limit])

    def divided_places(
        self, registers: Mapping[str, int], *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[tuple[int, ...], int]:
        """The same, and the number of those that are the kernel's: all, or in a program none."""
        found = self.places(registers, limit=limit)
        return found, 0 if self._cpu.privilege else len(found)
