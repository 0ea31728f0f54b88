"""The guest's errors: raised by system-call handlers, turned into -errno by the dispatcher."""

import errno
from typing import Final

ERESTARTSYS: Final = 512
"""The call is made again once signals have been seen to; no program sees this number."""


class LinuxError(Exception):
    """A system call fails with this errno.

    Numbers are those of Linux's generic ABI, which x86-64, AArch64 and ia64 share;
    Python's `errno` module has the same values on a Linux host.
    """

    def __init__(self, code: int) -> None:
        super().__init__(errno.errorcode.get(code, str(code)))
        self.code = code
