"""Pieces of functions that compilers put elsewhere: they are jumped to and never called.

A cold part has a symbol or a range of the unwind tables of its own, but where it begins the
stack is in the middle of its function: the return address is not where a call leaves it.
"""

import re
from typing import Final

from engine.arch.base import Arch
from engine.image import find_fde
from engine.session.program.places import Place
from engine.unwind.program import rows
from engine.unwind.rows import CfaRegister

_COLD: Final = re.compile(r"\.cold(\.\d+)?$")


def is_part(arch: Arch, place: Place) -> bool:
    """Whether a function's entry is none: code that another function jumps to.

    Args:
        arch: of the program.
        place: an entry.
    """
    if place.symbol is not None and _COLD.search(place.symbol):
        return True
    image, start = place.image, place.link - place.offset
    fde = find_fde(image, start)
    if fde is None or fde.start != start:
        return False
    names = {r.dwarf: r.name for r in arch.registers if r.dwarf is not None}
    row = rows(fde, names, image.bits, image.layout.order)[1][0]
    if row is None or not isinstance(row.cfa, CfaRegister):
        return False
    pushed = 0 if arch.roles.link else arch.bits // 8
    return (row.cfa.register, row.cfa.offset) != (arch.roles.sp, pushed)
