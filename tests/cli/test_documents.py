"""`--json` of commands: one object, with what the text says."""

import json
from pathlib import Path
from typing import Any

import pytest
from guestrun import Outcome, run
from sysroot import CHECKOUT

SAMPLES = CHECKOUT / "samples" / "bin" / "x86_64"


def guest(name: str) -> str:
    return str(SAMPLES / name)


def last(done: Outcome) -> Any:
    """The object in the last line of stderr."""
    return json.loads(done.err.splitlines()[-1])


def test_the_end_of_a_run(tmp_path: Path) -> None:
    plain, done = (run("run", *words, guest("crash"), cwd=tmp_path) for words in ((), ("--json",)))
    found = last(done)
    assert (done.code, done.out) == (plain.code, plain.out) == (139, plain.out)
    assert found["kind"] == "run"
    assert found["end"]["code"] == 139
    assert found["end"]["reason"].startswith("killed by SIGSEGV: read at 0x8")
    assert len(found["remarks"]) == 1
    assert found["system_calls"] == 3
    said = [f"kprobe-tui: {'  ' * (at > 0)}{line}" for at, line in enumerate(found["remarks"][0])]
    assert plain.err.splitlines() == said
    done = run("run", "--json", "--max-blocks", "100", guest("sort"), cwd=tmp_path)
    assert last(done)["end"] == {
        "code": 124,
        "reason": "stopped by --max-blocks",
        "limit": "max-blocks",
    }


def test_a_listing_has_the_lines_of_the_text(tmp_path: Path) -> None:
    for words in ((guest("sort"), "swap"), (guest("sort"),)):
        text = run("disasm", *words, cwd=tmp_path).out.splitlines()
        found = json.loads(run("disasm", "--json", *words, cwd=tmp_path).out)
        assert (found["kind"], found["remarks"]) == ("disasm", [])
        assert len(found["insns"]) == len(text)
        for line, each in zip(text, found["insns"], strict=True):
            name = f" <{each['symbol']}+{each['offset']:#x}>" if each["symbol"] else ""
            assert line.startswith(f"{each['address']}{name}: ")
            assert line.endswith(f"  {each['text']}")
            assert bytes.fromhex(each["bytes"]).hex(" ") in line
    (tmp_path / "none").write_bytes(b"")
    done = run("disasm", "--raw", "--arch", "x86_64", "--json", "none", cwd=tmp_path)
    assert json.loads(done.out) == {"kind": "disasm", "insns": [], "remarks": []}


def test_a_comparison_without_an_effect(tmp_path: Path) -> None:
    done = run("diff", "--json", "-e", "p partition", guest("sort"), cwd=tmp_path)
    found = last(done)
    assert done.code == 0
    assert (found["kind"], found["effect"], found["lines"]) == ("diff", False, [])
    assert (found["points"], found["hits"], found["system_calls"]) == (1, 48, 4)
    assert [each["code"] for each in found["ends"]] == [0, 0]
    assert len(done.err.splitlines()) == 1


def test_a_search_of_schedules(tmp_path: Path) -> None:
    done = run("explore", "--json", "--seeds", "50", guest("race"), cwd=tmp_path)
    found = json.loads(done.out)
    assert (done.code, done.err) == (1, "")
    assert (found["kind"], found["differs"], found["in_time"]) == ("explore", True, True)
    assert found["first"]["output"] == "2 threads counted 200 of 200\n"
    assert found["found"]["output"] != found["first"]["output"]
    assert found["cause"]["needed"][0]["left"]["frames"][0].startswith("#0 ")
    words = found["found"]["repeat"]
    assert words[:2] == ["kprobe-tui", "run"]
    assert "--json" not in words
    again = run(*words[1:], cwd=tmp_path)
    assert (again.out, again.code) == (found["found"]["output"], found["found"]["end"]["code"])
    none = run("explore", "--json", "--seeds", "2", guest("recursion"), cwd=tmp_path)
    plain = json.loads(none.out)
    assert (none.code, plain["differs"], plain["found"], plain["cause"]) == (0, False, None, None)


def calls_of(tmp_path: Path, *words: str) -> list[dict[str, Any]]:
    done = run("graph", "--json", "-o", "calls", *words, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    found = json.loads((tmp_path / "calls").read_text())
    assert (found["kind"], found["unit"], found["lost"]) == ("calls", "blocks", 0)
    return list(found["calls"])


def test_calls_of_a_graph(tmp_path: Path) -> None:
    words = ("-f", "factorial", "-f", "main", "--args", "--retval")
    factorial, main = calls_of(tmp_path, *words, guest("recursion"))
    assert (factorial["function"], factorial["args"]) == ("factorial", {"n": 20})
    assert (factorial["ret"], factorial["blocks"], factorial["depth"]) == (
        2432902008176640000,
        19,
        1,
    )
    assert main["start"] < factorial["start"] < factorial["end"] < main["end"]
    assert (main["object"], main["left"], main["ret"]) == ("recursion", False, 0)
    everything = calls_of(tmp_path, guest("recursion"))
    lines = run("graph", "--format", "jsonl", guest("recursion"), cwd=tmp_path).err.splitlines()
    ends = [json.loads(line) for line in lines if "funcgraph_exit" in line]
    assert [each["end"] for each in everything if each["end"] is not None] == [
        each["time"] for each in ends
    ]
    still = {each["function"] for each in everything if each["end"] is None}
    assert "exit" in still
    assert "ret" not in everything[0]


def test_calls_of_the_function_tracer(tmp_path: Path) -> None:
    words = ("--tracer", "function", "--args", "-f", "factorial")
    (call,) = calls_of(tmp_path, *words, guest("recursion"))
    assert (call["caller"], call["args"], call["end"]) == ("main", {"n": 20}, None)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["graph", "--json", "--format", "folded"], "--json and --format: one of them"),
        (["graph", "--json", "--option", "funcgraph-tail"], "--json and --option: one of them"),
    ],
)
def test_bad_usage(words: list[str], why: str, tmp_path: Path) -> None:
    done = run(*words, guest("recursion"), cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert why in done.err


def test_an_error_is_none_of_the_objects(tmp_path: Path) -> None:
    for command in ("run", "disasm", "diff", "explore", "graph"):
        more = ("-f", "x") if command == "diff" else ()
        done = run(command, "--json", *more, "./nowhere", cwd=tmp_path)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("kprobe-tui: ./nowhere: No such file")
