"""Types with variants, as Rust's enumerations that hold data are (DWARF 5, 5.7.10)."""

from typing import Final

from msgspec import Struct

from engine.image import dies
from engine.image.datatypes import Member
from engine.image.definitions import RECORDS
from engine.image.dies import Die
from engine.image.dietypes import DieType, member_of_entry
from engine.image.reader import DamagedError

_MEMBER, _VARIANT, _VARIANT_PART = 0x0D, 0x19, 0x33
_AT_DISCR, _AT_DISCR_VALUE = 0x15, 0x16
_FIXED: Final = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8}
"""Bytes of DW_FORM_data1 and its like."""
_MOST: Final = 1 << 16
RUST: Final = 0x1C
"""DW_LANG_Rust."""


class Variant(Struct, frozen=True):
    """A variant of a type.

    Attributes:
        value: of the discriminant; None for all that no other variant has.
        member: the part that is there then; its type has the variant's name.
    """

    value: int | None
    member: Member


class VariantPart(Struct, frozen=True):
    """The variants of a type, of which a value is one.

    Attributes:
        discriminant: the part that tells which; None where there is one variant, or none.
        variants: in the order of the declaration.
    """

    discriminant: Member | None
    variants: tuple[Variant, ...]

    def of(self, number: int) -> Variant | None:
        """The variant for a discriminant's bits; None where no variant has them."""
        size = 0 if self.discriminant is None else self.discriminant.type.size or 0
        mask = (1 << 8 * size) - 1
        default: Variant | None = None
        for variant in self.variants:
            if variant.value is None:
                default = variant
            elif variant.value & mask == number & mask:
                return variant
        return default


def variant_part(kind: object) -> VariantPart | None:
    """The variants of a type; None for a type without.

    Raises:
        DamagedError: the entries are damaged.
    """
    die = kind.entry if isinstance(kind, DieType) else None
    if die is None or die.tag not in RECORDS:
        return None
    shape = die.unit.shape
    for index in shape.children(die.unit.index(die.offset)):
        if shape.tags[index] == _VARIANT_PART:
            return _read(Die(die.unit, shape.offsets[index]))
    return None


def _read(part: Die) -> VariantPart:
    told = part.reference(_AT_DISCR)
    discriminant = None if told is None else member_of_entry(told)
    shape = part.unit.shape
    variants: list[Variant] = []
    for index in shape.children(part.unit.index(part.offset)):
        if shape.tags[index] != _VARIANT:
            continue
        die = Die(part.unit, shape.offsets[index])
        members = [
            Die(part.unit, shape.offsets[one])
            for one in shape.children(index)
            if shape.tags[one] == _MEMBER
        ]
        if members:
            value = _value(die, signed=discriminant is not None and discriminant.type.is_signed)
            variants.append(Variant(value, member_of_entry(members[0])))
        if len(variants) > _MOST:
            raise DamagedError("a type with variants without end")
    return VariantPart(discriminant, tuple(variants))


def _value(variant: Die, *, signed: bool) -> int | None:
    """The discriminant of a variant; LLVM takes as few bytes for it as hold its sign."""
    raw = variant.get(_AT_DISCR_VALUE)
    if isinstance(raw, bytes):  # of 16 bytes
        return int.from_bytes(raw, "little" if variant.unit.info.order == "<" else "big")
    bits = 8 * _FIXED.get(variant.form(_AT_DISCR_VALUE), 0) if raw is not None else 0
    if raw is not None and signed and bits and raw >> bits - 1:
        return raw - (1 << bits)
    return raw


def is_rust(kind: object) -> bool:
    """True for a type that a Rust program declares."""
    die = kind.entry if isinstance(kind, DieType) else None
    return die is not None and die.unit.root.number(dies.AT_LANGUAGE) == RUST
