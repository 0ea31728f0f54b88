"""Registers that are a part of another one: eax, ax, al, ah of rax (SDM volume 1, 3.4.1)."""

from collections.abc import Iterator
from typing import Final

Slice = tuple[str, int, int]
"""(the whole register, first byte, bytes)."""


def _slices() -> Iterator[tuple[str, Slice]]:
    for letter in "abcd":
        whole = f"r{letter}x"
        yield f"e{letter}x", (whole, 0, 4)
        yield f"{letter}x", (whole, 0, 2)
        yield f"{letter}l", (whole, 0, 1)
        yield f"{letter}h", (whole, 1, 1)
    for name in ("si", "di", "bp", "sp"):
        yield f"e{name}", (f"r{name}", 0, 4)
        if name != "sp":  # gdb's $sp is the whole stack pointer
            yield name, (f"r{name}", 0, 2)
        yield f"{name}l", (f"r{name}", 0, 1)
    for number in range(8, 16):
        for ending, size in (("d", 4), ("w", 2), ("l", 1)):
            yield f"r{number}{ending}", (f"r{number}", 0, size)


SLICES: Final = dict(_slices())
