"""Numbers of enumerations by name, as gdb prints them (generic_val_print_enum_1)."""

from collections.abc import Sequence

from engine.image.datatypes import DataType, TypeKind
from engine.language.value_types import CType


def of_type(number: int, kind: CType) -> str:
    """A number of an enumeration's type."""
    return enumerator(number, named(kind))


def named(kind: CType) -> tuple[tuple[str, int], ...]:
    """The names and numbers of an enumeration, with what stands in front of the names."""
    return tuple((kind.prefix + name, value) for name, value in kind.enumerators)


def enumerator(number: int, names: Sequence[tuple[str, int]]) -> str:
    """A number by its name, as names of bits, or as a number.

    Args:
        number: the number.
        names: names and numbers in the order of the declaration.
    """
    for name, value in names:
        if value == number:
            return name
    flags = [(value, name) for name, value in names if value > 0]
    single = flags and all(value & value - 1 == 0 for value, _ in flags)
    if not single or number < 0:
        return str(number)
    set_names = [name for value, name in flags if number & value]
    rest = number & ~sum({value for value, _ in flags})
    if not set_names:
        return f"(unknown: {number:#x})" if number else "0"
    if rest:
        set_names.append(f"unknown: {rest:#x}")
    return "(" + " | ".join(set_names) + ")"


def is_nameless_enumeration(kind: DataType) -> bool:
    """True for an enumeration that only its names tell from others."""
    return kind.kind is TypeKind.ENUM and kind.text == "enum {...}"


def enumeration_text(kind: CType | DataType) -> str:
    """An enumeration; values that do not follow on are written."""
    parts: list[str] = []
    expected = 0
    for name, value in kind.enumerators:
        shown = kind.prefix + name
        parts.append(shown if value == expected else f"{shown} = {value}")
        expected = value + 1
    head = kind.text.replace(" {...}", "")
    if not head.startswith("enum"):
        scoped = kind.prefix == f"{head}::"
        word = "enum class" if scoped else "enum"
        head = f"{word} {head}"
        under = kind.target.resolved.text
        head += f" : {under}" if under else ""
    return f"{head} {{{', '.join(parts)}}}"
