"""Ids of events beyond 65,535: rows, filters, histograms, rings and formats tell them apart."""

import struct
from collections import Counter

import pytest
from eventkit import NAMES

from engine.arch.program import (
    EVENT_LOW,
    EVENT_MOST,
    Compare,
    FieldType,
    Operand,
    PredicateOp,
    RecordLayout,
    ValueKind,
    row_head,
)
from engine.fetch.predicate import compile_predicate, row_thread
from engine.trace.formats import FORMAT_NAMES, format_named
from engine.trace.formats.base import Format, PlacedFormat
from engine.trace.formats.event_text import EventLines
from engine.trace.ring import Ring
from engine.trace.rows import HEAD, Column, EventInfo, decode, pack_row, whole

THREAD = (1 << 22) - 1
IDS = (1, EVENT_LOW, EVENT_LOW + 2, 0x20001, 1_000_016, EVENT_MOST)
NUMBER = Column("n", FieldType(ValueKind.UNSIGNED, 8), 3)
INFOS = {number: EventInfo(number, "g", f"e{number}", (NUMBER,), 4) for number in IDS}


def row(number: int, value: int = 7) -> bytes:
    return pack_row(INFOS[number], THREAD, 5, 0x1000, (value,))


@pytest.mark.parametrize("number", IDS)
def test_a_row_says_which_event_it_is_of(number: int) -> None:
    data = row(number)
    low, words, thread = HEAD.unpack_from(data)
    first, second = row_head(number, 4)
    assert struct.pack("<II", first, second | THREAD) == data[:8]
    assert low
    assert words == 4
    assert whole(low, thread) == (number, THREAD)
    assert row_thread(data, 0) == THREAD
    event = decode(INFOS, data)
    assert (event.id, event.name, event.thread_id) == (number, f"e{number}", THREAD)


WIDE = [kind for kind in map(format_named, FORMAT_NAMES) if kind.event_most == EVENT_MOST]


@pytest.mark.parametrize("kind", WIDE, ids=lambda kind: kind.name)
def test_formats_name_each_event(kind: type[Format]) -> None:
    """Events whose ids share their low half are the hardest to tell apart."""
    twins = dict.fromkeys((), INFOS[1]) | {
        number: EventInfo(number, "g", name, (NUMBER,), 4)
        for number, name in ((1, "narrow"), (0x10001, "wide"))
    }
    made = kind(twins, NAMES)
    both = b"".join(pack_row(info, THREAD, 5, 0x1000, (7,)) for info in twins.values())
    text = made.header() + made.rows(both) + made.end()
    if isinstance(made, PlacedFormat):
        text += b"".join(write.data for write in made.aside())
    if not kind.wants_stacks:
        assert b"narrow" in text
        assert b"wide" in text
        # The rest say it in binary: their own tests read it with their own readers.
        assert str(THREAD).encode() in text or kind.name in ("perfetto", "ctf", "parquet", "arrow")


def test_lines_of_the_log_name_each_event() -> None:
    lines = EventLines(INFOS, NAMES)
    assert [lines.parts(row(number)).name for number in IDS] == [f"e{n}" for n in IDS]
    assert {lines.parts(row(number)).thread for number in IDS} == {THREAD}
    assert lines.ftrace(row(EVENT_MOST)).count(b"\n") == 1


@pytest.mark.parametrize("last", [b"", pack_row(EventInfo(9, "g", "n", ()), 1, 5, 0, ())])
def test_a_ring_counts_each_event(last: bytes) -> None:
    """With rows of one size, and with a row of another one behind them."""
    ring = Ring(count=True)
    ring.append(b"".join(map(row, IDS)) + last)
    expected = Counter(dict.fromkeys(IDS, 1))
    if last:
        expected[9] = 1
    assert ring.counts == expected


@pytest.mark.parametrize("compare", [Compare.EQ, Compare.LT, Compare.AND])
def test_a_filter_sees_the_thread_alone(compare: Compare) -> None:
    """The number of the event stands beside it."""
    for value, expected in ((THREAD, compare is not Compare.LT), (0, False)):
        op = PredicateOp(Operand.NUMBER, compare, 4, 4, value=value, signed=True, target=2)
        assert compile_predicate((op,))(row(EVENT_MOST), 0) is expected


def test_an_id_whose_low_half_is_zero_is_never_given() -> None:
    layout = RecordLayout.of(())
    assert layout.words == 3
    assert row_head(0x10000, 3)[0] & EVENT_LOW == 0  # it would end a stretch of rows
