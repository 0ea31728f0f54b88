"""The tasks of a booted kernel: its own list, read from memory while the machine stands.

The list is that of include/linux/sched.h: `init_task.tasks` links the first threads of all
processes, `signal->thread_head` the threads of each. A task that does not run has left its
registers on its kernel stack (struct inactive_task_frame of arch/x86/include/asm/switch_to.h).
All of it is the guest's to write: lists are bounded.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, GuestFaultError
from engine.escaping import escaped
from engine.machine.currenttask import COMM
from engine.session.bootcontrol.boot import ControlledBoot
from engine.session.protocol.views import ThreadView

_MOST: Final = 1 << 12
"""Tasks that are listed."""
_TASK: Final = "task_struct"
_STATES: Final = ((0x1, "S"), (0x2, "D"), (0x4, "T"), (0x8, "t"), (0x40, "P"))
"""TASK_INTERRUPTIBLE and so on, as /proc has them."""
_IDLE: Final = 0x402
"""TASK_IDLE: waits, and does not count as load."""
_ZOMBIE, _DEAD = 0x20, 0x10
_SAVED: Final = ("r15", "r14", "r13", "r12", "rbx", "rbp", "rip")
"""The members of struct inactive_task_frame."""
_WORD: Final = 8
_DEPTH: Final = 16


class ListedTask(Struct, frozen=True):
    """A task of the kernel's list.

    Attributes:
        address: of its `task_struct`.
        pid: its id.
        tgid: that of its process.
        ppid: that of its parent's process.
        comm: its name.
        state: a letter, as in /proc.
        sp: its stack pointer when it ran last.
    """

    address: int
    pid: int
    tgid: int
    ppid: int
    comm: str
    state: str
    sp: int


class KernelTaskList:
    """Reads the tasks of one boot."""

    def __init__(self, boot: ControlledBoot) -> None:
        """Nothing is read yet."""
        self._boot = boot
        self._places: dict[tuple[int, int], str] = {}
        self._head = boot.opened.image.names.find("init_task")
        records = boot.records
        self._state = "__state" if records.has(_TASK, "__state") else "state"

    @property
    def listed(self) -> tuple[ListedTask, ...]:
        """The tasks as far as they can be read; none before the kernel knows any."""
        found: list[ListedTask] = []
        if self._head is None or not self._boot.records.has(_TASK, "tasks"):
            return ()
        self._boot.machine.addresses.forget()
        try:
            for leader in self._linked(self._head, "tasks"):
                found.append(self._read(leader))
                found.extend(map(self._read, self._threads(leader)))
                if len(found) >= _MOST:
                    break
        except GuestFaultError:
            pass
        return tuple(found)

    def _linked(self, first: int, member: str) -> Iterator[int]:
        """The others of a list that leads back to its first one."""
        records = self._boot.records
        at = records.offset(_TASK, member)
        link, head = records.word(first + at)[0], first + at
        for _ in range(_MOST):
            if link in (head, 0):
                return
            yield link - at
            (link,) = records.word(link)

    def _threads(self, leader: int) -> Iterator[int]:
        """The other threads of a process."""
        records = self._boot.records
        if not records.has(_TASK, "thread_node") or not records.has(
            "signal_struct", "thread_head"
        ):
            return
        signal = records.pointer(_TASK, "signal", leader)
        head = signal + records.offset("signal_struct", "thread_head")
        at = records.offset(_TASK, "thread_node")
        (link,) = records.word(head)
        for _ in range(_MOST):
            if link in (head, 0):
                return
            if link - at != leader:
                yield link - at
            (link,) = records.word(link)

    def _read(self, task: int) -> ListedTask:
        records = self._boot.records
        number = records.number
        comm = self._boot.machine.addresses.read(task + records.offset(_TASK, "comm"), COMM)
        parent = records.pointer(_TASK, "real_parent", task)
        gone = number(_TASK, "exit_state", task)
        state = number(_TASK, self._state, task)
        sp = 0
        if records.has(_TASK, "thread") and records.has("thread_struct", "sp"):
            (sp,) = records.word(
                task + records.offset(_TASK, "thread") + records.offset("thread_struct", "sp")
            )
        return ListedTask(
            task,
            number(_TASK, "pid", task),
            number(_TASK, "tgid", task),
            number(_TASK, "tgid", parent) if parent else 0,
            escaped(comm.partition(b"\0")[0].decode(errors="replace")),
            _letter(state, gone),
            sp,
        )

    def views(self, current: int, shown: int) -> tuple[ThreadView, ...]:
        """The tasks as a tree, each with the function that it waits in.

        Args:
            current: id of the task that runs.
            shown: id of the one that panes show.
        """
        tasks = self.listed
        depths = _depths(tasks)
        found = []
        for task in tasks:
            runs = task.pid == current
            pc = 0 if runs else self.registers(task).get("rip", 0)
            found.append(
                ThreadView(
                    *(task.pid, task.tgid, task.ppid, depths.get(task.pid, 0), task.comm),
                    "R" if runs else task.state,
                    pc=self._boot.machine.pc if runs else pc,
                    location=self._place(task, pc) if not runs else "",
                    runs=runs,
                    shown=task.pid == shown,
                )
            )
        return tuple(found)

    def _place(self, task: ListedTask, pc: int) -> str:
        """The function that a task waits in, behind those of the scheduler."""
        if not pc:
            return ""
        key = task.address, task.sp
        if key not in self._places:
            if len(self._places) >= 2 * _MOST:
                self._places.clear()
            self._places[key] = self._found_place(task)
        return self._places[key]

    def _found_place(self, task: ListedTask) -> str:
        walk = self._boot.stacks.walk(_DEPTH, self.registers(task))
        for frame in walk.frames:
            bounds = self._boot.opened.names.bounds(frame.lookup)
            if bounds is not None and not _is_scheduler(bounds[0]):
                return f"{bounds[0]}+{frame.pc - bounds[1]:#x}"
        return ""

    def find(self, pid: int) -> ListedTask:
        """The task of an id.

        Raises:
            CommandError: there is none.
        """
        found = next((task for task in self.listed if task.pid == pid), None)
        if found is None:
            raise CommandError(f"the kernel has no task {pid}")
        return found

    def registers(self, task: ListedTask) -> dict[str, int]:
        """The registers that a task that does not run has left on its stack; none if unknown."""
        if not task.sp:
            return {}
        try:
            words = [
                self._boot.records.word(task.sp + number * _WORD)[0]
                for number in range(len(_SAVED))
            ]
        except GuestFaultError:
            return {}
        found = dict(zip(_SAVED, words, strict=True))
        return {**found, "rsp": task.sp + len(_SAVED) * _WORD}


def _letter(state: int, gone: int) -> str:
    """The letter of a task's state (get_task_state of fs/proc/array.c)."""
    if gone & _ZOMBIE:
        return "Z"
    if gone & _DEAD:
        return "X"
    if state & _IDLE == _IDLE:
        return "I"
    return next((letter for bit, letter in _STATES if state & bit), "R")


def _depths(tasks: tuple[ListedTask, ...]) -> dict[int, int]:
    """The depth of each in the tree of processes."""
    parents = {task.pid: task.ppid if task.pid == task.tgid else task.tgid for task in tasks}
    found: dict[int, int] = {}
    for pid in parents:
        depth, at, seen = 0, parents[pid], {pid}
        while at in parents and at not in seen and depth < _DEPTH:
            seen.add(at)
            depth, at = depth + 1, parents[at]
        found[pid] = depth
    return found


def _is_scheduler(name: str) -> bool:
    """True for what `wchan` passes by (in_sched_functions of kernel/sched/core.c)."""
    return name.startswith(("__schedule", "schedule", "__switch_to", "ret_from_fork"))
