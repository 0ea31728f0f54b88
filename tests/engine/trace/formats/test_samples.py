"""The report of samples, and what other formats make of them."""

import json
import struct
import zlib
from typing import Any

from protowire import fields

from engine.arch.program import ROW_HEAD, FieldType, ValueKind, row_head
from engine.trace.formats import format_named
from engine.trace.formats.base import MappedFile, Names
from engine.trace.rows import Column, EventInfo, pack_row, stack_event
from engine.trace.sample import is_sample, sample_info

SAMPLE, STACK = sample_info(1), stack_event(2)
OTHER = EventInfo(3, "kprobes", "p", ())
TABLE = {1: SAMPLE, 2: STACK, 3: OTHER}
NAMES = Names(
    symbol=lambda at: f"f{at >> 8:x}+0x0/0x100",
    comm={7: b"one", 8: b"t w;o"}.get,
    process=lambda thread: 7,
    file=lambda at: MappedFile("/usr/bin/prog", 0, 1 << 20, 0, name="/bin/prog"),
)


def sample(thread: int, *stack: int, ticks: int = 10, event: EventInfo = SAMPLE) -> bytes:
    values = (ticks,) if event is SAMPLE else ()
    words = ROW_HEAD + len(stack)
    first, second = row_head(STACK.id, words)
    row = struct.pack(f"<II{2 + len(stack)}Q", first, second | thread, 5, stack[0], *stack)
    return pack_row(event, thread, 5, stack[0], values) + row


ROWS = (
    sample(7, 0x110, 0x201, 0x301),
    sample(7, 0x110, 0x201, 0x301),
    sample(8, 0x110, 0x1FF),
    sample(8, 0x310, ticks=30),
    sample(7, 0x900, event=OTHER),
)


def report(*options: str) -> Any:
    form = format_named("samples")(TABLE, NAMES, options)
    half = len(ROWS) // 2
    assert form.rows(b"".join(ROWS[:half])) == b""
    again = format_named("samples")(TABLE, NAMES, options)
    again.restore(json.loads(json.dumps(form.state())))
    again.rows(b"".join(ROWS[half:]))
    again.lost(4)
    out = again.end()
    return json.loads(out) if "json" in options else out.decode().splitlines()


def test_a_function_has_what_it_executes_itself_and_what_all_do_that_it_calls() -> None:
    plain = report("json")
    assert (plain["samples"], plain["total"], plain["lost"]) == (4, 60, 4)
    found = {(each["name"], each["function"]): each for each in plain["functions"]}
    shares = {key: (each["self"], each["total"]) for key, each in found.items()}
    assert shares == {
        ("one", "f1"): (20, 20),
        ("one", "f2"): (0, 20),
        ("one", "f3"): (0, 20),
        ("t w;o", "f1"): (10, 10),  # once, although it is there twice
        ("t w;o", "f3"): (30, 30),
    }
    assert {each["object"] for each in plain["functions"]} == {"prog"}
    assert [(each["thread"], each["self"]) for each in plain["threads"]] == [(7, 20), (8, 40)]


def test_threads_are_told_apart_by_choice() -> None:
    keys = {(each["thread"], each["function"]) for each in report("json", "threads")["functions"]}
    assert keys == {(7, "f1"), (7, "f2"), (7, "f3"), (8, "f1"), (8, "f3")}


def test_the_text_has_shares_and_a_table_of_threads() -> None:
    assert report() == [
        "# 4 samples of 60 blocks, in 2 threads of 1 process",
        "# 4 events lost",
        "#",
        "#    self    total      blocks  process  file  function",
        "   50.00%   50.00%          30  t w;o    prog  f3",
        "   33.33%   33.33%          20  one      prog  f1",
        "   16.67%   16.67%          10  t w;o    prog  f1",
        "    0.00%   33.33%           0  one      prog  f2",
        "    0.00%   33.33%           0  one      prog  f3",
        "#",
        "#   share       blocks  process   thread  name",
        "   33.33%          20        7        7  one",
        "   66.67%          40        7        8  t w;o",
    ]


def test_folded_stacks_have_ticks_and_no_event_where_a_sample_is() -> None:
    form = format_named("folded")(TABLE, NAMES)
    form.rows(b"".join(ROWS))
    assert form.end().decode().splitlines() == [
        "one;f3;f2;f1 20",
        "one;f9;p 1",
        "t_w:o;f1;f1 10",
        "t_w:o;f3 30",
    ]


def test_a_profile_has_samples_and_ticks() -> None:
    form = format_named("pprof")(TABLE, NAMES)
    form.rows(b"".join(ROWS[:4]))
    message = list(fields(zlib.decompress(form.end(), 31)))
    samples = [dict(fields(value)) for number, value in message if number == 2]
    assert sorted(tuple(each[2]) for each in samples) == [(1, 10), (1, 30), (2, 20)]
    kinds = [dict(fields(value)) for number, value in message if number == 1]
    texts = [value for number, value in message if number == 6]
    assert [texts[kind[1]] for kind in kinds] == [b"events", b"time"]


def test_only_the_event_of_samples_is_one() -> None:
    number = Column("period", FieldType(ValueKind.SIGNED, 8), ROW_HEAD)
    mine = EventInfo(4, "sample", "blocks", (number,), ROW_HEAD + 1)
    assert is_sample(SAMPLE)
    assert not is_sample(mine)
    assert is_sample(EventInfo.from_json(json.loads(json.dumps(SAMPLE.to_json()))))
