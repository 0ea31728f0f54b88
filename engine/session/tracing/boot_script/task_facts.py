"""Facts about the task that a booted kernel runs: its user, its parent, its paths, its stack.

Where members lie is what the kernel's BTF says; a kernel without it tells nothing. All that is
read is the guest's to write: lists and texts are bounded.
"""

import struct
from collections.abc import Callable
from typing import Final

from engine.errors import GuestFaultError
from engine.machine.addresses import KernelAddresses
from engine.machine.currenttask import COMM
from engine.session.kernel.opened import OpenedKernel
from engine.session.tracing.boot_script.hits import PT_REGS

_STACK: Final = 1 << 14
"""THREAD_SIZE of x86-64."""
_IP, _BP = 16, 4
_PROGRAMS: Final = 1 << 47
_PARTS_MOST: Final = 1 << 10
"""Names in one path."""
_NAME_MOST: Final = 256
_DELETED: Final = b" (deleted)"
_NAMELESS: Final = {
    "pipefs_dname": b"pipe:[%d]",
    "sockfs_dname": b"socket:[%d]",
    "anon_inodefs_dname": b"anon_inode:%s",
    "simple_dname": b"/%s" + _DELETED,
}
"""Functions that name what has no path, and what they give."""


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
        self._opened, self._addresses, self._task = opened, addresses, task
        self._word = addresses.reader(struct.Struct("<Q"))
        self._half = addresses.reader(struct.Struct("<I"))
        self._offsets: dict[tuple[str, str], int | None] = {}

    def _offset(self, record: str, member: str) -> int:
        """The offset of a member, or the size of a structure, by "" in place of one.

        Raises:
            GuestFaultError: the kernel has none.
        """
        key = record, member
        if key not in self._offsets:
            found = (self._opened.image.layout(record) or {}).get(member)
            # The size of the whole record stands under "".
            self._offsets[key] = None if found is None else found[0] or found[1] * (not member)
        at = self._offsets[key]
        if at is None:
            raise GuestFaultError(0, "read")
        return at

    def _pointer(self, record: str, member: str, address: int) -> int:
        return int(self._word(address + self._offset(record, member))[0])

    def _number(self, record: str, member: str, address: int) -> int:
        return int(self._half(address + self._offset(record, member))[0])

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
            name = self._addresses.read(other + self._offset("task_struct", "comm"), COMM)
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
                where = self._addresses.read(where, self._offset("path", ""))
            offsets = (self._offset("path", each) for each in ("mnt", "dentry"))
            pair = (int.from_bytes(where[at : at + 8], "little") for at in offsets)
            return self._named(*pair)[: max(size - 1, 0)]
        except GuestFaultError:
            return b""

    def _named(self, mount: int, entry: int) -> bytes:
        pointer = self._pointer
        nameless = self._nameless(entry)
        if nameless is not None:
            return nameless
        place = pointer("task_struct", "fs", self._task()) + self._offset("fs_struct", "root")
        root = pointer("path", "mnt", place), pointer("path", "dentry", place)
        inner = self._offset("mount", "mnt")
        deleted = not self._word(
            entry + self._offset("dentry", "d_hash") + self._offset("hlist_bl_node", "pprev")
        )[0] and entry != pointer("dentry", "d_parent", entry)
        parts: list[bytes] = []
        for _ in range(_PARTS_MOST):
            if (mount, entry) == root:
                break
            above = pointer("dentry", "d_parent", entry)
            if entry in (pointer("vfsmount", "mnt_root", mount), above):
                outer = pointer("mount", "mnt_parent", mount - inner)
                if outer == mount - inner:
                    break
                entry = pointer("mount", "mnt_mountpoint", mount - inner)
                mount = outer + inner
                continue
            parts.append(self._name(entry))
            entry = above
        return b"/" + b"/".join(reversed(parts)) + (_DELETED if deleted else b"")

    def _name(self, entry: int) -> bytes:
        at = entry + self._offset("dentry", "d_name") + self._offset("qstr", "name")
        return self._addresses.read_cstring(self._word(at)[0], _NAME_MOST)

    def _nameless(self, entry: int) -> bytes | None:
        """The name of what lies in no folder; None for all else."""
        table = self._pointer("dentry", "d_op", entry)
        function = self._pointer("dentry_operations", "d_dname", table) if table else 0
        if not function or entry != self._pointer("dentry", "d_parent", entry):
            return None
        name = (self._opened.names.bounds(function) or ("",))[0]
        form = _NAMELESS.get(name)
        if form is None:
            return None
        if b"%d" in form:
            node = self._pointer("dentry", "d_inode", entry)
            return form % self._pointer("inode", "i_ino", node)
        return form % self._name(entry)
