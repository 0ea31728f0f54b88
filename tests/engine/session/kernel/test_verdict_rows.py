"""Verdicts on a kernel image's places are those that the kernel itself gave.

The rows are a sample of what Linux answered when probes were put there (see tests/data/kernel and
`kernelscore`); what else it said of itself is compared in test_golden_kernels.
"""

from collections import Counter
from functools import lru_cache

import pytest
from kernelimages import (
    AMD64_61,
    DATA,
    GOLDEN,
    MODULES,
    SLOW_612,
    SLOW_ARM64,
    image_path,
    module_path,
)
from kernelscore import SCORERS, ScoredKernel

from engine.probes.kernel_places import KernelPlaces, KernelVerdict
from engine.session.kernel.definition_answers import defined_rows
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.verdict_rows import (
    entry_rows,
    function_starts,
    matching_starts,
    place_counts,
    place_rows,
)
from engine.session.protocol.kernels import KernelChoice

KERNELS = (AMD64_61, SLOW_612, SLOW_ARM64)
LEAST = {"definitions": 300, "entries": 2000, "kretprobes": 600, "offsets": 7000}
"""Rows of each file at least."""


@lru_cache(maxsize=1)
def scored(name: str) -> ScoredKernel:
    """An image, its text as it runs on the machine of the recordings."""
    return ScoredKernel(DATA / GOLDEN[name], image_path(name))


def opened(name: str) -> OpenedKernel:
    return scored(name).opened


@pytest.mark.parametrize("kind", LEAST)
@pytest.mark.parametrize("name", KERNELS)
def test_places_are_judged_as_the_kernel_did(name: str, kind: str) -> None:
    score = SCORERS[kind](scored(name), kind)
    assert score.total > LEAST[kind]
    assert score.differences == []


@pytest.mark.parametrize(
    "kind", ["raw_offsets", pytest.param("raw_entries", marks=pytest.mark.slow), "raw_kretprobes"]
)
def test_register_kprobe_answers_as_the_kernel_did(kind: str) -> None:
    score = SCORERS[kind](scored(AMD64_61), kind)
    assert score.total > 3000
    assert score.differences == []


def test_neighbours_take_jumps_away_as_in_the_kernel() -> None:
    """Every instruction of a function is probed at once."""
    score = SCORERS["offsets_crowded"](scored(AMD64_61), "offsets_crowded")
    assert score.total > 10000
    assert score.differences == []


def test_functions_are_those_of_the_text() -> None:
    kernel = opened(AMD64_61)
    starts = function_starts(kernel)
    assert 46_000 < len(starts) < 48_000
    assert starts == sorted(set(starts))
    assert function_starts(kernel, "vfs_read") == [kernel.image.names.find("vfs_read")]


def test_modules_that_are_loaded_are_known() -> None:
    """`MOD:SYM` and SYM of a module, which another one is laid out behind."""
    paths = tuple(str(module_path(name)) for name in ("libarc4", "crc16"))
    kernel = OpenedKernel.open(image_path(AMD64_61), KernelChoice(modules=paths))
    lines = ("p libarc4:arc4_crypt", "p arc4_crypt+5", "p libarc4:nosuch", "p other:nosuch")
    rows = list(defined_rows(kernel, lines, sequence=False))
    assert [row.technique for row in rows[::2]] == ["ftrace", "rejected"]
    assert [row.technique for row in rows[1::2]] in (["jump", "none"], ["breakpoint", "none"])
    assert [row.symbol for row in rows[:2]] == ["arc4_crypt", "arc4_crypt"]
    assert rows[2].errno == "ENOENT"
    assert matching_starts(kernel, ["libarc4:arc4_cr*"]) == [rows[0].address]
    assert next(entry_rows(kernel, [rows[0].address or 0])).technique == "ftrace"
    first, second = (each.image.elf for each in kernel.loaded)
    assert first.high <= second.low
    places = [each.places for each in kernel.loaded]
    # Thunks and landing pads are the kernel's.
    assert places[0]._rules._thunks == kernel.places._rules._thunks  # type: ignore[attr-defined]


COUNTED = 29
"""Of so many functions one is counted in the fast tests."""


@pytest.mark.parametrize("name", KERNELS)
def test_counts_are_those_of_the_rows(name: str) -> None:
    """Places judged all at once, and one by one with the reason of each."""
    kernel = opened(name)
    starts = function_starts(kernel)[::COUNTED]
    rows = place_rows(kernel, starts, together=False)
    expected = Counter((row.technique, row.rule) for row in rows)
    assert sum(expected.values()) > 30_000
    assert len(expected) >= 4
    assert place_counts(kernel, starts) == expected


@pytest.mark.slow
def test_counts_of_a_whole_kernel_and_its_modules() -> None:
    kernel = opened(AMD64_61)
    modules = (OpenedKernel.open(module_path(name), KernelChoice()) for name in MODULES)
    for each in (kernel, *modules):
        starts = function_starts(each)
        rows = place_rows(each, starts, together=False)
        assert place_counts(each, starts) == Counter((row.technique, row.rule) for row in rows)


def test_few_places_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a table's site decides about, and the first of most functions."""
    kernel = opened(AMD64_61)
    starts = function_starts(kernel)[::COUNTED]
    asked: list[int] = []
    judge = KernelPlaces.event

    def counted(places: KernelPlaces, address: int) -> KernelVerdict:
        asked.append(address)
        return judge(places, address)

    monkeypatch.setattr(KernelPlaces, "event", counted)
    counts = place_counts(kernel, starts)
    assert len(asked) < 0.05 * sum(counts.values())
