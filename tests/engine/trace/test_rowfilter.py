"""One filter for rows of many events."""

import pytest
from eventkit import INFOS, fact, opened, ret

from engine.trace.filter import FilterSyntaxError
from engine.trace.rowfilter import compile_filter
from engine.trace.rows import HEAD

EVENTS = {info.id: info for info in INFOS}
ROWS = [
    fact(10, 3),
    fact(20, -4),
    ret(30, 0xFF),
    opened(40, b"/lib/a.so", 5),
    opened(50, b"x", -1),
]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("n < 0", [1]),
        ("n < 4 || ret == 255", [0, 1, 2]),
        ("!(n < 4)", [2, 3, 4]),
        ('path ~ "*.so" && fd != -1', [3]),
        ('name == "fact"', [0, 1]),
        ('name ~ "fact*" && time >= 20', [1, 2]),
        ('group == "uprobes"', [3, 4]),
        ('group != "uprobes" && name != "fact_ret"', [0, 1]),
        ("pid == 70", [0, 1, 2, 3, 4]),
        ("pid == 77 || pid & 1", []),
        ("pid > 69 && pid <= 70 && pid != 71", [0, 1, 2, 3, 4]),
        ("tid == 77 && common_pid == 77 && cpu == 0", [0, 1, 2, 3, 4]),
        ("address == 0x401130", [0, 1, 2]),
        ('COMM == "prog"', [0, 1, 2, 3, 4]),
        ("0", [0, 1, 2, 3, 4]),
        ("nosuch == 1", []),
    ],
)
def test_rows(text: str, kept: list[int]) -> None:
    found = compile_filter(text, lambda thread: b"prog", lambda thread: thread - 7)
    seen = []
    for index, row in enumerate(ROWS):
        test = found.tester(EVENTS[HEAD.unpack_from(row)[0]])
        if test if isinstance(test, bool) else test(b"12345678" + row, 8):
            seen.append(index)
    assert seen == kept


def test_events_are_decided_as_a_whole_where_they_can_be() -> None:
    found = compile_filter('name == "fact" || ret == 1')
    assert [found.tester(info) if isinstance(found.tester(info), bool) else None
            for info in INFOS] == [True, None, False]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "column"), [("n <", 4), ("n == 1 &", 7), ("(n == 1", 0), ("n", 2)]
)
def test_what_means_nothing(text: str, column: int) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        compile_filter(text)
    assert caught.value.column == column
