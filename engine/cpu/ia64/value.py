"""The common base of values in generated Python and in LLVM text."""

from typing import TypeAlias


class IllegalInsn(Exception):  # noqa: N818 - what the guest meets, no error of ours
    """The instruction is an illegal operation whenever its predicate is set; says why."""


class CodeValue:
    """A value of 64 bits that generated code computes; operators are modulo 2**64.

    Attributes:
        text: the value as the text of an operand.
    """

    __slots__ = ("text",)
    text: str


Operand: TypeAlias = CodeValue | int
Argument: TypeAlias = CodeValue | int | str
