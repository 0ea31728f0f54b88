"""Extended attributes of the guest's own files (fs/xattr.c)."""

import errno
from typing import Final

from engine.linux.errno import LinuxError
from engine.linux.fs.data import Budget

CREATE, REPLACE = 1, 2
SIZE_MAX: Final = 1 << 16
"""XATTR_SIZE_MAX and XATTR_LIST_MAX."""
_MOST: Final = 1 << 17
"""Bytes that all attributes of a file may take."""


class AttributeSet:
    """Names and values; their bytes are charged to the private overlay."""

    __slots__ = ("_budget", "_charged", "values")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._charged = 0
        self.values: dict[bytes, bytes] = {}

    def __del__(self) -> None:
        self._budget.charge(-self._charged)

    def set(self, name: bytes, value: bytes, flags: int) -> None:
        """Set a value.

        Args:
            name: with its namespace.
            value: of at most `SIZE_MAX` bytes.
            flags: CREATE if there must be none, REPLACE if there must be one.

        Raises:
            LinuxError: EEXIST, ENODATA, ENOSPC.
        """
        old = self.values.get(name)
        if old is None and flags & REPLACE:
            raise LinuxError(errno.ENODATA)
        if old is not None and flags & CREATE:
            raise LinuxError(errno.EEXIST)
        more = len(value) - len(old) if old is not None else len(name) + 1 + len(value)
        if self._charged + more > _MOST:
            raise LinuxError(errno.ENOSPC)
        self._budget.charge(more)
        self._charged += more
        self.values[name] = value

    def remove(self, name: bytes) -> None:
        """Take a value away; ENODATA if there is none."""
        old = self.values.pop(name, None)
        if old is None:
            raise LinuxError(errno.ENODATA)
        less = len(name) + 1 + len(old)
        self._budget.charge(-less)
        self._charged -= less
