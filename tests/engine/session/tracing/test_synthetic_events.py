"""Synthetic events in a session's trace: defined, made, filtered, silenced, in every output."""

import json
import re
from pathlib import Path
from typing import Final

import pytest
from sessionkit import Guest, loaded

from engine.errors import ProbeError, ProbeSyntaxError
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing

TARGET: Final = Path(__file__).parents[3] / "data" / "events" / "hist_target"
END: Final = (
    "p:t/end {}:0x1040 id=%di:s32 num=%si:s64 name=+0(%dx):string low=%si:s8 flags=%di:u32"
)
MADE: Final = "s:made char[] name; s32 id; s8 low; gfp_t flags; unsigned long[] stack"
MAKES: Final = (
    "hist:keys=id:at=common_stacktrace,ll=low,ff=flags,xx=num"
    ":onchange($xx).made(name,id,$ll,$ff,$at)"
)


def traced(guest: Guest, options: TraceOptions | None = None) -> Tracing:
    tracing = guest.tracing(options)
    tracing.definitions.define(END.format(TARGET))
    tracing.definitions.define(MADE)
    tracing.add_trigger("t", "end", MAKES)
    return tracing


def test_the_text_is_the_kernels() -> None:
    with loaded(TARGET) as guest:
        guest.run(traced(guest))
        lines = guest.text.split("\n")
    at = next(n for n, line in enumerate(lines) if ": made:" in line)
    assert lines[at].endswith(": made: name=ultraviolet id=0 low=72 flags=0 stack=STACK:")
    assert lines[at + 1] == "=> end+0x0/0x1"
    assert sum(": made:" in line for line in lines) == 32
    # Small numbers are printed without their sign, as there.
    assert {" low=202 " in line for line in lines if ": made:" in line} == {True, False}


def test_it_stands_behind_the_event_that_made_it() -> None:
    with loaded(TARGET) as guest:
        guest.run(traced(guest))
        rows = re.findall(r"(\d+): (end|made): ", guest.text)
    assert [name for _, name in rows] == ["end", "made"] * 32
    assert all(rows[n][0] == rows[n + 1][0] for n in range(0, 64, 2))


def test_its_filter_and_its_makers_filter_are_two_things() -> None:
    with loaded(TARGET) as guest:
        tracing = traced(guest)
        tracing.set_filter("synthetic", "made", 'id > 3 && name ~ "*e*" && low < 0')
        tracing.set_filter("t", "end", "id > 100")
        guest.run(tracing)
        found = re.findall(r": (\w+): name=(\w+) id=(\d)", guest.text)
        assert found
        assert all(name == "made" and "e" in text and int(n) > 3 for name, text, n in found)
        assert ": end: (" not in guest.text


@pytest.mark.parametrize("form", ["jsonl", "perfetto", "ctf", "trace.dat", "perf.data"])
def test_every_output_has_them(form: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    with loaded(TARGET) as guest:
        guest.run(traced(guest, TraceOptions(format=form, output=str(path))))
    if form == "jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        made = [row["args"] for row in rows if row["event"] == "synthetic/made"]
        assert len(made) == 32
        assert made[1]["low"] == -54
        assert made[1]["stack"].startswith("STACK:\n=> end+0x0/0x1\n")
    elif form == "ctf":
        assert b"synthetic:made" in (path / "metadata").read_bytes()
    else:
        assert b"made" in path.read_bytes()


def test_definitions_are_refused_with_a_caret() -> None:
    with loaded(TARGET) as guest:
        tracing = traced(guest)
        with pytest.raises(ProbeSyntaxError, match="Event already exists"):
            tracing.definitions.define("s:made u64 other")
        with pytest.raises(ProbeSyntaxError, match="Invalid type") as caught:
            tracing.definitions.define("s:synthetic/new u64 one; float two")
        assert caught.value.column == len("s:synthetic/new u64 one; ")


def test_a_histogram_that_is_read_stays() -> None:
    with loaded(TARGET) as guest:
        tracing = guest.tracing()
        tracing.definitions.define(END.format(TARGET))
        tracing.definitions.define(f"p:t/begin {TARGET}:0x1000 id=%di:s32")
        tracing.definitions.define("s:pair char[] name; s32 id")
        tracing.add_trigger("t", "end", "hist:keys=id")
        tracing.add_trigger("t", "begin", "hist:keys=id:onmatch(t.end).pair(name,id)")
        control = tracing.controls.of(tracing.info("t", "end"))
        # The field of the other event is a variable of a histogram that was added there.
        assert "synthetic_name=name" in list(control.trigger_lines())[1]
        with pytest.raises(ProbeError, match="EBUSY"):
            tracing.add_trigger("t", "end", "!hist:keys=id:synthetic_name=name")
        tracing.add_trigger("t", "begin", "!hist:keys=id:onmatch(t.end).pair(name,id)")
        assert len(control.triggers) == 1


def test_an_event_that_makes_itself_ends() -> None:
    with loaded(TARGET) as guest:
        tracing = guest.tracing()
        tracing.definitions.define(END.format(TARGET))
        tracing.definitions.define("s:again s64 num; s32 id")
        tracing.add_trigger("t", "end", "hist:keys=id:xx=num:onchange($xx).again($xx,id)")
        text = "hist:keys=id:yy=num+1:onchange($yy).again($yy,id)"
        tracing.add_trigger("synthetic", "again", text)
        guest.run(tracing)
        made = guest.text.count(": again: ")
        assert 32 < made <= 32 * 4


def test_a_silent_one_is_made_again() -> None:
    with loaded(TARGET) as guest:
        tracing = traced(guest)
        tracing.synthetics.record_only(())
        tracing.definitions.define(MADE)
        guest.run(tracing)
        assert guest.text.count(": made: ") == 32


def test_lines_that_make_no_sense_have_one_error_each() -> None:
    import random

    rng = random.Random(43)
    pieces = ("keys=id", "vals=num", "x=num", "$x", "+", "-(", ")", "/0", ":", ",", ".", "=",
              "onmax($x)", ".save(", "onmatch(t.end)", ".made(", "name", "sort=", "size=", " if ",
              "nohitcount", ".buckets=", "common_timestamp.usecs", "stacktrace")  # fmt: skip
    said: list[str] = []
    with loaded(TARGET) as guest:
        tracing = guest.tracing()
        tracing.definitions.define(END.format(TARGET))
        tracing.definitions.define(MADE)
        for _ in range(400):
            text = "hist:" + "".join(rng.choices(pieces, k=rng.randrange(1, 9)))
            try:
                tracing.controls.add_trigger(tracing.info("t", "end"), text)
            except ProbeError as error:
                said.append(str(error))
    assert len(said) > 300
    assert all(said)
