"""Functions left by longjmp, signals and exceptions: the guests count their own returns."""

import re
import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path

import archkit
import pytest
from archkit import COMPILED
from guestrun import run
from sysroot import CHECKOUT

SOURCES = CHECKOUT / "tests" / "data" / "returns"
each = pytest.mark.parametrize(
    ("source", "arch"),
    [
        pytest.param(source, arch, marks=[] if arch == COMPILED[0] else pytest.mark.slow)
        for source in ("left.c", "thrown.cpp")
        for arch in COMPILED
    ],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("returns")


@cache
def program(source: str, arch: str, folder: Path) -> str:
    compiler = archkit.compiler(arch, plus=source.endswith(".cpp"))
    path = folder / f"{source}.{arch}"
    subprocess.run([compiler, "-O2", "-static", "-w", "-o", path, SOURCES / source], check=True)
    return str(path)


@each
def test_every_return_and_nothing_else_is_an_event(source: str, arch: str, folder: Path) -> None:
    guest = program(source, arch, folder)
    plain = run("run", guest, cwd=folder)
    assert plain.code == 0, plain.err
    known = {
        name: (int(n), int(total)) for name, n, total in map(str.split, plain.out.splitlines())
    }
    words = [w for name in known for w in ("-e", f"r:{name} {name} $retval:s64 n=$arg1")]
    traced = run("trace", *words, guest, cwd=folder)
    assert traced.out == plain.out
    seen: dict[str, list[int]] = defaultdict(list)
    for name, value in re.findall(r": (\w+): \(\S+ <- \w+\) \w+=(-?\d+) n=", traced.err):
        seen[name].append(int(value))
    assert {name: len(values) for name, values in seen.items()} == {
        name: returns for name, (returns, _) in known.items()
    }
    totals = {name: sum(values) for name, values in seen.items() if name != "handler"}
    assert totals == {name: total for name, (_, total) in known.items() if name != "handler"}


@pytest.mark.slow
@each
def test_return_probes_on_everything_have_no_effect(source: str, arch: str, folder: Path) -> None:
    done = run("diff", "-r", "*", program(source, arch, folder), cwd=folder)
    assert done.code == 0, done.err
    assert done.err.endswith("kprobe-tui: no effect\n")
    assert re.search(r" [1-9]\d{2,} hits", done.err)


def test_the_kernels_way_breaks_exceptions(folder: Path) -> None:
    """As on Linux: the program's own unwinder finds the trampoline and gives up."""
    guest = program("thrown.cpp", "x86_64", folder)
    done = run("diff", "--mode", "kernel", "-r", "maybe", guest, cwd=folder)
    assert done.code == 1
    assert "the probes have an effect" in done.err
