"""Blocks that hold suspicious bytes: what is cleared without a disassembler is harmless to it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.arch import by_name
from engine.arch.x86_64.decode import length
from engine.arch.x86_64.screen import clears
from engine.image import ElfImage
from engine.insn.disasm import Disassembler

_ARCH = by_name("x86_64")
_DECODE = Disassembler(_ARCH).decode
_SAMPLES = Path(__file__).parents[4] / "samples" / "bin" / "x86_64"


def screened(raw: bytes) -> bool:
    """True if the whole of the bytes is known, and some of it must not run."""
    insns = _DECODE(0x1000, raw)
    return bool(_ARCH.screen(insns)) or sum(insn.size for insn in insns) < len(raw)


@pytest.mark.parametrize("name", ["words", "floats", "sort"])
def test_code_of_programs(name: str) -> None:
    """Stretches of a few instructions, from each instruction on."""
    image = ElfImage.open(_SAMPLES / name)
    code = next(section for section in image.sections if section.name == ".text")
    data = image.read_vaddr(code.addr, code.size)
    starts, at = [], 0
    while at < len(data) and (size := length(data[at : at + 15])):
        starts.append(at)
        at += size
    found = {True: 0, False: 0}
    for first, last in zip(starts, starts[6:], strict=False):
        raw = data[first:last]
        cleared = clears(raw)
        found[cleared] += 1
        assert not (cleared and screened(raw)), raw.hex()
    assert found[True] > 100


@given(st.binary(min_size=1, max_size=15))
def test_any_bytes(raw: bytes) -> None:
    size = length(raw)
    if size and clears(raw[:size]):
        assert not _ARCH.screen(_DECODE(0x1000, raw[:size]))


@pytest.mark.parametrize(
    "text", ["c5f877", "62f17c48280a", "d9e8", "8fe97812c0", "0fae18", "4089c49e", "c3c5f8"]
)
def test_what_is_screened_is_not_cleared(text: str) -> None:
    """AVX, AVX-512, x87, XOP, stmxcsr, flags behind others; and bytes cut short."""
    raw = bytes.fromhex(text)
    assert not clears(raw) or not screened(raw)


def test_constants_and_distances_are_cleared() -> None:
    assert clears(bytes.fromhex("89de29dabf010000004881c6801a4000e88fffffff"))
    assert clears(bytes.fromhex("4101c483fb0177ed"))
