"""Floating point left to the host: values and flags are those of Unicorn's own functions."""

import ctypes
import random
import struct
from importlib.metadata import version
from itertools import product

import pytest
from archkit import EMULATED

from engine.arch import by_name
from engine.cpu import native, unicorn_softfloat
from engine.cpu import unicorn_linkage as linkage
from engine.cpu import unicorn_softfloat_code as code

KNOWN = "2.1.4"
INEXACT = 0x20
EDGES = {
    True: (
        0,
        1,
        0xFFFFFFFFFFFFF,
        1 << 52,
        2 << 52,
        3 << 52,
        0x3FF << 52,
        0x7FE << 52,
        0x7FF << 52,
    ),
    False: (0, 1, 0x7FFFFF, 1 << 23, 2 << 23, 3 << 23, 0x7F << 23, 0xFE << 23, 0xFF << 23),
}


def numbers(wide: bool, count: int) -> list[tuple[int, ...]]:
    """Tuples of all kinds of numbers and of their neighbours, and random ones."""
    bits = 64 if wide else 32
    edges = [edge + near for edge in EDGES[wide] for near in (0, 1)]
    edges += [edge | 1 << bits - 1 for edge in edges]
    random_ = random.Random(5)
    if count == 3:
        edges = random_.sample(edges, 12)
    tuples = list(product(edges, repeat=count))
    one = 0x3FF << 52 if wide else 0x7F << 23
    scale = bits - (12 if wide else 9)
    for _ in range(400):
        tuples.append(tuple(random_.getrandbits(bits) for _ in range(count)))
        near = (one + random_.getrandbits(scale + 3) for _ in range(count))
        tuples.append(tuple(number | random_.getrandbits(1) << bits - 1 for number in near))
    return tuples


@pytest.mark.parametrize("name", EMULATED)
def test_the_known_version_is_led(name: str) -> None:
    if version("unicorn") != KNOWN or not native.possible():
        pytest.skip("another build of Unicorn, or no host code")
    names = by_name(name).engines.unicorn
    assert names is not None
    assert names.host_float or unicorn_softfloat.install(names.target)


@pytest.mark.parametrize("function", sorted(unicorn_softfloat.routines("aarch64")))
@pytest.mark.slow
def test_values_and_flags_are_unicorns(function: str) -> None:
    own = linkage.address_of(function)
    if not own or not native.possible():
        pytest.skip("another build of Unicorn, or no host code")
    routine = unicorn_softfloat.routines("aarch64")[function]
    placed = native.place((routine.replace(code.PLACE, struct.pack("=Q", own)),))
    assert placed is not None
    (ours,), memory = placed
    wide = function.startswith("float64")
    for values in numbers(wide, unicorn_softfloat.operands(function)):
        for mode, flags in ((0, INEXACT), (0, 0), (0, INEXACT | 1), (1, INEXACT), (3, INEXACT)):
            status = bytes((0, mode, flags))
            first, second = (
                unicorn_softfloat.tried(place, values, status, wide=wide) for place in (own, ours)
            )
            assert first == second, (values, mode, flags)
    assert memory is not None


def test_only_ordinary_numbers_are_the_hosts() -> None:
    called: list[tuple[int, int]] = []

    def unicorns(first: int, second: int, status: int) -> int:
        called.append((first, second))
        return 0

    kind = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)
    other = kind(unicorns)
    at = ctypes.cast(other, ctypes.c_void_p).value or 0
    routine = unicorn_softfloat.routines("aarch64")["float64_mul_aarch64"]
    placed = native.place((routine.replace(code.PLACE, struct.pack("=Q", at)),))
    if placed is None or not native.possible():
        pytest.skip("no host code")
    (ours,), _memory = placed
    ready = bytes((0, 0, INEXACT))
    three, least = 0x4008 << 48, 1 << 52
    assert unicorn_softfloat.tried(ours, (three, three), ready, wide=True)[0] == 0x4022 << 48
    assert not called
    for values, status in (
        ((three, 0), ready),
        ((least, 0x3FF << 52), ready),
        ((three, 0x7FF << 52), ready),
        ((three, three), bytes(3)),
        ((three, three), bytes((0, 1, INEXACT))),
    ):
        unicorn_softfloat.tried(ours, values, status, wide=True)
        assert called.pop() == values
