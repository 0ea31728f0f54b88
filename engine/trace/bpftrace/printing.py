"""Output of scripts as text (TextOutput in bpftrace's src/output/text.cpp)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.histograms import Histogram, linear_histogram, power_histogram
from engine.trace.bpftrace.maps import BUCKETED, ScriptMap
from engine.trace.bpftrace.output import Fault, ScriptPlace, TextKind, Write
from engine.trace.bpftrace.showing import Shower, shower
from engine.trace.bpftrace.sorting import rows_of
from engine.trace.bpftrace.timeseries import TimeSeries, epoch_value, graph, time_series
from engine.trace.bpftrace.value_names import ValueNames
from engine.trace.bpftrace.values import default_value

_AT_ONCE = 512
"""Lines that are written in one go."""


class TextOutput:
    """Output that people read.

    Attributes:
        write: takes the output.
        write_error: takes what is not output: warnings, how many probes there are.
        names: for what is shown by name.
    """

    def __init__(self, write: Write, write_error: Write, names: ValueNames) -> None:
        self.write = write
        self.write_error = write_error
        self.names = names

    def map(self, of: ScriptMap, top: int = 0, div: int = 0) -> None:
        """Print a map; one that is a single value is shown as zero while it has none."""
        if not of.entries and of.key is None and not of.is_bucketed:
            show = shower(of.value, self.names)
            self.write(b"%b: %b\n" % (of.title.encode(), show(empty_cell(of.value))))
            return
        self._map(of, top, div or 1)

    def final(self, maps: Iterable[ScriptMap]) -> None:
        """Print two newlines and then all maps that have entries."""
        self.write(b"\n\n")
        for each in sorted(maps, key=lambda one: one.name):
            self._map(each, 0, 1)

    def _map(self, of: ScriptMap, top: int, div: int) -> None:
        rows = rows_of(of, top)
        title = of.title.encode()
        show = value_shower(of, self.names, div, rows)
        between, end = (b":\n" if of.is_bucketed else b": "), b"\n"
        if of.key is None:
            for _, cell in rows:
                self.write(b"%b%b%b%b" % (title, between, show(cell), end))
            return
        show_key = key_shower(of.key, self.names)
        step = 1 if of.is_bucketed else _AT_ONCE  # a graph may be long by itself
        for at in range(0, len(rows), step):
            lines = [
                b"%b[%b]%b%b%b" % (title, show_key(key), between, show(cell), end)
                for key, cell in rows[at : at + step]
            ]
            self.write(b"".join(lines))

    def value(self, kind: kinds.Type, value: Any) -> None:
        """Print a value on a line of its own."""
        self.write(shower(kind, self.names)(value) + b"\n")

    def text(self, kind: TextKind, data: bytes) -> None:
        """Print a text as it is; `join()` and `system()` end with a newline."""
        self.write(data + b"\n" if kind in ("join", "syscall") else data)

    def message(
        self, severity: Literal["ERROR", "WARNING"], data: bytes, places: Sequence[ScriptPlace]
    ) -> None:
        """Tell an error of the script's own; the place itself is not shown, it only says that."""
        where = places[0].where().encode()
        self.write_error(b"%b: %b: %b\n" % (where, severity.encode(), data.removesuffix(b"\n")))
        self._expanded(severity, places)

    def fault(self, fault: Fault, places: Sequence[ScriptPlace]) -> None:
        """Tell what went wrong, and show the place."""
        self._at(places[0], "WARNING", fault.message)
        self._expanded("WARNING", places)

    def _expanded(self, severity: str, places: Sequence[ScriptPlace]) -> None:
        for place in places[1:]:
            self._at(place, severity, "expanded from")

    def _at(self, place: ScriptPlace, severity: str, text: str) -> None:
        lines = (f"{place.where()}: {severity}: {text}", *place.context(), "")
        self.write_error("\n".join(lines).encode("utf-8", "surrogateescape"))

    def attached(self, probes: int) -> None:
        """Tell how many probes there are."""
        self.write_error(b"Attached %d probe%b\n" % (probes, b"" if probes == 1 else b"s"))

    def lost(self, events: int) -> None:
        """Tell how many events were lost."""
        self.write_error(b"Lost %d events\n" % events)


def empty_cell(kind: kinds.Type) -> Any:
    """The cell of an entry that nothing was put into."""
    averaged = isinstance(kind, kinds.Aggregate) and kind.kind in ("avg", "stats")
    return [0, 0] if averaged else default_value(kind)


def key_shower(kind: kinds.Type, names: ValueNames) -> Shower:
    """A function that shows keys, without the parentheses of a tuple, or those of a text."""
    show = shower(kind, names)
    if isinstance(kind, kinds.Integer):
        return show

    def bare(key: Any) -> bytes:
        text = show(key)
        return text[1:-1] if text[:1] == b"(" and text[-1:] == b")" and len(text) > 1 else text

    return bare


def value_shower(
    of: ScriptMap, names: ValueNames, div: int, rows: Sequence[tuple[Any, Any]]
) -> Callable[[Any], bytes]:
    """A function that shows cells of a map."""
    aggregate = of.aggregate
    if aggregate is None or aggregate.kind not in BUCKETED:
        return shower(of.value, names, div)
    if aggregate.kind == "tseries":
        series = series_of(aggregate, rows)
        return lambda cell: graph(series(cell), names.localtime)
    drawn = histogram_of(aggregate, div)
    return lambda cell: drawn(cell).text()


def histogram_of(aggregate: kinds.Aggregate, div: int) -> Callable[[dict[int, int]], Histogram]:
    """A function that makes histograms of buckets; an empty one has no line at all."""
    if aggregate.kind == "hist":
        bits = aggregate.parameters[0] if aggregate.parameters else 0
        return lambda buckets: power_histogram(buckets, bits, div)
    least, most, step = aggregate.parameters
    return lambda buckets: linear_histogram(buckets, least, most, step)


def series_of(
    aggregate: kinds.Aggregate, rows: Sequence[tuple[Any, Any]]
) -> Callable[[dict[int, list[int]]], TimeSeries]:
    """A function that makes a time series of the cells of a key.

    Args:
        aggregate: of which kind.
        rows: all keys of the map with their cells: they end with the same epoch.
    """
    interval, epochs, place = aggregate.parameters
    function = kinds.AGGREGATES[place]
    last = max((cell[0] for _, slots in rows for cell in slots.values()), default=0)

    def series(slots: dict[int, list[int]]) -> TimeSeries:
        values = {
            cell[0]: epoch_value(cell, function, signed=aggregate.signed)
            for cell in slots.values()
        }
        return time_series(values, last, epochs, interval, signed=aggregate.signed)

    return series
