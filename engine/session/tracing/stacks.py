"""Call stacks as rows of a trace, behind the events they belong to."""

import struct
from typing import Final

from engine.arch.program import row_head
from engine.fetch.evaluate import FetchContext
from engine.session.inspect.backtrace import Backtraces
from engine.session.tracing.syscalls import SyscallEvents
from engine.trace.rows import EventInfo

LIMIT: Final = 128
"""Frames of a stack that are recorded."""


class StackRecorder:
    """Takes the guest's call stack and writes it as a row.

    Attributes:
        info: the event of the rows; None as long as none are wanted.
    """

    def __init__(
        self, backtraces: Backtraces, pc: str, context: FetchContext, syscalls: SyscallEvents
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

    def frames(self, place: int) -> tuple[int, ...]:
        """Addresses of the frames, innermost first; the first one is `place`."""
        registers = self._backtraces.registers()
        registers[self._pc] = place
        call = self._syscalls.making
        return self._backtraces.places(registers, syscall=call, limit=LIMIT)

    def record(self, thread: int, place: int) -> None:
        """Write the call stack of a hit at a place."""
        info = self.info
        if info is None:
            return
        frames = self.frames(place)
        words = info.words + len(frames)
        size, sink = words * 8, self._context.sink
        position = sink.position
        if position + size > sink.limit:
            sink.drain()
            position = sink.position
        first, second = row_head(info.id, words)
        head = (first, second | thread, self._context.cpu.now(), place)
        struct.pack_into(f"<II{words - 1}Q", sink.buffer, position, *head, *frames)
        sink.position = position + size
