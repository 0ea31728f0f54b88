"""Records of mmap, comm and fork as perf's ring has them."""

import struct

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from livekit import DATA

from engine.session.live.sideband import (
    ForkNotice,
    MapNotice,
    MissedNotices,
    NameNotice,
    Sideband,
    parse_notices,
)

BUSY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

RECORDED = (DATA / "sideband.bin").read_bytes()


def test_what_a_program_has_told() -> None:
    found = list(parse_notices(RECORDED))
    names = [one for one in found if isinstance(one, NameNotice)]
    assert [(one.comm, one.executed) for one in names] == [(b"structs", True)]
    (text,) = [one for one in found if isinstance(one, MapNotice) and one.region.start == 0x400000]
    assert (text.region.path, text.region.offset, text.pid) == ("/tmp/structs", 0, names[0].pid)
    paths = {one.region.path for one in found if isinstance(one, MapNotice)}
    assert paths >= {"/tmp/structs", "[stack]", "[vdso]", "[uprobes]"}
    times = [one.time for one in found]
    assert times == sorted(times)


def test_forks_and_losses() -> None:
    fork = struct.pack("<IHH", 7, 0, 48) + struct.pack("<IIIIQ", 5, 4, 6, 7, 99)
    lost = struct.pack("<IHH", 2, 0, 40) + struct.pack("<QQ", 1, 12)
    tail = struct.pack("<IIQ", 5, 6, 77)
    assert list(parse_notices(fork + tail + lost + tail)) == [
        ForkNotice(77, 5, 7, 6),
        MissedNotices(77, 12),
    ]


@BUSY
@given(st.data())
def test_damaged_records(data: st.DataObject) -> None:
    changed = bytearray(RECORDED[: data.draw(st.integers(0, len(RECORDED)))])
    for _ in range(data.draw(st.integers(0, 3)) if changed else 0):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    assert len(list(parse_notices(bytes(changed)))) <= len(RECORDED) // 8


def test_who_may_not_ask_is_told_why() -> None:
    sideband = Sideband([1 << 22])  # no such thread: nothing to hear, or no right to ask
    assert sideband.read() == []
    sideband.close()
