"""Types of registers as gdb's descriptions of targets have them (gdb/features, i386-tdep.c)."""

from functools import cache
from typing import Final

from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.made_records import MadeAlias, MadeRecord, union_of, vector_of
from engine.language.value_types import CType, MadeType

BRAIN: Final = "bfloat16"
"""The name of the numbers that are the upper half of a `float`."""
_HALF: Final = ct.number(TypeKind.FLOAT, 2, "half")
_BRAIN: Final = ct.number(TypeKind.FLOAT, 2, BRAIN)
_MXCSR: Final = (
    *("IE", "DE", "ZE", "OE", "UE", "PE", "DAZ", "IM", "DM", "ZM", "OM", "UM", "PM"),
    *("", "", "FZ"),
)


@cache
def number_of(bits: int) -> MadeType:
    """A whole number in a register."""
    size = -(-bits // 8)
    return ct.number(TypeKind.SIGNED, size, f"int{8 * size}_t")


@cache
def vector_type(bits: int) -> MadeRecord:
    """A vector register of x86 by its parts, as gdb has it."""
    rows: list[tuple[str, CType, int]] = [
        ("bfloat16", _BRAIN, 2),
        ("half", _HALF, 2),
        ("float", ct.FLOAT, 4),
        ("double", ct.DOUBLE, 8),
        *((f"int{8 * size}", _part(size), size) for size in (1, 2, 4, 8)),
    ]
    size = bits // 8
    vectors = [
        (f"v{size // one}_{name}", vector_of(kind, size // one)) for name, kind, one in rows
    ]
    fields: list[tuple[str, CType]] = list(vectors)
    if bits == 128:
        fields = [(name, _named(name, kind)) for name, kind in vectors]
        fields.append(("uint128", ct.number(TypeKind.UNSIGNED, 16, "uint128_t")))
        return union_of("vec128", *fields)
    fields.append((f"v{size // 16}_int128", vector_of(number_of(128), size // 16)))
    return union_of(f"builtin_type_vec{bits}i", *fields)


def _named(field: str, vector: MadeType) -> CType:
    """A vector by the name of its type in the descriptions: v8_bfloat16 is a `v8bf16`."""
    name = field.replace("_", "")
    for word, letters in (("bfloat16", "bf16"), ("half", "h"), ("float", "f"), ("double", "d")):
        if name.endswith(word):
            name = name.removesuffix(word) + letters
            break
    return MadeAlias(vector.kind, vector.size, name.replace("int", "i"), made_of=vector)


def _part(size: int) -> CType:
    return number_of(8 * size)


def mxcsr_text(number: int) -> str:
    """The flags that are set in MXCSR: "[ IM DM ]"."""
    names = [name for bit, name in enumerate(_MXCSR) if name and number >> bit & 1]
    return "[ " + "".join(f"{name} " for name in names) + "]"
