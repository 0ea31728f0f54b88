"""Settings of gdb that say how values are printed (`set print ...`)."""

from typing import Final

from msgspec import Struct

UNLIMITED: Final = 1 << 32
"""Stands for a limit that is none."""


class PrintOptions(Struct, frozen=True, kw_only=True):
    """The choices behind `set print`, with gdb's defaults.

    Attributes:
        elements: elements and characters that are printed at the most.
        repeats: equal elements in a row that are still printed one by one.
        depth: structures inside each other that are printed.
        pretty: each member of a structure has a line of its own.
        array: each element of an array has a line of its own.
        indexes: elements have their numbers in front.
        address: pointers to functions and strings, and references, show their addresses.
        symbol: pointers show the symbol that they point at.
        union: unions inside structures are printed.
        statics: static members of classes are printed.
        object: an object, or what a pointer leads to, is shown in its own class, as its table of
            virtual functions tells.
        tables: kept for scripts: what gdb 13 shows of virtual functions does not depend on it.
        null_stop: a text in an array ends at its first NUL.
        radix: whole numbers are printed to the base of 8, 10 or 16.
    """

    elements: int = 200
    repeats: int = 10
    depth: int = 20
    pretty: bool = False
    array: bool = False
    indexes: bool = False
    address: bool = True
    symbol: bool = True
    union: bool = True
    statics: bool = True
    object: bool = False
    tables: bool = False
    null_stop: bool = False
    radix: int = 10


DEFAULT: Final = PrintOptions()
