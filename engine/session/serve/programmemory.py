"""A guest's memory as its program has it: what is planted does not show."""

from contextlib import suppress

from engine.errors import GuestFaultError
from engine.session.control.control import Control

_PAGE = 4096


class ProgramMemory:
    """Reads the memory of the thread in sight."""

    def __init__(self, control: Control) -> None:
        """Read that of a guest under control."""
        self._control = control

    def read(self, address: int, size: int) -> bytes:
        """Bytes.

        Raises:
            GuestFaultError: there are none.
        """
        session = self._control.session
        with self._control.sight.visit():
            space = session.seen
            return space.hooks.original(address, space.memory.peek(address, size))

    def readable(self, address: int, size: int) -> bytes:
        """As many as there are in front of the first that cannot be read."""
        with suppress(GuestFaultError):
            return self.read(address, size)
        out = bytearray()
        with suppress(GuestFaultError):
            while len(out) < size:
                at = address + len(out)
                out += self.read(at, min(size - len(out), _PAGE - at % _PAGE))
        return bytes(out)
