"""Values of enumerations by name (gdb/valprint.c, generic_val_print_enum_1)."""

from engine.language.value_types import CType


def enumerator_text(number: int, kind: CType) -> str:
    """A value by its name, or by those of its flags: "(SEEN | LATE)"."""
    prefix = kind.prefix
    names = {value: prefix + name for name, value in reversed(kind.enumerators)}
    if number in names:
        return names[number]
    flags = [(value, name) for name, value in kind.enumerators if value > 0]
    single = flags and all(value & value - 1 == 0 for value, _ in flags)
    if not single or number < 0:
        return str(number)
    set_names = [prefix + name for value, name in flags if number & value]
    rest = number & ~sum({value for value, _ in flags})
    if not set_names:
        return f"(unknown: {number:#x})" if number else "0"
    if rest:
        set_names.append(f"unknown: {rest:#x}")
    return "(" + " | ".join(set_names) + ")"
