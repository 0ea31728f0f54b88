"""Files of a booted system that somebody has named by paths, recognised as they are mapped.

A path means what it means to the task that maps the file. A name that is another one's link, or
leads through one, is known once the kernel has followed it.
"""

from collections.abc import Collection
from typing import Final

from engine.errors import GuestFaultError
from engine.machine.guestpaths import GuestPaths, GuestPlace
from engine.machine.records import KernelRecords

_SEEN_MOST: Final = 1 << 16
"""Files that are known to be none of those."""
_NAMES_MOST: Final = 1 << 6
"""Names of one file that are known; a system may give a file any number of them."""


class WantedFiles:
    """The files of one machine.

    Attributes:
        all_named: other files are known as well, by their own paths.
    """

    def __init__(self, paths: GuestPaths, records: KernelRecords) -> None:
        """None yet.

        Args:
            paths: of the system.
            records: structures of its kernel.
        """
        self.all_named = False
        self._paths, self._records = paths, records
        self._wanted: dict[str, set[bytes]] = {}
        self._names: set[bytes] = set()
        self._seen: set[tuple[int, int]] = set()

    def add(self, path: str, *others: bytes) -> None:
        """Want a file.

        Args:
            path: from the root on.
            others: what else it is called.
        """
        texts = self._wanted.setdefault(path, set())
        texts |= {path.encode(errors="surrogateescape"), *others}
        self._names.update(text.rpartition(b"/")[2] for text in texts)

    def known(self, file: int) -> Collection[str]:
        """The paths that a `struct file` was wanted by."""
        pointer = self._records.pointer
        try:
            at = file + self._records.offset("file", "f_path")
            place = GuestPlace(pointer("path", "mnt", at), pointer("path", "dentry", at))
            inode = pointer("file", "f_inode", file)
            seen = (place.entry, inode) in self._seen
            if seen and not self.all_named and self._paths.name(place.entry) not in self._names:
                return ()
            text = self._paths.path(place)
        except GuestFaultError:
            return ()
        found = [path for path, texts in self._wanted.items() if text in texts]
        if not seen:
            if len(self._seen) >= _SEEN_MOST:
                self._seen.clear()
            self._seen.add((place.entry, inode))
            found += [
                path
                for path in self._wanted
                if path not in found and self._leads_to(path, inode, text)
            ]
        own = text.decode(errors="surrogateescape")
        return [*found, own] if self.all_named and own not in found else found

    def _leads_to(self, path: str, inode: int, text: bytes) -> bool:
        """True if a path leads to a file, which then is known by its own path as well."""
        try:
            place = self._paths.find(path.encode(errors="surrogateescape"))
            there = place and self._records.pointer("dentry", "d_inode", place.entry)
        except GuestFaultError:
            return False
        if there != inode or len(self._wanted[path]) >= _NAMES_MOST:
            return False
        self.add(path, text)
        return True
