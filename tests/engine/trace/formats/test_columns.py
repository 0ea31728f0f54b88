"""Tables of events: what pyarrow reads is what the rows have."""

import os
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckquery
import pytest
from compiled import build
from foreign import write
from guestrun import run
from randomrows import COMMS, EVENTS, NAMES, SYMBOLS, pieces, rows
from sysroot import CHECKOUT

from engine.arch.program import ROW_HEAD, FieldType, ValueKind
from engine.trace.formats import format_named
from engine.trace.rows import HEAD, Column, EventInfo, EventSource, decode, pack_row

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

STACK = EventInfo(99, "ftrace", "user_stack", (), source=EventSource.STACK)
BOTH = pytest.mark.parametrize("name", ["parquet", "arrow"])
SUFFIX = {"parquet": ".parquet", "arrow": ".arrows"}


def table(path: Path) -> Any:
    """A file as pyarrow reads it."""
    if path.suffix == ".parquet":
        return pq.ParquetFile(path).read()
    with path.open("rb") as file:
        return pa.ipc.open_stream(file).read_all()


def shown(value: Any, column: Column) -> Any:
    """A decoded value as a table has it."""
    if isinstance(value, tuple):
        return [shown(one, column) for one in value]
    if isinstance(value, bytes):
        return value.decode()
    return chr(value) if column.type.kind is ValueKind.CHAR else value


@BOTH
def test_every_value_is_there(name: str, tmp_path: Path) -> None:
    found = rows(5)
    write(format_named(name)(EVENTS, NAMES), pieces(found), tmp_path / "out")
    for info in EVENTS.values():
        got = table(tmp_path / "out" / f"{info.group}_{info.name}{SUFFIX[name]}").to_pylist()
        mine = [one for one in (decode(EVENTS, row) for row in found) if one.id == info.id]
        assert len(got) == len(mine) > 50
        for row, event in zip(got, mine, strict=True):
            assert row["time"] == event.time
            assert (row["tid"], row["comm"]) == (event.thread_id, COMMS[event.thread_id].decode())
            assert (row["address"], row["symbol"]) == (event.address, SYMBOLS[event.address])
            assert row.get("returned_to") == event.returned_to
            for column, value in zip(info.columns, event.values, strict=True):
                name_ = column.name + "_" * (column.name in ("pid", "comm", "time"))
                assert row[name_] == shown(value, column), column


def test_types_are_those_of_arguments(tmp_path: Path) -> None:
    write(format_named("parquet")(EVENTS, NAMES), [], tmp_path / "out")
    schema = table(tmp_path / "out" / "g_numbers.parquet").schema
    kinds = [str(schema.field(f"a{at}").type) for at in range(12)]
    assert kinds[:8] == [f"{sign}{bits}" for sign in ("uint", "int") for bits in (8, 16, 32, 64)]
    assert kinds[8:] == kinds[:4]
    lists = table(tmp_path / "out" / "g_lists.parquet").schema
    assert pa.types.is_list(lists.field("a5").type)
    assert lists.field("a5").type.value_type == pa.int16()
    assert schema.metadata[b"event"] == b"g/numbers"


@BOTH
def test_one_event_type_is_one_file_with_wide_numbers(name: str, tmp_path: Path) -> None:
    """Rows of numbers alone, which nobody looks at one by one; and threads beside a wide id."""
    kinds = [FieldType(ValueKind.SIGNED, 2), FieldType(ValueKind.SYMBOL, 8),
             FieldType(ValueKind.CHAR, 1)]  # fmt: skip
    columns = tuple(Column(name, kind, ROW_HEAD + at)
                    for at, (name, kind) in enumerate(zip("xyc", kinds, strict=True)))  # fmt: skip
    info = EventInfo(0x12345, "g", "e", columns, ROW_HEAD + 3)
    data = b"".join(
        pack_row(info, 77 + row % 2, row, 0x401130, (-row, 0x401155, ord("a") + row % 26))
        for row in range(1000)
    )
    write(format_named(name)({info.id: info}, NAMES), [data, data], tmp_path / f"o{SUFFIX[name]}")
    got = table(tmp_path / f"o{SUFFIX[name]}")
    assert got.num_rows == 2000
    last = got.slice(1999).to_pylist()[0]
    assert last == {
        "time": 999, "lost_before": 0, "pid": 78, "tid": 78, "cpu": 0, "comm": "other one",
        "address": 0x401130, "symbol": "fact+0x0/0x2a", "x": -999, "y": 0x401155,
        "y_symbol": "main+0x5/0x80", "c": "l",
    }  # fmt: skip


@BOTH
def test_stacks_stand_with_their_event_and_losses_with_the_next(name: str, tmp_path: Path) -> None:
    info = EVENTS[1]
    form = format_named(name)({info.id: info, STACK.id: STACK}, NAMES)
    stack = HEAD.pack(99, 5, 77) + struct.pack("<4Q", 1, 0x401130, 0x401130, 0x401155)
    one = pack_row(info, 77, 1, 0x401130, [])
    write(form, [one + stack + pack_row(info, 77, 2, 0x401130, [])], tmp_path / "a.parquet")
    path = tmp_path / f"b{SUFFIX[name]}"
    (tmp_path / "a.parquet").rename(path)
    first, second = table(path).to_pylist()
    assert first["stack"] == [0x401130, 0x401155]
    assert first["frames"] == ["fact+0x0/0x2a", "main+0x5/0x80"]
    assert second["stack"] == []
    again = format_named(name)({info.id: info}, NAMES)
    again.header()
    again.lost(5)
    again.rows(one + one)
    assert again.state() != form.state()
    data = b"".join(each.data for each in again.aside())  # type: ignore[attr-defined]
    path.write_bytes(data)
    assert [row["lost_before"] for row in table(path).to_pylist()] == [5, 0]


def test_many_row_groups_begin_another_file(tmp_path: Path) -> None:
    found = rows(6, 400)
    write(format_named("parquet")(EVENTS, NAMES), found, tmp_path / "out")
    parts = sorted((tmp_path / "out").glob("g_texts*.parquet"))
    assert len(parts) > 1
    times = [row["time"] for part in parts for row in table(part).to_pylist()]
    assert sorted(times) == [
        one.time for one in (decode(EVENTS, row) for row in found) if one.name == "texts"
    ]


CALLS = """
__attribute__((noinline)) int leaf(int n, const char *s) { asm volatile(""); return n + s[0]; }
__attribute__((noinline)) int outer(int n) { return leaf(n, "some text") + 1; }
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 200000; i++)
        sum += outer(i);
    return sum & 1;
}
"""
KILLER = """
import os, signal
left = int(os.environ.get("KILL_AT_HIT", 0))
def before(probe, regs):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
probes = [Kprobe(symbol_name="outer", pre_handler=before)]
"""


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("several", [False, True])
def test_a_kill_leaves_whole_files(name: str, several: bool, tmp_path: Path) -> None:
    guest = build(tmp_path, "calls", CALLS, "-O1")
    (tmp_path / "killer.py").write_text(KILLER)
    words = ["trace", "--format", name, "-o", "out", "--handlers", "killer.py"]
    words += ["-e", "p:g/leaf leaf n=%di:u32 a=%si b=%si c=%si d=%si e=%si"]
    words += ["-e", "r:g/back leaf r=$retval:u32 s=+0(%sp):x64"] if several else []
    killed = {**os.environ, "PYTHONPATH": str(CHECKOUT), "KILL_AT_HIT": "199000"}
    done = subprocess.run(
        [sys.executable, "-m", "tui", *words, str(guest)], cwd=tmp_path, env=killed, check=False,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL
    if not several:
        (tmp_path / "out").rename(tmp_path / f"out{SUFFIX[name]}")
        (tmp_path / "out.ring").rename(tmp_path / f"out{SUFFIX[name]}.ring")
    path = tmp_path / (f"out/g_leaf{SUFFIX[name]}" if several else f"out{SUFFIX[name]}")
    before = table(path).column("n").to_pylist()
    assert before == list(range(len(before)))
    assert 100_000 < len(before) < 199_000
    ring = "out.ring" if several else f"out{SUFFIX[name]}.ring"
    for _ in range(2):
        again = run("recover", ring, cwd=tmp_path)
        assert again.code == 0, again.err
        assert f"events written to {ring.removesuffix('.ring')}" in again.err
        assert table(path).column("n").to_pylist() == list(range(198_999))


def test_duckdb_reads_what_a_trace_has_written(tmp_path: Path) -> None:
    guest = str(CHECKOUT / "samples" / "bin" / "x86_64" / "recursion")
    definitions = "p:demo/ack ackermann m=%di:u32 n=%si:u32", "r:demo/back ackermann v=$retval:u32"
    words = [word for line in definitions for word in ("-e", line)]
    written = run(
        "trace", "--stack", "--format", "parquet", "-o", "out", *words, guest, cwd=tmp_path
    )
    text = run("trace", *words, guest, cwd=tmp_path)
    assert (written.code, text.code) == (0, 0)
    lines = re.findall(r" (\d+): ack: \(ackermann\S*\) m=(\d+) n=(\d+)", text.err)
    calls, returns = f"'{tmp_path}/out/demo_ack.parquet'", f"'{tmp_path}/out/demo_back.parquet'"
    found = duckquery.rows(f"select time, m, n from {calls} order by time")
    assert found == [tuple(map(int, line)) for line in lines]
    assert len(found) > 10
    # Each call returns, and has its caller's stack behind it.
    ((count, least, returned),) = duckquery.rows(
        f"select count(*), min(len(stack)), (select count(*) from {returns}) from {calls}"
    )
    assert count == returned == len(found)
    assert least >= 3
