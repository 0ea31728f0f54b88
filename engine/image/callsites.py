"""Calls as the debug information tells of them: what they give to the callee (DWARF 5, 3.4)."""

from typing import Final

from msgspec import Struct

from engine.image import dies
from engine.image.dies import Die, Unit

_CALLS: Final = frozenset((0x48, 0x4109))
"""DW_TAG_call_site and its forerunner of GCC."""
_GIVEN: Final = frozenset((0x49, 0x410A))
_RETURN_PC, _ORIGIN, _TARGET, _GNU_TARGET = 0x7D, 0x7F, 0x83, 0x2113
_TAIL: Final = (0x82, 0x2115)
_VALUES: Final = (0x7E, 0x2111)


class CallSite(Struct, frozen=True):
    """A call.

    Attributes:
        unit: where it is described.
        callee: the names of the function that is called; empty for one that is computed.
        target: the expression of its address, b"" without one.
        given: by the DWARF number of a register: the expression of the value in it at the
            callee's first instruction.
        tail: it is a jump, which does not return here.
    """

    unit: Unit
    callee: frozenset[str]
    target: bytes
    given: dict[int, bytes]
    tail: bool = False


def call_sites(unit: Unit) -> dict[int, CallSite]:
    """The calls of a unit by the link address behind them.

    Raises:
        DamagedError: the entries are damaged.
    """
    shape = unit.shape
    found: dict[int, CallSite] = {}
    for index, tag in enumerate(shape.tags):
        if tag not in _CALLS:
            continue
        die = Die(unit, shape.offsets[index])
        behind = die.address(_RETURN_PC if tag == 0x48 else dies.AT_LOW_PC)
        if behind is None:
            continue
        given: dict[int, bytes] = {}
        for child in shape.children(index):
            if shape.tags[child] in _GIVEN:
                part = Die(unit, shape.offsets[child])
                register = register_of(part.get(dies.AT_LOCATION))
                value = next((part.get(one) for one in _VALUES if part.has(one)), None)
                if register is not None and isinstance(value, bytes):
                    given[register] = value
        origin = die.reference(_ORIGIN) or die.reference(dies.AT_ABSTRACT_ORIGIN)
        names = () if origin is None else (origin.name, origin.linkage_name)
        target = next((die.get(one) for one in (_TARGET, _GNU_TARGET) if die.has(one)), None)
        callee = frozenset(name for name in names if name)
        code = target if isinstance(target, bytes) else b""
        tail = any(die.has(one) for one in _TAIL)
        found[behind] = CallSite(unit, callee, code, given, tail)
    return found


def register_of(code: int | bytes | None) -> int | None:
    """The register that is all of a location; None for another one."""
    if not isinstance(code, bytes) or not code:
        return None
    if len(code) == 1 and 0x50 <= code[0] <= 0x6F:
        return code[0] - 0x50
    if len(code) == 2 and code[0] == 0x90 and code[1] < 0x80:
        return code[1]
    return None
