"""Buckets of `hist()` and `lhist()`: which one a value falls into, and what they are called.

Buckets are bpftrace's: createLog2Function and createLinearFunction in its
src/ast/passes/codegen_llvm.cpp; the labels those of build_histogram and build_linear_histogram in
src/types_format.cpp.
"""

from collections.abc import Mapping
from struct import pack, unpack
from typing import Final

from msgspec import Struct

from engine.trace.bpftrace.arithmetic import signed64

MOST_BITS: Final = 5
"""The finest histogram: 32 buckets for each power of two."""
_SUFFIXES: Final = ("", "K", "M", "G", "T", "P", "E")
_BAR: Final = 52
_KILO, _MEGA = 1 << 10, 1 << 20


def hist_bucket(value: int, bits: int = 0) -> int:
    """The number of the bucket of a value in a histogram of powers of two.

    0 is that of negative numbers; unsigned ones from 2**63 on are such, too.

    Args:
        value: any number of 64 bits.
        bits: each power of two is cut into 2**bits buckets.
    """
    value = signed64(value)
    if value < 0:
        return 0
    if not bits:
        return value.bit_length() + 1
    if value < 1 << bits:
        return value + 1
    power = value.bit_length() - 1 - bits
    return (power + 1 << bits) + (value >> power & (1 << bits) - 1) + 1


def linear_bucket(value: int, least: int, most: int, step: int) -> int:
    """The number of the bucket of a value in a linear histogram.

    0 is that of smaller values than all; the last one that of greater ones.
    """
    value = signed64(value)
    if value < least:
        return 0
    return 1 + (min(value, most) - least) // step


class BucketBound(Struct, frozen=True):
    """The end of a bucket.

    Attributes:
        value: the number.
        text: how it is shown: "16K".
        is_number: it is shown as a number, so that a bucket of one value is `[3]`.
    """

    value: int
    text: str
    is_number: bool = True


class Histogram(Struct, frozen=True):
    """The part of a histogram that has values.

    Attributes:
        lower: where the first bucket begins; None if that is open.
        bounds: the ends of the buckets; the last one is missing where that is open.
        counts: values in each.
    """

    lower: BucketBound | None = None
    bounds: tuple[BucketBound, ...] = ()
    counts: tuple[int, ...] = ()

    def intervals(self) -> "list[tuple[BucketBound | None, BucketBound | None, int]]":
        """Each bucket: where it begins, where it ends, its count."""
        starts = (self.lower, *self.bounds)
        return [
            (starts[at], self.bounds[at] if at < len(self.bounds) else None, count)
            for at, count in enumerate(self.counts)
        ]

    def text(self) -> bytes:
        """A line of text for each bucket."""
        most = max(self.counts, default=0)
        return b"".join(
            b"%-16b%8d |%-52b|\n"
            % (_interval(start, end).encode(), count, b"@" * _bar_width(count, most))
            for start, end, count in self.intervals()
        )


def power_histogram(buckets: Mapping[int, int], bits: int, div: int = 1) -> Histogram:
    """The histogram of `hist()`.

    Args:
        buckets: counts by the number of their bucket.
        bits: see `hist_bucket`.
        div: all counts are divided by it.
    """
    found = [bucket for bucket, count in buckets.items() if count]
    if not found:
        return Histogram()
    first, last = min(found), max(found)
    numbers = range(first, last + 1)
    return Histogram(
        _power_bound(first - 1, bits) if first else None,
        tuple([_power_bound(number, bits) for number in numbers]),
        tuple([buckets.get(number, 0) // div for number in numbers]),
    )


def linear_histogram(buckets: Mapping[int, int], least: int, most: int, step: int) -> Histogram:
    """The histogram of `lhist()`; nothing divides its counts.

    Args:
        buckets: counts by the number of their bucket.
        least: where the first bucket begins.
        most: where the last one ends.
        step: the width of each.
    """
    found = [bucket for bucket, count in buckets.items() if count]
    if not found:
        return Histogram()
    first, last = min(found), max(found)
    ends = [least + number * step for number in range(first, last + 1)]
    return Histogram(
        _linear_bound(least + (first - 1) * step, step) if first else None,
        tuple([_linear_bound(end, step) for end in ends if end <= most]),
        tuple([buckets.get(number, 0) for number in range(first, last + 1)]),
    )


def _power_bound(bucket: int, bits: int) -> BucketBound:
    """The end of a bucket, which is the start of the next one."""
    if bucket <= 2 << bits:
        return BucketBound(bucket, str(bucket))
    parts = 1 << bits
    power = (bucket >> bits) - 1
    mantissa = parts + (bucket & parts - 1)
    decade = power // 10
    text = f"{mantissa << power - 10 * decade}{_SUFFIXES[decade]}"
    return BucketBound(mantissa << power, text, is_number=False)


def _linear_bound(number: int, step: int) -> BucketBound:
    if step % _KILO:
        return BucketBound(number, str(number))
    if number and not number % _MEGA:
        return BucketBound(number, f"{number // _MEGA}M", is_number=False)
    if number and not number % _KILO:
        return BucketBound(number, f"{number // _KILO}K", is_number=False)
    return BucketBound(number, str(number), is_number=False)


def _interval(start: BucketBound | None, end: BucketBound | None) -> str:
    if start is None:
        return f"(..., {end.text if end else '...'})"
    if end is None:
        return f"[{start.text}, ...)"
    if start.is_number and end.is_number and start.value + 1 == end.value:
        return f"[{start.text}]"
    return f"[{start.text}, {end.text})"


def _bar_width(count: int, most: int) -> int:
    """The marks that stand for a count; in numbers of single precision, as bpftrace has them."""
    if not most:
        return 0
    return int(_single(_single(_single(count) / _single(most)) * _BAR))


def _single(number: float) -> float:
    return float(unpack("f", pack("f", number))[0])
