"""Software's side of a step: the registers and memory that an `Operation` touches."""

from engine.cpu.base import Cpu
from engine.cpu.ram import READ, WRITE
from engine.errors import GuestFaultError
from engine.guest.memory import Memory


class GuestStep:
    """Satisfies `engine.arch.plan.StepCpu` for a running guest."""

    def __init__(self, cpu: Cpu, memory: Memory) -> None:
        self._cpu = cpu
        self._memory = memory
        self.read_register = cpu.read_register
        self.write_register = cpu.write_register

    def load(self, address: int, size: int) -> bytes:
        """Read as the program would; GuestFaultError where it would fault."""
        self._demand(address, size, READ, "read")
        return self._memory.read(address, size)

    def store(self, address: int, data: bytes) -> None:
        """Write as the program would; GuestFaultError, nothing written, where it would fault."""
        self._demand(address, len(data), WRITE, "write")
        self._memory.write(address, data)

    def _demand(self, address: int, size: int, need: int, access: str) -> None:
        """Refuse what the page table refuses; pages behind a file's end are in no region."""
        end = address + size
        while address < end:
            mapping = self._memory.find(address)
            region = self._cpu.page_table.find(address)
            if mapping is None or region is None or not mapping.perms & need:
                raise GuestFaultError(address, access)
            address = min(mapping.end, region.end)
