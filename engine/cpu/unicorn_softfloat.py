"""Unicorn's software floating point, left to the host's processor where both agree anyway.

It has the host add, multiply and so on itself, but asks the C library about each operand and the
result. Here that is done with integers: where the operands and the result are normal numbers,
none of them next to the smallest, where results are rounded to nearest and an inexact result was
noted before, the operation's only effect is its value. Everything else goes to Unicorn's own
function, as everything does where the trial fails, on another host, and where nobody calls it
through a slot.
"""

import ctypes
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from engine.cpu import native
from engine.cpu import unicorn_linkage as linkage
from engine.cpu import unicorn_softfloat_code as code

_OPERATIONS: Final = (("add", 0x58), ("mul", 0x59), ("sub", 0x5C), ("div", 0x5E))
_INEXACT: Final = 0x20
_STATUS: Final = 16
"""Bytes for a float_status, with some behind it."""

_TRIED: Final = ((1.5, 3.0, -0.1), (2.0**-126, 2.0**-1, 1.0), (0.0, -2.0, 7.0), (1e38, 1e300, 2.0))


_KEPT: Final[list[object]] = []
"""The memory with the code: Unicorn runs it as long as the process lives."""


def routines(target: str) -> dict[str, bytes]:
    """Code by the function that it is for."""
    found = {}
    for name, opcode in _OPERATIONS:
        operation = bytes((opcode,))
        add64, add32 = code.ADD64, code.ADD32
        found[f"float64_{name}"] = code.TWO64.replace(add64, add64[:2] + operation + add64[3:])
        found[f"float32_{name}"] = code.TWO32.replace(add32, add32[:2] + operation + add32[3:])
    found |= {"float64_sqrt": code.ROOT64, "float32_sqrt": code.ROOT32}
    if _fuses():
        found |= {"float64_muladd": code.FUSED64, "float32_muladd": code.FUSED32}
    return {f"{name}_{target}": routine for name, routine in found.items()}


@cache
def _fuses() -> bool:
    """True if the host has fused operations."""
    placed = native.place((code.FUSES,))
    if placed is None:
        return False
    (at,), memory = placed
    _KEPT.append(memory)
    return bool(ctypes.CFUNCTYPE(ctypes.c_int)(at)())


def install(target: str) -> bool:
    """Lead calls of Unicorn's functions to the host's, for the whole process.

    Args:
        target: how those functions end.

    Returns:
        Whether they are, and nobody has asked for the host to be left out.
    """
    return native.possible() and led(target)


@cache
def led(target: str) -> bool:
    """Lead them, once; if that cannot be done nothing has changed."""
    codes = routines(target)
    own = {name: linkage.address_of(name) for name in codes}
    slots = linkage.slots_of(tuple(name.encode() for name in codes))
    if slots is None or not all(own.values()):
        return False
    pieces = tuple(
        routine.replace(code.PLACE, struct.pack("=Q", own[name]))
        for name, routine in codes.items()
    )
    placed = native.place(pieces)
    if placed is None:
        return False
    places, memory = placed
    pairs = zip(codes, places, strict=True)
    _KEPT.append(memory)
    if not all(_alike(name, own[name], place) for name, place in pairs):
        return False
    return linkage.redirect(slots, places)


def _alike(name: str, first: int, second: int) -> bool:
    """True if two functions of a name give the same for a few numbers."""
    wide, count = name.startswith("float64"), operands(name)
    return all(
        tried(first, numbers[:count], status, wide=wide)
        == tried(second, numbers[:count], status, wide=wide)
        for status in (bytes((0, 0, _INEXACT)), bytes(3), bytes((0, 1, _INEXACT)))
        for numbers in (tuple(_bits(number, wide=wide) for number in row) for row in _TRIED)
    )


def operands(name: str) -> int:
    """The number of operands of a function."""
    return 1 if "sqrt" in name else 3 if "muladd" in name else 2


def _bits(number: float, *, wide: bool) -> int:
    """A number as the function gets it."""
    form = "=dQ" if wide else "=fI"
    try:
        raw = struct.pack(form[:2], number)
    except OverflowError:
        raw = struct.pack(form[:2], float("inf"))
    return int(struct.unpack("=" + form[2], raw)[0])


def tried(
    function: int, numbers: Sequence[int], status: bytes, *, wide: bool
) -> tuple[int, bytes]:
    """Result of a function, and the status behind it.

    Args:
        function: its address.
        numbers: its operands.
        status: the first bytes of the float_status.
        wide: they have 64 bits, not 32.
    """
    kept = ctypes.create_string_buffer(status, _STATUS)
    word: Any = ctypes.c_uint64 if wide else ctypes.c_uint32
    fused = (ctypes.c_int,) if len(numbers) == 3 else ()
    types = (*(word for _ in numbers), *fused, ctypes.c_void_p)
    nothing = (0,) if fused else ()
    result = ctypes.PYFUNCTYPE(word, *types)(function)(*numbers, *nothing, ctypes.addressof(kept))
    return int(result), kept.raw
