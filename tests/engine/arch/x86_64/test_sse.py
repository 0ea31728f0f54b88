"""Instructions of SSE in Python, on a CPU for which no host computes."""

import struct

import pytest
from barecpu import CODE, DATA, BareCpu

from engine.arch.base import TrapKind
from engine.arch.x86_64 import sse
from engine.arch.x86_64.decode import decode
from engine.cpu.base import Stop, StopKind


@pytest.fixture(autouse=True)
def _portable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")


def machine(code: str, first: bytes = b"", second: bytes = b"") -> BareCpu:
    """With xmm0 to xmm2: 0 and the operands; the second is in memory too, where rbx points."""
    cpu = BareCpu("x86_64")
    cpu.write(CODE, bytes.fromhex(code + "0f05"))
    cpu.write(DATA, second)
    for number, value in enumerate((b"", first, second)):
        cpu.write_register(f"xmm{number}", int.from_bytes(value, "little"))
    cpu.write_register("rbx", DATA)
    return cpu


def ran(code: str, first: bytes = b"", second: bytes = b"") -> BareCpu:
    cpu = machine(code, first, second)
    assert cpu.run().kind is StopKind.SYSCALL
    return cpu


CARRY, ZERO, SIGN, OVERFLOW = 1, 0x40, 0x80, 0x800


@pytest.mark.parametrize(
    ("how", "first", "second", "index", "flags"),
    [
        (0x00, b"lo", b"hello, world 1234", 2, CARRY | SIGN),  # any of these
        (0x40, b"lo", b"hello, world 1234", 10, CARRY | SIGN),  # the last
        (0x04, b"az", b"HELLo", 4, CARRY | SIGN | ZERO),  # in a range
        (0x08, b"same", b"same", 0, CARRY | SIGN | ZERO | OVERFLOW),  # each like each
        (0x18, b"same", b"sane", 2, CARRY | SIGN | ZERO),  # the first that differs
        (0x0C, b"wor", b"hello, world", 7, CARRY | SIGN | ZERO),  # a part
        (0x0C, b"war", b"hello, world 1234", 16, SIGN),  # none
    ],
)
def test_strings(how: int, first: bytes, second: bytes, index: int, flags: int) -> None:
    cpu = ran(f"660f3a63ca{how:02x}", first, second[:16])  # pcmpistri xmm1, xmm2, how
    assert cpu.read_register("rcx") == index
    assert cpu.read_register("eflags") & 0x8D5 == flags


def test_strings_with_lengths_and_masks() -> None:
    # pcmpestrm xmm1, [rbx], 0x45: a mask of words within a range
    cpu = machine("660f3a600b45", struct.pack("<2H", 5, 9), struct.pack("<4H", 4, 5, 9, 10))
    cpu.write_register("rax", -2 & 0xFFFFFFFF)
    cpu.write_register("rdx", 100)
    cpu.run()
    assert cpu.read_register("xmm0") == 0xFFFF_FFFF_0000
    assert cpu.read_register("eflags") & 0x8D5 == CARRY | SIGN


def test_what_crashes_the_emulator() -> None:
    """Its own function looks in front of the string."""
    cpu = machine("660f3a610b63", b"", b"abc")
    cpu.write_register("rax", 0x42)
    assert cpu.run().kind is StopKind.SYSCALL


def test_sums_of_a_register_with_itself() -> None:
    words = struct.pack("<8h", 1, 2, 3, 4, 32767, 32767, -5, -6)
    sums = struct.pack("<4h", 3, 7, -2, -11) * 2
    cpu = ran("660f3801c9", words)  # phaddw xmm1, xmm1
    assert cpu.read_register("xmm1") == int.from_bytes(sums, "little")
    saturated = struct.pack("<4h", 3, 7, 32767, -11) * 2
    cpu = ran("660f3803c9", words)  # phaddsw
    assert cpu.read_register("xmm1") == int.from_bytes(saturated, "little")


def test_sums_of_mmx() -> None:
    cpu = ran("d9e8 0f6f0b 0f3802c9", b"", struct.pack("<2i", 40, 2))  # phaddd mm1, mm1
    assert cpu.read_register("st1") == 0xFFFF << 64 | 42 << 32 | 42
    assert cpu.read_register("fstat") == 0
    assert cpu.read_register("ftag") & 3 != 3


@pytest.mark.parametrize(
    ("code", "results"),
    [
        ("0f53ca", (0.5, 4.0, 0x7F800000, 0)),  # rcpps xmm1, xmm2
        ("0f52ca", (2**-0.5, 2.0, 0x7F800000, 0)),  # rsqrtps
    ],
)
def test_approximations_have_no_flags(code: str, results: tuple[float, float, int, int]) -> None:
    source = struct.pack("<2fII", 2.0, 0.25, 1, 0x7F800000)
    cpu = ran(code, b"", source)
    value = cpu.read_register("xmm1").to_bytes(16, "little")
    assert struct.unpack("<2f", value[:8]) == pytest.approx(results[:2], rel=2**-20)
    assert struct.unpack("<2I", value[8:]) == results[2:]
    assert cpu.read_register("mxcsr") == 0x1F80


def test_silent_rounding() -> None:
    source = struct.pack("<2d", 2.5, -1.25)
    cpu = ran("660f3a09ca09", b"", source)  # roundpd xmm1, xmm2, down
    assert cpu.read_register("xmm1") == int.from_bytes(struct.pack("<2d", 2.0, -2.0), "little")
    assert cpu.read_register("mxcsr") == 0x1F80
    signalling = struct.pack("<Q", 0x7FF4 << 48)
    cpu = machine("660f3a0bca09", b"", signalling)
    cpu.write_register("mxcsr", 0x1F00)
    assert cpu.run() == Stop(StopKind.TRAP, TrapKind.FLOAT, 19)


def test_others_are_left_alone() -> None:
    for code in ("660f3801ca", "660f3a09ca01", "0f51ca", "0f5aca"):
        raw = bytes.fromhex(code)
        decoded = decode(raw)
        assert decoded is not None
        assert not sse.wrong(decoded)
