"""The other side of a connection to gdb: whoever answers its packets."""

from collections.abc import Callable
from typing import Protocol


class LeaveError(Exception):
    """The connection is over.

    Attributes:
        goes_on: the program is to run to its end by itself.
    """

    def __init__(self, *, goes_on: bool) -> None:
        super().__init__()
        self.goes_on = goes_on


class PacketServer(Protocol):
    """Answers packets about one guest.

    Attributes:
        put: takes packets that are sent while a command is carried out.
    """

    put: Callable[[bytes], object]

    @property
    def ended(self) -> bool:
        """True if the guest is over."""

    @property
    def exit_code(self) -> int:
        """The exit code of a guest that is over."""

    def answer(self, packet: bytes) -> bytes:
        """The answer to a packet, escaped; nothing for one that is not known.

        Raises:
            LeaveError: the connection is over.
        """

    def interrupt(self) -> None:
        """Stop a guest that runs, or that is about to; from any thread."""

    def run_to_end(self) -> int:
        """Let the guest run on without gdb; its exit code."""

    def close(self) -> None:
        """Give back what belongs to the host."""
