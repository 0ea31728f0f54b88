"""Rows of events with filters: recorded aside or taken back, and kept if they pass."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from msgspec.structs import replace

from engine.fetch.evaluate import FetchContext, Recorder
from engine.fetch.predicate import RowTest
from engine.trace.rows import EventInfo

SCRATCH: Final = 1 << 19
"""Bytes of the largest row."""

Make = Callable[[FetchContext], Recorder]
"""Compiles an event's recorder for a sink."""


class Scratch:
    """Memory for the row of one hit; satisfies `engine.fetch.evaluate.RowSink`."""

    def __init__(self, most: int) -> None:
        """`most` is what the trace takes at once."""
        self.position = 0
        self.buffer = bytearray(SCRATCH)
        self.limit = self.capacity = min(SCRATCH, most)

    def drain(self) -> None:
        """There is always room: one row at a time."""


@cache
def _zeros() -> bytes:
    """The bytes of an empty scratch buffer."""
    return bytes(SCRATCH)


class Aside:
    """The scratch buffer beside a trace.

    Attributes:
        scratch: it; a row is recorded there before anything is decided about it.
        context: for recorders into it.
    """

    def __init__(self, context: FetchContext) -> None:
        """`context` is that of recorders into the trace."""
        self.scratch = Scratch(context.sink.capacity)
        self.context = replace(context, sink=self.scratch)
        self._direct = context
        self._zeros = _zeros()

    def filtered(self, info: EventInfo, make: Make, test: RowTest) -> Recorder:
        """The usual case: a filter and nothing else."""
        if not info.strings:
            return self._taken_back(info, make, test)
        scratch, keep = self.scratch, self.keeper(info)
        record, buffer = make(self.context), scratch.buffer

        def filtered(*hit: Any) -> None:
            scratch.position = 0
            record(*hit)
            keep(test(buffer, 0))

        return filtered

    def _taken_back(self, info: EventInfo, make: Make, test: RowTest) -> Recorder:
        """Rows of one size are recorded where they belong, and taken back if they do not pass."""
        record, sink = make(self._direct), self._direct.sink
        buffer, size = sink.buffer, info.words * 8
        zeros = bytes(size)

        def filtered(*hit: Any) -> None:
            record(*hit)
            end = sink.position
            start = end - size
            if not test(buffer, start):
                buffer[start:end] = zeros
                sink.position = start

        return filtered

    def keeper(self, info: EventInfo) -> Callable[[bool], None]:
        """Copies the row of the scratch buffer into the trace, or drops it."""
        scratch, sink, strings = self.scratch, self._direct.sink, info.strings
        buffer, trace = memoryview(scratch.buffer), sink.buffer
        zeros = self._zeros

        def keep(passed: bool) -> None:
            size = scratch.position
            if passed:
                position = sink.position
                if position + size > sink.limit:
                    sink.drain()
                    position = sink.position
                # The head last: a row whose first word is zero does not exist yet.
                trace[position + 8 : position + size] = buffer[8:size]
                trace[position : position + 8] = buffer[:8]
                sink.position = position + size
            if strings:
                buffer[:size] = zeros[:size]  # what pads a string is zero

        return keep
