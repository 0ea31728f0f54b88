"""Room for code that records hits in the guest, and for the rows that it writes."""

from collections.abc import Callable
from mmap import mmap
from typing import Protocol

from msgspec import Struct

from engine.probes.site import FunctionCode, ImageCode

Located = tuple[ImageCode, FunctionCode | None, int]
"""A file's code, the function around an address in it, and guest minus link addresses."""


class RowMemory(Protocol):
    """Memory that takes the rows of a trace: `engine.trace.staging.Staging`."""

    buffer: mmap
    control: mmap
    start: int
    shown: bool

    @property
    def capacity(self) -> int:
        """Bytes of rows that it holds."""

    @property
    def closed(self) -> bool:
        """True if nothing can be written any more."""

    def drain(self) -> None:
        """Make it empty."""

    def wipe(self, most: int | None = None) -> None:
        """Forget what stands behind its rows."""


class DetourRoom(Struct, frozen=True):
    """Windows for code of the engine's within reach of the program's.

    Attributes:
        window: (start, size) of the engine window for shared data and detours.
        beside: further ones, for detours near the program.
        locate: the code around a guest address.
    """

    window: tuple[int, int]
    beside: tuple[tuple[int, int], ...]
    locate: Callable[[int], Located | None]
