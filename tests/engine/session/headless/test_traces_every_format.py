"""Every output format of every command that has `--format`: its reader finds the same events."""

import json
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckquery
import pytest
from foreign import babeltrace, perf_script, trace_cmd
from guestrun import run
from protowire import fields, packets
from sysroot import CHECKOUT

from engine.trace.formats import FORMAT_NAMES

GUEST = str(CHECKOUT / "samples" / "bin" / "x86_64" / "recursion")
PLACES = ("-f", "ackermann", "-f", "factorial")
COMMANDS = {
    "trace": ("trace", *PLACES, "-r", "ackermann"),
    "replay": ("replay", *PLACES, "-r", "ackermann"),
    "graph": ("graph", *PLACES),
    "function": ("graph", "--tracer", "function", *PLACES),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("formats")
    assert run("record", "-o", "run", GUEST, cwd=folder).code == 0
    return folder


def written(home: Path, command: str, form: str) -> Path:
    """What a command writes in a format."""
    out = home / f"{command}.{form}"
    guest = "run" if command == "replay" else GUEST
    words = (*COMMANDS[command], "--format", form, "-o", str(out), guest)
    done = run(*words, cwd=home)
    assert (done.code, done.err) == (0, "")
    return out


def folded(path: Path) -> int:
    """The sum of the counts, or of the time."""
    lines = path.read_text().splitlines()
    assert all(re.fullmatch(r"recursion;\S+ \d+", line) for line in lines)
    return sum(int(line.rpartition(" ")[2]) for line in lines)


def profile(path: Path) -> list[int]:
    """The sums of the values of the samples of a pprof."""
    message = list(fields(zlib.decompress(path.read_bytes(), 31)))
    samples = [dict(fields(value)) for number, value in message if number == 2]
    return [sum(values) for values in zip(*(packed(each[2]) for each in samples), strict=True)]


def packed(data: bytes) -> list[int]:
    """The numbers of a packed field."""
    found = [0]
    shift = 0
    for byte in data:
        found[-1] |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(0)
            shift = 0
    return found[:-1]


def table(read: str) -> Callable[[Path], int]:
    """Counts the rows of tables: one file, or one for each event."""

    def count(path: Path) -> int:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        counts = (duckquery.rows(f"select count(*) from {read}('{one}')") for one in files)
        return sum(int(found[0][0]) for found in counts)

    return count


def arrow(path: Path) -> int:
    """The rows of Arrow streams, or files."""
    pyarrow = pytest.importorskip("pyarrow")
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return sum(pyarrow.ipc.open_stream(str(one)).read_all().num_rows for one in files)


def ftrace(path: Path) -> int:
    """The lines of events of ftrace's text."""
    return sum(not line.startswith("#") for line in path.read_text().splitlines())


COUNTS: dict[str, Callable[[Path], int]] = {
    "ftrace": ftrace,
    "jsonl": lambda path: len(path.read_text().splitlines()),
    "perfetto": lambda path: sum(11 in packet for packet in packets(path.read_bytes())),
    "trace.dat": lambda path: len(trace_cmd(path)),
    "perf.data": lambda path: len(perf_script(path)),
    "ctf": lambda path: len(babeltrace(path)),
    "parquet": table("read_parquet"),
    "arrow": arrow,
}
"""The events that a reader of each format finds; formats of call stacks have sums instead."""
LEAVES: dict[str, Callable[[Path], int]] = {
    "ftrace": lambda path: sum(line.endswith("();") for line in path.read_text().splitlines()),
    "trace.dat": lambda path: sum(";" in line.text for line in trace_cmd(path)),
}
"""Calls that readers show with their returns on one line, by format."""


@pytest.fixture(scope="module")
def events(home: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        command: [
            json.loads(line) for line in written(home, command, "jsonl").read_text().splitlines()
        ]
        for command in COMMANDS
    }


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMAT_NAMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_finds_every_event(
    home: Path, events: dict[str, list[dict[str, Any]]], command: str, form: str
) -> None:
    told = events[command]
    assert len(told) > 20
    out = written(home, command, form)
    if form == "folded":
        assert folded(out) == (time_of(told) if command == "graph" else len(told))
    elif form == "pprof":
        values = [len(told)]
        if command == "graph":
            values = [len(told) // 2, time_of(told)]
        assert profile(out) == values
    elif command == "graph" and form in LEAVES:
        assert COUNTS[form](out) + LEAVES[form](out) == len(told)
    else:
        assert COUNTS[form](out) == len(told)


def time_of(told: Sequence[dict[str, Any]]) -> int:
    """The time of the calls that no traced function has made."""
    return sum(
        each["time"] - each["args"]["calltime"]
        for each in told
        if each["event"] == "ftrace/funcgraph_exit" and not each["args"]["depth"]
    )


def test_calls_become_a_flame_graph(home: Path) -> None:
    """Each line has the time that was spent in its last function itself."""
    out = written(home, "graph", "folded").read_text().splitlines()
    depths = {line.partition(" ")[0]: int(line.rpartition(" ")[2]) for line in out}
    assert [stack.count(";") for stack in depths if "factorial" in stack] == [1]
    deepest = max(depths, key=lambda stack: stack.count(";"))
    calls = ["ackermann"] * deepest.count("ackermann")
    assert deepest == ";".join(("recursion", *calls))
    assert sorted(depths) == [*depths]
