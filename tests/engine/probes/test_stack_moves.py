"""Return probes in Go programs, against the program's own counts of its calls."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from compiled import tool
from goreturns import FUNCTIONS, counted, functions_of, go_program, rows
from guestrun import run

RETURNING = FUNCTIONS[:-2]
LEFT = FUNCTIONS[-2:]


def returns(names: tuple[str, ...]) -> tuple[str, ...]:
    """Words for return probes on functions of package main."""
    return tuple(
        word for name in names for word in ("-e", f"r:g/{name.split('.')[-1]} main.{name}")
    )


def check(program: Path, folder: Path, *words: str) -> tuple[dict[str, int], Counter[str], str]:
    """Trace all returns; the program's own counts, the rows of each event, and what was said."""
    trace = folder / "trace"
    done = run("trace", *words, "-o", str(trace), *returns(FUNCTIONS), str(program), cwd=folder)
    assert done.code == 0, done.err
    counts, seen = counted(done.err), rows(trace.read_text())
    for name in RETURNING:
        assert seen[name.split(".")[-1]] == counts[name], name
    for name in LEFT:
        number = counts[name]
        assert not seen[name]
        assert f"g/{name}: {number} of {number} calls: {number} left by a panic" in done.err
    assert not any(f"g/{name.split('.')[-1]}:" in done.err for name in RETURNING)
    return counts, seen, done.err


def test_every_return_is_seen_once(tmp_path: Path) -> None:
    """Stacks grow, shrink and panic; goroutines go on in other threads."""
    begins = ("-e", "p:g/begins main.grow", "-e", "p:g/shrinks runtime.shrinkstack")
    counts, seen, _ = check(go_program(600), tmp_path, *begins)
    assert counts["grow"] == 8 * 104
    assert seen["begins"] > counts["grow"]  # a function that begins again is hit again
    assert seen["shrinks"]
    threads = {line.split()[0] for line in (tmp_path / "trace").read_text().splitlines()}
    assert len([name for name in threads if name.startswith("returns-")]) > 1


def test_a_stripped_program_is_known_by_its_table(tmp_path: Path) -> None:
    program = go_program(600, "x86_64", "-buildmode=pie")
    address = functions_of(program)["main.grow"][0]
    bare, trace = tmp_path / "bare", tmp_path / "trace"
    subprocess.run([tool("objcopy"), "-S", program, bare], check=True)
    low = 0x400000  # the program's first address is that of offset 0
    words = ("-e", f"r:g/grow {bare}:{address - low:#x}", "-o", str(trace), str(bare))
    done = run("trace", *words, cwd=tmp_path)
    assert rows(trace.read_text())["grow"] == counted(done.err)["grow"]


def test_instances_are_one_a_call(tmp_path: Path) -> None:
    """`maxactive` counts those of all goroutines, and a call that begins again once."""
    trace = tmp_path / "trace"
    words = ("-e", "r20:g/few main.grow", "-o", str(trace), str(go_program(600)))
    done = run("trace", *words, cwd=tmp_path)
    seen, calls = rows(trace.read_text())["few"], counted(done.err)["grow"]
    assert f"g/few: {calls - seen} of {calls} hits missed" in done.err
    assert 20 <= seen < calls


def test_the_graph_has_a_stack_for_each_goroutine(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    functions = tuple(word for name in FUNCTIONS for word in ("-f", f"main.{name}"))
    words = ("--format", "jsonl", "-o", str(trace), *functions, str(go_program(600)))
    done = run("graph", *words, cwd=tmp_path)
    counts = counted(done.err)
    entries: Counter[tuple[str, int]] = Counter()
    exits: Counter[tuple[str, int]] = Counter()
    for line in trace.read_text().splitlines():
        row = json.loads(line)
        name = row["symbol"].split("+")[0].removeprefix("main.")
        if row["event"].endswith("entry"):
            entries[name, row["args"]["depth"]] += 1
        else:
            exits[name, row["args"]["left"]] += 1
    for name in FUNCTIONS:
        calls = sum(count for (one, _), count in entries.items() if one == name)
        assert calls == counts[name], name
        assert exits[name, int(name in LEFT)] == counts[name], name
    # Each worker's 100 calls in a row, and four more in what a panic of depth 5 has deferred.
    assert [entries["grow", depth] for depth in (0, 6, 7, 10, 50, 99)] == [8, 8, 16, 16, 8, 8]
    assert {depth for name, depth in entries if name == "leaf"} == {0}
    assert {depth for name, depth in entries if name == "leave"} == set(range(6))


def test_kernel_mode_ends_the_program_and_says_so(tmp_path: Path) -> None:
    program = go_program(600)
    place = f"r:g/grow {program}:{functions_of(program)['main.grow'][0] - 0x400000:#x}"
    words = ("--mode", "kernel", "-o", "/dev/null", "-e", place, str(program))
    done = run("trace", *words, cwd=tmp_path)
    assert done.code == 2
    assert "unexpected return pc for main.grow" in done.err
    assert "(return-moved)" in done.err
    assert "not back when the program ended" in done.err
    refused = run("trace", "--returns", "mainline", *words[2:], cwd=tmp_path)
    assert refused.code
    assert "return-moved: " in refused.err


@pytest.mark.slow
def test_return_probes_have_no_effect(tmp_path: Path) -> None:
    done = run("diff", *returns(FUNCTIONS), str(go_program(600)), cwd=tmp_path)
    assert done.err.rstrip().endswith("no effect")


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["aarch64", "riscv64"])
def test_other_architectures(arch: str, tmp_path: Path) -> None:
    check(go_program(600, arch), tmp_path)


@pytest.mark.slow
def test_a_million_calls(tmp_path: Path) -> None:
    counts, _, _ = check(go_program(125_000), tmp_path)
    assert sum(counts[name] for name in RETURNING) > 1_000_000
