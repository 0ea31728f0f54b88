"""Values of classes that an expression makes from their parts: `Vec{1, 2}` and `Vec(1, 2)`."""

from collections.abc import Callable, Sequence

from engine.errors import CommandError
from engine.image.classes import class_parts
from engine.image.datatypes import Member, TypeKind
from engine.image.dietypes import DieType
from engine.language.class_members import has_table
from engine.language.user_types import bare_type
from engine.language.value_types import CType
from engine.language.values import TypedValue

Convert = Callable[[TypedValue, CType], TypedValue]
"""A value in another type."""


def aggregate(
    kind: CType, given: Sequence[TypedValue], convert: Convert, template: TypedValue
) -> TypedValue:
    """A class's value from those of its parts, in their order; the others are zero.

    Args:
        kind: an aggregate (C++20, [dcl.init.aggr]): a class without constructors.
        given: values of its first parts.
        convert: gives a value in the type of a part.
        template: any value of the place, for the order of bytes.

    Raises:
        CommandError: it has fewer parts.
    """
    whole = kind.resolved
    name = bare_type(kind.text)
    parts = [member for member in whole.members if member.name or member.is_base]
    if len(given) > len(parts):
        raise CommandError(f"{name} has {len(parts)} parts, {len(given)} values were given.")
    raw = bytearray(whole.size or 0)
    for value, member in zip(given, parts, strict=False):
        _put(raw, member, convert(value, member.type).raw, template)
    made = bytes(raw)
    return TypedValue(kind, lambda: made, order=template.order)


def _put(raw: bytearray, member: Member, part: bytes, template: TypedValue) -> None:
    if not member.bit_size:
        raw[member.offset : member.offset + len(part)] = part
        return
    number = int.from_bytes(raw, "little")
    mask = (1 << member.bit_size) - 1
    bits = int.from_bytes(part, template.order) & mask
    number = number & ~(mask << member.bit_offset) | bits << member.bit_offset
    raw[:] = number.to_bytes(len(raw), "little")


def is_constructed(kind: CType) -> bool:
    """True for a class whose objects constructors make, or whose parts are not all public."""
    if kind.kind is not TypeKind.RECORD or kind.keyword == "union" or has_table(kind, 0):
        return True
    parts = class_parts(kind) if isinstance(kind, DieType) else None
    if parts is None:
        return False
    own = bare_type(kind.text).partition("<")[0].rpartition("::")[2]
    public = all(field.access == "public" for field in parts.fields if not field.static)
    return not public or any(method.name.partition("<")[0] == own for method in parts.methods)
