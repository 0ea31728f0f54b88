"""Types of Rust: those that the language has, and definitions as gdb's `ptype` writes them.

gdb: gdb/rust-lang.c (rust_language::language_arch_info, rust_print_struct_def).
"""

from collections.abc import Iterator
from typing import Final

from engine.image.datatypes import TypeKind
from engine.image.variants import variant_part
from engine.language import value_types as ct
from engine.language.rust_printing import is_tuple_struct
from engine.language.value_types import CType, MadeType

_SIZES: Final = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16, "size": 8}
_BUILTIN: Final[dict[str, MadeType]] = {
    **{f"i{name}": ct.number(TypeKind.SIGNED, size, f"i{name}") for name, size in _SIZES.items()},
    **{
        f"u{name}": ct.number(TypeKind.UNSIGNED, size, f"u{name}") for name, size in _SIZES.items()
    },
    "f32": ct.number(TypeKind.FLOAT, 4, "f32"),
    "f64": ct.number(TypeKind.FLOAT, 8, "f64"),
    "bool": ct.BOOL,
    "char": ct.number(TypeKind.UNSIGNED, 4, "char"),
}


def builtin_type(name: str) -> MadeType | None:
    """A type of the language by name; None for another name."""
    return _BUILTIN.get(name)


def rust_text(kind: CType) -> str:
    """A type as Rust spells it, one that an expression has made among them."""
    if not isinstance(kind, MadeType) or kind.made_of is None:
        return "()" if kind.kind is TypeKind.VOID else kind.text
    inner = rust_text(kind.made_of)
    if kind.kind is TypeKind.POINTER:
        return f"*mut {inner}"
    if kind.kind is TypeKind.ARRAY:
        return f"[{inner}; {kind.count}]"
    return "fn ()" + ("" if inner == "()" else f" -> {inner}")


def rust_definition(kind: CType) -> str:
    """`type = ...`: a structure with its parts, an enumeration with its variants."""
    return "type = " + "\n".join(_lines(kind.resolved))


def _lines(kind: CType) -> Iterator[str]:
    text = rust_text(kind)
    if kind.kind is TypeKind.ENUM:
        yield f"enum {text} {{"
        yield from (f"  {name}," for name, _ in kind.enumerators)
        yield "}"
        return
    if kind.kind is not TypeKind.RECORD or text.startswith("("):
        yield text
        return
    variants = variant_part(kind)
    if variants is not None:
        if not variants.variants:
            yield f"enum {text}"
            return
        yield f"enum {text} {{"
        for variant in variants.variants:
            yield f"  {variant.member.name}{_inline(variant.member.type)},"
        yield "}"
        return
    word = kind.keyword or "struct"
    if not kind.members:
        yield f"{word} {text}"
        return
    bare = is_tuple_struct(kind)
    yield f"{word} {text} {'(' if bare else '{'}"
    for member in kind.members:
        yield f"  {'' if bare else f'{member.name}: '}{rust_text(member.type)},"
    yield ")" if bare else "}"


def _inline(kind: CType) -> str:
    """The parts of a variant."""
    members = kind.resolved.members
    if not members:
        return ""
    if is_tuple_struct(kind.resolved):
        return f"({', '.join(rust_text(member.type) for member in members)})"
    parts = ", ".join(f"{member.name}: {rust_text(member.type)}" for member in members)
    return f"{{{parts}}}"
