"""A program that writes to what detours share with the engine: only rows are lost."""

from itertools import product
from pathlib import Path

import archkit
import pytest
from archkit import FIRST_JUMPING, JUMPING
from graphkit import compiled
from jumpkit import jumps_of
from sessionkit import heads, loaded
from sysroot import CHECKOUT

from engine.arch.recording import CALLS, CURSOR, SITES
from engine.session.protocol.requests import GraphOptions
from engine.session.tracing.graphing import Graphing
from engine.session.tracing.tracing import Tracing

SOURCE = CHECKOUT / "tests" / "data" / "returns" / "scribbler.c"
WORDS = {"cursor": 12, "calls": 2, "records": 200, "sites": SITES, "left": 4, "counters": 64}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("scribbler")
    return {arch: compiled(folder, SOURCE, arch, "-O1") for arch in JUMPING}


def prepare(tracing: Tracing, arch: str, *, graph: bool) -> None:
    if graph:
        Graphing(tracing, GraphOptions(retval=True)).add("leaf", "down", "scribble")
        return
    tracing.definitions.define(f"r:a leaf v=$retval a=$entry({archkit.argument(arch)})")
    tracing.definitions.define("r:b down v=$retval t=$duration s=+0(%sp):string")
    tracing.definitions.define("p:c scribble")


def places(program: Path, arch: str) -> dict[str, int]:
    """Guest addresses of what is shared."""
    with loaded(program, technique="jump") as guest:
        prepare(guest.tracing(), arch, graph=True)
        shared = jumps_of(guest).code.memory.shared
        assert shared is not None
        save, there = shared.places.save, shared.places
        return {
            "cursor": save + CURSOR,
            "calls": save + CALLS,
            "records": shared.calls.start,
            "sites": there.sites,
            "left": there.left,
            "counters": save + 3 * 4096,
        }


def scribbled(
    program: Path, arch: str, at: int, words: int, near: int, seed: int, *, graph: bool
) -> tuple[str, str, int, bool]:
    """How it ended, what it wrote, how often damage was seen, and whether that was said."""
    args = (hex(at), str(words), hex(near), str(seed))
    with loaded(program, *args, technique="jump", max_blocks=400_000) as guest:
        tracing = guest.tracing()
        prepare(tracing, arch, graph=graph)
        reports = guest.run(tracing)
        returns = guest.session.probes().manager.returns
        said = any("where code records its calls" in text for text in heads(reports))
        return reports.reason, guest.out, returns.damaged, said


@pytest.mark.parametrize("arch", FIRST_JUMPING)
@pytest.mark.slow
def test_the_program_goes_on(programs: dict[str, Path], arch: str) -> None:
    found = places(programs[arch], arch)
    seen = 0
    for seed, ((name, at), graph) in enumerate(product(found.items(), (True, False))):
        end, out, damaged, said = scribbled(
            programs[arch], arch, at, WORDS[name], found["records"], seed, graph=graph
        )
        assert (end, out) == ("exited with 0", "done\n"), (name, seed)
        assert said == bool(damaged), (name, seed)
        seen += damaged
    assert seen > 1
