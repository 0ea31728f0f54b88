"""`trace --instance NAME`: several sets of events over the same run and the same points."""

import json
import re
from pathlib import Path

import pytest
from guestrun import run

RECURSION = str(Path("samples/bin/x86_64/recursion").resolve())


def test_each_has_its_own_events_filters_buffer_and_output(tmp_path: Path) -> None:
    """The same points for all of them; what one does is nothing to the others."""
    words = ("-e", "p:g/f fibonacci n=%di", "-o", "main")
    few = ("--instance", "few", "-e", "p:g/f fibonacci n=%di:u32", "--filter", "g/f: n == 3")
    last = ("--instance=last", "-rfactorial", "-f", "fib*", "--buffer=4", "--overwrite")
    form = ("--format", "jsonl", "-olast", "--trigger", "kprobes/r_factorial_0: traceoff")
    more = ("--seed", "3")  # is the run's, wherever it stands
    done = run("trace", *words, *few, "-o", "few", *last, *form, *more, RECURSION, cwd=tmp_path)
    alone = run("trace", *words, "--seed", "3", RECURSION, "-o", "alone", cwd=tmp_path)
    assert (done.code, done.out) == (alone.code, alone.out)
    texts = {name: (tmp_path / name).read_text("utf-8") for name in ("main", "few", "last")}
    assert texts["main"].count(" f: ") == 987
    numbers = re.findall(r" f: .* n=(\w+)$", texts["few"], re.M)
    assert set(numbers) == {"3"}
    assert 0 < len(numbers) == texts["few"].count(" f: ") < 987
    rows = [json.loads(line) for line in texts["last"].splitlines()]
    events = [row["event"] for row in rows if "event" in row]
    assert events == ["kprobes/r_factorial_0"]  # behind which its trace is off, and no other


def test_one_by_itself_records_the_same(tmp_path: Path) -> None:
    event = ("-e", "p:g/f fibonacci n=%di")
    run("trace", *event, "-o", "alone", RECURSION, cwd=tmp_path)
    beside = ("--instance", "other", *event, "-o", "other")
    run("trace", *event, "-o", "main", *beside, RECURSION, cwd=tmp_path)
    run("trace", "--instance", "only", *event, "-o", "only", RECURSION, cwd=tmp_path)
    alone = (tmp_path / "alone").read_bytes()
    assert alone.count(b"\n") > 100
    for name in ("main", "other", "only"):
        assert (tmp_path / name).read_bytes() == alone


def test_hits_and_misses_are_told_once(tmp_path: Path) -> None:
    words = ("-e", "p:g/f fibonacci", "--instance", "a", "-e", "p:g/h main", "-o", "a")
    done = run("trace", "--profile", "-o", "main", *words, RECURSION, cwd=tmp_path)
    assert done.code == 0
    assert " h " not in (tmp_path / "main").read_text("utf-8")
    assert "# profile" not in (tmp_path / "a").read_text("utf-8")
    lines = run("trace", "--list", *words, RECURSION, cwd=tmp_path).out.splitlines()
    assert lines == ["p:g/f fibonacci", "# instance a", "p:g/h main"]
    described = run("trace", "--describe", *words, RECURSION, cwd=tmp_path).out
    assert "# events/g/f/format" in described
    assert "# instances/a/events/g/h/filter" in described


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--instance a -f main", "--instance a needs a -o FILE of its own"),
        ("--instance a -o x", "--instance a: nothing to trace"),
        ("--instance -f main", "--instance needs a NAME"),
        ("--instance= -f main", "--instance needs a NAME"),
        (
            "--instance a -f main -o x --instance a -f main -o y",
            "each --instance needs a name of its own",
        ),
        (
            "--instance a -f main -o x --instance b -f main -o x",
            "-o x: -o x writes it, too",
        ),
        (
            "--instance a -f main -o x --overwrite",
            "--overwrite needs --buffer N",
        ),
        (
            "--instance a -f main -o x --buffer no",
            "Invalid value for '--buffer'",
        ),
        (
            "--instance a -f nothing* -o x",
            "-f nothing*: no function matches",
        ),
        ("-e", "Option '-e' requires an argument"),
    ],
)
def test_what_is_wrong(tmp_path: Path, words: str, why: str) -> None:
    guest = () if words == "-e" else (RECURSION,)
    done = run("trace", *words.split(), *guest, cwd=tmp_path)
    assert done.code == 2
    assert why in done.err
