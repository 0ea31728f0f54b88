"""Verdicts on a kernel image's places are those that the kernel itself gave.

The rows are a sample of what Linux answered when probes were put there (see tests/data/kernel).
Left out is what no image can tell: modules that were loaded, and addresses shown hashed.
"""

import errno
import json
import lzma
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest
from kernelimages import AMD64_61, AMD64_612, ARM64_61, DATA, GOLDEN, image_path, module_path

from engine.session.kernel.lines import defined_rows
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.rows import KernelRow, error_name, function_starts
from engine.session.protocol.kernels import KernelChoice

KERNELS = (AMD64_61, AMD64_612, ARM64_61)
KINDS = {"optimised": "jump", "ftrace": "ftrace", "breakpoint": "breakpoint"}
HASHED = re.compile(r"0x[0-9a-f]{16}")


@lru_cache(maxsize=1)
def opened(name: str) -> OpenedKernel:
    """An image, its text as it runs on the machine of the recordings."""
    return OpenedKernel.open(image_path(name), KernelChoice())


def golden(name: str, kind: str) -> Iterator[Any]:
    """The rows of a file."""
    path = DATA / GOLDEN[name] / f"{kind}.given.jsonl.xz"
    yield from map(json.loads, lzma.decompress(path.read_bytes()).splitlines())


def code(row: KernelRow) -> int:
    """The result as the kernel has it."""
    return -int(getattr(errno, row.errno)) if row.errno else 0


@lru_cache(maxsize=3)
def loaded_modules(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Names of the modules that were loaded, and of their symbols."""
    path = DATA / GOLDEN[name] / "kallsyms.txt.xz"
    lines = lzma.decompress(path.read_bytes()).decode().splitlines()
    rows = [line.split() for line in lines if "\t" in line]
    return frozenset(row[3].strip("[]") for row in rows), frozenset(row[2] for row in rows)


def in_module(name: str, line: str) -> bool:
    """True for a line about a module that was loaded."""
    modules, symbols = loaded_modules(name)
    place = line.split()[1] if len(line.split()) > 1 else ""
    module, colon, symbol = place.partition(":")
    if colon and module in modules:
        return True
    return re.split(r"[+%]", symbol if colon else place)[0] in symbols


@pytest.mark.parametrize("name", KERNELS)
def test_definitions_are_answered_as_the_kernel_did(name: str) -> None:
    rows = [row for row in golden(name, "definitions") if not in_module(name, row["line"])]
    assert len(rows) > 300
    kernel = opened(name)
    wrong: list[Any] = []
    for row, ours in zip(
        rows, defined_rows(kernel, [row["line"] for row in rows], sequence=False), strict=True
    ):
        if row["line"].startswith(("f:", "t:")) and name == AMD64_612:
            continue  # written to kprobe_events there, which takes only kprobes
        wanted = row["rc"], row.get("err"), row.get("col")
        if wanted != (code(ours), ours.error or None, ours.column):
            wrong.append((row["line"], wanted, (code(ours), ours.error, ours.column)))
        if not row["rc"]:
            shown = HASHED.sub("0x", row["shown"] or "")
            if (shown, row.get("format")) != (HASHED.sub("0x", ours.shown), ours.format or None):
                wrong.append((row["line"], shown, ours.shown))
    assert wrong == []


@pytest.mark.parametrize("kind", ["entries", "kretprobes"])
@pytest.mark.parametrize("name", KERNELS)
def test_functions_are_judged_as_the_kernel_did(name: str, kind: str) -> None:
    asked = [
        (f"{row['def']}:s/e {row['sym']}", row)
        for row in golden(name, kind)
        if not in_module(name, f"p {row['sym']}")
    ]
    assert len(asked) > 600
    wrong: list[Any] = []
    answers = defined_rows(opened(name), [line for line, _ in asked], sequence=False)
    for (line, row), ours in zip(asked, answers, strict=True):
        wanted = row["rc"], row.get("err") if row["rc"] else None
        if wanted != (code(ours), ours.error or None):
            wrong.append((line, wanted, code(ours), ours.reason))
        elif row.get("kind") and KINDS[row["kind"]] != ours.technique:
            wrong.append((line, row["kind"], ours.technique, ours.reason))
    assert wrong == []


@pytest.mark.parametrize("name", KERNELS)
def test_places_are_judged_as_the_kernel_did(name: str) -> None:
    kernel = opened(name)
    wrong, count = [], 0
    for row in golden(name, "offsets"):
        (start,) = kernel.image.names.all_of(row["sym"])
        verdict = kernel.places.event(start + row["off"])
        refused = verdict.refusal.errno if verdict.refusal is not None else ""
        wanted = error_name(-row["rc"]) if row["rc"] else ""
        kind = KINDS[row["kind"]] if not row["rc"] else ""
        count += 1
        if (refused, verdict.kind) != (wanted, kind):
            wrong.append((row["sym"], row["off"], wanted, kind, verdict))
    assert count > 7000
    assert wrong == []


@pytest.mark.parametrize("kind", ["raw_offsets", "raw_entries", "raw_kretprobes"])
def test_register_kprobe_answers_as_the_kernel_did(kind: str) -> None:
    kernel = opened(AMD64_61)
    wrong = []
    for text, rc in golden(AMD64_61, kind):
        address = int(text, 16)
        if not kernel.image.holds(address):
            continue  # a module's
        verdict = kernel.places.registered(address)
        if kind == "raw_kretprobes" and verdict.ok:
            verdict = kernel.places.returned(address)
        refused = verdict.refusal.errno if verdict.refusal is not None else ""
        if refused != (error_name(-rc) if rc else ""):
            wrong.append((text, rc, verdict))
    assert wrong == []


def test_neighbours_take_jumps_away_as_in_the_kernel() -> None:
    """Every instruction of a function is probed at once."""
    kernel = opened(AMD64_61)
    batches: dict[tuple[int, str], list[Any]] = defaultdict(list)
    for row in golden(AMD64_61, "offsets_crowded"):
        batches[row["b"], row["sym"]].append(row)
    wrong, count = [], 0
    for (_, symbol), rows in batches.items():
        (start,) = kernel.image.names.all_of(symbol)
        armed = sorted(start + row["off"] for row in rows)
        for row in rows:
            verdict = kernel.places.event(start + row["off"])
            kind = kernel.places.crowded(verdict, armed).kind
            count += 1
            if kind != KINDS[row["kind"]]:
                wrong.append((symbol, row["off"], row["kind"], kind))
    assert count > 10000
    assert wrong == []


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
    first, second = (each.image.elf for each in kernel.loaded)
    assert first.high <= second.low
    places = [each.places for each in kernel.loaded]
    # Thunks and landing pads are the kernel's.
    assert places[0]._rules._thunks == kernel.places._rules._thunks  # type: ignore[attr-defined]
