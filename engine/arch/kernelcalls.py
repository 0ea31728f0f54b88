"""Rules of an architecture for calling a kernel's functions outside of a running kernel."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct


class CallCpu(Protocol):
    """The registers of a processor."""

    def read_register(self, name: str) -> int:
        """The value of a register."""
        ...

    def write_register(self, name: str, value: int) -> None:
        """Change a register."""
        ...


class KernelCalls(Struct, frozen=True):
    """The C calling convention of kernels, and what code of theirs needs around it.

    Attributes:
        arguments: registers of the first arguments; the rest is on the stack.
        result: register of the result.
        link: register of the return address; "" where it is pushed.
        trap: the breakpoint instruction.
        trapped_at: how far behind a breakpoint the trap leaves pc.
        start: puts registers right once: (processor, per-CPU area, the current task).
        emulate: (processor, bytes at pc, the current task) to the bytes of a privileged
            instruction that it carried out; 0 where it is none that a function can do without.
    """

    arguments: tuple[str, ...]
    result: str
    link: str
    trap: bytes
    trapped_at: int
    start: Callable[[CallCpu, int, int], None]
    emulate: Callable[[CallCpu, bytes, int], int]
