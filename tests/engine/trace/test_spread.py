"""Sum, mean, extremes and deviation against the standard library's."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.trace.spread import Spread


@given(st.lists(st.integers(min_value=0, max_value=1 << 62), min_size=1))
def test_it_is_what_the_standard_library_says(values: list[int]) -> None:
    found = Spread()
    for value in values:
        found.add(value)
    assert (found.count, found.sum) == (len(values), sum(values))
    assert (found.least, found.most) == (min(values), max(values))
    assert found.mean == pytest.approx(statistics.fmean(values))
    wanted = 100 * statistics.pstdev(values) / statistics.fmean(values) if any(values) else 0
    assert found.deviation == pytest.approx(wanted, abs=1e-6)


def test_of_nothing_all_is_zero() -> None:
    assert (Spread().mean, Spread().deviation) == (0, 0)
