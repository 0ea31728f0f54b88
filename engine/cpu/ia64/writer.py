"""What a description of an instruction is written with.

A description (`insns_integer`) is a function that says once what an instruction does, with the
values and operations of a writer. There are two: `Emitter` writes the source of a Python function,
`JitCode` the text of an LLVM one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from engine.arch.ia64.decode import SlotInsn

Operand: TypeAlias = "Value | int"


class IllegalInsn(Exception):  # noqa: N818 - what the guest meets, no error of ours
    """The instruction is an illegal operation whenever its predicate is set; says why."""


class Value(ABC):
    """A value of 64 bits that generated code computes.

    Attributes:
        text: the value as the text of an operand.
    """

    __slots__ = ("text",)
    text: str

    @abstractmethod
    def __add__(self, other: Operand) -> "Value":
        """The sum modulo 2**64."""

    @abstractmethod
    def __sub__(self, other: Operand) -> "Value":
        """The difference modulo 2**64."""

    @abstractmethod
    def __and__(self, other: Operand) -> "Value":
        """The bits that both have."""

    @abstractmethod
    def __or__(self, other: Operand) -> "Value":
        """The bits that one of them has."""

    @abstractmethod
    def __xor__(self, other: Operand) -> "Value":
        """The bits that differ."""

    @abstractmethod
    def __invert__(self) -> "Value":
        """All bits reversed."""

    @abstractmethod
    def __lshift__(self, count: int) -> "Value":
        """Shifted to the left by less than 64."""

    @abstractmethod
    def cut(self, at: int, length: int, signed: bool = False) -> "Value":
        """The bits from `at` on, extended with zeros or with the highest of them."""

    @abstractmethod
    def ones(self) -> "Value":
        """How many bits are set."""

    @abstractmethod
    def leading_zeros(self) -> "Value":
        """How many bits above the highest one that is set; 64 for 0."""


class Writer(ABC):
    """Writes one function: its values, registers and control.

    Attributes:
        nats: whether any general register may be a NaT.
    """

    nats: bool

    # -- values ------------------------------------------------------------------------------

    @abstractmethod
    def number(self, value: int) -> Value:
        """A constant, modulo 2**64."""

    @abstractmethod
    def shift(self, kind: str, value: Value, count: Value) -> Value:
        """`value` shifted by any count: "l" to the left, "u" or "r" (signed) to the right."""

    @abstractmethod
    def funnel(self, high: Value, low: Value, count: int) -> Value:
        """The lower half of 128 bits that are shifted to the right by less than 64."""

    @abstractmethod
    def call(self, name: str, *arguments: Value | int | bool | str) -> Value:
        """What a function of `Helpers.namespace` makes of its arguments."""

    @abstractmethod
    def pairwise(self, name: str, left: Value, right: Value) -> Value:
        """What a function of `integers.PARALLEL` makes of two values."""

    @abstractmethod
    def relation(self, what: str, left: Value, right: Operand, bits: int = 64) -> Any:
        """The condition that the lowest `bits` (32 or 64) of two values are in a relation.

        Args:
            what: "eq", "ne", "slt", "sle", "sgt", "sge" (signed) or "ult".
            left: a value.
            right: another.
            bits: how many of them are compared.
        """

    # -- registers -----------------------------------------------------------------------------

    @abstractmethod
    def general(self, register: int) -> Value:
        """A general register, whose NaT bit goes to what the instruction writes."""

    @abstractmethod
    def nat_of(self, register: int) -> Value:
        """The NaT bit of a general register."""

    @abstractmethod
    def compare(self, insn: SlotInsn, condition: Any, kind: str) -> None:
        """Write the predicates p1 and p2, under the instruction's own predicate.

        Args:
            insn: the instruction.
            condition: of `relation`; a NaT among what was read for it decides otherwise.
            kind: "", "unc", "and", "or" or "or.andcm".
        """


Result = Callable[[Writer, SlotInsn], Value]
"""Describes an instruction that only writes the general register r1: with which value."""
Action = Callable[[Writer, SlotInsn], None]
"""Describes any other instruction."""
