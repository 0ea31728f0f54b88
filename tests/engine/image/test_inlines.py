"""Inlined calls as binutils' addr2line tells them."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from engine.image import ElfImage, Lines, SymbolTable
from engine.image.inlines import Inlines


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
@pytest.mark.parametrize("name", ["unw-O2", "unw-Os", "unw-O2fp", "guests-static"])
def test_as_addr2line(guests: Path, arch: str, name: str) -> None:
    tool = shutil.which("addr2line")
    if tool is None:
        pytest.skip("no addr2line on this machine")
    path = guests / arch / name
    image = ElfImage.open(str(path))
    lines = Lines(image)
    inlines = Inlines(image, lines)
    functions = [f for f in SymbolTable(image).functions() if f.size and lines.line_at(f.address)]
    places = [at for f in functions for at in range(f.address, f.address + f.size)]
    chosen = random.Random(3).sample(places, min(len(places), 2000))
    done = subprocess.run(
        [tool, "-aif", "-e", str(path)],
        input="\n".join(map(hex, chosen)),
        capture_output=True,
        text=True,
        check=True,
    )
    blocks: list[list[str]] = []
    for line in done.stdout.splitlines():
        if line.startswith("0x"):
            blocks.append([])
        else:
            blocks[-1].append(line)
    inlined = 0
    for address, block in zip(chosen, blocks, strict=True):
        functions_there, places_there = block[0::2], block[1::2]
        calls = inlines.at(address)
        assert [call.name for call in calls] == functions_there[:-1], hex(address)
        for call, place in zip(calls, places_there[1:], strict=True):
            assert place.partition(" (")[0] == f"{call.file}:{call.line}", hex(address)
        inlined += bool(calls)
    assert inlined


def test_nothing_without_information(guests: Path) -> None:
    image = ElfImage.open(str(guests / "amd64" / "unw-O2strip"))
    assert Inlines(image, Lines(image)).at(image.entry) == ()
