"""Programs that single-step themselves by the trap flag see their own instructions, probed or not.

Linux has a program trap behind every probed instruction, too (asked of 6.18, by uprobes on each of
these; it tells SI_USER there, and shows the instructions of its trampolines).
"""

from functools import cache
from pathlib import Path

import pytest
from cguest import compiled
from sessionkit import loaded

from engine.arch.plan import Mode
from engine.image import ElfImage
from engine.image.symbols import SymbolTable
from engine.session.protocol.requests import TraceOptions

PLACES = (
    *(0x00, 0x01, 0x06, 0x07, 0x09, 0x0B, 0x0E, 0x10, 0x12, 0x17, 0x18, 0x19),
    *(0x20, 0x22, 0x27, 0x29, 0x2A, 0x2B, 0x2C, 0x31, 0x33, 0x37, 0x38, 0x39),
)
"""Distances of the instructions from `spot`; the last one is `other`."""
PUSHES = (0x17, 0x29)
"""Those that push the flags: under Linux's uprobes with the trap flag of the step."""


@cache
def start() -> int:
    """File offset of `spot`."""
    image = ElfImage.open(program())
    found = SymbolTable(image).find("spot")
    assert found is not None
    offset = image.file_offset(found.address)
    assert offset is not None
    return offset


def program() -> Path:
    return compiled("steps", "x86_64")


def kprobe(at: int) -> str:
    return f"p:g/at_{at:x} spot+{at}"


def uprobe(at: int) -> str:
    return f"p:g/at_{at:x} {program()}:{start() + at:#x}"


def output(technique: str, mode: Mode, *lines: str) -> str:
    """The program's under probes, each of which is hit."""
    with loaded(program(), technique=technique) as guest:
        tracing = guest.tracing(TraceOptions(mode=mode))
        for line in lines:
            tracing.definitions.define(line)
        guest.run(tracing)
        for line in lines:
            assert f"{line.split()[0][4:]}: (" in guest.text, line
        return guest.output.decode()


@cache
def plain() -> str:
    with loaded(program()) as guest:
        guest.run(guest.tracing())
        return guest.output.decode()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("technique", ["breakpoint", "auto", "jump"])
def test_kprobes_everywhere(technique: str, mode: Mode) -> None:
    assert plain().count("stepped: 0:2,1,1 1:2,1,1 6:2,1,1") == 3
    assert output(technique, mode, *map(kprobe, PLACES)) == plain()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("technique", ["breakpoint", "nop5"])
def test_uprobes_everywhere(technique: str, mode: Mode) -> None:
    kernel = mode is Mode.KERNEL
    places = [at for at in PLACES if not (kernel and at in PUSHES)]
    assert output(technique, mode, *map(uprobe, places)) == plain()


@pytest.mark.parametrize("technique", ["jump", "djprobe"])
def test_a_call_in_a_detour_is_one_instruction(technique: str) -> None:
    """It is several there: the program used to be sent back to the first one for ever."""
    assert output(technique, Mode.STRICT, kprobe(0x12)) == plain()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("place", ["other", "spot"])
def test_returns(place: str, mode: Mode) -> None:
    """Linux gives the trap behind the trampoline, too."""
    assert output("auto", mode, f"r:g/back {place} v=$retval") == plain()


@pytest.mark.slow
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("technique", ["breakpoint", "auto", "jump", "djprobe", "nop5"])
@pytest.mark.parametrize("at", PLACES)
def test_each_alone(at: int, technique: str, mode: Mode) -> None:
    assert output(technique, mode, kprobe(at)) == plain()
    if at not in PUSHES or mode is not Mode.KERNEL:
        assert output(technique, mode, uprobe(at)) == plain()
