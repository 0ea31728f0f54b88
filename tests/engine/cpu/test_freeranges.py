"""Free stretches against a set of pages, whatever is taken and given."""

from hypothesis import given
from hypothesis import strategies as st

from engine.cpu.freeranges import FreeRanges
from engine.cpu.ram import PAGE

_ALL = 400
_STEP = st.tuples(st.sampled_from(["low", "high", "at", "give"]), st.integers(0, _ALL - 1),
                  st.integers(1, 120))  # fmt: skip


def _runs(pages: set[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for page in sorted(pages):
        if found and found[-1][1] == page:
            found[-1] = (found[-1][0], page + 1)
        else:
            found.append((page, page + 1))
    return found


@given(st.lists(_STEP, max_size=60))
def test_any_sequence(steps: list[tuple[str, int, int]]) -> None:
    free = FreeRanges(0, _ALL * PAGE)
    pages = set(range(_ALL))
    for kind, at, count in steps:
        fitting = [run for run in _runs(pages) if run[1] - run[0] >= count]
        if kind == "low":
            lowest = free.lowest(count * PAGE)
            assert lowest == (fitting[0][0] * PAGE if fitting else None)
        elif kind == "high":
            highest = free.highest(count * PAGE, at * PAGE)
            before = [run for run in fitting if run[0] < at]
            wanted = (before[-1][0] * PAGE, before[-1][1] * PAGE) if before else None
            assert highest == wanted
        elif kind == "at":
            wanted_pages = set(range(at, min(at + count, _ALL)))
            taken = free.take(at * PAGE, min(at + count, _ALL) * PAGE)
            assert taken == (wanted_pages <= pages)
            pages -= wanted_pages if taken else set()
        else:
            given_back = set(range(at, min(at + count, _ALL))) - pages
            for low, high in _runs(given_back):
                free.give(low * PAGE, high * PAGE)
            pages |= given_back
        assert free.all() == [(low * PAGE, high * PAGE) for low, high in _runs(pages)]
