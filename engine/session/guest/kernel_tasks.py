"""The tasks of a kernel that runs as a process of the guest: which one runs, and its name."""

from typing import Final

from engine.errors import GuestFaultError
from engine.linux.machine import InnerKernel
from engine.linux.thread import Thread
from engine.probes.kprobe import Kprobe
from engine.session.guest.kernel_stacks import KernelStacks
from engine.session.guest.loading import LoadedGuest
from engine.session.guest.probing import Probing

_COMM: Final = 16
"""TASK_COMM_LEN."""


class _TaskProbe(Kprobe):
    """A probe of the engine's own on what a kernel does about its tasks."""

    machinery = True

    __slots__ = ()


class KernelTasks:
    """Follows which of a kernel's tasks runs, and what they are called.

    They have ids and names of their own (`Machine.task`), as that kernel's `current` has them. A
    task that has the number of a thread of the guest shares its name.
    """

    def __init__(self, guest: LoadedGuest, stacks: KernelStacks, probing: Probing) -> None:
        """Listen.

        Args:
            guest: the kernel.
            stacks: of its tasks.
            probing: its probes.
        """
        self._guest = guest
        self._machine = guest.machine
        self._stacks = stacks
        self._probing = probing
        self._read = guest.cpu.traps.reader((guest.arch.roles.sp,))
        arguments = guest.arch.probes.arguments[:2]
        self._arguments = guest.cpu.traps.reader(arguments)
        self._machine.inner = self._inner = InnerKernel(guest.process)
        self._path = guest.modules.main.name if guest.modules.main is not None else ""
        self._low = 0  # of the stack
        self._dying = False
        self._listen()
        self._machine.moments.executed.append(self._executed)

    def _listen(self) -> None:
        layout, bias = self._stacks.layout, self._stacks.bias
        for address, record, what in (
            (layout.switched, self._switched, "switch"),
            (layout.renamed, self._renamed, "name"),
            (layout.dies, self._dies, "end"),
        ):
            probe = _TaskProbe(addr=address + bias, record=record, name=f"task {what}")
            self._probing.manager.register(probe)

    def _executed(self, thread: Thread, before: int, path: bytes) -> None:
        """A reboot begins the same program again."""
        main = self._guest.modules.main
        if thread.process is not self._inner.process:
            return
        self._inner.task = None
        self._machine.task = thread.tid
        if main is not None and main.name == self._path:
            self._listen()

    def _switched(self, thread: int) -> None:
        """Note that the kernel has switched to another stack."""
        low = self._read()[0] & -self._stacks.layout.size
        task = self._stacks.task_at(low)
        if not task:
            return
        before, self._low = self._low, low
        if self._dying and before != low:
            self._over(before)
        try:
            pid = self._name(task)
        except GuestFaultError:
            return  # no task's: nothing is known of it
        if pid != self._inner.task:
            self._inner.task = pid
            self._machine.task = self._machine.task_of(self._machine.current)
            for told in self._guest.kernel.switched:
                told()
        self._probing.manager.techniques.show_thread()

    def _dies(self, thread: int) -> None:
        """The task that runs will switch to another one, and not come back."""
        self._dying = True

    def _over(self, low: int) -> None:
        """The task that has run on a stack has ended."""
        self._dying = False
        task, high = self._inner.task, low + self._stacks.layout.size
        if task is None:
            return
        for told in self._machine.moments.task_over:
            told(task, low, high)
        self._probing.manager.returns.over(task, low, high)

    def _renamed(self, thread: int) -> None:
        """A task is about to get another name."""
        task, text = self._arguments()
        try:
            self._name(task, self._guest.memory.peek(text, _COMM))
        except GuestFaultError:
            return
        self._probing.manager.techniques.show_thread()

    def _name(self, task: int, comm: bytes | None = None) -> int:
        """Note what a task is called; its id."""
        layout, memory = self._stacks.layout, self._guest.memory
        ids = memory.peek(task + layout.pid, 8)
        pid, process = int.from_bytes(ids[:4], "little"), int.from_bytes(ids[4:], "little")
        if comm is None:
            comm = memory.peek(task + layout.comm, _COMM)
        comm = comm.partition(b"\0")[0][: _COMM - 1]
        machine = self._machine
        if machine.comms.get(pid) != comm or machine.pids.get(pid) != process:
            machine.hooks.renaming()
            machine.comms[pid], machine.pids[pid] = comm, process
            machine.hooks.renamed(pid)
        return pid
