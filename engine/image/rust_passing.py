"""Values as Rust's compiler passes and returns them (rustc's `ty::layout` and `ty::abi`).

Rust promises no calling convention. What its compiler does has been the same for years: a value of
one scalar is passed as this scalar, a value of two scalars as these two, whatever stands around
them; other values go as a number if they are small, else by their address. A result may have two
words since 1.77.
"""

from typing import Final

from engine.arch.abivalues import Bank, RegisterPart, Scalar, ScalarKind, in_words
from engine.image.datatypes import MAX_DEPTH, DataType, TypeKind
from engine.image.valueshapes import UnknownShapeError
from engine.image.variants import variant_part

RUST: Final = 0x1C
"""DW_LANG_Rust."""
_WORD: Final = 8
_MOST: Final = 64
"""Scalars of a type that are looked at: from three on a value is passed as a whole."""


def rust_parts(kind: DataType, *, is_result: bool = False) -> tuple[RegisterPart, ...] | None:
    """The parts of a structure, tuple or enumeration; None for one in memory.

    Raises:
        UnknownShapeError: the debug information does not tell.
    """
    size = kind.size
    if size is None:
        raise UnknownShapeError(f"{kind.text}: its size is not known")
    scalars = _scalars(kind, 0, 0)
    if scalars is not None and 0 < len(scalars) <= 2 and _fills(scalars, size):
        return tuple(
            RegisterPart(
                Bank.FLOAT if one.kind is ScalarKind.FLOAT else Bank.GENERAL, one.offset, one.size
            )
            for one in scalars
        )
    if size > (2 * _WORD if is_result else _WORD):
        return None
    return in_words(size)


def _fills(scalars: list[Scalar], size: int) -> bool:
    """True if a value is nothing but these scalars, as they are aligned."""
    end = 0
    for one in scalars:
        if one.offset != -(-end // one.size) * one.size:
            return False
        end = one.offset + one.size
    widest = max(one.size for one in scalars)
    return -(-end // widest) * widest == size


def _scalars(kind: DataType, at: int, depth: int) -> list[Scalar] | None:
    """The scalars of a type in the order of their places; None if it is no such value."""
    size = kind.size or 0
    if depth > MAX_DEPTH:
        raise UnknownShapeError(f"{kind.text}: it contains itself")
    if not size:
        return []
    match kind.kind:
        case TypeKind.FLOAT:
            return [Scalar(ScalarKind.FLOAT, at, size)]
        case TypeKind.ARRAY | TypeKind.COMPLEX:
            return None
        case TypeKind.RECORD if kind.keyword == "union":
            return None
        case TypeKind.RECORD:
            return _of_record(kind, at, depth)
    if size > _WORD:
        return None
    return [Scalar(ScalarKind.INTEGER, at, size)]


def _of_record(kind: DataType, at: int, depth: int) -> list[Scalar] | None:
    part = variant_part(kind)
    if part is not None:
        return _of_variants(kind, at, depth)
    found: list[Scalar] = []
    for member in kind.members:
        inner = _scalars(member.type, at + member.offset, depth + 1)
        if inner is None or member.bit_size or len(found) > _MOST:
            return None
        found += inner
    return sorted(found, key=lambda one: one.offset)


def _of_variants(kind: DataType, at: int, depth: int) -> list[Scalar] | None:
    """An enumeration: its tag, and the scalar that all variants have in the same place."""
    part = variant_part(kind)
    assert part is not None, "asked for before"
    found: dict[int, Scalar] = {}
    tag = part.discriminant
    for variant in part.variants:
        inner = _scalars(variant.member.type, at + variant.member.offset, depth + 1)
        if inner is None:
            return None
        for one in inner:
            known = found.setdefault(one.offset, one)
            if known.size != one.size or known.kind is not one.kind:
                return None
    if tag is not None:
        found.setdefault(
            at + tag.offset, Scalar(ScalarKind.INTEGER, at + tag.offset, tag.type.size or 0)
        )
    return [found[offset] for offset in sorted(found)]
