"""Stores to watched expressions as events of a trace."""

import json
import re
from pathlib import Path

import pytest
from cguest import compiled_from
from guestrun import run
from sessionkit import events, loaded
from sysroot import CHECKOUT

from engine.errors import ProbeError
from engine.session.protocol.requests import ProbeRequest, TraceOptions

SOURCE = CHECKOUT / "tests" / "data" / "watch" / "kinds.c"
IA64 = CHECKOUT / "samples" / "bin" / "ia64" / "syscalls"


def traced(*watches: str, options: TraceOptions | None = None, form: str = "ftrace") -> str:
    """The trace of stores, as text."""
    with loaded(compiled_from(SOURCE, "x86_64")) as guest:
        tracing = guest.tracing(options or TraceOptions(format=form))
        tracing.definitions.place(ProbeRequest(watches=watches))
        guest.run(tracing)
        return guest.text


def rows(text: str) -> list[str]:
    """Events without addresses."""
    return [
        re.sub(r"0x[0-9a-f]+/0x[0-9a-f]+|address=0x[0-9a-f]+ ", "", row) for row in events(text)
    ]


def test_stores_to_variables_of_many_types() -> None:
    found = rows(traced("count", "letter", "*&next", "ratio", "spot", "spot.y", "name"))
    assert found == [
        'count: (main+) size=4 old=0 new=-5 by=""',
        'letter: (main+) size=1 old=0 new=97 by=""',
        'next: (main+) size=8 old=0x0 new=0x1000 by=""',
        'ratio: (main+) size=8 old="0" new="2.5" by=""',
        'spot: (main+) size=8 old="{x = 0, y = 0}" new="{x = 0, y = 3}" by=""',
        'spot_y: (main+) size=8 old=0 new=3 by=""',
        'spot: (main+) size=8 old="{x = 0, y = 3}" new="{x = 4, y = 3}" by=""',
        'name: (main+) size=1 old="\\"\\\\000\\\\000\\"" new="\\"a\\\\000\\"" by=""',
    ]


def test_bytes_without_a_type() -> None:
    with loaded(compiled_from(SOURCE, "x86_64")) as guest:
        module = guest.session.modules.main
        assert module is not None
        at = module.symbols.find_all("spot")[0].address
    found = rows(traced(f"{at:#x},16", f"{at + 8:#x},2"))
    assert [row.partition(": ")[0] for row in found] == [
        f"at_{at:#x}_16".replace("at_0x", "at_0x"),
        f"at_{at + 8:#x}_2",
        f"at_{at:#x}_16",
    ]
    assert found[0].endswith(f'old="{"00" * 16}" new="{"00" * 8}03{"00" * 7}" by=""')


def test_a_program_without_debug_information_has_symbols() -> None:
    with loaded(IA64) as guest:
        tracing = guest.tracing()
        tracing.definitions.place(ProbeRequest(watches=("(char[8])word",)))
        with pytest.raises(ProbeError, match="its size is not known; ADDR,LEN says it"):
            tracing.definitions.place(ProbeRequest(watches=("word",)))


def test_filters_hold_and_who_wrote_is_told() -> None:
    text = traced("count", "count", options=TraceOptions(profile=True))
    assert len(events(text)) == 2
    assert re.search(r"count_2 +1 +0", text)
    found = json.loads(traced("input", form="jsonl"))
    assert found["args"]["by"].startswith("pread64(3, 0x")
    assert found["args"]["new"] == int.from_bytes(b"\x7fELF", "little")
    assert found["event"] == "watch/input"


def test_a_new_program_is_not_watched_and_that_is_told() -> None:
    program = compiled_from(SOURCE.with_name("again.c"), "x86_64")
    with loaded(program) as guest:
        tracing = guest.tracing()
        tracing.definitions.place(ProbeRequest(watches=("passes",)))
        reports = guest.run(tracing)
    assert len(events(guest.text)) == 1
    assert reports.exit_code == 7
    lines = [line for report in reports.remarks for line in report.lines]
    assert lines == ["the guest began another program; watched until then:", "passes"]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("nosuch", 'No symbol "nosuch" in current context.'),
        ("main", "it is nothing in memory"),
        ("5", "it is nothing in memory"),
        ("count + 1", "it is nothing in memory"),
        ("count = 1", "an expression changes nothing here"),
        ("count,0", "a length of 0 bytes"),
        ("*(int *)0,", "A syntax error"),
        ("next->x", "Attempt to extract a component of a value that is not a structure pointer."),
        ("**next", "cannot read memory at 0x0"),
    ],
)
def test_an_expression_that_names_no_memory_is_refused(expression: str, why: str) -> None:
    with loaded(compiled_from(SOURCE, "x86_64")) as guest, pytest.raises(ProbeError) as raised:
        guest.tracing().definitions.place(ProbeRequest(watches=(expression,)))
    assert str(raised.value).startswith(f"--watch {expression}: {why}")


def test_a_refusal_is_one_line_and_bad_usage(tmp_path: Path) -> None:
    done = run("trace", "--watch", "nosuch", str(compiled_from(SOURCE, "x86_64")), cwd=tmp_path)
    assert done.code == 2
    assert done.err == 'kprobe-tui: --watch nosuch: No symbol "nosuch" in current context.\n'
