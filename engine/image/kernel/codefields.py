"""Offsets of fields as code of x86-64 reads them: layouts of a kernel that has no types.

A compiler has turned each `structure->field` into a number. Where a function is known, the numbers
in it tell where the field is.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from engine.arch.machine import Insn

CodeOf = Callable[[str], Sequence[Insn]]
"""The instructions of a function, given its name; none of one that is not there."""

LOAD: Final = re.compile(r"(\w+), ([qd])word ptr \[(\w+)(?: \+ (\w+))?\]")
"""A register, the size of a word, and the register and offset that it is read by."""
ADDRESS: Final = re.compile(r"(\w+), \[(\w+) ([+-]) (\w+)\]")
"""A register, and the one that it is off by a number."""
NUMBER: Final = re.compile(r"(\w+), (0x\w+|\d+)")
"""A register and a number."""
COPY: Final = re.compile(r"(\w+), (\w+)")
"""Two registers."""


def offset_added(code: Sequence[Insn], register: str) -> int | None:
    """The number that is added first to a register that holds an argument."""
    for insn in code:
        number, address = NUMBER.fullmatch(insn.operands), ADDRESS.fullmatch(insn.operands)
        if insn.mnemonic == "add" and number and number[1] == register:
            return int(number[2], 0)
        if insn.mnemonic == "lea" and address and address[2] == register and address[3] == "+":
            return int(address[4], 0)
    return None


def loads(code: Sequence[Insn], register: str, size: str = "q") -> Iterator[int]:
    """Offsets of words that are read by way of a register that holds an argument.

    Args:
        code: what reads them.
        register: the register that holds the argument at first.
        size: "q" for words of 64 bits, "d" for those of 32.
    """
    for _, offset in loaded(code, (register,), size):
        yield offset


def loaded(
    code: Sequence[Insn], registers: Sequence[str], size: str = "q"
) -> Iterator[tuple[str, int]]:
    """The same by way of any of some registers, with the registers that they are read to."""
    for insn in code:
        load = LOAD.fullmatch(insn.operands)
        if insn.mnemonic == "mov" and load and load[2] == size and load[3] in registers:
            yield load[1], int(load[4] or "0", 0)


def holders(code: Sequence[Insn], register: str) -> tuple[str, ...]:
    """A register that holds an argument, and those that it is copied to."""
    copies = [
        copy[1]
        for insn in code
        if insn.mnemonic == "mov" and (copy := COPY.fullmatch(insn.operands))
        if copy[2] == register
    ]
    return (register, *copies)
