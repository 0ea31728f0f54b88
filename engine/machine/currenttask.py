"""The task that a machine's kernel runs: its ids and its name.

A kernel of x86-64 keeps the address of `current` in the memory that each processor has of its own,
which gs leads to: as `current_task`, or from 6.2 to 6.14 as the first member of `pcpu_hot`
(arch/x86/include/asm/current.h). While a program runs gs is its own, and SWAPGS puts the kernel's
back. The members of a task are where the kernel's BTF has them.
"""

import struct
from typing import Final

from msgspec import Struct

from engine.cpu.unicorn_system import SystemCpu
from engine.errors import GuestFaultError
from engine.image.kernel.btftypes import BtfTypes
from engine.image.kernel.kernelimage import KernelImage
from engine.machine.addresses import KernelAddresses

COMM: Final = 16
"""TASK_COMM_LEN."""
_NAMES: Final = (("current_task", ""), ("const_current_task", ""), ("pcpu_hot", "current_task"))
_UNKNOWN: Final = 0
_PER_CPU: Final = 1 << 32
"""Addresses of what each processor has are below: offsets to the base of gs."""


class TaskMembers(Struct, frozen=True):
    """The way to the task that runs.

    Attributes:
        current: offset of its address to the base of gs.
        pid: offset in a task of its id, 32 bits.
        tgid: of that of its process.
        comm: of its name.
    """

    current: int
    pid: int
    tgid: int
    comm: int


def task_members(image: KernelImage) -> TaskMembers | None:
    """The way to the task that a kernel runs; None where the image does not tell."""
    if image.btf is None:
        return None
    types = BtfTypes(image.btf)
    task = types.layout("task_struct")
    if task is None or not {"pid", "tgid", "comm"} <= task.keys():
        return None
    for name, member in _NAMES:
        at = image.names.find(name)
        if at is None:
            continue
        if member:
            hot = types.layout(name)
            if hot is None or member not in hot:
                continue
            at += hot[member][0]
        if at < _PER_CPU:
            return TaskMembers(at, *(task[each][0] for each in ("pid", "tgid", "comm")))
    return None


class CurrentTask(Struct, frozen=True):
    """The task that runs.

    Attributes:
        address: of it; 0 where that is not known.
        pid: its id, as the kernel's own numbers go.
        tgid: that of its process.
        comm: its name.
    """

    address: int
    pid: int
    tgid: int
    comm: bytes


NOBODY: Final = CurrentTask(0, 0, 0, b"")


class TaskReader:
    """Reads which task runs."""

    def __init__(
        self, cpu: SystemCpu, addresses: KernelAddresses, members: TaskMembers | None
    ) -> None:
        """Take a processor; its memory is read by each question.

        Args:
            cpu: the processor.
            addresses: the memory as its kernel sees it.
            members: where it is written; None where nobody knows.
        """
        self._members = members
        self._cpu, self._base = cpu, cpu.reader(("gs_base",))
        self._swapped = cpu.reader(("kernel_gs_base",))
        self._word = addresses.reader(struct.Struct("<Q"))
        self._addresses, self._read = addresses, addresses.read
        self._at = members or TaskMembers(0, 0, 0, 0)

    def address(self) -> int:
        """The address of the task that runs; 0 where that cannot be read."""
        if self._members is None:
            return _UNKNOWN
        (base,) = self._swapped() if self._cpu.privilege else self._base()
        try:
            return int(self._word(base + self._at.current & (1 << 64) - 1)[0])
        except GuestFaultError:
            if self._cpu.privilege and self._addresses.leave_program():
                return self.address()
            return _UNKNOWN

    def now(self) -> CurrentTask:
        """The task that runs."""
        at, task = self._at, self.address()
        if not task:
            return NOBODY
        first = min(at.pid, at.tgid, at.comm)
        size = max(at.pid + 4, at.tgid + 4, at.comm + COMM) - first
        try:
            data = self._read(task + first, size)
        except GuestFaultError:
            return NOBODY
        pid, tgid = (
            int.from_bytes(data[each - first :][:4], "little") for each in (at.pid, at.tgid)
        )
        comm = data[at.comm - first :][:COMM].partition(b"\0")[0]
        return CurrentTask(task, pid, tgid, comm)
