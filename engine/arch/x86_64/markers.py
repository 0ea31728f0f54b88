"""Operands of static probes in AT&T's syntax: `%edi`, `$5`, `-16(%rbp)`, `table+4(%rip)`."""

import re
from typing import Final

from engine.arch.marker_operands import MarkerSyntax
from engine.arch.x86_64.slices import SLICES

_WHOLE: Final = (
    *(f"r{name}" for name in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp")),
    *(f"r{number}" for number in range(8, 16)),
)

MARKERS: Final = MarkerSyntax(
    registers={
        **SLICES,
        "sp": ("rsp", 0, 2),
        **{f"r{number}b": (f"r{number}", 0, 1) for number in range(8, 16)},  # gas: r8b for r8l
        **{name: (name, 0, 8) for name in _WHOLE},
    },
    prefix="%",
    zero=frozenset(),
    other=re.compile(r"[xyz]mm\d+|st(?:\(\d\))?|mm\d|k\d|[c-gs]s"),
    constant=re.compile(r"\$(?P<number>[+-]?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,20}))", re.ASCII),
    memory=re.compile(
        r"(?P<place>(?!\$)[^()%:*]*)"
        r"(?:\((?:%(?P<base>\w+))?(?:,\s?%(?P<index>\w+)(?:,\s?(?P<scale>[1248]))?)?\))?",
        re.ASCII,
    ),
    relative="rip",
)
