"""Single instructions on odd values: the emulator against the host's own processor.

Seeded, so that a failure can be looked at again. Features that CPUID does not offer a guest are
left out, and so are flags and results that the manuals leave undefined.
"""

import random
from pathlib import Path

import pytest
import snippets
from compiled import build
from snippets import Case, differences

from engine.cpu import native

SOURCE = Path(__file__).parents[1] / "data" / "snippets" / "x86_64.c"
QUICK, LONG = 1500, 60_000
pytestmark = pytest.mark.skipif(not native.possible(), reason="the host is no x86-64 to ask")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("snippets")
    return build(folder, "snippets", SOURCE.read_text(), "-static", "-no-pie", "-O1")


def compare(program: Path, cases: list[Case]) -> None:
    """Nothing differs; otherwise the first few are shown."""
    folder = program.parent
    ours = snippets.run(program, folder, cases, *snippets.EMULATOR)
    theirs = snippets.run(program, folder, cases)
    found = differences(cases, ours, theirs)
    shown = [(case.name, case.code.hex(), difference) for case, difference in found[:5]]
    assert not found, f"{len(found)} of {len(cases)} differ (ours, theirs): {shown}"


def x87(seed: int, count: int) -> list[Case]:
    random_ = random.Random(seed)
    kinds = ((0.0, 0.0), (0.0, 0.0), (0.0, 0.15), (0.5, 0.1))
    return [
        snippets.x87(random_, unmasked=unmasked, empty=empty)
        for unmasked, empty in (random_.choice(kinds) for _ in range(count))
    ]


def test_x87(program: Path) -> None:
    compare(program, x87(87, QUICK))


def sse(seed: int, count: int) -> list[Case]:
    random_ = random.Random(seed)
    return [snippets.sse(random_, unmasked=random_.choice((0, 0.4))) for _ in range(count)]


def integer(seed: int, count: int) -> list[Case]:
    random_ = random.Random(seed)
    return [snippets.integer(random_) for _ in range(count)]


def test_sse(program: Path) -> None:
    compare(program, sse(42, QUICK))


def test_integers_and_strings(program: Path) -> None:
    compare(program, integer(86, QUICK))


@pytest.mark.slow
def test_sse_long(program: Path) -> None:
    compare(program, sse(4242, LONG))


@pytest.mark.slow
def test_integers_and_strings_long(program: Path) -> None:
    compare(program, integer(8086, LONG // 4))


@pytest.mark.slow
def test_x87_long(program: Path) -> None:
    compare(program, x87(8087, LONG))
