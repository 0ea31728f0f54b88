"""Paths in a booted system, by the names that its kernel has in memory (fs/d_path.c, fs/namei.c).

All that is read is the guest's to write: lists and texts are bounded.
"""

import stat
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from engine.image.kernel.kernelimage import KernelImage
from engine.machine.addresses import KernelAddresses
from engine.machine.records import KernelRecords

_PARTS_MOST: Final = 1 << 10
"""Names in one path."""
_NAME_MOST: Final = 256
_ENTRIES_MOST: Final = 1 << 16
"""Names of one folder that are looked through."""
_LINKS_MOST: Final = 40
"""MAXSYMLINKS."""
_LINK_MOST: Final = 4096
_DELETED: Final = b" (deleted)"
_NAMELESS: Final = {
    "pipefs_dname": b"pipe:[%d]",
    "sockfs_dname": b"socket:[%d]",
    "anon_inodefs_dname": b"anon_inode:%s",
    "simple_dname": b"/%s" + _DELETED,
}
"""Functions that name what has no path, and what they give."""


class GuestPlace(Struct, frozen=True):
    """A name in a mounted file system.

    Attributes:
        mount: address of the `struct vfsmount`.
        entry: of the `struct dentry`.
    """

    mount: int
    entry: int


class GuestPaths:
    """Reads the paths of one machine's system, as the task that runs sees them."""

    def __init__(
        self,
        image: KernelImage,
        addresses: KernelAddresses,
        records: KernelRecords,
        task: Callable[[], int],
    ) -> None:
        """Read nothing yet.

        Args:
            image: the kernel.
            addresses: the memory as it sees it.
            records: its structures.
            task: address of the task that runs; 0 where that is not known.
        """
        self._names, self._addresses = image.names, addresses
        self._records, self._task = records, task

    # -- from a place to its path -----------------------------------------------------------

    def path(self, place: GuestPlace) -> bytes:
        """The path of a place, as of d_path.

        Raises:
            GuestFaultError: it cannot be read.
        """
        mount, entry = place.mount, place.entry
        pointer = self._records.pointer
        nameless = self._nameless(entry)
        if nameless is not None:
            return nameless
        root = self._root()
        inner = self._records.offset("mount", "mnt")
        hashed = self._records.offset("dentry", "d_hash")
        hashed += self._records.offset("hlist_bl_node", "pprev")
        whole = entry == pointer("dentry", "d_parent", entry)
        deleted = not self._records.word(entry + hashed)[0] and not whole
        parts: list[bytes] = []
        for _ in range(_PARTS_MOST):
            if GuestPlace(mount, entry) == root:
                break
            above = pointer("dentry", "d_parent", entry)
            if entry in (pointer("vfsmount", "mnt_root", mount), above):
                outer = pointer("mount", "mnt_parent", mount - inner)
                if outer == mount - inner:
                    break
                entry = pointer("mount", "mnt_mountpoint", mount - inner)
                mount = outer + inner
                continue
            parts.append(self.name(entry))
            entry = above
        return b"/" + b"/".join(reversed(parts)) + (_DELETED if deleted else b"")

    def name(self, entry: int) -> bytes:
        """The name of a `struct dentry`; raises `GuestFaultError`."""
        at = entry + self._records.offset("dentry", "d_name")
        at += self._records.offset("qstr", "name")
        return self._addresses.read_cstring(self._records.word(at)[0], _NAME_MOST)

    def _root(self) -> GuestPlace:
        """The root of the task that runs."""
        pointer = self._records.pointer
        place = pointer("task_struct", "fs", self._task())
        place += self._records.offset("fs_struct", "root")
        return GuestPlace(pointer("path", "mnt", place), pointer("path", "dentry", place))

    def _nameless(self, entry: int) -> bytes | None:
        """The name of what lies in no folder; None for all else."""
        pointer = self._records.pointer
        table = pointer("dentry", "d_op", entry)
        function = pointer("dentry_operations", "d_dname", table) if table else 0
        if not function or entry != pointer("dentry", "d_parent", entry):
            return None
        found = self._names.at(function)
        form = _NAMELESS.get("" if found is None else found.name)
        if form is None:
            return None
        if b"%d" in form:
            return form % pointer("inode", "i_ino", pointer("dentry", "d_inode", entry))
        return form % self.name(entry)

    # -- from a path to its place -----------------------------------------------------------

    def find(self, path: bytes) -> GuestPlace | None:
        """The place that a path leads to, links followed.

        Only names that the kernel has in memory are found: those that were used not long ago.

        Returns:
            None where there is none.

        Raises:
            GuestFaultError: the kernel does not tell.
        """
        root = self._root()
        here, left, links = [root], _parts(path), 0
        while left:
            part = left.pop(0)
            if part == b"..":
                here = here[:-1] or here
                continue
            found = self._child(here[-1], part)
            if found is None:
                return None
            target = self._link(found.entry)
            if target is None:
                here.append(self._mounted(found))
                continue
            links += 1
            if not target or links > _LINKS_MOST:
                return None
            here = [root] if target.startswith(b"/") else here
            left = _parts(target) + left
        return here[-1]

    def _child(self, place: GuestPlace, name: bytes) -> GuestPlace | None:
        for entry in self._children(place.entry):
            inode = self._records.pointer("dentry", "d_inode", entry)
            if inode and self.name(entry) == name:
                return GuestPlace(place.mount, entry)
        return None

    def _children(self, entry: int) -> Iterator[int]:
        """The names in a folder."""
        records = self._records
        if records.has("dentry", "d_sib"):  # from 6.8 on
            sibling = records.offset("dentry", "d_sib")
            link, end = records.pointer("dentry", "d_children", entry), 0
        else:
            sibling = records.offset("dentry", "d_child")
            end = entry + records.offset("dentry", "d_subdirs")
            (link,) = records.word(end)
        for _ in range(_ENTRIES_MOST):
            if link == end:
                return
            yield link - sibling
            (link,) = records.word(link)

    def _link(self, entry: int) -> bytes | None:
        """The target of a symbolic link, b"" where it is not in memory; None for no link."""
        records = self._records
        inode = records.pointer("dentry", "d_inode", entry)
        mode = records.number("inode", "i_mode", inode) & 0xFFFF
        if not stat.S_ISLNK(mode):
            return None
        target = records.pointer("inode", "i_link", inode)
        return self._addresses.read_cstring(target, _LINK_MOST) if target else b""

    def _mounted(self, place: GuestPlace) -> GuestPlace:
        """The root of what is mounted at a place, or the place."""
        records = self._records
        inner = records.offset("mount", "mnt")
        link = records.offset("mount", "mnt_child")
        for _ in range(_PARTS_MOST):
            head = place.mount - inner + records.offset("mount", "mnt_mounts")
            (at,) = records.word(head)
            found = None
            for _ in range(_ENTRIES_MOST):
                if at == head or found is not None:
                    break
                if records.pointer("mount", "mnt_mountpoint", at - link) == place.entry:
                    found = at - link + inner
                (at,) = records.word(at)
            if found is None:
                break
            place = GuestPlace(found, records.pointer("vfsmount", "mnt_root", found))
        return place


def _parts(path: bytes) -> list[bytes]:
    return [part for part in path.split(b"/") if part not in (b"", b".")]
