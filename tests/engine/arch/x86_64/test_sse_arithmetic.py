"""Arithmetic of SSE in Python, on a CPU for which no host computes."""

import math
import struct

import pytest
from barecpu import CODE, DATA, BareCpu
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arch.base import TrapKind
from engine.arch.x86_64.extended import INEXACT, UNDERFLOW
from engine.arch.x86_64.sse_arithmetic import VectorUnit
from engine.cpu.base import Stop, StopKind

USUAL, FLUSHING, ZEROS = 0x1F80, 0x9F80, 0x1FC0
NUMBERS = st.floats(allow_nan=False)


def bits(number: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", number))[0])


def number(value: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", value))[0])


@given(one=NUMBERS, other=NUMBERS)
@settings(max_examples=300)
def test_doubles_are_pythons(one: float, other: float) -> None:
    unit = VectorUnit(USUAL, 8)
    assert unit.add(bits(one), bits(other)) == bits(one + other) or math.isnan(one + other)
    assert unit.subtract(bits(one), bits(other)) == bits(one - other) or math.isnan(one - other)
    assert unit.multiply(bits(one), bits(other)) == bits(one * other) or math.isnan(one * other)
    if other:
        quotient = number(unit.divide(bits(one), bits(other)))
        assert quotient == one / other or math.isnan(one / other)
    if one >= 0:
        assert number(unit.root(bits(one))) == math.sqrt(one)


@given(one=st.floats(width=32, allow_nan=False))
def test_doubles_become_floats(one: float) -> None:
    single = struct.unpack("<I", struct.pack("<f", one))[0]
    assert VectorUnit(USUAL, 4).converted(bits(one), 8) == single
    assert VectorUnit(USUAL, 8).converted(single, 4) == bits(one)


def test_flushing_to_zero() -> None:
    tiny, half = bits(-(2.0**-1022)), bits(0.5)
    unit = VectorUnit(FLUSHING, 8)
    assert unit.multiply(tiny, half) == 1 << 63
    assert unit.flags == UNDERFLOW | INEXACT
    unit = VectorUnit(USUAL, 8)
    assert unit.multiply(tiny, half) == bits(-(2.0**-1023))
    assert not unit.flags
    unit = VectorUnit(ZEROS, 8)
    assert unit.add(bits(5e-324), 0) == 0
    assert not unit.flags


def test_of_two_nans_the_first_comes_out() -> None:
    first, second = 0x7FF8_0000_0000_0001, 0xFFFF_0000_0000_0002
    assert VectorUnit(USUAL, 8).add(first, second) == first


@pytest.fixture
def _portable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")


def machine(code: str, *doubles: float) -> BareCpu:
    """With doubles where rbx points, and control words from 64 on."""
    cpu = BareCpu("x86_64")
    cpu.write(CODE, bytes.fromhex(code + "0f05"))
    cpu.write(DATA, struct.pack(f"<{len(doubles)}d", *doubles))
    cpu.write(DATA + 64, struct.pack("<3I", 0x1D80, USUAL, 1 << 16))
    cpu.write_register("rbx", DATA)
    return cpu


@pytest.mark.usefixtures("_portable")
def test_an_exception_that_is_not_masked() -> None:
    # movsd xmm0, [rbx]; ldmxcsr [rbx+64]; divsd xmm0, [rbx+8]
    cpu = machine("f20f1003 0fae5340 f20f5e4308", 1.0, 0.0)
    assert cpu.run() == Stop(StopKind.TRAP, TrapKind.FLOAT, 19)
    assert cpu.pc == CODE + 8
    assert cpu.read_register("mxcsr") == 0x1D84
    assert cpu.read_register("xmm0") == bits(1.0)


@pytest.mark.usefixtures("_portable")
def test_a_control_that_comes_and_goes() -> None:
    """What is served, and what is not, follows MXCSR."""
    # ten times: ldmxcsr [rbx+64]; divsd xmm0, [rbx]; ldmxcsr [rbx+68]; divsd xmm0, [rbx]
    code = "b90a000000 f20f104308 0fae5340 f20f5e03 0fae5344 f20f5e03 ffc9 75ec"
    cpu = machine(code, 2.0, 1.0)
    assert cpu.run().kind is StopKind.SYSCALL
    assert cpu.read_register("xmm0") == bits(2.0**-20)


@pytest.mark.usefixtures("_portable")
def test_reserved_bits() -> None:
    assert machine("0fae5348").run() == Stop(StopKind.TRAP, TrapKind.PRIVILEGED, 13)


@pytest.mark.usefixtures("_portable")
def test_an_image_is_loaded() -> None:
    # fldpi; fxsave [rbx+256]; fninit; ldmxcsr [rbx+64]; xorps xmm1, xmm1; fxrstor [rbx+256]
    cpu = machine("d9eb 0fae8300010000 dbe3 0fae5340 0f57c9 0fae8b00010000")
    cpu.write_register("xmm1", 1 << 100 | 5)
    assert cpu.run().kind is StopKind.SYSCALL
    assert cpu.read_register("st0") == 0x4000_C90FDAA22168C235
    assert (cpu.read_register("fstat"), cpu.read_register("ftag")) == (0x3800, 0x3FFF)
    assert cpu.read_register("xmm1") == 1 << 100 | 5
    assert cpu.read_register("mxcsr") == USUAL


@pytest.mark.usefixtures("_portable")
def test_an_image_that_is_not_aligned() -> None:
    assert machine("0fae4b08").run() == Stop(StopKind.TRAP, TrapKind.PRIVILEGED, 13)
