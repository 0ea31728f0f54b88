"""`kprobe-tui bench`: rows for each technique; a jump costs a fraction of a breakpoint."""

import json
from pathlib import Path

import pytest
from guestrun import ARCHES, run

from engine import arch as architectures
from engine.image import ElfImage, SymbolTable
from engine.session.bench import CASES, program


@pytest.mark.parametrize("arch", ARCHES)
def test_rows(arch: str, tmp_path: Path) -> None:
    words = ("--calls", "20000", "--runs", "1", "--arch", arch, "--json")
    done = run("bench", *words, cwd=tmp_path)

    assert done.code == 0
    rows = json.loads(done.out)
    assert len(rows) == len(CASES)
    assert {"arch", "technique", "args", "string", "filter_pass", "ns_per_hit"} <= set(rows[0])
    cost = {
        row["technique"]: row["ns_per_hit"]
        for row in rows
        if row["args"] == 3 and not row["string"] and row["filter_pass"] is None
    }
    assert cost["jump"] * 3 < cost["breakpoint"]  # more than 10 on a quiet machine
    assert all((row["detour_bytes"] > 0) is (row["technique"] == "jump") for row in rows)


@pytest.mark.parametrize("name", ARCHES)
def test_its_guest_is_a_program(name: str) -> None:
    arch = architectures.by_name(name)
    image = ElfImage.from_bytes(program(arch, 0x12345), "bench")
    symbols = {symbol.name: symbol for symbol in SymbolTable(image).functions()}
    assert image.entry == symbols["_start"].address
    assert symbols["work"].size >= 5
