"""Rows that hang together: memory that a program may have written to is walked with care."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.cpu import native
from engine.trace import staging
from engine.trace.rows import HEAD, count_rows
from engine.trace.staging import whole_rows

ROW = st.builds(
    lambda number, words: HEAD.pack(number, words, 7).ljust(8 * words, b"\xa5"),
    st.integers(1, 12),
    st.integers(3, 9),
)
TAIL = st.one_of(
    st.just(b""),
    st.just(bytes(32)),
    st.builds(lambda words: HEAD.pack(1, words, 7).ljust(16, b"\1"), st.integers(0, 2)),
    st.just(HEAD.pack(3, 8, 7) + bytes(24)),
    st.just(struct.pack("<HH", 3, 8)),
    st.just(HEAD.pack(0, 3, 7) + bytes(16)),
)


def walked(data: bytes) -> int:
    """The same from row to row."""
    position = 0
    while position + HEAD.size <= len(data):
        number, words, _ = HEAD.unpack_from(data, position)
        if not number or words < 3 or position + words * 8 > len(data):
            break
        position += words * 8
    return position


@given(st.lists(ROW, max_size=60), TAIL)
def test_whole_rows_end_where_a_walk_ends(rows: list[bytes], tail: bytes) -> None:
    """Also with more kinds of rows than are looked for together."""
    data = b"".join(rows)
    assert whole_rows(data) == walked(data) == len(data)
    assert whole_rows(data + tail) == walked(data + tail)
    assert count_rows(data) == len(rows)


@given(st.lists(ROW, max_size=40), TAIL, st.booleans(), st.integers(0, 400), st.binary(max_size=4))
def test_all_ways_end_where_a_walk_ends(
    rows: list[bytes], tail: bytes, alike: bool, at: int, scribble: bytes
) -> None:
    whole = bytearray(b"".join(rows[:1] * len(rows) if alike else rows) + tail)
    whole[at : at + len(scribble)] = scribble[: max(len(whole) - at, 0)]
    data = bytes(whole)
    assert staging.believable(data) == staging._walked(data) == walked(data)


@pytest.mark.parametrize("portable", ["0", "1"])
def test_the_host_has_code_unless_told_otherwise(
    portable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", portable)
    assert staging.believable(b"\1\0\3\0" + bytes(20) + b"\1\0\4\0") == 24
    if native.possible():
        assert staging._walk() is not None
