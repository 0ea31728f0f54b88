"""The context of an evaluation: one guest, one probe, one place for rows."""

import struct
from collections.abc import Callable
from mmap import mmap
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from engine.arch.base import Arch

STRING_MAX: Final = 4096
"""Most bytes of a string in a row, its NUL included (MAX_STRING_SIZE of trace_probe.h)."""

ROW_MAX: Final = 0xFFFF
"""Most words of a row."""

Recorder: TypeAlias = Callable[..., None]
"""Records a hit: called with the thread id; for a return event also with the address returned
to, and with what its `capturer` gave at the entry if it has one."""


SharedRecorder: TypeAlias = Callable[[int, int, int], None]
"""Records a hit of any probe of a layout: called with the thread id and the high bits of the
event's, the first half of the row's first word (`row_head`), and the probe's address."""


class FetchCpu(Protocol):
    """A processor, as an evaluation sees it."""

    def reader(self, names: tuple[str, ...]) -> Callable[[], tuple[int, ...]]:
        """A function that reads these registers at once; the values are unsigned."""

    def now(self) -> int:
        """The clock that events carry."""


class FetchMemory(Protocol):
    """The guest's memory, as an evaluation sees it.

    What it is given raises `GuestFaultError`.
    """

    def reader(self, layout: struct.Struct) -> Callable[[int], tuple[Any, ...]]:
        """A function that unpacks a structure at an address."""

    def text_reader(self, limit: int) -> Callable[[int], bytes]:
        """A function that copies the bytes at an address up to a NUL, without it.

        They are cut at `limit` bytes if there is none.
        """


class RowSink(Protocol):
    """The target of rows: memory that is zero from `position` up to `limit`, both in bytes."""

    position: int

    @property
    def buffer(self) -> mmap | bytearray | memoryview:
        """The memory; the same one for good."""

    @property
    def limit(self) -> int:
        """The end of it."""

    def drain(self) -> None:
        """Make room: moves `position` back."""

    @property
    def capacity(self) -> int:
        """Bytes that are free after a drain."""


class FetchSite(Struct, frozen=True):
    """The differences between the probes of one event.

    Attributes:
        address: of the probe, as the row shows it (a return event: of the function).
        image_base: what `@+OFF` is relative to: the probe's address minus its file offset.
    """

    address: int
    image_base: int = 0


class FetchContext(Struct, frozen=True):
    """The surroundings that the recorders of one guest share.

    Attributes:
        arch: the guest's architecture.
        cpu: its processor, at the probe hit.
        memory: its memory.
        sink: where rows go.
        comm: a thread's name by its id, for `$comm`.
        symbol: the `%pS` text of an address, for the type `symstr`.
        where: address of a symbol in the guest, for `@SYM`; None while its file is not there.
    """

    arch: Arch
    cpu: FetchCpu
    memory: FetchMemory
    sink: RowSink
    comm: Callable[[int], bytes]
    symbol: Callable[[int], str]
    where: Callable[[str], int | None] = lambda name: None
