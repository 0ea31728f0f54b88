"""A guest of the past that lives through its run again, with what is recorded now in place."""

import sys
import time
from collections.abc import Callable, Iterable
from typing import Final

from engine.errors import ProbeError
from engine.session.control.stand import GuestStand
from engine.session.control.switches import GraphSwitch, KernelSwitch
from engine.session.guest.past import PastSession
from engine.session.protocol.probes import ProbeRow

_SLICE: Final = 20_000
"""Ticks that are lived through at once."""
_ASK: Final = 0.02
"""Seconds between two looks at whether it is to go on."""
NEVER: Final = sys.maxsize
"""An entry of the journal's that no run comes to."""


class Cut(BaseException):
    """The user wants no more of it."""


class Patience:
    """Asks now and then whether to go on."""

    def __init__(self, goes_on: Callable[[], bool]) -> None:
        """`goes_on` is asked: False ends it."""
        self._goes_on = goes_on
        self._due = time.monotonic() + _ASK

    def look(self) -> None:
        """Ask, if it is time to.

        Raises:
            Cut: it is not to go on.
        """
        if time.monotonic() >= self._due:
            if not self._goes_on():
                raise Cut
            self._due = time.monotonic() + _ASK


def run_on(past: PastSession, at: int, clock: int, look: Callable[[], object]) -> None:
    """Run a guest up to a tick behind an entry of the journal's, or to its end.

    Args:
        past: the guest of the past.
        at: number of the entry, `NEVER` for none.
        clock: the tick; the guest stands in front of its first instruction, or further on if it
            does already.
        look: called between two slices.
    """
    kernel, cpu, machine = past.kernel, past.cpu, past.machine
    try:
        while machine.exit is None and (
            kernel.at < at or (kernel.at == at and cpu.coming() < clock)
        ):
            limit = cpu.blocks() + _SLICE
            kernel.limit = limit if kernel.at < at else min(limit, clock - 1)
            kernel.resume()
            look()
    finally:
        kernel.limit = None


def begin(
    stand: GuestStand,
    rows: tuple[ProbeRow, ...],
    globs: tuple[str, ...],
    depth: int,
    kernel: Iterable[tuple[str, tuple[str, ...]]],
) -> list[str]:
    """Begin a run with probes and tracers in place; what could not be placed, in words.

    Args:
        stand: the guest, in front of its first instruction.
        rows: the probes.
        globs: patterns of traced functions.
        depth: how deep calls of them are followed, 0 for all.
        kernel: patterns of the kernel's events, by group.
    """
    tracing = stand.tracing
    tracing.start()
    refused = list(stand.probes.restore(rows))
    graph = GraphSwitch()
    graph.globs, graph.depth = globs, depth
    try:
        graph.begin(tracing)
    except ProbeError as error:
        refused.append(str(error))
    for group, wanted in kernel:
        switch = KernelSwitch(group)
        switch.globs = wanted
        switch.begin(tracing)
    return refused
