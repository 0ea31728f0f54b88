"""Buckets of histograms: each value is in the one whose label has it; bars and labels."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.trace.bpftrace.histograms import (
    Histogram,
    hist_bucket,
    linear_bucket,
    linear_histogram,
    power_histogram,
)

NUMBERS = st.one_of(
    st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1),
    st.integers(min_value=-3, max_value=5000),
    st.integers(min_value=0, max_value=62).map(lambda power: 1 << power),
)


def only_interval(drawn: Histogram) -> tuple[int | None, int | None]:
    ((start, end, count),) = drawn.intervals()
    assert count == 1
    return start.value if start else None, end.value if end else None


@given(NUMBERS, st.integers(min_value=0, max_value=5))
def test_a_value_is_between_the_ends_of_its_bucket(value: int, bits: int) -> None:
    bucket = hist_bucket(value, bits)
    start, end = only_interval(power_histogram({bucket: 1}, bits))
    if value < 0:
        assert (bucket, start, end) == (0, None, 0)
        return
    assert start is not None
    assert end is not None
    assert start <= value < end
    assert end - start <= max(1, value >> bits)  # as fine as asked for


@given(
    NUMBERS,
    st.integers(min_value=-100, max_value=100),
    st.integers(min_value=1, max_value=50),
    st.integers(min_value=1, max_value=60),
)
def test_a_value_is_in_its_linear_bucket(value: int, least: int, step: int, count: int) -> None:
    most = least + step * count
    bucket = linear_bucket(value, least, most, step)
    start, end = only_interval(linear_histogram({bucket: 1}, least, most, step))
    if value < least:
        assert (start, end) == (None, least)
    elif value >= most:
        assert (start, end) == (most, None)
    else:
        assert start is not None
        assert end is not None
        assert start <= value < end == start + step


@given(st.lists(st.integers(min_value=-5, max_value=100_000), max_size=50))
def test_all_values_are_counted(values: list[int]) -> None:
    buckets = Counter(hist_bucket(value, 2) for value in values)
    assert sum(power_histogram(buckets, 2).counts) == len(values)


def test_labels_are_numbers_up_to_the_second_power_and_then_have_suffixes() -> None:
    def label(value: int, bits: int) -> str:
        drawn = power_histogram({hist_bucket(value, bits): 1}, bits)
        return drawn.text().decode().split("  ")[0]

    assert [label(value, 0) for value in (-1, 0, 1, 2, 3, 4, 1023, 1024, 1 << 20, 1 << 62)] == [
        "(..., 0)",
        "[0]",
        "[1]",
        "[2, 4)",
        "[2, 4)",
        "[4, 8)",
        "[512, 1K)",
        "[1K, 2K)",
        "[1M, 2M)",
        "[4E, 8E)",
    ]
    assert [label(value, 2) for value in (3, 4, 7, 8, 9, 225, 1025)] == [
        *("[3]", "[4]", "[7]", "[8, 10)", "[8, 10)", "[224, 256)", "[1024, 1280)"),
    ]
    assert label(1 << 20, 3) == "[1024K, 1152K)"


def test_bars_are_as_long_as_single_precision_makes_them() -> None:
    lines = power_histogram({1: 3, 2: 1, 4: 2}, 0).text().decode().splitlines()
    assert [line.count("@") for line in lines] == [52, 17, 0, 34]
    assert lines[1] == "[1]" + " " * 20 + "1 |" + "@" * 17 + " " * 35 + "|"
    assert [len(line) for line in lines] == [79] * 4


def test_div_divides_counts_and_may_leave_nothing() -> None:
    assert power_histogram({1: 9, 2: 3}, 0, 4).counts == (2, 0)
    assert power_histogram({1: 3}, 0, 4).text().count(b"@") == 0


def test_zeroed_buckets_are_an_empty_histogram() -> None:
    assert power_histogram({3: 0}, 0).text() == linear_histogram({}, 0, 9, 3).text() == b""


def test_linear_labels_have_suffixes_only_if_all_of_them_can() -> None:
    def labels(least: int, most: int, step: int) -> list[str]:
        buckets = dict.fromkeys(range((most - least) // step + 2), 1)
        lines = linear_histogram(buckets, least, most, step).text().decode().splitlines()
        return [line[:16].rstrip() for line in lines]

    assert labels(0, 3 * 1024, 1024) == [
        *("(..., 0)", "[0, 1K)", "[1K, 2K)", "[2K, 3K)", "[3K, ...)"),
    ]
    assert labels(610_000, 640_000, 10_000) == [
        *("(..., 610000)", "[610000, 620000)", "[620000, 630000)", "[630000, 640000)"),
        "[640000, ...)",
    ]
    assert labels(1 << 20, 3 << 20, 1 << 20) == ["(..., 1M)", "[1M, 2M)", "[2M, 3M)", "[3M, ...)"]
    assert labels(0, 2, 1) == ["(..., 0)", "[0]", "[1]", "[2, ...)"]
    assert labels(0, 10, 4) == ["(..., 0)", "[0, 4)", "[4, 8)", "[8, ...)"]
