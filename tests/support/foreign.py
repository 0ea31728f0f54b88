"""Reads traces with the tools that other people's formats belong to."""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.session.guest.outputs import OutputTree
from engine.session.tracing.placed_files import PlacedFiles
from engine.trace.formats.base import Format, PlacedFormat


@dataclass(frozen=True)
class Line:
    """One event as a tool prints it; `text` is what stands behind its name."""

    comm: str
    thread: int
    time: int
    name: str
    text: str


def tool(name: str) -> str:
    """The path of a tool; the test is skipped without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}")
    return found


def write(form: Format, pieces: Iterable[bytes], path: Path, lost: int = 0) -> None:
    """Write rows with a format as a trace does, `lost` events being missing behind them."""
    if isinstance(form, PlacedFormat):
        tree = OutputTree("-o", str(path), lambda: form.is_directory, form.owns)
        tree.begin()
        placed = PlacedFiles(form, tree)
        placed.write(form.header())
        for piece in pieces:
            placed.write(form.rows(piece))
        if lost:
            placed.write(form.lost(lost))
        placed.write(form.end())
        tree.close()
        return
    out = [form.header(), *map(form.rows, pieces)]
    if lost:
        out.append(form.lost(lost))
    path.write_bytes(b"".join((*out, form.end())))


def output_of(*command: str, errors: bool = False) -> str:
    """What a tool prints; the test fails where the tool does."""
    done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, (command, done.stderr.decode()[-2000:])
    return (done.stderr if errors else done.stdout).decode(errors="surrogateescape")


_TRACE_CMD = re.compile(r"\s*(.+)-(\d+)\s+\[000\]\s*(\d+): (\S+): *(.*)")


def trace_cmd(path: Path) -> list[Line]:
    """The events of a trace.dat; call stacks are a part of their text."""
    found: list[Line] = []
    for line in output_of(tool("trace-cmd"), "report", "-i", str(path)).splitlines():
        match = _TRACE_CMD.fullmatch(line)
        if match is not None:
            comm, thread, time, name, text = match.groups()
            found.append(Line(comm, int(thread), int(time), name, text))
        elif line.startswith("=> "):
            last = found.pop()
            found.append(Line(last.comm, last.thread, last.time, last.name, last.text + line))
        else:
            assert line.startswith(("cpus=", "CPU:0 [")), line
    return found


_PERF = re.compile(r"\s*(.*?)\s+(\d+)\s+(\d+)\.(\d{9}):\s+([^\s:]+:[^\s:]+): ?(.*)")


def perf_script(path: Path, *, chains: bool = False) -> list[Line]:
    """The events of a perf.data; with the functions of their call chains behind the text."""
    wanted = "comm,tid,time,event,trace" + ",ip,sym" * chains
    shown = ("-F", wanted, "--ns", "-i", str(path))
    found: list[Line] = []
    for line in output_of(tool("perf"), "script", *shown).splitlines():
        match = _PERF.fullmatch(line)
        if match is not None:
            comm, thread, seconds, rest, name, text = match.groups()
            time = int(seconds) * 10**9 + int(rest)
            found.append(Line(comm, int(thread), time, name.partition(":")[2], text))
        elif line.strip():
            last = found.pop()
            text = f"{last.text};{line.split(maxsplit=1)[1]}"
            found.append(Line(last.comm, last.thread, last.time, last.name, text))
    return found


_BABELTRACE = re.compile(
    r"\[(\d+)\.(\d{9})\] ([^:]+):([^:]+): "
    r'\{ pid = \d+, tid = (\d+), comm = "(.*?)" \}, \{ (.*) \}'
)


def babeltrace(path: Path) -> list[Line]:
    """The events of a CTF trace, with the fields as they are printed as text."""
    shown = ("--clock-seconds", "--no-delta", str(path))
    found: list[Line] = []
    for line in output_of(tool("babeltrace2"), *shown).splitlines():
        match = _BABELTRACE.fullmatch(line)
        assert match is not None, line
        seconds, rest, _, name, thread, comm, text = match.groups()
        found.append(Line(comm, int(thread), int(seconds) * 10**9 + int(rest), name, text))
    return found


def ctf_fields(text: str) -> dict[str, object]:
    """The fields of an event of `babeltrace`: numbers, strings, lists of them."""
    words = re.findall(r'"(?:[^"\\]|\\.)*"|\[\d+\]|[^\s,=]+', text)
    return dict(_pairs(iter(words)))


def _pairs(words: Iterator[str]) -> Iterator[tuple[str, object]]:
    for name in words:
        yield name, _value(next(words), words)


def _value(word: str, words: Iterator[str]) -> object:
    if word == "[":
        found: list[object] = []
        for each in words:
            if each == "]":
                return found
            assert each == f"[{len(found)}]"
            found.append(_value(next(words), words))
    if word.startswith('"'):
        return word[1:-1].encode().decode("unicode_escape").encode("latin-1").decode()
    return int(word, 0)
