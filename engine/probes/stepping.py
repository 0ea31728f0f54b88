"""Software's side of a step: the registers and memory that an `Operation` touches."""

from collections.abc import Callable
from functools import partial

from engine.arch.plan import Operation
from engine.cpu.base import CarriesOut, Cpu, Stop, StopKind
from engine.cpu.ram import READ, WRITE
from engine.errors import EngineError, GuestFaultError
from engine.guest.memory import MappingError, Memory


class StepStopError(Exception):
    """A displaced instruction did what the engine or the guest's kernel has to see to.

    Attributes:
        stop: as if it had been executed in place.
        pc: where it leaves the program: at the instruction, or behind it if it was carried out.
    """

    def __init__(self, stop: Stop, pc: int) -> None:
        super().__init__(stop.kind.name)
        self.stop = stop
        self.pc = pc


def failure(error: GuestFaultError | StepStopError, address: int) -> StepStopError:
    """The stop that a step at an address ended with."""
    if isinstance(error, StepStopError):
        return error
    return StepStopError(Stop(StopKind.FAULT, address=error.address, access=error.access), address)


class GuestStep:
    """Satisfies `engine.arch.plan.StepCpu` for a running guest."""

    def __init__(self, cpu: Cpu, memory: Memory, pc: str) -> None:
        """Wire it; `pc` is the register's name."""
        self._cpu = cpu
        self._pc = pc
        self._memory = memory
        self.read_register = cpu.read_register
        self.write_register = cpu.write_register

    def once(self, step: Callable[[], Stop | None]) -> Stop | None:
        """One instruction of the program's by a step of the processor, watched or not."""
        stop, watcher = step(), self._memory.bytes.watcher
        while (
            stop is not None
            and stop.kind is StopKind.FAULT
            and self._provided(stop.address, stop.access)
        ):
            stop = step()  # as if nothing had happened
        if watcher is None or stop is None or stop.kind is not StopKind.FAULT:
            return stop
        return watcher.refused(stop, step)

    def _provided(self, address: int, access: str) -> bool:
        """True if memory is touched first, and has pages now."""
        try:
            return self._memory.first_touch.provide(address, access)
        except MappingError:
            return False

    def execute(self, address: int, raw: bytes) -> int:
        """Let a processor of our own carry out an instruction; StepStopError if it stops."""
        cpu = self._cpu
        if not isinstance(cpu, CarriesOut):
            raise EngineError("this processor executes what is in memory only")
        watcher = self._memory.bytes.watcher
        if watcher is None:
            stop = cpu.carry_out(address, raw)
        else:
            stop = watcher.carry_out(partial(cpu.carry_out, address, raw))
        pc = self.read_register(self._pc)
        if stop is not None:
            raise StepStopError(stop, pc)
        return pc

    def perform(self, operation: Operation) -> int:
        """Carry an instruction out in software.

        Returns:
            The next pc.

        Raises:
            GuestFaultError: it faults, and nothing has changed.
            StepStopError: there is more to be seen to.
        """
        trap = None if operation.machinery else self._cpu.trap_behind()
        if trap is None:  # the flag as it is in front of it
            return operation.run(self)
        came = self.read_register(self._pc)
        pc = operation.run(self)
        self.write_register(self._pc, came)  # a trampoline's handlers were shown the caller's
        raise StepStopError(trap, pc)

    def load(self, address: int, size: int) -> bytes:
        """Read as the program would; GuestFaultError where it would fault."""
        self._demand(address, size, READ, "read")
        data = self._memory.read(address, size)
        if self._memory.bytes.watcher is not None:
            self._memory.bytes.watcher.loaded(address, size)
        return data

    def store(self, address: int, data: bytes) -> None:
        """Write as the program would; GuestFaultError, nothing written, where it would fault."""
        self._demand(address, len(data), WRITE, "write")
        self._memory.write(address, data)

    def _demand(self, address: int, size: int, need: int, access: str) -> None:
        """Refuse what the page table refuses; pages behind a file's end are in no region."""
        # The processor would have touched all of it: memory without pages gets some.
        end = address + size
        while address < end:
            self._provided(address, access)
            mapping = self._memory.find(address)
            region = self._cpu.page_table.rights(address)
            if mapping is None or region is None or not mapping.perms & need:
                raise GuestFaultError(address, access)
            address = min(mapping.end, region.end)
