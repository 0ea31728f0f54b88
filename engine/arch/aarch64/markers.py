"""Operands of static probes: `w0`, `5`, `[sp, 12]`, `[x0, x1, lsl 2]`."""

import re
from typing import Final

from engine.arch.marker_operands import MarkerSyntax

MARKERS: Final = MarkerSyntax(
    registers={
        **{f"x{number}": (f"x{number}", 0, 8) for number in range(31)},
        **{f"w{number}": (f"x{number}", 0, 4) for number in range(31)},
        "fp": ("x29", 0, 8),
        "lr": ("x30", 0, 8),
        "sp": ("sp", 0, 8),
        "wsp": ("sp", 0, 4),
    },
    prefix="",
    zero=frozenset(("xzr", "wzr")),
    other=re.compile(r"[bhsdqvz]\d+(?:\.\w+)?|p\d+"),
    constant=re.compile(r"#?(?P<number>[+-]?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,20}))", re.ASCII),
    memory=re.compile(
        r"\[\s*(?P<base>\w+)\s*(?:,\s*(?:"
        r"(?P<index>[xw]\d+)(?:\s*,\s*lsl\s+#?(?P<shift>[0-4]))?"
        r"|#?(?P<place>[+-]?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,20}))"
        r")\s*)?\]",
        re.ASCII,
    ),
)
