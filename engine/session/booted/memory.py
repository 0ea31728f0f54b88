"""Registers and memory of a booted machine, as the evaluator of probes reads them."""

from collections.abc import Callable
from struct import Struct
from typing import Any

from engine.errors import GuestFaultError
from engine.machine.addresses import KernelAddresses
from engine.machine.machine import BareMachine
from engine.machine.programpages import ProgramPages
from engine.machine.programs import PROGRAMS_END


class BootCpu:
    """The processor as the evaluator sees it at a place."""

    def __init__(self, machine: BareMachine, pc: int = 0) -> None:
        """Take a machine; rip is what is given."""
        self._cpu, self._pc = machine.cpu, pc
        self.now = lambda: machine.clock.now

    def reader(self, names: tuple[str, ...]) -> Callable[[], tuple[int, ...]]:
        """A function that reads registers at once; rip is the place's."""
        if "rip" not in names:
            return self._cpu.reader(names)
        read = self._cpu.reader(tuple(name for name in names if name != "rip"))
        pc, at = self._pc, [place for place, name in enumerate(names) if name == "rip"]

        def with_pc() -> tuple[int, ...]:
            values = list(read())
            for place in at:
                values.insert(place, pc)
            return tuple(values)

        return with_pc


class KernelStrings:
    """Memory whose strings are those that Linux's kprobes find.

    An empty string of a program has the length 0 there, which is that of none
    (strncpy_from_user_nofault of mm/maccess.c): it prints as "(fault)".
    """

    def __init__(self, addresses: KernelAddresses) -> None:
        """Take the memory as the kernel sees it."""
        self._addresses = addresses
        self.reader = addresses.reader

    def text_reader(self, limit: int) -> Callable[[int], bytes]:
        """A function that copies a string; see `KernelAddresses.text_reader`."""
        read = self._addresses.text_reader(limit)

        def load(address: int) -> bytes:
            text = read(address)
            if not text and address < PROGRAMS_END:
                raise GuestFaultError(address, "read")
            return text

        return load


class UprobeMemory:
    """Memory as a uprobe of Linux reads it: that of the program alone.

    Linux brings in what is not there yet; it is read from where that would come from.
    """

    def __init__(self, addresses: KernelAddresses, pages: ProgramPages) -> None:
        """Take the memory as the kernel sees it, and what the program has not touched."""
        self._addresses, self._pages = addresses, pages

    def reader(self, layout: Struct) -> Callable[[int], tuple[Any, ...]]:
        """A function that unpacks a structure; see `KernelAddresses.reader`."""
        read, last, pages = (
            self._addresses.reader(layout),
            PROGRAMS_END - layout.size,
            self._pages,
        )

        def load(address: int) -> tuple[Any, ...]:
            if address > last:
                raise GuestFaultError(address, "read")
            try:
                return read(address)
            except GuestFaultError:
                return layout.unpack(pages.read(address, layout.size))

        return load

    def text_reader(self, limit: int) -> Callable[[int], bytes]:
        """A function that copies a string; see `KernelAddresses.text_reader`."""
        read, pages = self._addresses.text_reader(limit), self._pages

        def load(address: int) -> bytes:
            if address >= PROGRAMS_END:
                raise GuestFaultError(address, "read")
            try:
                return read(address)
            except GuestFaultError:
                return pages.read_cstring(address, limit)

        return load
