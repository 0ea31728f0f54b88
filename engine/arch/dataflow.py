"""The copies that instructions make of values: from which bytes to which.

A value is followed backwards by this: from what a copy has written to what it has read. What is
not told as a copy is a computation. Bytes of a register count from its lowest one; those of memory
count through all that the instruction loads, or stores, in the order of its accesses.
"""

from collections.abc import Callable, Iterable
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.machine import Insn, RegisterFile

PartKind = Literal["register", "memory", "constant"]


class ValuePart(Struct, frozen=True):
    """Bytes that an instruction reads or writes.

    Attributes:
        kind: where they are.
        name: of the register, as the architecture's record has it.
        first: the first of the register's, or of those that are loaded or stored.
        size: how many; 0 = all that the memory accesses of the instruction leave.
        value: the constant.
    """

    kind: PartKind
    name: str = ""
    first: int = 0
    size: int = 0
    value: int = 0


class ValueCopy(Struct, frozen=True):
    """Bytes that become those of another place.

    Attributes:
        target: where they go; a register, or memory that is stored to.
        source: where they come from, as it was before the instruction.
        wider: bytes of the target register that are filled above them.
        filled: with what: "zero" or "sign".
    """

    target: ValuePart
    source: ValuePart
    wider: int = 0
    filled: str = "zero"


class InsnCopies(Struct, frozen=True):
    """The copies that an instruction makes.

    Attributes:
        copies: the copies, each from one place to another.
        idle: it does nothing, by a condition that does not hold.
        keeps: bytes of a target register that are not told of stay as they are.
    """

    copies: tuple[ValueCopy, ...] = ()
    idle: bool = False
    keeps: bool = False


NO_COPIES: Final = InsnCopies()
"""Of an instruction that computes, or that is not known."""


class DataFlow(Struct, frozen=True):
    """An architecture's knowledge of values.

    Attributes:
        copies: those of an instruction, in front of which the registers are as given.
        accessed: registers that an instruction (reads, writes), where the decoder of a third
            party does not tell; None where it does.
        renamed: given registers and the name of one, says what its name is among the registers of
            another moment, "" for none; None where names are for good.
        renames: mnemonics of instructions that change names, as they begin.
    """

    copies: Callable[[Insn, RegisterFile], InsnCopies]
    accessed: Callable[[Insn], tuple[frozenset[str], frozenset[str]]] | None = None
    renamed: Callable[[RegisterFile, str], Callable[[RegisterFile], str]] | None = None
    renames: tuple[str, ...] = ()


def register(name: str, first: int = 0, size: int = 8) -> ValuePart:
    """Bytes of a register."""
    return ValuePart("register", name, first, size)


def memory(first: int = 0, size: int = 0) -> ValuePart:
    """Bytes of what is loaded or stored."""
    return ValuePart("memory", "", first, size)


def constant(value: int, size: int) -> ValuePart:
    """Bytes of the instruction's own."""
    return ValuePart("constant", "", 0, size, value & (1 << 8 * size) - 1)


def copied(
    target: ValuePart, source: ValuePart, wider: int = 0, filled: str = "zero"
) -> ValueCopy:
    """One copy; the sizes of both are made those of the one that is known."""
    size = min((one.size for one in (target, source) if one.size), default=0)
    return ValueCopy(replace(target, size=size), replace(source, size=size), wider, filled)


def made(copies: Iterable[ValueCopy], *, keeps: bool = False) -> InsnCopies:
    """The doing of an instruction that makes these copies."""
    return InsnCopies(tuple(copies), keeps=keeps)


def split(operands: str) -> list[str]:
    """The operands of an instruction, commas in brackets and braces left alone."""
    found: list[str] = []
    depth, begin = 0, 0
    for at, letter in enumerate(operands):
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and not depth:
            found.append(operands[begin:at].strip())
            begin = at + 1
    last = operands[begin:].strip()
    return [*found, last] if last else found


def number(text: str) -> int | None:
    """An immediate as decoders print it; None for what is none."""
    try:
        return int(text.removeprefix("#"), 0)
    except ValueError:
        return None
