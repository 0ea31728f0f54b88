"""Times and calls of functions, their fields and sort keys, as `uftrace report` has them.

Fields and keys are those of uftrace-report(1): `total` counts a recursion once, as its
`update_time_stat` does; averages, least and greatest values are of every call. A difference is
[1] - [0], of the file that was given and of this run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Struct, field

from engine.errors import CommandError
from engine.trace.finishedcalls import EndedCall
from engine.trace.spread import Spread

NAME_KEY: Final = "func"
"""The sort key of functions' names."""
_SHORT: Final = ("avg", "min", "max", "stdv")
"""Keys that stand for those of the total or the self time with an average of it."""
POLICIES: Final = ("abs", "no-abs", "percent", "no-percent", "compact", "full")
_LARGEST: Final = 1 << 28
"""Bytes of a report that is read."""


class FunctionTimes(Struct):
    """The calls of one function that are over.

    Attributes:
        total: times from entry to return.
        own: the same without the calls that were made.
        nested: the part of `total` that is in calls within another call of the function.
        size: bytes of the function, 0 where that is not known.
    """

    total: Spread = field(default_factory=Spread)
    own: Spread = field(default_factory=Spread)
    nested: int = 0
    size: int = 0

    def add(self, ended: EndedCall) -> None:
        """Count one more call."""
        self.total.add(ended.total)
        self.own.add(ended.own)
        if ended.nested:
            self.nested += ended.total


class ReportField(Struct, frozen=True):
    """A column of a report.

    Attributes:
        title: its heading, uftrace's.
        value: of a function.
        is_time: whether it is a time, and no number of things.
    """

    title: str
    value: Callable[[FunctionTimes], float]
    is_time: bool = True


FIELDS: Final[Mapping[str, ReportField]] = {
    "total": ReportField("Total time", lambda one: one.total.sum - one.nested),
    "total-avg": ReportField("Total avg", lambda one: one.total.mean),
    "total-min": ReportField("Total min", lambda one: one.total.least),
    "total-max": ReportField("Total max", lambda one: one.total.most),
    "total-stdv": ReportField("Total stdv", lambda one: one.total.deviation),
    "self": ReportField("Self time", lambda one: one.own.sum),
    "self-avg": ReportField("Self avg", lambda one: one.own.mean),
    "self-min": ReportField("Self min", lambda one: one.own.least),
    "self-max": ReportField("Self max", lambda one: one.own.most),
    "self-stdv": ReportField("Self stdv", lambda one: one.own.deviation),
    "call": ReportField("Calls", lambda one: one.total.count, is_time=False),
    "size": ReportField("Size", lambda one: one.size, is_time=False),
}
"""By the names that uftrace's `-f` and `-s` have for them."""


class DiffPolicy(Struct, frozen=True):
    """The way in which two reports are compared (uftrace's `--diff-policy`).

    Attributes:
        absolute: sort by the size of a difference, whichever its sign.
        percent: differences in percent of [0].
        full: show both values beside each difference.
        column: what is sorted by: [0], [1] or, 2, the difference.
    """

    absolute: bool = True
    percent: bool = False
    full: bool = False
    column: int = 2

    @classmethod
    def of(cls, policy: Sequence[str], column: int) -> "DiffPolicy":
        """The comparison that words of `POLICIES` stand for; the last one of a kind counts."""
        on = {"abs": True, "percent": False, "full": False}
        for word in policy:
            kind = word.removeprefix("no-")
            on["full" if kind == "compact" else kind] = kind == word and kind != "compact"
        return cls(on["abs"], on["percent"], on["full"], column)


def fields_of(names: Sequence[str], average: str) -> tuple[str, ...]:
    """The fields of a report: those given, or the usual ones.

    Args:
        names: as given.
        average: "total" or "self" for averages, extremes and deviation of it, "" for neither.

    Raises:
        CommandError: there is no such field.
    """
    if list(names) == ["all"]:
        return tuple(FIELDS)
    if "all" in names:
        raise CommandError("--fields all: it stands alone")
    for name in names:
        if name not in FIELDS:
            known = ", ".join(FIELDS)
            raise CommandError(f"--fields {name}: no such field; there is {known}, all")
    if names:
        return tuple(names)
    if average:
        return tuple(f"{average}-{name}" for name in _SHORT)
    return ("total", "self", "call")


def sort_keys() -> tuple[str, ...]:
    """All sort keys of a report."""
    return (*FIELDS, NAME_KEY, *_SHORT)


def keys_of(names: Sequence[str], average: str) -> tuple[str, ...]:
    """The sort keys: those given, or the usual one; see `fields_of`.

    Raises:
        CommandError: there is no such key.
    """
    keys = []
    for name in names or (f"{average}-avg" if average else "total",):
        key = f"{average or 'total'}-{name}" if name in _SHORT else name
        if key not in FIELDS and key != NAME_KEY:
            known = ", ".join(sort_keys())
            raise CommandError(f"--sort {name}: no such key; there is {known}")
        keys.append(key)
    return tuple(keys)


def ordered(functions: Mapping[str, FunctionTimes], keys: Sequence[str]) -> list[str]:
    """Names of functions in the order of sort keys: most first, names from A to Z."""
    found = sorted(functions)
    for key in reversed(keys):
        if key == NAME_KEY:
            found.sort()
        else:
            value = FIELDS[key].value
            found.sort(key=lambda name: -value(functions[name]))
    return found


def compared_order(
    before: Mapping[str, FunctionTimes],
    after: Mapping[str, FunctionTimes],
    keys: Sequence[str],
    comparison: DiffPolicy,
) -> list[str]:
    """Names of the functions of two reports, [0] and [1], in the order of their differences."""
    none = FunctionTimes()
    found = sorted({*before, *after})
    for key in reversed(keys):
        if key == NAME_KEY:
            found.sort()
            continue
        value = FIELDS[key].value

        def weight(name: str, value: Callable[[FunctionTimes], float] = value) -> float:
            old, new = value(before.get(name, none)), value(after.get(name, none))
            if comparison.column != 2:
                return -(old, new)[comparison.column]
            change = new - old
            if comparison.percent:
                change = 100 * change / old if old else 0
            return -abs(change) if comparison.absolute else -change

        found.sort(key=weight)
    return found


class StoredFunction(Struct, frozen=True):
    """A function in a report as JSON.

    Attributes:
        name: of it.
        calls: how many.
        total: time in it, what it called included; a recursion counts once.
        self: time in it alone.
        total_avg: average of each call's time; likewise the others.
    """

    name: str
    calls: int
    total: int
    self: int
    total_avg: float
    total_min: int
    total_max: int
    total_stdv: float
    self_avg: float
    self_min: int
    self_max: int
    self_stdv: float
    size: int = 0


class StoredReport(Struct, frozen=True):
    """A report as JSON.

    Attributes:
        unit: of its times.
        functions: in the order of the report.
    """

    unit: str
    functions: tuple[StoredFunction, ...]


def stored(functions: Mapping[str, FunctionTimes], order: Sequence[str], unit: str) -> bytes:
    """A report as JSON."""
    found = []
    for name in order:
        one = functions[name]
        total, own = one.total, one.own
        found.append(
            StoredFunction(
                name,
                total.count,
                total.sum - one.nested,
                own.sum,
                *(total.mean, total.least, total.most, total.deviation),
                *(own.mean, own.least, own.most, own.deviation),
                one.size,
            )
        )
    return msgspec.json.format(msgspec.json.encode(StoredReport(unit, tuple(found)))) + b"\n"


def read_report(path: str, unit: str) -> dict[str, FunctionTimes]:
    """The functions of a report that `--report --json` has written.

    Raises:
        CommandError: the file cannot be read, is no report, or has times of another unit.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise CommandError(f"--diff {path}: {error.strerror}") from error
    return parsed_report(data, path, unit)


def parsed_report(data: bytes, path: str, unit: str) -> dict[str, FunctionTimes]:
    """The functions of a report in JSON; see `read_report`."""
    try:
        if len(data) > _LARGEST:
            raise ValueError("it is larger than 256 MB")
        report = msgspec.json.decode(data, type=StoredReport)
        found = {one.name: _times(one) for one in report.functions}
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise CommandError(
            f"--diff {path}: no report of graph --report --json, and no recording: {error}"
        ) from error
    if report.unit != unit:
        raise CommandError(f"--diff {path}: its times are {report.unit}, those here {unit}")
    return found


def _times(one: StoredFunction) -> FunctionTimes:
    total = _spread(one.calls, one.total_avg, one.total_min, one.total_max, one.total_stdv)
    own = _spread(one.calls, one.self_avg, one.self_min, one.self_max, one.self_stdv)
    own.sum = one.self
    return FunctionTimes(total, own, total.sum - one.total, one.size)


def _spread(count: int, mean: float, least: int, most: int, deviation: float) -> Spread:
    """The values that average, extremes and deviation are of."""
    total = round(mean * count)
    variance = (deviation * total / 100) ** 2
    squares = round((variance + total * total) / count) if count > 0 else 0
    return Spread(count, total, squares, least, most)


def plain_times(functions: Mapping[str, FunctionTimes]) -> dict[str, Any]:
    """Functions as plain data."""
    return cast("dict[str, Any]", msgspec.to_builtins(functions))


def times_of(plain: object) -> dict[str, FunctionTimes]:
    """Functions from plain data.

    Raises:
        ValueError: it is no such data.
    """
    return msgspec.convert(plain, dict[str, FunctionTimes])
