"""Frames of calls that a debugger makes in the program."""

from collections.abc import Mapping

from msgspec import Struct


class CalledFrame(Struct, frozen=True):
    """The frame between a function that a debugger has called and the code that it interrupts.

    A function that returns to `pc` with `sp` has been called so: nothing else leads there.

    Attributes:
        pc: the return address of the function.
        sp: the stack pointer behind its return.
        registers: those of the interrupted code, by name.
    """

    pc: int
    sp: int
    registers: Mapping[str, int]
