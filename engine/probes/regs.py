"""The guest as a handler sees it at a hit: the kernel's struct pt_regs, and memory."""

from typing import Protocol

from engine.arch.base import Arch
from engine.arch.machine import RegisterFile


class GuestMemory(Protocol):
    """Memory as the guest's kernel copies it; raises `GuestFaultError`."""

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes out."""

    def write(self, address: int, data: bytes) -> None:
        """Copy bytes in; read-only pages fault."""

    def read_cstring(self, address: int, limit: int = 4096) -> bytes:
        """Bytes up to a NUL, without it."""


class PtRegs:
    """Registers by name (`regs["rdi"]`) and by role; changes take effect when the guest goes on.

    While a pre-handler runs, `ip` is the probe's address. (Linux's kprobes on x86 show the
    address behind the int3 there; all others show the probe's.)
    """

    __slots__ = ("_arch", "_cpu", "memory")

    def __init__(self, arch: Arch, cpu: RegisterFile, memory: GuestMemory) -> None:
        self._arch = arch
        self._cpu = cpu
        self.memory = memory

    def __getitem__(self, name: str) -> int:
        """A register by its own name or the kernel's (`di`); KeyError for an unknown one."""
        fixed = self._arch.probes.fixed_registers.get(name)
        if fixed is not None:
            return fixed
        return self._cpu.read_register(self._arch.probes.fetch_registers.get(name, name))

    def __setitem__(self, name: str, value: int) -> None:
        """Change a register."""
        self._cpu.write_register(self._arch.probes.fetch_registers.get(name, name), value)

    @property
    def ip(self) -> int:
        """The program counter (instruction_pointer)."""
        return self._cpu.read_register(self._arch.roles.pc)

    @ip.setter
    def ip(self, value: int) -> None:
        self._cpu.write_register(self._arch.roles.pc, value)

    @property
    def sp(self) -> int:
        """The stack pointer."""
        return self._cpu.read_register(self._arch.roles.sp)

    @property
    def retval(self) -> int:
        """The register of a function's result (regs_return_value)."""
        return self._cpu.read_register(self._arch.probes.retval)

    @retval.setter
    def retval(self, value: int) -> None:
        self._cpu.write_register(self._arch.probes.retval, value)

    def argument(self, number: int) -> int:
        """The function's Nth integer argument at its entry, from 0, as far as in registers."""
        return self._cpu.read_register(self._arch.probes.arguments[number])

    def read(self, address: int, size: int) -> bytes:
        """Guest memory; GuestFaultError where there is none."""
        return self.memory.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Change guest memory; GuestFaultError where the program could not."""
        self.memory.write(address, data)

    def string(self, address: int, limit: int = 4096) -> bytes:
        """A C string of the guest."""
        return self.memory.read_cstring(address, limit)
