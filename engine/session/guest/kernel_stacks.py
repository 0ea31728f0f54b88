"""The stacks of a kernel that runs as a process of the guest: user-mode Linux.

To the guest it is one thread, which switches between stacks by itself. What belongs to a task of
that kernel is told by the stack that it is on.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.errors import GuestFaultError
from engine.image.kernel.tasklayout import TaskLayout, task_layout

if TYPE_CHECKING:
    from engine.session.guest.loading import LoadedGuest

_WORD: Final = 8
_COMM: Final = 16
"""TASK_COMM_LEN."""
_TASKS: Final = 4096
"""Tasks that are looked at."""


class WaitingTask(Struct, frozen=True):
    """A task of a kernel's.

    Attributes:
        address: of its description.
        pid: its id.
        comm: its name.
        registers: that it has saved when another one came to run.
    """

    address: int
    pid: int
    comm: str
    registers: dict[str, int]


class KernelStacks:
    """The stacks of a kernel's tasks.

    Attributes:
        layout: where tasks are.
        bias: what its addresses are off those of its file.
    """

    def __init__(self, layout: TaskLayout, guest: "LoadedGuest", bias: int) -> None:
        """Take a guest whose tasks lie as `layout` says."""
        self.layout = layout
        self.bias = bias
        self._guest = guest

    def at(self, address: int) -> tuple[int, int] | None:
        """The bounds of the task's stack that an address lies on; None of no such stack."""
        low = address & -self.layout.size
        return (low, low + self.layout.size) if self.task_at(low) else None

    def is_end(self, address: int) -> bool:
        """True if a task's stack ends at a CFA: nobody has called what begins there."""
        size = self.layout.size
        return not address % size and bool(self.task_at(address - size))

    def task_at(self, low: int) -> int:
        """The address of the task whose stack begins at an address; 0 for none.

        While it serves an interrupt a task names another stack as its own, where it is named too.
        """
        task = self._word(low)
        stack = self._word(task + self.layout.stack) if task else 0
        return task if stack and (stack == low or self._word(stack) == task) else 0

    def waiting(self) -> Iterator[WaitingTask]:
        """The tasks, with the registers that each has saved when it has last left its stack."""
        where = self.layout.waiting
        if where is None:
            return
        task = first = where.first + self.bias
        for _ in range(_TASKS):
            data = self._bytes(task + where.saved, _WORD * len(where.registers))
            if not data:
                return
            words = [data[at : at + _WORD] for at in range(0, len(data), _WORD)]
            values = [int.from_bytes(word, "little") for word in words]
            pid = int.from_bytes(self._bytes(task + self.layout.pid, 4), "little")
            comm = self._bytes(task + self.layout.comm, _COMM).split(b"\0")[0]
            registers = dict(zip(where.registers, values, strict=True))
            yield WaitingTask(task, pid, comm.decode(errors="replace"), registers)
            task = self._word(task + where.next) - where.next
            if task == first or task <= 0:
                return

    def _bytes(self, address: int, size: int) -> bytes:
        try:
            return self._guest.memory.peek(address, size)
        except GuestFaultError:
            return b""

    def _word(self, address: int) -> int:
        try:
            return int.from_bytes(self._guest.memory.peek(address, _WORD), "little")
        except GuestFaultError:
            return 0


def kernel_stacks(guest: "LoadedGuest") -> KernelStacks | None:
    """The stacks of the tasks of a guest that is a kernel; None of another one."""
    main = guest.modules.main
    if main is None:
        return None
    layout = task_layout(guest.image, main.symbols, guest.disassembler.decode)
    return None if layout is None else KernelStacks(layout, guest, main.bias)
