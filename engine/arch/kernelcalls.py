"""Rules of an architecture for calling a kernel's functions outside of a running kernel."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from engine.arch.kernelsites import ExceptionEntry


class CallCpu(Protocol):
    """The registers of a processor."""

    def read_register(self, name: str) -> int:
        """The value of a register."""
        ...

    def write_register(self, name: str, value: int) -> None:
        """Change a register."""
        ...


class CalledMemory(Protocol):
    """The memory beside it; both raise GuestFaultError where there is none."""

    def read(self, address: int, size: int) -> bytes:
        """Bytes."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Change bytes."""
        ...


class KernelCalls(Struct, frozen=True):
    """The C calling convention of kernels, and what code of theirs needs around it.

    Attributes:
        arguments: registers of the first arguments; the rest is on the stack.
        results: registers of a result, that of its first eight bytes first.
        large_result: register of the address at which a structure of more bytes is returned;
            the first of `arguments` where that is passed as an argument in front.
        large_by_address: a structure of more than 16 bytes is passed by its address, not on
            the stack.
        link: register of the return address; "" where it is pushed.
        trap: the breakpoint instruction.
        trapped_at: how far behind a breakpoint the trap leaves pc.
        heap: where memory begins that allocators give: in the map of all physical memory.
        user: where memory begins that belongs to user space.
        start: puts registers right once: (processor, per-CPU area, the current task).
        emulate: (processor, bytes at pc, the current task) to the bytes of a privileged
            instruction that it carried out; 0 where it is none that a function can do without.
        fix_up: (processor, memory, entry of the exception table, address of the refused access):
            goes on where the kernel's own handler of the exception would (fixup_exception).
    """

    arguments: tuple[str, ...]
    results: tuple[str, str]
    large_result: str
    large_by_address: bool
    link: str
    trap: bytes
    trapped_at: int
    heap: int
    user: int
    start: Callable[[CallCpu, int, int], None]
    emulate: Callable[[CallCpu, bytes, int], int]
    fix_up: Callable[[CallCpu, CalledMemory, ExceptionEntry, int], None]
