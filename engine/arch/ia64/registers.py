"""The registers as users and the unwinder see them.

Names and DWARF numbers are gdb's (ia64-tdep.c): 0 to 127 general, 128 to 255 floating point,
256 to 319 predicates, 320 to 327 branch, then pr, ip, psr, cfm; 334 + N is application
register N. General and floating-point registers are logical: as the current frame and the
rotation name them. `pr` is all predicates at once, logical as well. A floating-point register
is 82 bits: sign, exponent (17), significand (64), as stf.spill stores them. `psr` is the
user mask, all of it that programs see.
"""

from typing import Final

from engine.arch.base import Register

_AR: Final = 334

APPLICATION: Final = {
    16: "rsc",
    17: "bsp",
    18: "bspstore",
    19: "rnat",
    25: "csd",
    26: "ssd",
    32: "ccv",
    36: "unat",
    40: "fpsr",
    64: "pfs",
    65: "lc",
    66: "ec",
}
"""Application registers that a program keeps state in, by number."""

_GENERAL_ALIASES: Final = {1: ("gp",), 8: ("ret0",), 12: ("sp",), 13: ("tp",)}
_GENERAL: Final = ("bsp", "bspstore", "rnat", "unat", "pfs", "lc", "ec", "rsc", "ccv")

REGISTERS: Final = (
    Register("ip", dwarf=331, aliases=("pc",)),
    *(
        Register(f"r{number}", dwarf=number, aliases=_GENERAL_ALIASES.get(number, ()))
        for number in range(128)
    ),
    *(
        Register(f"b{number}", dwarf=320 + number, aliases=("rp",) if number == 0 else ())
        for number in range(8)
    ),
    Register(
        "pr",
        dwarf=330,
        group="flags",
        flags=tuple((number, f"p{number}") for number in range(1, 64)),
    ),
    Register("cfm", bits=38, dwarf=333),
    Register("psr", dwarf=332, aliases=("um",), group="system"),
    *(
        Register(
            name,
            dwarf=_AR + number,
            aliases=(f"ar.{name}",),
            group="general" if name in _GENERAL else "float" if name == "fpsr" else "system",
        )
        for number, name in APPLICATION.items()
    ),
    *(Register(f"f{number}", bits=82, dwarf=128 + number, group="float") for number in range(128)),
)
"""All registers in display order."""
