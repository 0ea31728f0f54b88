"""Output of scripts as JSON: one object a line (JsonOutput in bpftrace's src/output/json.cpp).

Numbers that a floating-point number cannot hold are strings; what is shown by name is its number
(pointers, enumerations) or a string (symbols, users). A string that is no UTF-8 keeps its bytes as
lone surrogates: bpftrace writes JSON there that cannot be read.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.arithmetic import truncated_quotient
from engine.trace.bpftrace.histograms import Histogram
from engine.trace.bpftrace.layouts import PartBudget, part_value
from engine.trace.bpftrace.maps import AVERAGED, BUCKETED, ScriptMap, aggregate_number
from engine.trace.bpftrace.output import Fault, ScriptPlace, TextKind, Write
from engine.trace.bpftrace.printing import (
    empty_cell,
    histogram_of,
    key_shower,
    series_of,
)
from engine.trace.bpftrace.showing import shower, stats_of
from engine.trace.bpftrace.sorting import rows_of
from engine.trace.bpftrace.timeseries import TimeSeries
from engine.trace.bpftrace.value_names import ValueNames

_Emitter = Callable[[Any], str]
_ESCAPES: Final = {
    **{code: f"\\u{code:04x}" for code in range(0x20)},
    **{code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)},
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}


class JsonOutput:
    """Output that programs read; attributes as those of `TextOutput`."""

    def __init__(self, write: Write, names: ValueNames) -> None:
        self.write = write
        self.names = names

    def map(self, of: ScriptMap, top: int = 0, div: int = 0) -> None:
        """Print a map; one that is a single value is shown as zero while it has none."""
        if not of.entries and of.key is None and not of.is_bucketed:
            emit = emitter(of.value, self.names)
            self._data(_map_type(of), emit(empty_cell(of.value)), of.title)
            return
        self._map(of, top, div or 1)

    def final(self, maps: Iterable[ScriptMap]) -> None:
        """Print all maps that have entries."""
        for each in sorted(maps, key=lambda one: one.name):
            self._map(each, 0, 1)

    def _map(self, of: ScriptMap, top: int, div: int) -> None:
        rows = rows_of(of, top)
        kind = _map_type(of)
        if not rows and kind != "stats":  # of which an empty one is shown as such, as there
            return
        emit = _cell_emitter(of, self.names, div, rows)
        if of.key is None and rows:
            self._data(kind, emit(rows[0][1]), of.title)
            return
        show_key = (
            key_shower(of.key, self.names)
            if of.key is not None
            else shower(kinds.INT64, self.names)
        )
        items = [f"{_key(show_key(key))}: {emit(cell)}" for key, cell in rows]
        self._data(kind, f"{{{', '.join(items)}}}", of.title)

    def value(self, kind: kinds.Type, value: Any) -> None:
        """Print a value."""
        self._data("value", emitter(kind, self.names)(value))

    def text(self, kind: TextKind, data: bytes) -> None:
        """Print a text, with the name of the function."""
        self._data(kind, quoted(data))

    def message(
        self, severity: Literal["ERROR", "WARNING"], data: bytes, places: Sequence[ScriptPlace]
    ) -> None:
        """Print an error of the script's own."""
        kind = "errorf" if severity == "ERROR" else "warnf"
        self._object(f'"type": "{kind}", "msg": {quoted(data)}', places[0])

    def fault(self, fault: Fault, places: Sequence[ScriptPlace]) -> None:
        """Print what went wrong."""
        text = quoted(fault.plain.encode())
        if fault.helper:
            helper = f'"helper": "{fault.helper}", "retcode": {fault.code}'
            self._object(f'"type": "helper_error", "msg": {text}, {helper}', places[0])
        else:
            self._object(f'"type": "runtime_error", "msg": {text}', places[0])

    def attached(self, probes: int) -> None:
        """Print how many probes there are."""
        self._line(f'"type": "attached_probes", "count": {probes}, "data": {{"probes": {probes}}}')

    def lost(self, events: int) -> None:
        """Print how many events were lost."""
        self._line(f'"type": "lost_events", "count": {events}, "data": {{"events": {events}}}')

    def _data(self, kind: str, data: str, name: str | None = None) -> None:
        if name is not None:
            data = f"{{{quoted(name.encode())}: {data}}}"
        self._line(f'"type": "{kind}", "data": {data}')

    def _object(self, fields: str, place: ScriptPlace) -> None:
        line, column = place.script.line_and_column(place.span.start)
        name = quoted(place.script.name.encode("utf-8", "surrogateescape"))
        self._line(f'{fields}, "filename": {name}, "line": {line}, "col": {column}')

    def _line(self, fields: str) -> None:
        self.write(f"{{{fields}}}\n".encode())


def quoted(text: bytes) -> str:
    """A string of JSON."""
    return f'"{text.decode("utf-8", "surrogateescape").translate(_ESCAPES)}"'


def _key(text: bytes) -> str:
    return quoted(text.replace(b" ", b""))  # bpftrace takes all spaces out


def _map_type(of: ScriptMap) -> str:
    aggregate = of.aggregate
    if aggregate is None:
        return "map"
    if aggregate.kind in AVERAGED:
        return "stats"
    return {"hist": "hist", "lhist": "hist", "tseries": "tseries"}.get(aggregate.kind, "map")


def _number(value: int) -> str:
    if -(1 << 53) <= value <= 1 << 53 or int(float(value)) == value:
        return str(value)
    return f'"{value}"'


def emitter(
    kind: kinds.Type, names: ValueNames, div: int = 1, budget: PartBudget | None = None
) -> _Emitter:
    """A function that gives values of a type as JSON.

    Args:
        kind: the type.
        names: for what is shown by name.
        div: numbers are divided by it.
        budget: parts of structures that may still be given; None at the outermost one.
    """
    budget = PartBudget() if budget is None else budget

    def inner(part: kinds.Type) -> _Emitter:
        return emitter(part, names, div, budget)

    match kind:
        case kinds.Integer():
            return lambda value: _number(truncated_quotient(value, div) if div != 1 else value)
        case kinds.Boolean():
            return lambda value: "true" if value else "false"
        case kinds.Pointer():
            return _number
        case kinds.Enumeration():
            mask = (1 << kind.integer.bits) - 1
            return lambda value: _number(value & mask)
        case kinds.BufferType():
            return lambda value: f"[{','.join([str(_signed(byte)) for byte in value])}]"
        case kinds.Array():
            return _list([inner(kind.element)] * kind.count)
        case kinds.Tuple():
            return _list(list(map(inner, kind.elements)))
        case kinds.Record():
            return _object([(name, inner(one)) for name, one in kind.fields])
        case kinds.Structure():
            return _structure(kind, inner, budget, names.little_endian)
        case kinds.Aggregate(kind="stats"):
            return lambda cell: _stats(*stats_of(kind, cell, div))
        case kinds.Aggregate():
            return lambda cell: _number(truncated_quotient(aggregate_number(kind, cell), div))
        case kinds.Void():
            return lambda value: "null"
        case _:
            show = shower(kind, names, div)
            return lambda value: quoted(show(value))


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte  # a `char` of C++


def _list(emitters: Sequence[_Emitter]) -> _Emitter:
    return lambda values: (
        f"[{','.join([emit(value) for emit, value in zip(emitters, values, strict=True)])}]"
    )


def _object(fields: Sequence[tuple[str, _Emitter]]) -> _Emitter:
    named = [(quoted(name.encode()), emit) for name, emit in fields]
    return lambda values: (
        "{"
        + ", ".join(
            [f"{name}: {emit(value)}" for (name, emit), value in zip(named, values, strict=True)]
        )
        + "}"
    )


def _structure(
    kind: kinds.Structure,
    inner: Callable[[kinds.Type], _Emitter],
    budget: PartBudget,
    little: bool,
) -> _Emitter:
    parts = budget.parts(kind)
    if parts is None:
        return lambda data: "null"
    fields = _object(budget.shown(parts, inner))
    return lambda data: fields([part_value(part, data, little) for part in parts])


def _stats(count: int, average: int, total: int) -> str:
    return (
        f'{{"count": {_number(count)}, "average": {_number(average)}, "total": {_number(total)}}}'
    )


def _cell_emitter(
    of: ScriptMap, names: ValueNames, div: int, rows: Sequence[tuple[Any, Any]]
) -> _Emitter:
    aggregate = of.aggregate
    if aggregate is None or aggregate.kind not in BUCKETED:
        return emitter(of.value, names, div)
    if aggregate.kind == "tseries":
        series = series_of(aggregate, rows)
        return lambda cell: _series(series(cell))
    drawn = histogram_of(aggregate, div)
    return lambda cell: _histogram(drawn(cell))


def _histogram(drawn: Histogram) -> str:
    buckets = []
    for start, end, count in drawn.intervals():
        least = f'"min": {_number(start.value)}, ' if start is not None else ""
        most = f'"max": {_number(end.value - 1)}, ' if end is not None else ""
        buckets.append(f'{{{least}{most}"count": {count}}}')
    return f"[{','.join(buckets)}]"


def _series(series: TimeSeries) -> str:
    points = [
        f'{{"interval_start":"{_moment(moment)}","value":{value}}}'
        for moment, value in series.points
        if value is not None
    ]
    return f"[{','.join(points)}]"


def _moment(nanoseconds: int) -> str:
    from datetime import UTC, datetime, timedelta  # only who has time series needs it

    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{rest:09}"
