"""What an address shares with its neighbours: the same as each finds for itself."""

import random
from pathlib import Path

import pytest
from compiled import build
from sessionkit import SAMPLES

from engine.image.headers import PF_X
from engine.session.program.functions import FunctionRanges, function_at
from engine.session.program.libraries import ProgramFile
from engine.session.program.opening import OpenedProgram
from engine.session.protocol.config import GuestConfig

INSNS = SAMPLES.parents[1] / "tests" / "data" / "uprobes" / "kf_insns"
MOST = 3000
OVERLAPPING = """\
.globl _start, outer, inner, alias
.type outer,@function
.type inner,@function
.type alias,@function
.type unsized,@function
_start: nop
outer: alias: nop
nop
inner: nop
nop
.size inner,.-inner
nop
.size outer,.-outer
.size alias,3
unsized: nop
nop
.section .rodata
.quad 1
"""


def alike(file: ProgramFile) -> int:
    """Compare all addresses, one behind the other; how many were told by a neighbour."""
    ranges, told = FunctionRanges(), 0
    for segment in file.image.load_segments:
        if not segment.flags & PF_X:
            continue
        for link in range(segment.vaddr, segment.vaddr + min(segment.memsz, MOST)):
            near = ranges.near(file, link)
            if near is not None:
                assert near.function == function_at(file, link), hex(link)
                assert near.symbol == file.symbols.at(link), hex(link)
                told += 1
    return told


@pytest.mark.parametrize(
    "path",
    [*(SAMPLES / at for at in ("x86_64/structs", "aarch64/jumps", "ia64/recursion")), INSNS],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_neighbours_have_the_same_function(path: Path) -> None:
    assert alike(OpenedProgram.open(GuestConfig(guest=str(path))).inspected().main) > 40


def test_functions_that_lie_over_each_other(tmp_path: Path) -> None:
    program = build(tmp_path, "over", ".text\n" + OVERLAPPING, "-nostdlib", "-static")
    assert alike(OpenedProgram.open(GuestConfig(guest=str(program))).inspected().main)


def test_several_functions_are_remembered_at_once() -> None:
    """As a caller's and its callees' are asked about: in turn, and any way around."""
    opened = OpenedProgram.open(GuestConfig(guest=str(SAMPLES / "x86_64/structs")))
    file = opened.inspected().main
    functions = [one for one in file.symbols.functions() if one.size > 2][:40]
    ranges, choose, told = FunctionRanges(), random.Random(1), 0
    for _ in range(2_000):
        for function in (functions[0], choose.choice(functions[:5]), choose.choice(functions)):
            link = function.address + choose.randrange(function.size)
            near = ranges.near(file, link)
            if near is not None:
                assert near.function == function_at(file, link), hex(link)
                assert near.symbol == file.symbols.at(link), hex(link)
                told += function is functions[0]
    assert told > 1_900
