"""The input of a machine's console, which is a file of the host's.

A regular file is read as the guest asks for it, so that a boot can be repeated. From a terminal or
a pipe bytes come when they come: while the machine is idle, its time passes as fast as the host's.
"""

import os
import select
import stat
import time
from collections.abc import Callable
from typing import Final

_CHUNK: Final = 1024
_PATIENCE: Final = 0.1
"""Seconds until it is seen that the machine was halted meanwhile."""
_PREFIX: Final = 1
_LEAVE: Final = b"xX"
_SECOND: Final = 1_000_000_000


class ConsoleDescriptor:
    """A descriptor that the console's input is read from; a `machine.ConsoleInput`.

    Attributes:
        over: its end was reached, or nobody wants more.
    """

    def __init__(self, descriptor: int, leave: Callable[[], None] | None = None) -> None:
        """Read it from now on.

        Args:
            descriptor: of a file, a pipe or a terminal.
            leave: called at Ctrl-A x, from a terminal whose keys are all the guest's; Ctrl-A twice
                is one. None where there are no keys.
        """
        self._descriptor = descriptor
        self._leave = leave
        self._prefixed = False
        self._waits = not stat.S_ISREG(os.fstat(descriptor).st_mode)
        self.over = False

    def close(self) -> None:
        """Give no more, and end a wait soon."""
        self.over = True

    def take(self, nanoseconds: int) -> bytes:
        """Give what has come; b"" at the end, and after so many nanoseconds without any."""
        until = time.monotonic() + nanoseconds / _SECOND
        while not self.over:
            try:
                if self._waits:
                    rest = min(max(0.0, until - time.monotonic()), _PATIENCE)
                    if not select.select((self._descriptor,), (), (), rest)[0]:
                        if time.monotonic() >= until:
                            break
                        continue
                data = os.read(self._descriptor, _CHUNK)
            except OSError:  # a terminal that is gone, a descriptor that was closed
                data = b""
            self.over = not data
            return self._keys(data) if self._leave is not None else data
        return b""

    def _keys(self, data: bytes) -> bytes:
        """Take out what is not the guest's."""
        typed = bytearray()
        for key in data:
            if self._prefixed:
                self._prefixed = False
                if key in _LEAVE and self._leave is not None:
                    self._leave()
                    break
                typed.append(key)
            elif key == _PREFIX:
                self._prefixed = True
            else:
                typed.append(key)
        return bytes(typed)
