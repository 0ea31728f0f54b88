"""Histograms of what the running kernel has recorded, counted here.

Few kernels can count them (CONFIG_HIST_TRIGGERS), and the rows come anyway. As a histogram counts
all hits and a filter is about what is recorded, the rows of an event that has both are filtered
here, too.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from engine.fetch.predicate import PredicateContext, RowTest, compile_predicate
from engine.session.live.processes import LiveProcesses
from engine.session.tracing.armed import EventControl, tables
from engine.session.tracing.triggers import EventControls
from engine.trace.hist_readers import HistNames
from engine.trace.histtable import HistTable
from engine.trace.rows import HEAD, TIME, EventInfo, whole


class _CountedRows(Struct, frozen=True):
    """The use of an event's rows.

    Attributes:
        counts: a condition and what counts a row, each.
        passes: the event's filter, None for none.
    """

    counts: list[tuple[RowTest | None, Callable[[bytes, int], object]]]
    passes: RowTest | None


class LiveHistograms:
    """The histograms of one recording."""

    def __init__(
        self,
        infos: list[EventInfo],
        controls: EventControls,
        processes: LiveProcesses,
        stacks: EventInfo | None = None,
    ) -> None:
        """Take the triggers of some events; what they count so far is forgotten.

        Args:
            infos: the events.
            controls: their filters and triggers.
            processes: name threads and addresses.
            stacks: the event of call stacks, which go with the row before them.
        """
        self._controls = {(info.group, info.name): controls.of(info) for info in infos}
        self._context = PredicateContext(processes.comm, lambda address, limit: b"")
        self._names = HistNames(
            processes.symbol, processes.comm, lambda number: None, lambda: (), False
        )
        self._processes = processes
        self._stacks = 0 if stacks is None else stacks.id
        self._left_out: set[int] = set()
        self._tables: dict[int, HistTable] = {}
        self._events: dict[int, _CountedRows] = {}
        for control in self._controls.values():
            if counts_here(control):
                self._events[control.info.id] = self._counted(control)

    def _counted(self, control: EventControl) -> _CountedRows:
        counts: list[tuple[RowTest | None, Callable[[bytes, int], object]]] = []
        for armed in control.triggers:
            spec, condition = armed.trigger.hist, armed.trigger.filter
            if spec is None or armed.table is None or armed.paused:
                continue
            table = armed.table
            if id(table) not in self._tables:
                self._tables[id(table)] = table
                table.clear()
                table.names = self._names
            test = None if condition is None else compile_predicate(condition.ops, self._context)
            counts.append((test, table.counter(spec)))
        chosen = control.filter
        passes = None if chosen is None else compile_predicate(chosen.ops, self._context)
        return _CountedRows(counts, passes)

    def count(self, rows: bytes) -> bytes:
        """Count rows; those that are recorded."""
        if not self._events:
            return rows
        out: list[bytes] = []
        position, dropped = 0, False
        left_out = self._left_out
        while position < len(rows):
            event_id, size, thread = HEAD.unpack_from(rows, position)
            end = position + size * 8
            number, thread = whole(event_id, thread)
            event = self._events.get(number)
            passed = number != self._stacks or thread not in left_out
            if event is not None:
                row = rows[position:end]
                self._processes.turn_to(thread, TIME.unpack_from(row, HEAD.size)[0])
                for test, count in event.counts:
                    if test is None or test(row, 0):
                        count(row, 0)
                passed = event.passes is None or bool(event.passes(row, 0))
            if number != self._stacks:
                (left_out.discard if passed else left_out.add)(thread)
            if passed:
                out.append(rows[position:end])
            dropped = dropped or not passed
            position = end
        return b"".join(out) if dropped else rows

    def lines(self) -> Iterator[bytes]:
        """The tables, an empty line before each."""
        for table in tables(self._controls.items()):
            yield b""
            yield from table


def counts_here(control: EventControl) -> bool:
    """True for an event with a histogram."""
    return any(armed.trigger.hist is not None for armed in control.triggers)
