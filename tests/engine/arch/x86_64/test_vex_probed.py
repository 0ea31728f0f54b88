"""Probes on instructions with a VEX prefix, and programs that step through their own."""

import subprocess
from pathlib import Path

import pytest
from compiled import build
from guestrun import run

from engine.cpu import native

_DATA = Path(__file__).parents[3] / "data" / "avx"
_PLACES = {
    "steps": ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"),
    "clocks": ("computes", "loads", "stores", "counts", "masked", "clears", "shifts"),
}
_HITS = {"steps": 8, "clocks": 140}
pytestmark = pytest.mark.skipif(
    not native.lends(), reason="the host has no AVX2 to lend, or its code is not wanted"
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("avx")
    options = ("-static", "-O1", "-mavx2", "-w")
    return {
        name: build(folder, name, (_DATA / f"{name}.c").read_text(), *options) for name in _PLACES
    }


def test_a_program_sees_each_of_its_steps(programs: dict[str, Path], tmp_path: Path) -> None:
    program = programs["steps"]
    natively = subprocess.run([program], capture_output=True, check=True, text=True).stdout

    done = run("run", str(program), cwd=tmp_path)

    assert done.out == natively
    assert natively.split()[:8] == ["4", "8", "14", "20", "25", "32", "37", "46"]


@pytest.mark.parametrize("name", _PLACES)
@pytest.mark.parametrize(
    "options",
    [
        *(("--technique", technique) for technique in ("breakpoint", "jump", "djprobe", "nop5")),
        ("--served",),
        ("--mode", "kernel"),
    ],
)
def test_probes_move_neither_steps_nor_the_clock(
    name: str, options: tuple[str, ...], programs: dict[str, Path], tmp_path: Path
) -> None:
    """A recorded breakpoint is what the technique breakpoint makes without --served."""
    places = [word for place in _PLACES[name] for word in ("-e", f"p {place}")]

    done = run("diff", *options, *places, str(programs[name]), cwd=tmp_path)

    assert done.code == 0, done.err
    assert done.err.endswith("kprobe-tui: no effect\n"), done.err
    assert f" {_HITS[name]} hits" in done.err


@pytest.mark.parametrize("returns", ["watched", "mainline"])
def test_caught_returns_do_neither(
    returns: str, programs: dict[str, Path], tmp_path: Path
) -> None:
    options = ("--returns", returns, "-r", "loop_*")

    done = run("diff", *options, str(programs["clocks"]), cwd=tmp_path)

    assert done.code == 0, done.err
    assert " 7 hits" in done.err
