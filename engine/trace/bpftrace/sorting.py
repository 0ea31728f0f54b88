"""The order in which a map is printed, and which of its entries are.

As bpftrace sorts (format in its src/types_format.cpp): counts, sums and integers ascending, `avg`
and `stats` by average, histograms by the total of their counts, time series and all else by key.
Where bpftrace leaves the order open, for equal values, it is by key.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.arithmetic import MASK64
from engine.trace.bpftrace.maps import AVERAGED, BUCKETED, ScriptMap, average_of, number_of

SortKey = Callable[[Any], Any]


def rows_of(of: ScriptMap, top: int = 0) -> list[tuple[Any, Any]]:
    """Keys and cells of a map as they are printed.

    Args:
        of: the map. Of a bucketed one, the cell is a dict of cells by bucket.
        top: only so many, those at the end of the order; 0 for all.
    """
    aggregate = of.aggregate
    rows = list(of.entries.items())
    if aggregate is not None and aggregate.kind in BUCKETED:
        buckets: dict[Any, dict[int, Any]] = {}
        for (key, bucket), cell in rows:
            buckets.setdefault(key, {})[bucket] = cell
        rows = list(buckets.items())
    if len(rows) > 1:
        _sort(rows, of.key, of.value)
    if aggregate is not None and aggregate.kind == "tseries":
        return rows  # which `top` has no effect on
    return rows[-top:] if top else rows


def _sort(rows: list[tuple[Any, Any]], key: kinds.Type | None, value: kinds.Type) -> None:
    by_key = sort_key(key) if key is not None else None
    rows.sort(key=itemgetter(0) if by_key is None else lambda row: by_key(row[0]))
    by_value = _value_key(value)
    if by_value is not None:
        rows.sort(key=lambda row: by_value(row[1]))


def _value_key(kind: kinds.Type) -> SortKey | None:
    match kind:
        case kinds.Integer():
            return lambda value: value
        case kinds.Enumeration():
            return lambda value: value
        case kinds.Aggregate(kind="hist" | "lhist"):
            return lambda buckets: sum(buckets.values())
        case kinds.Aggregate(kind="tseries"):
            return None
        case kinds.Aggregate(kind="min" | "max"):
            return lambda value: (value or 0) & MASK64  # negative ones last, as there
        case kinds.Aggregate() if kind.kind in AVERAGED:
            return lambda cell: average_of(kind, cell)
        case kinds.Aggregate():
            return lambda value: number_of(kind, value)
        case _:
            return None


def sort_key(kind: kinds.Type) -> SortKey | None:
    """The function that gives what keys of a type are sorted by; None for the keys themselves.

    Integers are in the order of signed ones, whatever their type, as there.
    """
    match kind:
        case kinds.Integer(signed=False):
            sign, mask = 1 << kind.bits - 1, (1 << kind.bits) - 1
            return lambda value: (value ^ sign) & mask
        case kinds.Tuple():
            return _sequence_key([sort_key(one) for one in kind.elements])
        case kinds.Record():
            return _sequence_key([sort_key(one) for _, one in kind.fields])
        case kinds.Array():
            return _sequence_key([sort_key(kind.element)] * kind.count)
        case kinds.StackType():
            return lambda stack: (stack.frames, stack.process, stack.probe, stack.build_ids)
        case kinds.SymbolType():
            return lambda symbol: (symbol.address, symbol.process, symbol.probe)
        case kinds.ShownType():
            return _shown_key
        case _:
            return None


def _sequence_key(parts: list[SortKey | None]) -> SortKey | None:
    if not any(parts):
        return None
    return lambda values: tuple(
        [value if by is None else by(value) for by, value in zip(parts, values, strict=True)]
    )


def _shown_key(value: Any) -> Any:
    """A record of a function's result, or its bytes."""
    fields = getattr(value, "__struct_fields__", None)
    return value if fields is None else tuple([getattr(value, name) for name in fields])
