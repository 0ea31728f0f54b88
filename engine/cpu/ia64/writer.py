"""Types of descriptions of instructions, and of the writers that they are given.

A description (`insns_integer`) is a function that says once what an instruction does, with the
values and operations of a writer. There are two: `Emitter` writes the source of a Python function,
`JitCode` the text of an LLVM one. Descriptions are checked against both: an operation that one
of them lacks is a type error.
"""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.arch.ia64.decode import SlotInsn
    from engine.cpu.ia64.emitter import Emitter, PythonCondition
    from engine.cpu.ia64.jit_code import JitCode
    from engine.cpu.ia64.jit_value import JitValue
    from engine.cpu.ia64.python_value import PythonValue

Writer: TypeAlias = "Emitter | JitCode"
Value: TypeAlias = "PythonValue | JitValue"
"""A value of 64 bits that generated code computes; operators are modulo 2**64."""
Operand: TypeAlias = "PythonValue | JitValue | int"
Argument: TypeAlias = "PythonValue | JitValue | int | str"
Relation: TypeAlias = "PythonCondition | str"
Result: TypeAlias = "Callable[[Emitter | JitCode, SlotInsn], PythonValue | JitValue]"
"""Describes an instruction that only writes the general register r1: with which value."""
Action: TypeAlias = "Callable[[Emitter | JitCode, SlotInsn], None]"
"""Describes any other instruction."""


class IllegalInsn(Exception):  # noqa: N818 - what the guest meets, no error of ours
    """The instruction is an illegal operation whenever its predicate is set; says why."""
