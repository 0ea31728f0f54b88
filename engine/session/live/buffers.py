"""The buffers of a trace instance, one for each CPU, read page by page and put in order."""

import os
import re
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from heapq import merge
from operator import itemgetter
from typing import Final

from msgspec import Struct

from engine.session.live.instance import KernelInstance
from engine.session.live.tracefs import read_text
from engine.trace.kernel_rows import RowMaker
from engine.trace.ring_pages import PageLayout

_TYPE: Final = struct.Struct("<H")
_IN_FLIGHT: Final = 1_000_000
"""Nanoseconds in which a record that has its time is there to be read."""
_PAGES: Final = 256
"""Pages of a CPU in one turn: a busy one keeps neither the others nor the end waiting."""
_COUNTED: Final = re.compile(r"^(overrun|commit overrun|dropped events): (\d+)$", re.MULTILINE)


class LiveRows(Struct, frozen=True):
    """Rows that were read.

    Attributes:
        rows: in the order of their times.
        lost: records that were overwritten before they were read.
    """

    rows: bytes
    lost: int


class LiveBuffers:
    """Reads all CPUs' records as rows.

    Attributes:
        unknown: records of events that are none of ours.
        damaged: pages or records that make no sense.
        more: the last turn has left some behind.
    """

    def __init__(self, instance: KernelInstance, makers: Mapping[int, RowMaker]) -> None:
        """Open the buffers.

        Args:
            instance: whose.
            makers: of rows, by the number that records begin with.

        Raises:
            CommandError: the pages are of a layout that is not known.
            OSError: they cannot be read.
        """
        self.unknown = 0
        self.damaged = 0
        self.more = False
        self._makers = makers
        self._layout = PageLayout.of(read_text(instance.tracefs.root / "events" / "header_page"))
        self._cpus = sorted((instance.path / "per_cpu").iterdir())
        self._files = [
            os.open(cpu / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            for cpu in self._cpus
        ]
        self._held: list[list[tuple[int, bytes]]] = [[] for _ in self._cpus]
        self._told = 0

    def read(self, *, last: bool = False) -> LiveRows:
        """Take what there is; rows that others may still get in front of are held back.

        Args:
            last: nothing is written any more: hold nothing back.
        """
        until = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - _IN_FLIGHT
        lost = 0
        self.more = False
        for number, file in enumerate(self._files):
            missing, reached = self._drain(file, self._held[number], None if last else _PAGES)
            lost += missing
            if reached is not None:  # what follows there is later than this
                self.more, until = True, min(until, reached)
        ready: list[list[tuple[int, bytes]]] = []
        for number, held in enumerate(self._held):
            count = len(held) if last else _count_until(held, until)
            ready.append(held[:count])
            self._held[number] = held[count:]
        self._told += lost
        rows = b"".join(row for _, row in merge(*ready, key=itemgetter(0)))
        return LiveRows(rows, lost)

    def _drain(
        self, file: int, held: list[tuple[int, bytes]], most: int | None
    ) -> tuple[int, int | None]:
        """Read a CPU's pages.

        Args:
            file: of its pages.
            held: rows go behind these.
            most: pages, None for all.

        Returns:
            The records lost before those, and the time of the last record if there may be more.
        """
        lost = pages = 0
        reached: int | None = None
        makers = self._makers
        while most is None or pages < most:
            try:
                data = os.read(file, self._layout.size)
            except BlockingIOError:
                return lost, None
            if not data:
                return lost, None
            pages += 1
            page = self._layout.decode(data)
            lost += page.lost or 0
            self.damaged += page.damaged
            for record in page.records:
                reached = record.time
                try:
                    (number,) = _TYPE.unpack_from(record.data)
                    make = makers.get(number)
                    if make is None:
                        self.unknown += 1
                        continue
                    held.append((record.time, make(record.time, record.data)))
                except struct.error:
                    self.damaged += 1
        return lost, 0 if reached is None else reached

    def untold(self) -> int:
        """The records that are lost and were not told of by `read`; once nothing is written."""
        found = 0
        for cpu in self._cpus:
            with suppress(OSError):
                for _, count in _COUNTED.findall(read_text(cpu / "stats")):
                    found += int(count)
        return max(found - self._told, 0)

    def close(self) -> None:
        """Read no more."""
        for file in self._files:
            os.close(file)
        self._files.clear()


def _count_until(held: list[tuple[int, bytes]], time: int) -> int:
    """The number of rows up to a time."""
    count = len(held)
    while count and held[count - 1][0] > time:
        count -= 1
    return count
