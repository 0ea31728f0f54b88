"""The log of a recorded run as if all that is recorded now had been so from the run's start on."""

import sys
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import ProbeError
from engine.history.moment import Moment
from engine.session.control.entries import ProbeEntry
from engine.session.control.guest import DebuggedGuest
from engine.session.control.probe_list import ProbeList
from engine.session.control.running import StopQuestions
from engine.session.control.tracing_choices import GraphSwitch, KernelSwitch
from engine.session.guest.past import PastSession
from engine.session.protocol.probes import ProbeRow
from engine.trace.rows import EventInfo, renumbered
from engine.trace.staging import Consumer

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
    guest: DebuggedGuest,
    rows: tuple[ProbeRow, ...],
    globs: tuple[str, ...],
    depth: int,
    kernel: Iterable[tuple[str, tuple[str, ...]]],
) -> list[str]:
    """Begin a run with probes and tracers in place; what could not be placed, in words.

    Args:
        guest: the guest, in front of its first instruction.
        rows: the probes.
        globs: patterns of traced functions.
        depth: how deep calls of them are followed, 0 for all.
        kernel: patterns of the kernel's events, by group.
    """
    tracing = guest.tracing
    tracing.start()
    refused = list(guest.probes.restore(rows))
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


class RecordedSources(NamedTuple):
    """The lists and switches that say what is recorded of a run.

    Attributes:
        probes: the user's probes.
        graph: traced functions.
        kernel: the kernel's events, by group.
    """

    probes: ProbeList
    graph: GraphSwitch
    kernel: dict[str, KernelSwitch]


class LogContent(Struct, frozen=True):
    """The events that are recorded of a run.

    Attributes:
        rows: the definitions that are on.
        graph: patterns of traced functions.
        depth: how deep calls of them are followed, 0 for all.
        kernel: patterns of the kernel's events, by group.
    """

    rows: tuple[ProbeRow, ...] = ()
    graph: tuple[str, ...] = ()
    depth: int = 0
    kernel: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, sources: RecordedSources) -> "LogContent":
        """The events that are recorded now."""
        probes, graph, kernel = sources
        return cls(
            tuple(
                replace(entry.row, stops=False)
                for entry in probes.entries
                if entry.defined is not None and entry.row.enabled
            ),
            graph.globs,
            graph.depth if graph.globs else 0,
            tuple((group, switch.globs) for group, switch in kernel.items()),
        )


class PastLog:
    """Lives once through a recorded run, and records.

    Attributes:
        tracing: of that run.
        refused: what could not be placed in it, in words.
    """

    def __init__(
        self,
        past: PastSession,
        wanted: LogContent,
        mode: Mode,
        number_of: Callable[[EventInfo], int],
        take: Consumer,
    ) -> None:
        """Place the probes; the guest stands in front of its first instruction.

        Args:
            past: the run, which is closed with this.
            wanted: what is to be recorded.
            mode: strictness of placement.
            number_of: gives the id that an event has in the log.
            take: takes the rows, whose events have these ids.
        """
        self._past = past
        self._number_of = number_of
        self._take = take
        self._numbers: dict[int, int] = {}
        self._same = True
        self._guest = guest = DebuggedGuest(
            past, mode, StopQuestions(), take=self._rows, keep=lambda: None
        )
        self.tracing = guest.tracing
        self.refused = begin(guest, wanted.rows, wanted.graph, wanted.depth, wanted.kernel)

    def _rows(self, data: bytes) -> None:
        if len(self._numbers) != len(self.tracing.table):
            table = self.tracing.table
            self._numbers = {number: self._number_of(info) for number, info in table.items()}
            self._same = all(here == there for here, there in self._numbers.items())
        self._take(data if self._same else renumbered(data, self._numbers))

    def run(self, end: Moment, *, over: bool, goes_on: Callable[[int], bool]) -> int | None:
        """Live through the run.

        Args:
            end: the moment up to which.
            over: there is nothing behind it.
            goes_on: told the tick now and then: False ends it.

        Returns:
            The first tick of which not all rows are there; None where it has come to the end.

        Raises:
            DivergenceError: the run is not as it was recorded.
        """
        cpu = self._past.cpu

        def ask() -> bool:
            self.tracing.drain()
            return goes_on(cpu.coming())

        try:
            run_on(self._past, NEVER if over else end.at, end.clock, Patience(ask).look)
        except Cut:
            return max(cpu.coming() - 1, 0)
        if not over:
            self._step_to(end)
        self.tracing.drain()
        return None

    def _step_to(self, end: Moment) -> None:
        """The instructions in front of a moment, in its tick."""
        before = None
        while self._past.machine.exit is None:
            now = self._now()
            if now >= end or now == before:
                return
            before = now
            self._guest.running.steps(1, over=False)

    def _now(self) -> Moment:
        past = self._past
        pc = past.cpu.read_register(past.arch.roles.pc)
        original = past.machine.current.hooks.original_pc(pc)
        return Moment(past.kernel.at, past.cpu.coming(), original)

    @property
    def entries(self) -> list[ProbeEntry]:
        """The definitions and what they have come to."""
        self._guest.probing.collect()
        return self._guest.probes.entries

    def hits(self) -> dict[int, int]:
        """Hits of the definitions, by the ids of their rows."""
        return {
            entry.row.id: sum(probe.hits for probe in entry.probes)
            for entry in self.entries
            if entry.defined is not None
        }

    def close(self) -> None:
        """Give the run back."""
        self.tracing.finish()
        self._past.close()
