"""Shapes of types for calling conventions (`engine.arch.abivalues`), from DWARF or BTF."""

from collections.abc import Sequence
from typing import Final, Protocol

from engine.arch.abivalues import Scalar, ScalarKind, ValueShape
from engine.errors import ImageError
from engine.image.datatypes import MAX_DEPTH, Member, TypeKind
from engine.image.reader import DamagedError

LARGEST: Final = 128
"""Bytes of the largest value that registers hold: eight of IA-64's extended numbers."""
_MAX_PARTS: Final = 4096
"""Parts of a structure that are looked at; a damaged one may contain itself."""


class ShapedType(Protocol):
    """A type as far as its shape asks; `DataType` describes the attributes."""

    @property
    def kind(self) -> TypeKind:
        """The type's kind."""

    @property
    def size(self) -> int | None:
        """Bytes; None where it is not known."""

    @property
    def is_declared_only(self) -> bool:
        """True if the file has no more than its name."""

    @property
    def is_passed_by_reference(self) -> bool:
        """True if functions get and give its address."""

    @property
    def is_vector(self) -> bool:
        """True for a vector."""

    @property
    def is_quad(self) -> bool:
        """True for IEEE's format of 128 bits."""

    @property
    def element(self) -> "ShapedType":
        """Of an array its elements."""

    @property
    def members(self) -> Sequence[Member]:
        """The parts of a structure, class or union."""

    @property
    def keyword(self) -> str:
        """Of a structure: "struct", "union" or "class"; "" else."""

    @property
    def text(self) -> str:
        """As C spells it."""


class UnknownShapeError(ImageError):
    """The debug information does not say enough about a type to tell how it is passed."""


def shape_of(kind: ShapedType) -> ValueShape:
    """The shape of a type.

    Raises:
        UnknownShapeError: it is not known, or its description is damaged.
    """
    try:
        return _shape(kind)
    except DamagedError as error:
        raise UnknownShapeError(f"the debug information is damaged: {error}") from error


def _shape(kind: ShapedType) -> ValueShape:
    size = kind.size
    if size is None or kind.is_declared_only:
        raise UnknownShapeError(f"{kind.text}: its size is not known")
    record = kind.kind is TypeKind.RECORD
    if record and kind.is_passed_by_reference:
        return ValueShape(size, (), is_record=True, by_reference=True)
    if size > LARGEST:
        return ValueShape(size, (), is_record=record)
    parts = _ShapeParts(kind)
    return ValueShape(size, tuple(parts.scalars), record, parts.has_union)


class _ShapeParts:
    """The scalars of a type.

    Attributes:
        scalars: in the order of their declaration.
        has_union: a union is among the parts.
    """

    def __init__(self, kind: ShapedType) -> None:
        self.scalars: list[Scalar] = []
        self.has_union = False
        self._kind, self._count = kind, 0
        self._add(0, kind)

    def _add(self, at: int, kind: ShapedType, depth: int = 0) -> None:
        """Add the scalars of a part that begins at a byte."""
        self._count += 1
        size = kind.size or 0
        fits = 0 <= at <= at + size <= (self._kind.size or 0)
        if self._count > _MAX_PARTS or depth > MAX_DEPTH or not fits:
            raise UnknownShapeError(f"{self._kind.text}: its parts do not fit into it")
        match kind.kind:
            case TypeKind.RECORD:
                self.has_union = self.has_union or kind.keyword == "union"
                for member in kind.members:
                    self._add_member(at, member, depth + 1)
            case TypeKind.ARRAY if kind.is_vector:
                self.scalars.append(Scalar(ScalarKind.VECTOR, at, size))
            case TypeKind.ARRAY:
                element = kind.element
                step = element.size or 0
                for number in range(size // step if step else 0):
                    self._add(at + number * step, element, depth + 1)
            case TypeKind.COMPLEX:
                half = _float(size // 2, is_quad=kind.is_quad)
                self.scalars += [
                    Scalar(half, at, size // 2),
                    Scalar(half, at + size // 2, size // 2),
                ]
            case TypeKind.FLOAT:
                self.scalars.append(Scalar(_float(size, is_quad=kind.is_quad), at, size))
            case TypeKind.VOID | TypeKind.FUNCTION | TypeKind.OTHER:
                raise UnknownShapeError(f"{kind.text}: how it is passed is not known")
            case TypeKind.POINTER if size > 8:  # to a member function: two words
                self.scalars += [
                    Scalar(ScalarKind.INTEGER, at + part, size // 2) for part in (0, size // 2)
                ]
            case _:
                self.scalars.append(Scalar(ScalarKind.INTEGER, at, size))

    def _add_member(self, at: int, member: Member, depth: int) -> None:
        if not member.bit_size:
            if member.type.size:  # an array without a length holds nothing
                self._add(at + member.offset, member.type, depth)
            return
        first = member.bit_offset // 8
        behind = (member.bit_offset + member.bit_size + 7) // 8
        if at + behind > (self._kind.size or 0):
            raise UnknownShapeError(f"{self._kind.text}: its parts do not fit into it")
        self.scalars.append(
            Scalar(ScalarKind.INTEGER, at + first, behind - first, is_bitfield=True)
        )


def _float(size: int, *, is_quad: bool) -> ScalarKind:
    """The kind of a floating-point number: longer ones are of 80 bits or IEEE's."""
    return ScalarKind.EXTENDED if size > 8 and not is_quad else ScalarKind.FLOAT
