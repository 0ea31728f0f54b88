"""The perf of this machine asked about programs that are compiled here: C, C++ and Rust.

Only if KPROBE_TUI_LIVE_KERNEL is set, where perf is: its answers depend on what the kernel's
tracefs can do, which only root may read. Nothing is placed.
"""

import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from perfprobekit import PROGRAMS, PerfAnswers, Question, compiled, questions

from engine.trace.perfprobe.fetch_writer import real_type
from engine.trace.perfprobe.function_entries import PARAMETER, VARIABLE, UnitFunctions

pytestmark = pytest.mark.skipif(
    not os.environ.get("KPROBE_TUI_LIVE_KERNEL") or shutil.which("perf") is None,
    reason="KPROBE_TUI_LIVE_KERNEL is not set, or there is no perf",
)

_POINTER: Final = 0x0F
_RUST: Final = """
use std::collections::HashMap;
struct Stock { name: String, count: u32 }
#[inline(never)] fn total(all: &[Stock]) -> u32 { all.iter().map(|one| one.count).sum() }
fn main() {
    let all = vec![Stock { name: "a".into(), count: 2 }, Stock { name: "b".into(), count: 3 }];
    let index: HashMap<&str, u32> = all.iter().map(|s| (s.name.as_str(), s.count)).collect();
    println!("{} {}", total(&all), index["a"]);
}
"""


def _asked(program: PerfAnswers, name: str, most: int) -> list[Question]:
    """Questions about functions of a program's own units, chosen by chance."""
    debugged = program.file.probed()
    assert debugged is not None, name
    chance = random.Random(8)
    functions = [
        (unit, index, unit.name(index))
        for unit in debugged.units()
        for index in unit.functions
        if unit.is_definition(index) and unit.name(index).isidentifier()
    ]
    chance.shuffle(functions)
    found: list[Question] = []
    for unit, index, function in functions[:most]:
        texts = [function, f"{function}:{chance.randint(1, 9)} $vars", f"{function}+3"]
        texts += [f"{function} {word}" for word in _words(unit, index)]
        found += [Question(name, "D", text) for text in texts]
        found += [Question(name, "V", function), Question(name, "L", function)]
    return found


def _words(unit: UnitFunctions, function: int) -> Iterator[str]:
    """Variables of a function, and a member of each."""
    shape = unit.unit.shape
    for index in range(function + 1, shape.ends[function]):
        name = unit.name(index)
        if unit.tag(index) not in (PARAMETER, VARIABLE) or not name.isidentifier():
            continue
        yield name
        kind = real_type(unit.die(index))
        sign = "."
        if kind is not None and kind.tag == _POINTER:
            kind, sign = real_type(kind), "->"
        if kind is not None and kind.name:
            yield f"{name}{sign}first"


def _compare(program: PerfAnswers, asked: list[Question]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for one in asked:
        perf, ours = program.perf(one), program.ours(one)
        if perf == ours:
            counts["same" if perf else "neither"] += 1
        elif not perf:
            counts["perf fails"] += 1
        elif "0xfffffff" in perf or "(null)" in perf or one.kind == "F" or "a=" in one.text:
            counts["known"] += 1  # places that the linker dropped; see test_perf_events
        else:
            counts["differs"] += 1
            print(one, perf, ours, sep="\n")
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "r1"])
def test_programs_compiled_here(name: str, tmp_path: Path) -> None:
    try:
        path = compiled(name, tmp_path)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no compiler for {name}: {error}")
    (tmp_path / "probed").symlink_to(tmp_path)
    program = PerfAnswers(path, str(tmp_path))
    asked = [one for one in questions(name) if one.kind != "L"]  # paths of sources differ
    counts = _compare(program, asked)
    print(name, dict(counts))
    assert not counts["differs"]
    assert counts["same"] > 30


@pytest.mark.slow
def test_a_program_of_rust(tmp_path: Path) -> None:
    rustc = shutil.which("rustc")
    if rustc is None:
        pytest.skip("no rustc")
    (tmp_path / "stock.rs").write_text(_RUST)
    subprocess.run([rustc, "-g", "-O", "stock.rs"], cwd=tmp_path, check=True)
    program = PerfAnswers(tmp_path / "stock")
    counts = _compare(program, _asked(program, "stock", 12))
    print("stock", dict(counts))
    assert counts["differs"] <= 2, "dropped copies end perf's search early"
