"""Structures and unions that no debug information describes: siginfo, vector registers."""

from collections.abc import Sequence
from typing import cast

from engine.image.datatypes import DataType, Member, TypeKind, member_of, names_of
from engine.language.value_types import CType, MadeType


class MadeRecord(MadeType, frozen=True):
    """A structure or union that is made.

    Attributes:
        parts: its members.
        word: "struct" or "union".
        boundary: bytes that it is put at a multiple of; 0 for what its members need.
    """

    parts: tuple[Member, ...] = ()
    word: str = "struct"
    boundary: int = 0

    @property
    def members(self) -> Sequence[Member]:
        """Return the members."""
        return self.parts

    def member(self, name: str) -> Member | None:
        """A member by name, those of anonymous structures included."""
        return member_of(cast("DataType", self), name)

    @property
    def keyword(self) -> str:
        """The word in front of its name."""
        return self.word

    @property
    def key(self) -> object:
        """Equal for equal types; those without a name are told apart by their members."""
        parts = tuple((one.name, one.offset, one.bit_offset, one.type.key) for one in self.parts)
        return (self.word, self.name, self.size, parts)

    def member_names(self) -> tuple[str, ...]:
        """Names of its members."""
        return names_of(cast("DataType", self))

    @property
    def text(self) -> str:
        """As C spells it."""
        return f"{self.word} {self.name or '{...}'}"

    def declared(self, name: str) -> str:
        """A declaration of a thing of this type."""
        return f"{self.text} {name}" if name else self.text


class MadeAlias(MadeType, frozen=True):
    """A name for another type."""

    @property
    def resolved(self) -> CType:
        """The type that it stands for."""
        assert self.made_of is not None, "it stands for a type"
        return self.made_of.resolved

    @property
    def target(self) -> CType:
        """Return the target of the type behind the name."""
        return self.resolved.target

    @property
    def text(self) -> str:
        """Return the name."""
        return self.name

    def declared(self, name: str) -> str:
        """A declaration of a thing of this type."""
        return f"{self.name} {name}" if name else self.name


def constant(kind: CType) -> CType:
    """A type whose values are not to be changed."""
    if kind.text.startswith("const "):
        return kind
    return MadeAlias(kind.kind, kind.size, f"const {kind.text}", made_of=kind)


def struct_of(name: str, *fields: tuple[str, CType]) -> MadeRecord:
    """A structure, its members where C puts them; "" for one without a name."""
    parts: list[Member] = []
    at = widest = 0
    for field, kind in fields:
        align = alignment(kind)
        at = -(-at // align) * align
        parts.append(Member(field, cast("DataType", kind), at))
        at += kind.size or 0
        widest = max(widest, align)
    size = -(-at // max(widest, 1)) * max(widest, 1)
    return MadeRecord(TypeKind.RECORD, size, name, parts=tuple(parts))


def union_of(name: str, *fields: tuple[str, CType]) -> MadeRecord:
    """A union; "" for one without a name."""
    parts = tuple(Member(field, cast("DataType", kind), 0) for field, kind in fields)
    size = max(kind.size or 0 for _, kind in fields)
    return MadeRecord(TypeKind.RECORD, size, name, parts=parts, word="union")


def alignment(kind: CType) -> int:
    """The bytes that C puts a type at a multiple of."""
    kind = kind.resolved
    if isinstance(kind, MadeRecord) and kind.boundary:
        return kind.boundary
    if kind.kind is TypeKind.RECORD:
        return max((alignment(one.type) for one in kind.members), default=1)
    if kind.kind is TypeKind.ARRAY:
        return alignment(kind.element)
    return kind.size or 1


def vector_of(element: CType, count: int) -> MadeType:
    """A vector of the processor's."""
    size = (element.size or 0) * count
    return MadeType(TypeKind.ARRAY, size, made_of=element, count=count, in_registers=True)
