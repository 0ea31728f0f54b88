"""Whole runs written for other tools: they read what our own formats say of the same run."""

import json
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from foreign import babeltrace, ctf_fields, output_of, perf_script, tool, trace_cmd
from guestrun import run
from protowire import fields
from sysroot import CHECKOUT

SAMPLES = CHECKOUT / "samples" / "bin"
EVENTS = {
    "x86_64": ("p:demo/ack ackermann m=%di:u32 n=%si:u32", "r:demo/back ackermann r=$retval:s64"),
    "aarch64": ("p:demo/ack ackermann m=%x0:u32 n=%x1:u32", "r:demo/back ackermann r=$retval:s64"),
}


def traced(folder: Path, form: str, arch: str, *words: str) -> Path:
    """A trace of a sample in a format."""
    out = folder / f"{arch}.{form}"
    given = [word for line in EVENTS[arch] for word in ("-e", line)]
    guest = str(SAMPLES / arch / "recursion")
    done = run("trace", "--format", form, "-o", str(out), *words, *given, guest, cwd=folder)
    assert done.code == 0, done.err
    return out


def said(folder: Path, arch: str) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """The events of the same run, and the names of the functions behind each."""
    lines = traced(folder, "jsonl", arch, "--stack").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    stacks = [
        [frame["symbol"].partition("+0x")[0] for frame in row["stack"]]
        for row in rows
        if "stack" in row
    ]
    return [row for row in rows if "stack" not in row], stacks


@pytest.mark.parametrize("arch", ["x86_64", pytest.param("aarch64", marks=pytest.mark.slow)])
def test_perf_prints_events_and_their_callers(arch: str, tmp_path: Path) -> None:
    events, stacks = said(tmp_path, arch)
    got = perf_script(traced(tmp_path, "perf.data", arch, "--stack"), chains=True)
    assert len(got) == len(events) == len(stacks)
    for line, event, stack in zip(got, events, stacks, strict=True):
        assert (f"demo/{line.name}", line.time, line.thread, line.comm) == (
            event["event"], event["time"], event["tid"], event["comm"],
        )  # fmt: skip
        text, *names = line.text.split(";")
        for name, value in event["args"].items():
            assert f" {name}={value}" in text
        assert names == stack


@pytest.mark.slow
def test_perf_reports_who_calls_and_knows_the_file(tmp_path: Path) -> None:
    out = str(traced(tmp_path, "perf.data", "x86_64", "--stack"))
    report = output_of(tool("perf"), "report", "--stdio", "-i", out)
    assert re.search(r"Samples: 20 +of event 'demo:ack'", report)
    assert re.search(r"100\.00% +recursion +recursion +\[\.\] ackermann", report)
    maps = output_of(tool("perf"), "script", "--show-mmap-events", "-i", out)
    sample = SAMPLES / "x86_64" / "recursion"
    ident = output_of("readelf", "-n", str(sample)).partition("Build ID: ")[2].split()[0]
    assert f"<{ident}>" in maps
    assert maps.count("PERF_RECORD_MMAP2") == 1


def test_trace_cmd_names_functions_of_stacks(tmp_path: Path) -> None:
    events, stacks = said(tmp_path, "aarch64")
    got = trace_cmd(traced(tmp_path, "trace.dat", "aarch64", "--stack"))
    names = [line.name for line in got if line.name != "kernel_stack"]
    assert [f"demo/{name}" for name in names] == [event["event"] for event in events]
    shown = [re.findall(r"=> (\S+) \(", line.text) for line in got if line.name == "kernel_stack"]
    assert shown == stacks


@pytest.mark.slow
def test_trace_cmd_draws_the_graph_of_calls(tmp_path: Path) -> None:
    guest = str(SAMPLES / "x86_64" / "recursion")
    words = ("-o", "out", "--format", "trace.dat", guest)
    assert run("graph", *words, cwd=tmp_path).code == 0
    assert run("graph", "-o", "text", "--option", "nofuncgraph-duration", guest, cwd=tmp_path)
    text = output_of(tool("trace-cmd"), "report", "-O", "fgraph:tailprint", "-i",
                     str(tmp_path / "out"))  # fmt: skip
    drawn = [line.partition("|  ")[2] for line in text.splitlines() if "funcgraph_" in line]
    mine = [
        line.partition(") ")[2].strip()
        for line in (tmp_path / "text").read_text().splitlines()
        if not line.startswith("#")
    ]
    calls = [line.strip().replace(" ()", "()") for line in drawn]
    ends = re.compile(r"\} /\* (\S+) \*/")
    assert [ends.sub("}", call) for call in calls] == [line.partition(" /*")[0] for line in mine]


@pytest.mark.slow
def test_babeltrace_prints_values_and_stacks(tmp_path: Path) -> None:
    events, stacks = said(tmp_path, "x86_64")
    got = babeltrace(traced(tmp_path, "ctf", "x86_64", "--stack"))
    mine = [line for line in got if line.name != "user_stack"]
    for line, event in zip(mine, events, strict=True):
        found = ctf_fields(line.text)
        assert {name: found[name] for name in event["args"]} == event["args"]
    frames = [ctf_fields(line.text)["symbols"] for line in got if line.name == "user_stack"]
    assert [re.findall(r"'(\w+)\+0x", str(each)) for each in frames] == stacks


@pytest.mark.slow
def test_a_profile_counts_what_folded_stacks_count(tmp_path: Path) -> None:
    data = traced(tmp_path, "pprof", "x86_64").read_bytes()
    message = list(fields(zlib.decompress(data, 31)))
    strings = [value.decode() for number, value in message if number == 6]
    by_kind = {
        kind: [list(fields(value)) for number, value in message if number == kind]
        for kind in (2, 3, 4, 5)
    }
    functions: dict[int, tuple[str, str]] = {}
    for made in map(dict, by_kind[5]):
        functions[made[1]] = strings[made[2]], strings[made[4]]
    locations = {made[1]: dict(fields(made[4]))[1] for made in map(dict, by_kind[4])}
    counts: Counter[str] = Counter()
    for sample in by_kind[2]:
        pairs = [dict(fields(value)) for field, value in sample if field == 3]
        labels = {strings[pair[1]]: strings[pair[2]] for pair in pairs}
        places = packed(dict(sample)[1])
        (count,) = packed(dict(sample)[2])
        names = [functions[locations[place]][0] for place in reversed(places)]
        event = labels["event"].partition(":")[2]
        counts[";".join((labels["comm"], *names, event))] += count
    folded = traced(tmp_path, "folded", "x86_64").read_text().splitlines()
    parts = (line.rpartition(" ") for line in folded)
    assert counts == {stack: int(number) for stack, _, number in parts}
    assert ("ackermann", "samples/recursion.c") in functions.values()
    (mapping,) = map(dict, by_kind[3])
    assert strings[mapping[5]] == str(SAMPLES / "x86_64" / "recursion")
    assert len(strings[mapping[6]]) == 40


def packed(data: bytes) -> list[int]:
    """The numbers of a packed field."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


@pytest.mark.slow
def test_programs_and_libraries_of_several_processes(tmp_path: Path) -> None:
    words = ("-o", "out", "--format", "perf.data", "--stack", "-e", "syscalls/sys_enter_openat")
    guest = ("/bin/sh", "-c", "/bin/cat /etc/hostname /dev/null")
    assert run("trace", *words, *guest, cwd=tmp_path).code == 0
    lines = perf_script(tmp_path / "out", chains=True)
    assert {line.comm for line in lines} >= {"sh", "cat"}
    assert any("_dl_" in line.text and line.comm == "cat" for line in lines)
    told = output_of(tool("perf"), "script", "--show-task-events", "-i", str(tmp_path / "out"))
    assert re.search(r"PERF_RECORD_COMM exec: cat:", told)


@pytest.mark.slow
def test_a_ring_that_is_kept_is_written_at_the_end(tmp_path: Path) -> None:
    got = trace_cmd(traced(tmp_path, "trace.dat", "x86_64", "--buffer", "5", "--overwrite"))
    assert len(got) == 5


@pytest.mark.parametrize("form", ["trace.dat", pytest.param("ctf", marks=pytest.mark.slow)])
def test_what_is_no_stream_needs_a_file(form: str, tmp_path: Path) -> None:
    words = ("trace", "--format", form, "-e", EVENTS["x86_64"][0])
    guest = str(SAMPLES / "x86_64" / "recursion")
    done = run(*words, guest, cwd=tmp_path)
    assert done.code == 2
    assert f"--format {form} needs -o" in done.err
    done = run(*words, "-o", "/dev/stdout", guest, cwd=tmp_path)
    assert done.code == 2
    assert "needs a file of its own" in done.err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    done = run(*words, "-o", "full", guest, cwd=tmp_path)
    assert done.code == 2
    assert (tmp_path / "full" / "mine").read_text() == "mine"
    assert "Traceback" not in done.err
