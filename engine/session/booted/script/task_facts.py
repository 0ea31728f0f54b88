"""Facts about the task that a booted kernel runs: its user, its parent, its paths, its stack.

Where members lie is what the kernel's BTF says; a kernel without it tells nothing. All that is
read is the guest's to write: lists and texts are bounded.
"""

from collections.abc import Callable
from typing import Final

from engine.errors import GuestFaultError
from engine.machine.addresses import KernelAddresses
from engine.machine.currenttask import COMM
from engine.machine.guestpaths import GuestPaths, GuestPlace
from engine.machine.records import KernelRecords
from engine.session.booted.event_hits import PT_REGS
from engine.session.kernel.opened import OpenedKernel

_STACK: Final = 1 << 14
"""THREAD_SIZE of x86-64."""
_IP, _BP = 16, 4
_PROGRAMS: Final = 1 << 47


class TaskFacts:
    """Reads what belongs to tasks of one machine."""

    def __init__(
        self, opened: OpenedKernel, addresses: KernelAddresses, task: Callable[[], int]
    ) -> None:
        """Set up; files are read when somebody asks.

        Args:
            opened: the kernel.
            addresses: the memory as it sees it.
            task: address of the task that runs; 0 where that is not known.
        """
        self._addresses, self._task = addresses, task
        self._records = KernelRecords(opened.image, addresses)
        self._paths = GuestPaths(opened.image, addresses, self._records, task)
        self._word, self._pointer = self._records.word, self._records.pointer
        self._number = self._records.number

    # -- ids ------------------------------------------------------------------------------

    def user(self) -> int:
        """The number of its user; 0 where that cannot be read."""
        return self._credential("uid")

    def group(self) -> int:
        """The number of its group."""
        return self._credential("gid")

    def _credential(self, member: str) -> int:
        try:
            owner = self._pointer("task_struct", "cred", self._task())
            return self._number("cred", member, owner)
        except GuestFaultError:
            return 0

    def relative(self, member: str) -> tuple[int, bytes]:
        """The process and the name of a task that it leads to: "real_parent", "group_leader"."""
        try:
            other = self._pointer("task_struct", member, self._task())
            name = self._addresses.read(other + self._records.offset("task_struct", "comm"), COMM)
            return self._number("task_struct", "tgid", other), name.partition(b"\0")[0]
        except GuestFaultError:
            return 0, b""

    def cgroup(self) -> int:
        """The id of its control group in the hierarchy of version 2; 0 for none."""
        try:
            found = self._pointer("task_struct", "cgroups", self._task())
            found = self._pointer("css_set", "dfl_cgrp", found)
            found = self._pointer("cgroup", "kn", found)
            return self._pointer("kernfs_node", "id", found)
        except GuestFaultError:
            return 0

    # -- the program's stack --------------------------------------------------------------

    def user_stack(self, limit: int) -> tuple[int, ...]:
        """Addresses of the program's frames by its frame pointers, as the kernel walks them."""
        found: list[int] = []
        try:
            task = self._task()
            if not self._pointer("task_struct", "mm", task):
                return ()
            top = self._pointer("task_struct", "stack", task) + _STACK - PT_REGS.size
            saved = PT_REGS.unpack(self._addresses.read(top, PT_REGS.size))
            found.append(saved[_IP])
            frame = saved[_BP]
            while len(found) < limit and 0 < frame < _PROGRAMS:
                before, leads_to = self._word(frame)[0], self._word(frame + 8)[0]
                if not 0 < leads_to < _PROGRAMS:
                    break
                found.append(leads_to)
                if before <= frame:
                    break
                frame = before
        except GuestFaultError:
            pass
        return tuple(found[:limit])

    # -- paths ----------------------------------------------------------------------------

    def path(self, where: int | bytes, size: int) -> bytes:
        """The path that a `struct path` stands for, as of d_path (fs/d_path.c); "" for none.

        Args:
            where: its bytes, or its address.
            size: bytes at most.
        """
        try:
            if isinstance(where, int):
                where = self._addresses.read(where, self._records.offset("path", ""))
            offsets = (self._records.offset("path", each) for each in ("mnt", "dentry"))
            pair = (int.from_bytes(where[at : at + 8], "little") for at in offsets)
            return self._paths.path(GuestPlace(*pair))[: max(size - 1, 0)]
        except GuestFaultError:
            return b""
