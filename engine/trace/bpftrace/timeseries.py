"""Values over time, as `tseries()` gathers them: epochs of one length, the newest ones kept.

Source: tseries in bpftrace's src/ast/passes/codegen_llvm.cpp, src/util/tseries.cpp,
build_time_series in src/types_format.cpp, and the graph of src/output/text.cpp.
"""

import time
from collections.abc import Callable
from struct import pack, unpack
from typing import Final

from msgspec import Struct

from engine.trace.bpftrace.arithmetic import MASK64, signed64, truncated_quotient

_SECOND: Final = 1_000_000_000
_WIDTH: Final = 53
_PADDING: Final = 21
_LEAST64, _MOST64 = -(1 << 63), (1 << 63) - 1
_UNITS: Final = (
    (_SECOND, b"", 0),
    (1_000_000, b".ms", 3),
    (1_000, ".μs".encode(), 6),
    (1, b".ns", 9),
)
"""From how many nanoseconds on, the unit's name, digits of the fraction."""

NO_FUNCTION: Final = "none"
"""`tseries()` without a function keeps the last value of an epoch."""


class TimeSeries(Struct, frozen=True):
    """The newest epochs of one key.

    Attributes:
        points: of each epoch its start in nanoseconds since 1970, and its value; None where it
            has none.
        signed: values are signed numbers.
    """

    points: tuple[tuple[int, int | None], ...] = ()
    signed: bool = True


def update_epoch(cell: list[int], function: str, value: int, epoch: int, now: int) -> None:
    """Take a value into a cell, which is [epoch, value, meta].

    Args:
        cell: what there is of its epoch, or of one long ago.
        function: "sum", "min", "max", "avg", or another word: the last value counts.
        value: what is new.
        epoch: the number of the epoch.
        now: the time in nanoseconds.
    """
    if function not in ("sum", "min", "max", "avg"):
        cell[:] = epoch, value, now
        return
    if cell[0] != epoch:
        cell[:] = epoch, 0, 0
    if function in ("sum", "avg"):
        cell[1] += value
        cell[2] += 1
    elif not cell[2]:
        cell[1:] = value, 1
    else:
        cell[1] = min(cell[1], value) if function == "min" else max(cell[1], value)


def epoch_value(cell: list[int], function: str, *, signed: bool) -> int:
    """The value of a cell; the epoch 0 stands for none, and has 0."""
    if not cell[0]:
        return 0
    number = signed64(cell[1]) if signed else cell[1] & MASK64
    return truncated_quotient(number, cell[2]) if function == "avg" and cell[2] else number


def time_series(
    values: dict[int, int], last: int, epochs: int, interval: int, *, signed: bool
) -> TimeSeries:
    """The epochs of a key, from its first value on to the last epoch of the whole map.

    Args:
        values: by the number of the epoch.
        last: the last epoch that any key of the map has; 0 if all are zeroed.
        epochs: how many are kept.
        interval: nanoseconds of one.
        signed: values are signed numbers.
    """
    if not last:
        return TimeSeries((), signed)
    earliest = max(last - epochs + 1, 0)
    start = min([epoch for epoch in values if epoch >= earliest], default=last + 1)
    numbers = range(start, last + 1)
    return TimeSeries(tuple([(one * interval, values.get(one)) for one in numbers]), signed)


def graph(series: TimeSeries, localtime: Callable[[int], time.struct_time]) -> bytes:
    """The time series as text: a line for each epoch, with a mark where its value is.

    Args:
        series: what is drawn.
        localtime: the parts of a moment in seconds since 1970.
    """
    found = [value for _, value in series.points if value is not None]
    if not found:
        return b"<no data>"
    least, most = min(found), max(found)
    if least == most:
        least = max(least - 1, _LEAST64 if series.signed else 0)
        most = min(most + 1, _MOST64 if series.signed else MASK64)
    unit, digits = _unit(series.points)
    heading = b"hh:mm:ss" + unit
    width = 8 + (1 + digits if digits else 0)
    ends = b"%-*d%*d" % (_PADDING, least, _WIDTH - _PADDING, most)
    lines = [
        b" " * (width + 1) + ends,
        heading.ljust(width + 1) + b"|" + b"_" * (_WIDTH - 2) + b"|",
    ]
    zero = int(_single(_WIDTH * _single(least) / _single(least - most))) if least < 0 < most else 0
    for moment, value in series.points:
        line = bytearray(b"|" + b" " * (_WIDTH - 2) + b"|")
        if zero:
            line[zero] = ord(".")
        if value is not None:
            line[_place(value, least, most)] = ord("*")
        shown = b"-" if value is None else b"%d" % value
        lines.append(b" ".join((_clock(moment, digits, localtime), line, shown)))
    lines.append(b" " * (width + 1) + b"v" + b"_" * (_WIDTH - 2) + b"v")
    lines.append(b" " * (width + 1) + ends)
    return b"\n".join([*lines, b""])


def _unit(points: tuple[tuple[int, int | None], ...]) -> tuple[bytes, int]:
    interval = (points[-1][0] - points[0][0]) // max(len(points) - 1, 1)
    for nanoseconds, name, digits in _UNITS:
        if interval >= nanoseconds:
            return name, digits
    return _UNITS[-1][1:]


def _place(value: int, least: int, most: int) -> int:
    at = int(_single(_single((_WIDTH - 1) * _single(value - least)) / _single(most - least)))
    return max(0, min(_WIDTH - 1, at))


def _clock(moment: int, digits: int, localtime: Callable[[int], time.struct_time]) -> bytes:
    seconds, rest = divmod(moment, _SECOND)
    text = time.strftime("%H:%M:%S", localtime(seconds))
    if digits:
        text += f".{rest // 10 ** (9 - digits):0{digits}}"
    return text.encode()


def _single(number: float) -> float:
    return float(unpack("f", pack("f", number))[0])
