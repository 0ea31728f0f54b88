"""Call stacks as rows of a trace, behind the events they belong to."""

import struct
from collections.abc import Mapping
from typing import Final, Protocol

from engine.arch.program import ROW_HEAD, row_head
from engine.fetch.evaluate import FetchContext
from engine.trace.rows import EventInfo

LIMIT: Final = 128
"""Frames of a stack that are recorded."""
_HEAD: Final = struct.Struct("<IIQQ")


class StackSource(Protocol):
    """Gives the call stacks of a guest; see `engine.session.inspect.backtrace.Backtraces`."""

    def registers(self) -> dict[str, int]:
        """The registers now."""

    def remembered(
        self, place: int, *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[int, ...] | None:
        """Addresses of the frames of a stack that has been walked before; None for any other."""

    def places(
        self, registers: Mapping[str, int], *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[int, ...]:
        """Addresses of the frames, innermost first."""

    def divided_places(
        self, registers: Mapping[str, int], *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[tuple[int, ...], int]:
        """The same, and how many of them, the first ones, are frames of a kernel."""


class CallSource(Protocol):
    """Knows whether a system call is being made.

    Attributes:
        making: its name; "" for none.
    """

    @property
    def making(self) -> str:
        """See the class."""


class StackRecorder:
    """Takes the guest's call stack and writes it as a row.

    Attributes:
        info: the event of the rows; None as long as none are wanted.
    """

    def __init__(
        self, backtraces: StackSource, pc: str, context: FetchContext, syscalls: CallSource
    ) -> None:
        """Set up.

        Args:
            backtraces: the unwinder.
            pc: name of the program counter.
            context: where rows go, and the clock.
            syscalls: know whether a system call is being made.
        """
        self.info: EventInfo | None = None
        self._backtraces = backtraces
        self._pc = pc
        self._context = context
        self._syscalls = syscalls
        self._frames: tuple[int, ...] = ()
        self._packed = b""

    def frames(self, place: int) -> tuple[int, ...]:
        """Addresses of the frames, innermost first; the first one is `place`."""
        call = self._syscalls.making
        found = self._backtraces.remembered(place, syscall=call, limit=LIMIT)
        if found is not None:
            return found
        registers = self._backtraces.registers()
        registers[self._pc] = place
        return self._backtraces.places(registers, syscall=call, limit=LIMIT)

    def _divided(self, place: int) -> tuple[int, ...]:
        """The number of frames that are a kernel's, then the frames."""
        call = self._syscalls.making
        registers = self._backtraces.registers()
        registers[self._pc] = place
        frames, kernel = self._backtraces.divided_places(registers, syscall=call, limit=LIMIT)
        return kernel, *frames

    def record(self, thread: int, place: int) -> None:
        """Write the call stack of a hit at a place."""
        info = self.info
        if info is None:
            return
        frames = self._divided(place) if info.columns else self.frames(place)
        if frames is not self._frames:
            self._frames, self._packed = frames, struct.pack(f"<{len(frames)}Q", *frames)
        words = ROW_HEAD + len(frames)
        size, sink = words * 8, self._context.sink
        position = sink.position
        if position + size > sink.limit:
            sink.drain()
            position = sink.position
        first, second = row_head(info.id, words)
        head = _HEAD.pack(first, second | thread, self._context.cpu.now(), place)
        sink.buffer[position : position + size] = head + self._packed
        sink.position = position + size
