"""Operands of static probes: `a0`, `5`, `-24(s0)`."""

import re
from typing import Final

from engine.arch.marker_operands import MarkerSyntax
from engine.arch.riscv64.decode import NAMES

MARKERS: Final = MarkerSyntax(
    registers={
        **{name: (name, 0, 8) for name in NAMES[1:]},
        **{f"x{number}": (NAMES[number], 0, 8) for number in range(1, 32)},
        "fp": ("s0", 0, 8),
    },
    prefix="",
    zero=frozenset(("zero", "x0")),
    other=re.compile(r"f(?:[ast]\d+|\d+)|v\d+"),
    constant=re.compile(r"(?P<number>[+-]?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,20}))", re.ASCII),
    memory=re.compile(r"(?P<place>[^()%]*)\(\s*(?P<base>\w+)\s*\)", re.ASCII),
)
