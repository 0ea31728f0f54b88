"""A stopped thread as a debugger inside the guest sees it: its registers by ptrace."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct, field

from engine.arch.machine import ArchCpu, MemoryAccess, RegisterFile

ORIGINAL: Final = "orig"
"""In `PtraceAbi.general`: number of the system call that the thread is in, -1 in none."""
NT_PRSTATUS, NT_PRFPREG = 1, 2
"""Register sets that every architecture has (linux/elf.h)."""


class TracedRegisters(RegisterFile, Protocol):
    """Registers of a thread that stands still, and the call that it is in.

    Attributes:
        original: number of the system call; -1 for none.
    """

    original: int


class RegisterSet(Struct, frozen=True):
    """A register set (struct user_regset).

    Attributes:
        size: its bytes.
        unit: bytes that are written as a whole.
        read: all of it.
        write: (registers, bytes from its front on, no more than it has) to 0 or an errno.
        whole: the errno of what writes a part of it only; 0 where that may be done.
    """

    size: int
    unit: int
    read: Callable[[TracedRegisters], bytes]
    write: Callable[[TracedRegisters, bytes], int]
    whole: int = 0


class PtraceAbi(Struct, frozen=True):
    """Facts of an architecture in ptrace.

    Attributes:
        general: words of struct user_regs_struct by register.
        put: (registers, name, value) sets one of them: 0 or an errno.
        sets: the register sets by number.
        requests: requests that not every architecture has, by number; `ptrace` knows the names.
        entry_result: what the register of results holds where a call begins; None: as it was.
        entry_mark: register that is 0 in a stop at the beginning of a call and 1 in one at its
            end, and has its own value afterwards; "" for none.
        user_size: bytes of struct user; 0 where no request shows it.
        user_debug: offset of the debug registers in it.
        exit_step: si_code of the step that ends with a system call.
        breakpoint_step: si_code of any other.
        restarts_first: a call to be restarted has its registers back before a debugger is told
            of the signal.
        after_step: (bytes of an instruction, registers, memory): it has been stepped over, and has
            seen what makes it a step; None where none does.
        show: brings registers up to date where a thread stops.
        base_limit: first address that a segment's base may not be.
    """

    general: tuple[str, ...]
    put: Callable[[TracedRegisters, str, int], int]
    sets: Mapping[int, RegisterSet]
    requests: Mapping[int, str] = field(default_factory=dict)
    entry_result: int | None = None
    entry_mark: str = ""
    user_size: int = 0
    user_debug: int = 0
    exit_step: int = 0
    breakpoint_step: int = 2
    restarts_first: bool = False
    show: Callable[[ArchCpu], None] = lambda cpu: None
    after_step: Callable[[bytes, RegisterFile, MemoryAccess], None] | None = None
    base_limit: int = 0


def read_general(registers: TracedRegisters, names: tuple[str, ...]) -> bytes:
    """Words of a thread, one after another."""
    words = (
        registers.original if name == ORIGINAL else registers.read_register(name) for name in names
    )
    return b"".join((word & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little") for word in words)
