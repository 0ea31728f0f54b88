"""Registers and flags in use at the places of a function, which a probe must leave alone."""

from collections.abc import Mapping

from msgspec import Struct, field


class CodeFlow(Struct, frozen=True):
    """Liveness before each instruction of one function.

    Attributes:
        red_zone: instruction address to (lowest, highest) offset from the stack pointer of
            bytes below it that are read later; where not known, nothing is said.
        flags: instruction address to the condition flags that are read later ("CF ZF").
    """

    red_zone: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    flags: Mapping[int, str] = field(default_factory=dict)
