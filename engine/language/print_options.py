"""Settings of gdb that say how values are printed (`set print ...`)."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import fields, replace

from engine.errors import CommandError

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
        raw: containers are shown as they are made, as /r does.
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
    raw: bool = False
    radix: int = 10


DEFAULT: Final = PrintOptions()

_TRUTHS: Final = {"on": True, "off": False, "1": True, "0": False}
_MOST: Final = 1 << 20
_OF_LINES: Final = ("pretty", "array", "tables")
"""Choices about lines: a value of an event has one."""


def chosen_options(words: Iterable[str]) -> PrintOptions:
    """The choices that words like "elements=20", "depth=unlimited" and "union=off" stand for.

    Raises:
        CommandError: one means nothing.
    """
    found = DEFAULT
    known = {one.name: one.type for one in fields(PrintOptions) if one.name not in _OF_LINES}
    for word in words:
        name, _, text = word.partition("=")
        value: int | bool | None
        if name not in known:
            raise CommandError(f"--print {word}: there is {', '.join(known)}")
        if known[name] is bool:
            value, wanted = _TRUTHS.get(text), "on or off"
        else:
            number = text.isascii() and text.isdigit() and len(text) < 8 and int(text) <= _MOST
            value = UNLIMITED if text == "unlimited" else int(text) if number else None
            wanted = f"a number up to {_MOST} or unlimited"
        if value is None:
            raise CommandError(f"--print {word}: {name} is {wanted}")
        found = replace(found, **{name: value})
    return found
