"""Boot a kernel image as a machine, without probes: its console, and how it ends."""

import hashlib
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Final

from engine.errors import CommandError, GuestFaultError
from engine.history.bootrecord import (
    BootRecorder,
    RecordedBoot,
    RecordedEnd,
    WitnessedImage,
    ended_boot,
)
from engine.machine.addresses import KernelAddresses
from engine.machine.console import ConsoleDescriptor
from engine.machine.consolelog import ConsoleLog
from engine.machine.kernelmodules import LoadedModule, ModuleReader, module_members
from engine.machine.kernelprobes import kprobe_table
from engine.machine.linuxboot import LEAST, MOST, Boot, prepare
from engine.machine.machine import BareMachine, BootEnd, MachineEnd
from engine.machine.rawdisk import ChangeBudget, RawDisk
from engine.session.headless.bootable import Bootable

__all__ = ["BootEnd", "Booted", "MachineEnd", "ended"]

BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
_LINE_MOST: Final = 4096
"""Bytes of a line that are kept until it ends."""


class Booted:
    """A machine with a kernel in it, ready to run.

    Attributes:
        kernel: the image.
        machine: with its memory laid out.
        log: of its console.
        initrd: the initial ramdisk, as it is packed.
        difference: what is not as it was when the boot was recorded, in words; "" for nothing.
    """

    def __init__(
        self,
        parts: Bootable,
        put: Callable[[bytes], None],
        stdin: int | None,
        *,
        repeats: bool = False,
        recorder: BootRecorder | None = None,
    ) -> None:
        """Lay the kernel out.

        Args:
            parts: what the machine is made of.
            put: takes what the console writes, in pieces.
            stdin: the descriptor that the console's input is read from; None for none. A
                recorded boot has its input with it.
            repeats: the machine may go back and run again; `log` has its console then.
            recorder: writes down what the machine is given; None for nobody.

        Raises:
            CommandError: the memory is too little or too much, or this host boots no machine.
            ImageError: the image, or the ramdisk, cannot be read, or is of another architecture.
        """
        if not LEAST <= parts.memory <= MOST:
            raise CommandError(
                f"--memory: a machine has {LEAST >> 20} MB to {MOST >> 20} MB, in steps of 4 KB"
            )
        self.kernel, self._parts, self._recorder = parts.kernel, parts, recorder
        self.difference, self._is_compared = "", False
        recorded = parts.recorded
        self._put, self._waiting, self._written_all = put, bytearray(), hashlib.sha256()
        self._input = _NothingTyped() if recorded is not None else _descriptor(stdin, self.halt)
        self.log = ConsoleLog(
            *(self._input, self._written, recorded.typed if recorded is not None else ()),
            recorder.typed if recorder is not None else None,
        )
        logged = repeats or recorder is not None or recorded is not None
        put, typed = (self.log.put, self.log) if logged else (self._written, self._input)
        self.machine = BareMachine(parts.memory & -4096, put, typed, BEGAN)
        self.log.attach(self.machine.clock, self.machine.halt_here)
        budget = ChangeBudget(parts.disk_memory)
        for number, image in enumerate(parts.images()):
            tell = partial(recorder.read, number) if recorder is not None else None
            seen = image if tell is None else WitnessedImage(image, tell)
            self.machine.add_disk(RawDisk(seen, budget))
        self.initrd = parts.initrd()
        boot = Boot(self.kernel.elf, parts.line, self.initrd, parts.seed)
        prepare(self.machine.cpu, boot)
        if recorded is not None:
            self.machine.halt_behind(recorded.until)

    def run(self) -> MachineEnd:
        """Run until the kernel switches the machine off, or it is halted.

        A recorded boot runs as far as it is known.
        """
        try:
            end = self.machine.run()
        finally:
            self.flush()
        if self._recorder is not None:
            self._recorder.end(self._as_recorded(end))
        if not self.log.stopping:
            self.compare(end)
        return end

    def compare(self, end: MachineEnd) -> None:
        """Find out, once, whether a recorded boot has ended as it has when it was recorded.

        Args:
            end: to which it has come; the machine still stands there.
        """
        recorded = self.recorded
        if recorded is not None and recorded.end is not None and not self._is_compared:
            self._is_compared = True
            self.difference = _difference(recorded.end, self._as_recorded(end))

    def _as_recorded(self, end: MachineEnd) -> RecordedEnd:
        return ended_boot(self.machine, end, self._written_all.digest())

    def follow(self, other: "Booted") -> None:
        """Let the same be typed as in another run of the boot; what that has written is known.

        Args:
            other: that run, which is over.
        """
        self.log.follow(other.log)
        self._written_all = other._written_all.copy()
        self.difference, self._is_compared = other.difference, other._is_compared

    def type_again(self, other: "Booted") -> None:
        """Let the same be typed at the same times as in another boot, which is over."""
        self.log.type_again(other.log)

    @property
    def recorded(self) -> RecordedBoot | None:
        """The recorded boot that goes again here; None where a kernel boots for the first time."""
        return self._parts.recorded

    @property
    def damage(self) -> str:
        """Why a recorded boot is not whole; "" for one that is, and where nothing was recorded."""
        return self.recorded.damage if self.recorded is not None else ""

    def halt(self) -> None:
        """Stop the machine, from any thread."""
        self.log.stopping = True
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
        self._written_all.update(data)
        self._waiting += data
        if data == b"\n" or self._is_watched or len(self._waiting) > _LINE_MOST:
            self.flush()
        if self._recorder is not None:
            self._recorder.passed()

    @property
    def _is_watched(self) -> bool:
        """True if somebody may type an answer to what is written."""
        return self._parts.recorded is None and not self._input.over

    def flush(self) -> None:
        """Pass on what the console has of a line that has not ended."""
        if self._waiting:
            waiting, self._waiting = bytes(self._waiting), bytearray()
            self._put(waiting)


class _NothingTyped:
    """A `ConsoleInput` at which nobody types, and somebody could."""

    over = False

    def close(self) -> None:
        """Give nothing any more."""
        self.over = True

    def take(self, nanoseconds: int) -> bytes:
        """Give nothing at once."""
        return b""


def _descriptor(stdin: int | None, halt: Callable[[], None]) -> ConsoleDescriptor:
    """The input of a console; of nobody where there is no descriptor."""
    given = os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin
    return ConsoleDescriptor(given, halt if os.isatty(given) else None)


def _difference(recorded: RecordedEnd, now: RecordedEnd) -> str:
    """Say what differs from the boot as it was recorded; "" for nothing."""
    found = ""
    if recorded.console != now.console:
        found = "its console's output"
    elif recorded.reason != now.reason:
        found = f"its end: {recorded.reason}, now {now.reason}"
    elif recorded.blocks != now.blocks:
        found = f"its number of blocks: {recorded.blocks}, now {now.blocks}"
    elif recorded.state != now.state:
        found = f"its memory or registers, at {recorded.pc:#x}, now {now.pc:#x}"
    return found and f"this boot is not the one that was recorded: another is {found}"


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
