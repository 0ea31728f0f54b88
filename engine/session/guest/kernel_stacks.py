"""The stacks of a kernel that runs as a process of the guest: user-mode Linux.

To the guest it is one thread, which switches between stacks by itself. What belongs to a task of
that kernel is told by the stack that it is on.
"""

from typing import TYPE_CHECKING, Final

from engine.errors import GuestFaultError
from engine.image.kernel.tasklayout import TaskLayout, task_layout

if TYPE_CHECKING:
    from engine.session.guest.loading import LoadedGuest

_WORD: Final = 8


class KernelStacks:
    """The stacks of a kernel's tasks.

    Attributes:
        layout: where tasks are.
        bias: what its addresses are off those of its file.
    """

    def __init__(self, layout: TaskLayout, guest: "LoadedGuest", bias: int) -> None:
        """Those of a guest."""
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
