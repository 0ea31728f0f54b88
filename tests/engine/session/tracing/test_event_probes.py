"""Event probes in a session's trace: on probes of ours, silent, filtered, taken away, checked."""

import json
from pathlib import Path
from typing import Final

import pytest
from guestrun import run
from sessionkit import loaded

from engine.errors import KprobeTuiError, ProbeSyntaxError, UnloggedError
from engine.session.protocol.requests import TraceOptions
from engine.trace.tracepoints import selection

TARGET: Final = Path(__file__).parents[3] / "data" / "events" / "eprobe_target"
BEGIN: Final = f"p:my/begin {TARGET}:0x1000 id=%di:s32 num=%si:s64 name=+0(%dx):string"
CLOSE: Final = "e:shut syscalls/sys_enter_close fd=$fd:s32"


def names(rows: list[str]) -> list[str]:
    return [row.partition(":")[0] for row in rows]


def test_the_other_event_is_recorded_only_where_it_is_asked_for() -> None:
    for more, wanted in (
        ((), ["shut"]),
        (("syscalls/sys_enter_close",), ["sys_close(fd", "shut"]),
    ):
        for lines in ((CLOSE, *more), (*more, CLOSE)):
            with loaded(TARGET) as guest:
                tracing = guest.tracing()
                for line in lines:
                    tracing.definitions.define(line)
                guest.run(tracing)
                assert names(guest.events) == wanted * 6


def test_a_probe_of_a_program_is_stood_on() -> None:
    line = "e:g/of my.begin id=$id:u8 num=$num:s16 c=$name l=+1($name):u8 at=$__probe_ip:x32"
    with loaded(TARGET) as guest:
        tracing = guest.tracing()
        tracing.definitions.define(BEGIN)
        tracing.definitions.define(line + ' if num < 0 || name ~ "*violet"')
        guest.run(tracing)
        rows = [row for row in guest.events if row.startswith("of:")]
    assert rows == [
        'of: (my.begin) id=0 num=-200 c="/nope/red" l=110 at=0x401000',
        'of: (my.begin) id=1 num=-100 c="/nope/green" l=110 at=0x401000',
        'of: (my.begin) id=2 num=0 c="/nope/blue/ultraviolet" l=110 at=0x401000',
        'of: (my.begin) id=5 num=300 c="/nope/blue/ultraviolet" l=110 at=0x401000',
    ]


def test_several_probes_on_one_event_and_their_own_filters() -> None:
    with loaded(TARGET) as guest:
        tracing = guest.tracing(TraceOptions(stack=True))
        tracing.definitions.define(CLOSE)
        tracing.definitions.define('e:named syscalls/sys_enter_close n=$comm t=\\"of"')
        tracing.set_filter("eprobes", "shut", "fd > 1003")
        tracing.add_trigger("eprobes", "named", "hist:keys=t")
        guest.run(tracing)
        rows = [row for row in guest.events if ":" in row]
        tables = list(tracing.controls.tables())
    assert names(rows).count("shut") == 2
    assert names(rows).count("named") == 6
    assert any(b"hitcount:          6" in line for line in tables[0])


def test_a_histogram_makes_an_event_that_a_probe_stands_on() -> None:
    with loaded(TARGET) as guest:
        tracing = guest.tracing()
        for line in (BEGIN, "s:seen s32 id; char[] name", "e:late synthetic.seen $id w=$name"):
            tracing.definitions.define(line)
        tracing.add_trigger("my", "begin", "hist:keys=id:nn=name:onmatch(my.begin).seen(id,$nn)")
        guest.run(tracing)
        rows = [row for row in guest.events if row.startswith(("late", "seen"))]
    assert rows[:2] == [
        "seen: id=0 name=/nope/red",
        'late: (synthetic.seen) arg1=0x0 w="/nope/red"',
    ]
    assert len(rows) == 12


def test_what_is_needed_stays_and_the_rest_goes() -> None:
    with loaded(TARGET) as guest:
        tracing = guest.tracing()
        define = tracing.definitions.define
        for line in (BEGIN, "s:seen s32 id", "e:late synthetic.seen $id", "e:on my.begin"):
            define(line)
        for line in ("-:synthetic/seen", "!seen s32 id", "-:my/begin"):
            with pytest.raises(UnloggedError, match="stands on it"):
                define(line)
        tracing.add_trigger("eprobes", "on", "traceoff:5")
        with pytest.raises(UnloggedError, match="it has triggers"):
            define("-:on")
        tracing.add_trigger("eprobes", "on", "!traceoff:5")
        for line in ("-:late synthetic/seen arg1=$id", "!seen", "-:eprobes/on", "-:my/begin"):
            define(line)
        assert not tracing.infos
        define("s:seen u64 other")  # the name is free again
        guest.run(tracing)
        assert guest.events == []


def test_words_of_the_interface_are_no_event_probes() -> None:
    for line in (
        "edit",
        "export x",
        "e",
        "end",
        "explain 0x40",
        "eval x",
        "elsewhere a",
        "echo a b",
    ):
        assert selection(line) is None, line
    for line in ("e:x a.b", "e:g/x a/b $c", "e a.b", "e .b", "e5:x a.b", " e:", "e8 syscalls/x"):
        assert selection(line) == ("eprobes", line.strip())


BAD: Final = (
    ("e:x", "an event probe is"),
    ("e:x syscalls", "This requires both group and event name to attach"),
    ("e:x syscalls/close", "Attached event does not exist"),
    ("e:x my/other a=$id", "define it before"),
    ("e:x my.begin a=$nothing", "my/begin has $__probe_ip, $id, $num, $name"),
    ("e:x my.begin a=%di", "my/begin has"),
    ("e:x my.begin a=$name:u64", "the field is a string"),
    ("e:x my.begin a=$name:symstr", "the field is a string"),
    ("e:x my.begin a=$id:f64", "Unknown type"),
    ("e:x my.begin if", "No filter rule after 'if'"),
    ("e:x my.begin if id ==", "of the fields of my/begin"),
    ("e:my/begin my.begin", "already used"),
    ("e:syscalls/sys_exit_read my.begin", "already used"),
    ("e:x eprobes.there", "no event probe stands on"),
    ("p:eprobes/there begin", "already used"),
    ("!e:x my.begin", "no such event"),
    ("!x:y my.begin", "begins with p or r, or is"),
)


def test_bad_lines_have_one_error_each() -> None:
    with loaded(TARGET) as guest:
        tracing = guest.tracing()
        tracing.definitions.define(BEGIN)
        tracing.definitions.define("e:there my.begin")
        for line, why in BAD:
            with pytest.raises(KprobeTuiError) as caught:
                tracing.definitions.define(line)
            text = str(caught.value)
            assert why in text, (line, text)
            assert isinstance(caught.value, ProbeSyntaxError) is ("Command:" in text)
        assert [str(info) for info in tracing.infos.values()] == ["my/begin", "eprobes/there"]


def test_check_judges_lines_without_a_place(tmp_path: Path) -> None:
    lines = (BEGIN, "s:seen s32 id; char[] w", "e:a my.begin $id", "e:b synthetic/seen $w")
    options = [word for line in lines for word in ("-e", line)]
    found = run("check", *options, str(TARGET), cwd=tmp_path)
    assert found.code == 0, found
    assert "e:eprobes/b synthetic.seen arg1=$w: accepted, without a place" in found.out
    more = (*options, "-e", "e:c my.begin $no", "--json")
    rows = json.loads(run("check", *more, str(TARGET), cwd=tmp_path).out)
    assert [row["verdict"] for row in rows] == ["ok"] * 4 + ["rejected"]
    assert rows[-1]["column"] == 13


def test_what_is_not_recorded_is_not_described(tmp_path: Path) -> None:
    words = ("-e", CLOSE, "-e", "syscalls/sys_exit_close", "--describe")
    found = run("trace", *words, str(TARGET), cwd=tmp_path)
    formats = [line for line in found.out.splitlines() if line.endswith("/format")]
    assert formats == ["# events/eprobes/shut/format", "# events/syscalls/sys_exit_close/format"]
