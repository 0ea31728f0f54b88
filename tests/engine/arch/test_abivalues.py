"""The parts that the ABIs divide values into, by the examples and rules of their documents."""

import struct

import pytest

from engine.arch import by_name
from engine.arch.abivalues import Bank, Scalar, ScalarKind, ValueShape
from engine.arch.ia64.floatformats import from_double, from_extended, from_single, pack
from engine.arch.ia64.results import decode

SIZES = {"c": 1, "s": 2, "i": 4, "l": 8, "h": 2, "f": 4, "d": 8, "e": 16, "q": 16, "v": 16}
KINDS = {
    **dict.fromkeys("csil", ScalarKind.INTEGER),
    **dict.fromkeys("hfdq", ScalarKind.FLOAT),
    "e": ScalarKind.EXTENDED,
    "v": ScalarKind.VECTOR,
}


def shape(letters: str, *, packed: bool = False, is_record: bool = True) -> ValueShape:
    """A structure of C: c s i l are integers, h f d e q floating-point numbers, v a vector."""
    at, widest, scalars = 0, 1, []
    for letter in letters:
        size = SIZES[letter]
        if not packed:
            at, widest = -(-at // size) * size, max(widest, size)
        scalars.append(Scalar(KINDS[letter], at, size))
        at += size
    return ValueShape(-(-at // widest) * widest, tuple(scalars), is_record)


def parts(arch: str, value: ValueShape) -> str:
    """`g0:8 f8:8`: the bank, the first byte and the bytes of each part; "memory"."""
    divide = by_name(arch).abi.divide
    assert divide is not None
    found = divide(value)
    if found is None:
        return "memory"
    names = {Bank.GENERAL: "g", Bank.FLOAT: "f", Bank.X87: "x"}
    return " ".join(f"{names[part.bank]}{part.offset}:{part.size}" for part in found)


@pytest.mark.parametrize(
    ("arch", "letters", "expected"),
    [
        # AMD64 supplement, 3.2.3: the class of each eightbyte.
        ("x86_64", "id", "g0:8 f8:8"),
        ("x86_64", "fi", "g0:8"),
        ("x86_64", "fff", "f0:8 f8:4"),
        ("x86_64", "lll", "memory"),
        ("x86_64", "e", "x0:16"),
        ("x86_64", "ei", "memory"),
        ("x86_64", "q", "f0:16"),
        ("x86_64", "v", "f0:16"),
        ("x86_64", "vv", "memory"),
        # AAPCS64, 6.8.2: homogeneous aggregates.
        ("aarch64", "ffff", "f0:4 f4:4 f8:4 f12:4"),
        ("aarch64", "fffff", "memory"),
        ("aarch64", "qq", "f0:16 f16:16"),
        ("aarch64", "vvvv", "f0:16 f16:16 f32:16 f48:16"),
        ("aarch64", "hhh", "f0:2 f2:2 f4:2"),
        ("aarch64", "fd", "g0:8 g8:8"),
        ("aarch64", "ddi", "memory"),
        # RISC-V ELF psABI, 2.2.
        ("riscv64", "d", "f0:8"),
        ("riscv64", "fd", "f0:4 f8:8"),
        ("riscv64", "cf", "g0:1 f4:4"),
        ("riscv64", "fff", "g0:8 g8:4"),
        ("riscv64", "q", "g0:8 g8:8"),
        ("riscv64", "lll", "memory"),
        # Itanium Software Conventions, 8.6 and table 8-1.
        ("ia64", "ddddffff", "memory"),
        ("ia64", "dddddddd", " ".join(f"f{8 * number}:8" for number in range(8))),
        ("ia64", "ddddddddd", "memory"),
        ("ia64", "ee", "f0:16 f16:16"),
        ("ia64", "fffff", "f0:4 f4:4 f8:4 f12:4 f16:4"),
        ("ia64", "llll", "g0:8 g8:8 g16:8 g24:8"),
        ("ia64", "lllll", "memory"),
        ("ia64", "ccc", "g0:3"),
        ("ia64", "df", "g0:8 g8:8"),
        ("ia64", "q", "g0:8 g8:8"),
    ],
)
def test_structures(arch: str, letters: str, expected: str) -> None:
    assert parts(arch, shape(letters)) == expected


def test_what_is_not_aligned_is_in_memory_on_x86_64_alone() -> None:
    packed = shape("ci", packed=True)
    assert parts("x86_64", packed) == "memory"
    assert {parts(arch, packed) for arch in ("aarch64", "riscv64", "ia64")} == {"g0:5"}


def test_complex_long_double_takes_both_ends_of_the_x87_stack() -> None:
    assert parts("x86_64", shape("ee", is_record=False)) == "x0:16 x16:16"
    assert parts("x86_64", shape("ee")) == "memory"
    assert parts("ia64", shape("ee", is_record=False)) == "f0:16 f16:16"


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64", "ia64"])
def test_objects_that_must_not_be_copied_are_in_memory(arch: str) -> None:
    assert parts(arch, ValueShape(4, (), is_record=True, by_reference=True)) == "memory"


@pytest.mark.parametrize("number", [0.0, -0.0, 1.5, -2.25e-300, 5e-324, float("inf")])
def test_floating_point_registers_of_ia64_give_the_bytes_that_are_stored(number: float) -> None:
    double = struct.pack("<d", number)
    assert decode(pack(from_double(int.from_bytes(double, "little"))), 8) == double
    if abs(number) == float("inf") or abs(number) in (0, 1.5):
        single = struct.pack("<f", number)
        assert decode(pack(from_single(int.from_bytes(single, "little"))), 4) == single
    assert decode(pack(from_extended(3 << 62, 0x4000)), 16) == struct.pack("<QQ", 3 << 62, 0x4000)
