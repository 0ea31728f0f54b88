"""Histograms that are counted here, of rows that the kernel has recorded."""

import struct

from livekit import DATA, FORMATS, LAYOUT, LINES, defined, formats, pages

from engine.session.live.histograms import LiveHistograms
from engine.session.live.processes import LiveProcesses
from engine.session.tracing.tracing import Tracing
from engine.trace.kernel_rows import row_maker
from engine.trace.rows import EventInfo, EventSource, count_rows


def recorded(trace: Tracing, stacks: EventInfo | None = None) -> bytes:
    """The rows of the recording, each followed by a call stack if one is asked for."""
    events = formats(FORMATS)
    makers = {
        events[name].number: row_maker(info, events[name])
        for (_, name), info in trace.infos.items()
    }
    (page,) = pages((DATA / "pages.bin").read_bytes())
    rows: list[bytes] = []
    for record in LAYOUT.decode(page).records:
        (number,) = struct.unpack_from("<H", record.data)
        rows.append(makers[number](record.time, record.data))
        if stacks is not None:
            head = struct.unpack_from("<HHI", rows[-1])
            rows.append(struct.pack("<HHIQQ", stacks.id, 3, head[2], record.time, 0x400770))
    return b"".join(rows)


def test_hits_are_counted_by_key_and_condition() -> None:
    with defined(*LINES) as trace:
        trace.add_trigger("kprobes", "deposit", "hist:keys=name:vals=amount")
        trace.add_trigger("kprobes", "transferred", "hist:keys=ret.hex if ret < 0")
        found = LiveHistograms(list(trace.infos.values()), trace.controls, LiveProcesses())
        rows = recorded(trace)
        assert found.count(rows) == rows
    text = b"\n".join(found.lines()).decode()
    refused, deposits = text.split("# event: kprobes/deposit")
    assert "Hits: 4" in deposits
    grace = next(line for line in deposits.splitlines() if "Grace" in line)
    assert grace.split("hitcount:")[1].split() == [
        "2",
        "amount:",
        str(2**64 - 100),
    ]  # as the kernel prints sums
    assert "Hits: 2" in refused


def test_a_filter_is_about_what_is_recorded_and_not_about_what_is_counted() -> None:
    stacks = EventInfo(99, "ftrace", "user_stack", (), source=EventSource.STACK)
    with defined(*LINES) as trace:
        trace.set_filter("kprobes", "deposit", "amount < 0")
        trace.add_trigger("kprobes", "deposit", "hist:keys=amount")
        infos = list(trace.infos.values())
        found = LiveHistograms(infos, trace.controls, LiveProcesses(), stacks)
        rows = recorded(trace, stacks)
        kept = found.count(rows)
    assert (count_rows(rows), count_rows(kept)) == (38, 34)
    assert b"Hits: 4" in b"\n".join(found.lines()).replace(b"    ", b"")


def test_without_histograms_rows_are_left_alone() -> None:
    with defined("p:deposit deposit") as trace:
        found = LiveHistograms(list(trace.infos.values()), trace.controls, LiveProcesses())
        assert found.count(b"anything") == b"anything"
        assert list(found.lines()) == []
