"""Conversions of arguments to the types of parameters, and how good each is (C++17, [over.ics]).

A conversion is a number: the less, the better; None where there is none. Conversions that users
define are found by those who call, and cost more than all others (gdb leaves them out:
gdb/gdbtypes.c, rank_one_type).
"""

from typing import Final

from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.user_types import same_spelling
from engine.language.value_types import CType, is_reference
from engine.language.values import TypedValue

EXACT, ADJUSTED, PROMOTED, CONVERTED = 0, 1, 10, 20
TO_BASE, TO_VOID, TO_TRUTH, BY_USER = 30, 80, 90, 200
_DEPTH: Final = 32


def same_type(one: CType, other: CType) -> bool:
    """True for types that are equal but for qualifiers, in whatever unit each is described."""
    one, other = one.resolved, other.resolved
    if one.kind is not other.kind or one.size != other.size:
        return False
    if one.kind is TypeKind.POINTER:
        if is_reference(one) != is_reference(other) or (one.owner is None) != (
            other.owner is None
        ):
            return False
        return same_type(one.target, other.target)
    return one.key == other.key or same_spelling(one.text) == same_spelling(other.text)


def distance_to_base(kind: CType, base: CType, depth: int = 0) -> int | None:
    """Count the classes from a class up to a base; 0 for the class itself, None for no base."""
    if same_type(kind, base):
        return 0
    if depth > _DEPTH:
        return None
    found = [
        above + 1
        for member in kind.resolved.members
        if member.is_base and (above := distance_to_base(member.type, base, depth + 1)) is not None
    ]
    return min(found, default=None)


def rank(value: TypedValue, wanted: CType) -> int | None:
    """Rank the conversion of a value to a parameter's type; None where there is none."""
    if is_reference(wanted):
        return _to_reference(value, wanted.resolved.target)
    given, to = value.type.resolved, wanted.resolved
    if to.kind is TypeKind.RECORD:
        if given.kind is not TypeKind.RECORD:
            return None
        above = distance_to_base(given, to)
        return None if above is None else above and TO_BASE + above
    if given.kind is TypeKind.RECORD:
        return None
    if to.kind is TypeKind.POINTER:
        return _to_pointer(value, given, to)
    return _to_number(given, to)


def _to_reference(value: TypedValue, target: CType) -> int | None:
    adjusted = int(not target.text.startswith("const "))
    if same_type(value.type, target):
        return EXACT if adjusted else ADJUSTED
    if target.resolved.kind is TypeKind.RECORD:
        if value.type.resolved.kind is not TypeKind.RECORD:
            return None
        above = distance_to_base(value.type, target)
        return None if above is None else TO_BASE + above
    if adjusted:
        return None  # a temporary value is bound by references to constants alone
    return rank(value, target.resolved)


def _to_pointer(value: TypedValue, given: CType, to: CType) -> int | None:
    target = to.target.resolved
    if given.kind in (TypeKind.ARRAY, TypeKind.FUNCTION):
        source = given.element if given.kind is TypeKind.ARRAY else given
    elif given.kind is TypeKind.POINTER and not is_reference(given):
        source = given.target
    else:
        null = given.kind in ct.INTEGERS and value.address is None and not value.number
        return CONVERTED + 5 if null else None
    if (given.owner is None) != (to.owner is None):
        return None
    if same_type(source, target):
        return EXACT
    if target.kind is TypeKind.VOID:
        return TO_VOID
    if target.kind is TypeKind.RECORD and source.resolved.kind is TypeKind.RECORD:
        above = distance_to_base(source, target)
        return None if above is None else TO_BASE + above
    return None


def _to_number(given: CType, to: CType) -> int | None:
    numbers = (*ct.INTEGERS, TypeKind.ENUM, TypeKind.FLOAT)
    if to.kind is TypeKind.BOOL and given.kind in (TypeKind.POINTER, TypeKind.ARRAY):
        return TO_TRUTH
    if to.kind not in numbers or given.kind not in numbers:
        return None
    if to.kind is given.kind and same_type(given, to):
        return EXACT
    if to.kind is TypeKind.ENUM or given.prefix.endswith(f"{given.text}::"):
        return None  # nothing becomes one; of a scoped one nothing is made
    if to.kind is TypeKind.BOOL:
        return TO_TRUTH
    promoted = ct.promoted(given)
    if given.kind is TypeKind.FLOAT and given.size == 4 and to.text == "double":
        return PROMOTED
    if promoted is not given and same_type(promoted, to):
        return PROMOTED
    return CONVERTED
