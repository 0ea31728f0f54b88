"""Words for goroutines: info goroutines, goroutine N, goroutine N WORD, goroutine all WORD."""

import re

import pytest
from gdbwords import said
from goroutinekit import go_program

from engine.session.protocol.config import GuestConfig

_AT = ("break main.place", "run")


def sections(text: str) -> list[str]:
    """What each of some words printed; they are told apart by `echo`."""
    return [part.strip("\n") for part in text.split("-- next\n")[1:]]


def answered(program: str, *words: str) -> list[str]:
    apart = [line for word in words for line in ("echo -- next\\n", word)]
    return sections(said(GuestConfig(program), *_AT, *apart))


@pytest.mark.slow
def test_goroutines_are_listed_and_looked_at() -> None:
    program = go_program("states")
    listed, current, *_ = answered(program, "info goroutines", "goroutine")
    rows = listed.split("\n")
    assert rows[0].startswith("*  1 running  main.place at ")
    assert rows[0].endswith(" (thread 3)")
    assert current == "[Current goroutine is 1 (running)]"
    row = next(row for row in rows if "main.deep" in row)
    match = re.fullmatch(
        r" +(\d+) waiting  runtime\.gopark \[chan receive\] in main\.deep at .*/states\.go:(\d+)",
        row,
    )
    assert match is not None
    number = match[1]
    words = (
        f"goroutine {number} bt 4",
        "frame",
        f"goroutine {number}",
        "up 3",
        "p $pc",
        "info registers rax",
        "p $rip = 1",
        "thread",
        "goroutine",
        "goroutine all bt -1",
        "thread 3",
        "goroutine 99 bt",
        "goroutine all",
    )
    found = dict(zip(words, answered(program, *words), strict=False))
    frames = found[f"goroutine {number} bt 4"].split("\n")
    assert re.findall(r"in (\S+) ", "\n".join(frames))[-1] == "main.deep"
    assert found["frame"].startswith("#0  main.place ")  # the goroutine was looked at for a while
    assert found[f"goroutine {number}"].startswith(
        f"[Switching to goroutine {number} (chan receive)]\n#0  runtime.gopark ("
    )
    assert found["up 3"].startswith("#3  ")
    assert "in main.deep (" in found["up 3"]
    assert "<main.deep+" in found["p $pc"]
    assert found["info registers rax"].split() == ["rax", "<not", "saved>"]
    assert "No thread runs the goroutine" in found["p $rip = 1"]
    assert found["thread"] == "[Current thread is 3 (Thread 1000.1002)]"
    assert found["goroutine"] == f"[Current goroutine is {number} (chan receive)]"
    outermost = found["goroutine all bt -1"].strip().split("\n\n")
    assert len(outermost) == len(rows)
    for part, row in zip(outermost, rows, strict=True):
        heading, frame = part.split("\n")
        assert re.match(rf"Goroutine {row[1:].split()[0]} \(.+\):$", heading)
        ends = r"#\d+ +0x\w+ in (runtime\.goexit|main\.main) \(\) at "
        last = re.match(ends, frame)
        assert last is not None
        assert (last[1] == "main.main") == (row[1:].split()[0] == "1")  # as gdb ends there
    assert "main.place " in found["thread 3"]
    assert found["goroutine 99 bt"] == "! No goroutine 99."
    assert found["goroutine all"] == "! goroutine NUMBER [WORD], or goroutine all WORD"


@pytest.mark.slow
def test_who_waits_in_a_channel_is_named_and_not_written_out() -> None:
    """As delve has it: two steps into what a channel points at."""
    program = go_program("states")
    (listed,) = answered(program, "info goroutines")
    number = next(row for row in listed.split("\n") if "in main.receives at" in row).split()[0]
    *_, shown = answered(program, f"goroutine {number}", "frame function main.receives", "p c")
    assert "first: *(*sudog<int>)(0x" in shown
    assert "recvq: waitq<int> {" in shown
