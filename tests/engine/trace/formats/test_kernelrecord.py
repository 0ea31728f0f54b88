"""Formats of other tools, read by these tools: the same events, times, threads and values."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from foreign import Line, babeltrace, ctf_fields, output_of, perf_script, tool, trace_cmd, write
from randomrows import COMMS, EVENTS, NAMES, STRING, arrays, event, pieces, rows

from engine.trace.formats import format_named
from engine.trace.formats.ftrace import FtraceFormat
from engine.trace.rows import decode, pack_row


def expected(found: list[bytes]) -> list[Line]:
    """By our own text of ftrace's, which is compared with a kernel's elsewhere."""
    form = FtraceFormat(EVENTS, NAMES)
    lines: list[Line] = []
    for each in found:
        happened = decode(EVENTS, each)
        text = form.rows(each).decode().rstrip("\n")
        shown = re.split(r"(?:^|: )\w+: ", text, maxsplit=1)[-1]
        comm = COMMS[happened.thread_id].decode()
        lines.append(Line(comm, happened.thread_id, happened.time, happened.name, shown))
    return lines


def as_kernels_print(line: Line) -> str:
    """Places in hexadecimal alone, as the print format of a probe's event has them."""
    text = line.text.replace("=(fault)", '="(fault)"').replace(",(fault)", ',"(fault)"')
    text = text.replace("{(fault)", '{"(fault)"')
    return re.sub(
        r"\((?:0x[0-9a-f]+(?: <- )?)+\)", lambda m: m[0].replace("0x", ""), text, count=1
    )


READERS = [("trace.dat", trace_cmd), ("perf.data", perf_script)]


@pytest.mark.parametrize(("name", "read"), READERS, ids=["trace.dat", "perf.data"])
@pytest.mark.parametrize("seed", [1, 2])
def test_tools_of_the_kernel_print_the_same(
    name: str, read: Callable[[Path], list[Line]], seed: int, tmp_path: Path
) -> None:
    found = rows(seed)
    write(format_named(name)(EVENTS, NAMES), pieces(found), tmp_path / "out")
    got = read(tmp_path / "out")
    want = expected(found)
    assert len(got) == len(want)
    for mine, theirs in zip(want, got, strict=True):
        assert (theirs.comm, theirs.thread, theirs.time, theirs.name) == (
            mine.comm, mine.thread, mine.time, mine.name,
        )  # fmt: skip
        # System calls and the scheduler have print formats or plugins that differ in each tool.
        if mine.name in ("plain", "numbers", "back", "texts", "lists", "bits"):
            assert theirs.text == as_kernels_print(mine)


@pytest.mark.parametrize("seed", [1, 2])
def test_babeltrace_reads_the_same(seed: int, tmp_path: Path) -> None:
    found = rows(seed)
    write(format_named("ctf")(EVENTS, NAMES), pieces(found), tmp_path / "out")
    got = babeltrace(tmp_path / "out")
    assert len(got) == len(found)
    for data, line in zip(found, got, strict=True):
        happened = decode(EVENTS, data)
        assert (line.thread, line.time, line.name) == (
            happened.thread_id, happened.time, happened.name,
        )  # fmt: skip
        assert line.comm == COMMS[happened.thread_id].decode()
        fields = ctf_fields(line.text)
        places = [happened.address]
        if happened.returned_to is not None:
            places.append(happened.returned_to)
        assert list(fields.values())[: len(places)] == places
        for column, each in zip(EVENTS[happened.id].columns, happened.values, strict=True):
            shown = each if isinstance(each, tuple) else (each,)
            texts = ["(fault)" if one is None else one for one in shown]
            plain = [one.decode() if isinstance(one, bytes) else one for one in texts]
            name = column.name.removeprefix("_") if column.name.startswith("__") else column.name
            name = column.name if column.name in fields else name
            assert fields[name] == (plain if column.type.count else plain[0]), column


@pytest.mark.parametrize("name", ["trace.dat", "perf.data", "ctf"])
def test_missing_events_are_told(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(format_named(name)(EVENTS, NAMES), pieces(rows(3, 10)), out, lost=77)
    if name == "trace.dat":
        assert "[77 EVENTS DROPPED]" in output_of(tool("trace-cmd"), "report", "-i", str(out))
    elif name == "perf.data":
        text = output_of(tool("perf"), "script", "--show-lost-events", "-i", str(out))
        assert "lost 77" in text
    else:
        text = output_of(tool("babeltrace2"), str(out), errors=True)
        assert "discarded 77 events" in text


@pytest.mark.parametrize(("name", "read"), READERS, ids=["trace.dat", "perf.data"])
def test_an_event_that_is_too_long_is_missing(
    name: str, read: Callable[[Path], list[Line]], tmp_path: Path
) -> None:
    long = event(1, "long", arrays(STRING, 40))
    texts = [b"y" * 3000 + b"\0"] * 40
    data = [
        pack_row(long, 77, 1, 0x401130, [b"a\0"] * 40),
        pack_row(long, 77, 2, 0x401130, texts),
        pack_row(long, 77, 3, 0x401130, [b"b\0"] * 40),
    ]
    write(format_named(name)({1: long}, NAMES), [b"".join(data)], tmp_path / "out")
    assert [line.time for line in read(tmp_path / "out")] == [1, 3]


@pytest.mark.parametrize("name", ["trace.dat", "perf.data"])
def test_a_trace_without_events_is_a_whole_one(name: str, tmp_path: Path) -> None:
    write(format_named(name)(EVENTS, NAMES), [], tmp_path / "out")
    assert dict(READERS)[name](tmp_path / "out") == []


def test_time_that_goes_back_begins_a_page(tmp_path: Path) -> None:
    data = [pack_row(EVENTS[1], 77, time, 0x401130, []) for time in (50, 7, 8, 1 << 62, 3)]
    write(format_named("trace.dat")(EVENTS, NAMES), [b"".join(data)], tmp_path / "out")
    assert [line.time for line in trace_cmd(tmp_path / "out")] == [50, 7, 8, 1 << 62, 3]
