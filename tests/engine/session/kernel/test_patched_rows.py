"""What a place was in the file and became, side by side."""

from functools import lru_cache

import pytest
from kernelgolden import golden_patches
from kernelimages import AMD64_61, SLOW_612, SLOW_ARM64, image_path

from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.patched_rows import PatchedRow, patched_rows
from engine.session.kernel.verdict_rows import function_starts
from engine.session.protocol.kernels import KernelChoice

SAMPLE = 300
"""One of so many functions is looked at."""


@lru_cache(maxsize=1)
def opened(name: str) -> OpenedKernel:
    return OpenedKernel.open(image_path(name), KernelChoice())


def function(kernel: OpenedKernel, name: str) -> list[PatchedRow]:
    start = kernel.image.names.find(name)
    assert start is not None
    found = kernel.names.bounds(start)
    assert found is not None
    return list(patched_rows(kernel, found[1], found[2]))


def test_returns_and_entries_show_what_they_were() -> None:
    kernel = opened(AMD64_61)
    thunk = kernel.image.names.find("__x86_return_thunk")
    rows = function(kernel, "vfs_read")
    assert (rows[0].live.mnemonic, rows[0].kinds) == ("nop", ("ftrace nop",))
    fentry = kernel.image.names.find("__fentry__")
    assert rows[0].before == f"call {fentry:#x}"
    at = next(i for i, row in enumerate(rows) if "return thunk" in row.kinds)
    assert (rows[at].live.text, rows[at].before) == ("ret", f"jmp {thunk:#x}")
    # The four bytes behind it were the rest of that jump.
    assert [(row.live.text, row.patched, row.was) for row in rows[at + 1 : at + 5]] == [
        ("int3", True, ())
    ] * 4
    assert not rows[1].patched
    assert (rows[1].before, rows[1].kinds) == ("", ())


def test_what_is_alike_has_no_kinds_and_rows_do_not_depend_on_the_range() -> None:
    kernel = opened(AMD64_61)
    rows = function(kernel, "vfs_write")
    assert any(row.kinds == ("alternative",) for row in rows)
    middle = rows[len(rows) // 2]
    assert (
        list(patched_rows(kernel, middle.address, rows[-1].address)) == rows[len(rows) // 2 : -1]
    )
    assert next(patched_rows(kernel, middle.address - 1, rows[-1].address)) == middle


@pytest.mark.parametrize("name", [AMD64_61, SLOW_612, SLOW_ARM64])
def test_rows_are_the_text_of_the_running_kernel(name: str) -> None:
    kernel, known = opened(name), golden_patches(name)
    starts = function_starts(kernel)[::SAMPLE]
    patched = equal = 0
    for start in starts:
        found = kernel.names.bounds(start)
        assert found is not None
        rows = list(patched_rows(kernel, found[1], found[2]))
        assert b"".join(row.live.raw for row in rows) == kernel.live.read(start, found[2] - start)
        assert b"".join(row.file for row in rows) == kernel.image.read(start, found[2] - start)
        for row in rows:
            assert bool(row.kinds) == row.patched
            for at in range(row.address, row.live.address + row.live.size):
                if at in known:
                    patched += 1
                    own = kernel.live.read(at, len(known[at]))
                    equal += own == known[at]
    assert patched > 30
    assert equal >= 0.99 * patched
