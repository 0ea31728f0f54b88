"""Pages of the kernel's ring buffer: recorded ones, made-up ones, damaged ones."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from livekit import DATA, LAYOUT, pages

from engine.errors import CommandError
from engine.trace.ring_pages import PageLayout, RingRecord

BUSY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

_PADDING, _EXTEND, _STAMP = 29, 30, 31
Steps = list[tuple[int, int, bytes]]


def fib_calls(n: int) -> list[int]:
    return [n] if n < 2 else [n, *fib_calls(n - 1), *fib_calls(n - 2)]


def page(start: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack("<QQ", start, len(body) | flags) + body


def encode(start: int, steps: Steps) -> tuple[bytes, list[RingRecord]]:
    """A page with records at distances, as `rb_update_event` writes them, and what they are."""
    body, time, records = b"", start, []
    for kind, distance, data in steps:
        if kind == _STAMP:  # a whole time, of which the page tells 59 bits
            time += distance
            body += struct.pack("<II", time << 5 & 0xFFFFFFFF | _STAMP, time >> 27 & 0xFFFFFFFF)
            distance = 0
        elif distance >> 27:
            low, distance = distance, 0
            body += struct.pack("<II", low << 5 & 0xFFFFFFFF | _EXTEND, low >> 27)
            time += low
        time += distance
        words = len(data) // 4
        if kind == _PADDING:  # a record that was given up: its place stays, with a time of 1
            distance, time = distance or 1, time + (not distance)
            body += struct.pack("<II", distance << 5 | _PADDING, len(data) + 4) + data
            continue
        if 0 < words <= 28 and kind != 1:
            body += struct.pack("<I", distance << 5 | words) + data
        else:
            body += struct.pack("<II", distance << 5, len(data) + 4) + data
        records.append(RingRecord(time, data))
    return page(start, body), records


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, _PADDING, _STAMP]),
        st.one_of(st.integers(0, 1 << 12), st.integers(0, (1 << 40) - 1)),
        st.integers(1, 60).map(lambda words: bytes(range(words)) * 4),
    ),
    max_size=12,
)


def test_the_layout_is_the_one_that_the_kernel_tells() -> None:
    assert PageLayout(16, 4096) == LAYOUT
    for text in ("", "field: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"):
        with pytest.raises(CommandError, match="header_page"):
            PageLayout.of(text)
    narrow = "".join(
        f"\tfield: {name};\toffset:{at};\tsize:{size};\tsigned:0;\n"
        for name, at, size in (
            ("u64 timestamp", 0, 8),
            ("local_t commit", 8, 4),
            ("c data", 12, 9),
        )
    )
    with pytest.raises(CommandError, match="not known"):
        PageLayout.of(narrow)


def test_recorded_pages() -> None:
    (data,) = pages((DATA / "pages.bin").read_bytes())
    found = LAYOUT.decode(data)
    assert (len(found.records), found.lost, found.damaged) == (19, 0, False)
    times = [record.time for record in found.records]
    text = (DATA / "trace.txt").read_text(errors="surrogateescape")
    told = [line.partition("DBZff")[2].split()[0] for line in text.splitlines() if "DBZff" in line]
    seconds = [f"{(time + 500) // 1000 / 1e6:.6f}:" for time in times]
    assert seconds == told


def test_a_page_that_tells_how_many_were_overwritten_before_it() -> None:
    found = LAYOUT.decode((DATA / "overwritten.bin").read_bytes())
    assert (found.lost, found.damaged) == (2100, False)
    # Each call has a record of its own and one of its stack.
    numbers = [struct.unpack_from("<i", one.data, 16)[0] for one in found.records[::2]]
    assert numbers == fib_calls(14)[1050 : 1050 + len(numbers)]
    assert len(numbers) > 10


@BUSY
@given(st.integers(0, 1 << 57), STEPS)
def test_made_up_pages(start: int, steps: Steps) -> None:
    data, records = encode(start, steps)
    found = LAYOUT.decode(data)
    assert found.records == records
    assert (found.lost, found.damaged) == (0, False)


def test_a_time_whose_upper_bits_the_page_tells() -> None:
    start = 3 << 59
    data, records = encode(start, [(_STAMP, 77, b"abcd")])
    assert LAYOUT.decode(data).records == records
    # The stamp is behind the turn of its 59 bits, the page's time before it.
    late = (1 << 59) - 1
    body = struct.pack("<III", 5 << 5 | _STAMP, 0, 1) + b"abcd"
    assert LAYOUT.decode(page(late + start, body)).records == [RingRecord((4 << 59) + 5, b"abcd")]


@pytest.mark.parametrize(
    ("flags", "behind", "lost"),
    [
        (1 << 31, b"", None),
        (3 << 30, struct.pack("<Q", 9), 9),
        (3 << 30, b"\1", None),
        (0, b"", 0),
    ],
)
def test_losses(flags: int, behind: bytes, lost: int | None) -> None:
    data, _ = encode(5, [(0, 1, b"abcd")])
    (size,) = struct.unpack_from("<Q", data, 8)
    whole = page(5, data[16 : 16 + size], flags) + behind
    assert LAYOUT.decode(whole).lost == lost


@BUSY
@given(st.integers(0, 1 << 57), STEPS, st.data())
def test_damaged_pages(start: int, steps: Steps, data: st.DataObject) -> None:
    whole, records = encode(start, steps)
    cut = data.draw(st.integers(0, len(whole)))
    found = LAYOUT.decode(whole[:cut])
    assert found.records == records[: len(found.records)]
    assert found.damaged == (0 < cut < len(whole))
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]
    LAYOUT.decode(changed)  # anything but an error


@BUSY
@given(st.binary(max_size=200))
def test_garbage(data: bytes) -> None:
    found = LAYOUT.decode(data)
    assert len(found.records) <= len(data) // 8 + 1
