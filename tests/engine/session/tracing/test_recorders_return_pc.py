"""The program counter of a return event: the caller's, as handlers of the kernel see it."""

import re

import archkit
import pytest
from sessionkit import SAMPLES, loaded

from engine.arch.plan import Mode
from engine.image import ElfImage, SymbolTable
from engine.session.protocol.requests import TraceOptions

_ROW = re.compile(r"(\w+)\+(0x[0-9a-f]+)/\S+ <- \w+\) at=(0x[0-9a-f]+) in=(0x[0-9a-f]+)")


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("technique", ["breakpoint", "jump"])
@pytest.mark.parametrize("arch", archkit.FIRST_COMPILED)
def test_pc_of_a_return_is_where_the_call_returned_to(
    arch: str, technique: str, mode: Mode
) -> None:
    path = SAMPLES / arch / "recursion"
    symbols = SymbolTable(ElfImage.open(str(path)))
    name = archkit.pc(arch)
    with loaded(path, technique=technique) as guest:
        tracing = guest.tracing(TraceOptions(mode=mode))
        entry = "\\0" if mode is Mode.KERNEL else f"$entry({name})"
        tracing.definitions.define(f"r:t/back fibonacci at={name}:x64 in={entry}:x64")
        guest.run(tracing)
    rows = [_ROW.search(row) for row in guest.events]
    assert len(rows) > 100
    function = symbols.find_all("fibonacci")[0].address
    for row in rows:
        assert row is not None
        caller = symbols.find_all(row[1])[0].address + int(row[2], 16)
        assert int(row[3], 16) == caller
        assert int(row[4], 16) == (0 if mode is Mode.KERNEL else function)


@pytest.mark.parametrize("mode", Mode)
def test_the_same_for_a_uprobe(mode: Mode) -> None:
    path = SAMPLES / "x86_64" / "recursion"
    image = ElfImage.open(str(path))
    function = SymbolTable(image).find_all("factorial")[0].address
    offset = image.file_offset(function)
    assert offset is not None
    with loaded(path) as guest:
        tracing = guest.tracing(TraceOptions(mode=mode))
        tracing.definitions.define(f"r:t/back {path}:{offset:#x} at=%ip:x64 in=\\0:x64")
        guest.run(tracing)
    found = [re.search(r"\((0x\w+) <- 0x\w+\) at=(0x\w+)", row) for row in guest.events]
    assert found
    for row in found:
        assert row is not None
        assert row[1] == row[2]
