"""`kprobe-tui bench`: a row for each technique that can serve it, and for others that run here."""

import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest
from archkit import JUMPING, MEASURED
from guestrun import run

from engine import arch as architectures
from engine.errors import CommandError
from engine.image import ElfImage, SymbolTable
from engine.session.headless import bench_peers as benchpeers
from engine.session.headless.bench import CASES, native, program


@pytest.mark.parametrize(
    "arch",
    [
        pytest.param(arch, marks=[pytest.mark.slow] if number else [])
        for number, arch in enumerate(MEASURED)
    ],
)
@pytest.mark.slow
def test_rows(arch: str, tmp_path: Path) -> None:
    """How quick anything was is nothing that a test can ask."""
    words = ("--calls", "1000", "--runs", "1", "--arch", arch, "--no-peers", "--json")
    done = run("bench", *words, cwd=tmp_path)
    assert done.code == 0
    rows = json.loads(done.out)
    keys = ("technique", "args", "string", "filter_pass", "entry", "format")
    seen = {tuple(row[key] for key in keys) for row in rows}
    every = {tuple(getattr(case, key) for key in keys) for case in CASES}
    assert seen <= every
    recorded = {row for row in every if row[0] in ("jump", "breakpoint")}
    assert {row for row in recorded if arch in JUMPING or row[4] != "jump"} <= seen
    assert {row for row in every if row[4] == "breakpoint"} <= seen
    assert all(math.isfinite(row["ns_per_hit"]) for row in rows)
    assert all(row["detour_bytes"] > 0 for row in rows if row["entry"] == "jump")
    recorded_in_code = [row for row in rows if row["technique"] == "breakpoint"]
    assert all((row["detour_bytes"] > 0) is (arch in JUMPING) for row in recorded_in_code)
    assert all(row["loop_ns"] > 0 for row in rows)


@pytest.mark.slow
def test_an_earlier_run_stands_beside_the_new_one(tmp_path: Path) -> None:
    words = ("--calls", "1000", "--runs", "1", "--arch", "x86_64", "--no-peers")
    first = run("bench", *words, "--json", cwd=tmp_path)
    file = tmp_path / "earlier.json"
    rows = json.loads(first.out)
    for row in rows:
        row["ns_per_hit"] = 4321.0
    file.write_text(json.dumps(rows))
    done = run("bench", *words, "--compare", str(file), cwd=tmp_path)
    assert done.code == 0
    table = [line for line in done.out.splitlines() if line.startswith("  ")]
    assert len(table) == len(rows) + 1
    assert all("4321" in line for line in table[:-1])
    assert "an unprobed call, subtracted" in table[-1]
    again = run("bench", *words, "--compare", str(file), "--json", cwd=tmp_path)
    assert {row["earlier_ns"] for row in json.loads(again.out)} == {4321.0}


@pytest.mark.parametrize("text", ["", "[]", "[1]", '[{"loop_ns": 1}]', "{", '{"a": 1}'])
def test_a_file_that_is_none_of_its_own(text: str, tmp_path: Path) -> None:
    file = tmp_path / "earlier.json"
    file.write_text(text)
    done = run("bench", "--compare", str(file), cwd=tmp_path)
    assert done.code == 2
    assert "earlier.json" in done.err
    assert "Traceback" not in done.err


def test_its_guest_runs_natively(tmp_path: Path) -> None:
    there = native(tmp_path)
    if there is None:
        pytest.skip("no guest for this machine")
    assert subprocess.run(there.command(100)).returncode == 0
    image = ElfImage.from_bytes(Path(there.command(100)[0]).read_bytes(), "bench")
    assert image.vaddr_of(there.offset) == there.address
    found = SymbolTable(image).at(there.address)
    assert found is not None
    assert found.name == "work"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_others_that_fail_say_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "uftrace"
    tool.write_text("#!/bin/sh\necho it broke >&2\nexit 3\n")
    tool.chmod(0o755)
    monkeypatch.setenv("UFTRACE", str(tool))
    with pytest.raises(CommandError, match="it broke"):
        benchpeers.uftrace(1)
    tool.write_text("#!/bin/sh\nsleep 100\n")
    monkeypatch.setattr(benchpeers, "_PATIENCE", 0.2)
    with pytest.raises(CommandError, match="does not end"):
        benchpeers.uftrace(1)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_frida_is_a_python_that_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setenv("FRIDA_PYTHON", str(python))
    assert benchpeers.frida(1) is None
    python.write_text("#!/bin/sh\n[ $# = 2 ] && exit 0\necho it broke >&2\n")
    with pytest.raises(CommandError, match="Frida: it broke"):
        benchpeers.frida(1)
    # One that runs the program and nothing else.
    python.write_text('#!/bin/sh\n[ $# = 2 ] && exit 0\nshift 2\nexec "$@"\n')
    assert benchpeers.frida(1) is not None


@pytest.mark.parametrize("name", MEASURED)
def test_its_guest_is_a_program(name: str) -> None:
    arch = architectures.by_name(name)
    image = ElfImage.from_bytes(program(arch, 0x12345), "bench")
    symbols = {symbol.name: symbol for symbol in SymbolTable(image).functions()}
    assert image.entry == symbols["_start"].address
    assert symbols["work"].size >= 5
