"""Runs with all functions traced, and what their rows say."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.session import Reports, Session
from engine.session.protocol.requests import GraphOptions, TraceOptions
from engine.session.tracing.graphing import Graphing
from engine.session.tracing.tracing import Tracing
from engine.trace.graph import ENTRY, ENTRY_ROW, EXIT, EXIT_ROW
from engine.trace.rows import HEAD, Event, EventInfo, decode

PROGRAMS = {
    "busybox": (
        "/usr/bin/busybox",
        "sh",
        "-c",
        "f() { echo $1; }; i=0; while [ $i -lt 20 ]; do i=$((i+1)); done; f a; f b",
    ),
    "sqlite3": (
        "/usr/bin/sqlite3",
        ":memory:",
        "create table t(a,b); insert into t values(1,2),(3,4); select sum(a*b) from t group by b;",
    ),
    "lua": (
        "/usr/bin/lua5.4",
        "-e",
        "local t={} for i=1,200 do t[i]=tostring(i) end print(pcall(error,'x')) print(#t)",
    ),
    "python3": ("/usr/bin/python3.11", "-S", "-E", "-c", "print(sum(map(int, '1 2'.split())))"),
}
"""Name to the program in a tree of Debian's packages and its arguments."""


@dataclass
class Traced:
    """A run that is over."""

    graphing: Graphing
    tracing: Tracing
    data: bytes
    reports: Reports

    @property
    def events(self) -> list[Event]:
        """All rows."""
        return decoded(self.tracing, self.data)

    def check(self) -> int:
        """The calls that stay open, as the rows and as the tracer have it."""
        calls = self.graphing.calls
        assert calls is not None
        assert calls.late == 0
        assert balanced(self.data, self.tracing.table) == calls.pending
        assert calls.entries == calls.exits + calls.left + calls.pending
        return calls.pending


def decoded(tracing: Tracing, data: bytes) -> list[Event]:
    """All rows."""
    found, position = [], 0
    while position < len(data):
        found.append(decode(tracing.table, data, position))
        position += HEAD.unpack_from(data, position)[1] * 8
    return found


def traced(
    session: Session,
    *globs: str,
    options: GraphOptions | None = None,
    keep: TraceOptions | None = None,
) -> Traced:
    """Run a guest to its end."""
    rows: list[bytes] = []
    tracing = Tracing(session, keep or TraceOptions(), consumer=rows.append)
    graphing = Graphing(tracing, options)
    graphing.add(*(globs or ("*",)))
    tracing.start()
    reports = session.run()
    tracing.finish()
    return Traced(graphing, tracing, b"".join(rows), reports)


def balanced(data: bytes, infos: Mapping[int, EventInfo]) -> int:
    """Check that every return closes the call that is open; how many calls stay open."""
    calls: list[tuple[int, ...]] = []
    entries = {number for number, info in infos.items() if info.name == ENTRY}
    exits = {number for number, info in infos.items() if info.name == EXIT}
    position = 0
    while position < len(data):
        number, words, _ = HEAD.unpack_from(data, position)
        if number in entries:
            _, _, time, function, depth, parent = ENTRY_ROW.unpack_from(data, position)
            assert depth == len(calls)
            calls.append((function, depth, time, parent))
        else:
            assert number in exits
            row = EXIT_ROW.unpack_from(data, position)
            _, _, _, function, to, depth, began, left, _ = row
            call = calls.pop()
            assert call == (function, depth, began, call[3] if left else to)
        position += words * 8
    return len(calls)


def shape(events: list[Event]) -> list[tuple[str, int, int]]:
    """Calls and returns as (">" or "<", function, depth); "!" for one that was left."""
    found = []
    for event in events:
        depth = event.values[0]
        assert isinstance(depth, int)
        sign = ">" if event.name == ENTRY else "!" if event.values[2] else "<"
        found.append((sign, event.address, depth))
    return found


def compiled(folder: Path, source: Path | str, arch: str, *flags: str) -> Path:
    """A static program; the test is skipped without a compiler."""
    suffix = ".cpp" if str(source).endswith(".cpp") else ".c"
    name = "g++" if suffix == ".cpp" else "gcc"
    compiler = name if arch == "x86_64" else f"{arch}-linux-gnu-{name}"
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    if isinstance(source, str):
        text = folder / f"source{suffix}"
        text.write_text(source)
        source = text
    program = folder / f"{source.stem}.{arch}"
    command = [compiler, "-static", "-w", *flags, "-o", str(program), str(source)]
    subprocess.run(command, check=True)
    return program
