"""An object in memory part by part: offsets, sizes, values, and holes between parts.

The parts are those of the type, whatever a container's printer shows in place of them.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from engine.errors import CommandError, GuestFaultError
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.languages import C
from engine.language.reach import Reach
from engine.language.value_types import CType
from engine.language.values import MemoryPlace, TypedValue
from engine.session.inspect.frame_scope import FrameScope
from engine.session.inspect.value_lines import ValueLines
from engine.session.protocol.views import FieldView, LayoutView

_MOST: Final = 1000
"""Parts of an object."""
_ELEMENTS: Final = 64
"""Elements of an array within it."""
_BYTES: Final = 1 << 16
_NUMBERS: Final = (*ct.INTEGERS, *ct.CHARS, TypeKind.POINTER, TypeKind.ENUM, TypeKind.BOOL)


def object_of(value: TypedValue, scope: FrameScope) -> TypedValue:
    """The object in memory that an expression means: itself, or what a pointer points at.

    Raises:
        CommandError: it means none.
        GuestFaultError: a pointer cannot be read.
    """
    reach = Reach(scope)
    value = reach.used(value)
    if value.type.resolved.kind is TypeKind.POINTER:
        value = reach.pointed(value)
    if value.missing:
        raise CommandError(value.missing.strip("<>"))
    if value.address is None:
        raise CommandError("it is nothing in memory; *(TYPE *)ADDR is")
    if value.type.resolved.kind is TypeKind.FUNCTION:
        raise CommandError("a function has no parts")
    if not value.type.size:
        raise CommandError("its type is not known; *(struct NAME *)ADDR names one")
    return value


def layout(value: TypedValue, scope: FrameScope) -> LayoutView:
    """The parts of an object in memory.

    Args:
        value: the object.
        scope: meaning of names, for its values.
    """
    address, size = value.address or 0, value.type.size or 0
    walk = _ObjectWalk(scope, address)
    found = list(islice(walk.fields(value), _MOST + 1))
    return LayoutView(
        address,
        size,
        walk.type_text(value.type),
        tuple(found[:_MOST]),
        scope.read(address, min(size, _BYTES)),
        more=len(found) > _MOST,
    )


class _ObjectWalk:
    """Goes through the parts of one object."""

    def __init__(self, scope: FrameScope, base: int) -> None:
        self._reach = Reach(scope)
        self._lines = ValueLines(scope)
        self._language = scope.language
        self._base = base

    def type_text(self, kind: CType) -> str:
        """A type as the source spells it."""
        return kind.text if self._language is C else self._language.type_text(kind)

    def fields(self, value: TypedValue) -> Iterator[FieldView]:
        """The parts of an object, or of a scalar it alone."""
        if self._has_parts(value.type):
            yield from self._parts(value, 0)
        else:
            yield self._field("value", value, 0)

    @staticmethod
    def _has_parts(kind: CType) -> bool:
        whole = kind.resolved
        if whole.kind is TypeKind.ARRAY:
            is_text = whole.element.kind in ct.CHARS and whole.element.size == 1
            return bool(whole.count and whole.element.size) and not is_text
        return whole.kind is TypeKind.RECORD and bool(whole.members)

    def _parts(self, value: TypedValue, level: int) -> Iterator[FieldView]:
        if value.type.resolved.kind is TypeKind.ARRAY:
            yield from self._elements(value, level)
        else:
            yield from self._members(value, level)

    def _elements(self, value: TypedValue, level: int) -> Iterator[FieldView]:
        kind = value.type.resolved
        count, size = kind.count or 0, kind.element.size or 0
        for index in range(min(count, _ELEMENTS)):
            yield from self._part(f"[{index}]", self._reach.element(value, index), level)
        if count > _ELEMENTS:
            start = (value.address or 0) - self._base + _ELEMENTS * size
            name = f"[{_ELEMENTS}...{count - 1}]"
            text = self.type_text(kind.element)
            yield FieldView(start, (count - _ELEMENTS) * size, level, name, text, "...")

    def _members(self, value: TypedValue, level: int) -> Iterator[FieldView]:
        kind = value.type.resolved
        start = end = (value.address or 0) - self._base
        for member in kind.members:
            try:
                part = self._reach.part(value, member)
            except (CommandError, GuestFaultError):
                continue  # a virtual base class of an object that is not made yet
            at = (part.address or 0) - self._base
            if at > end:
                yield _hole(end, at - end, level)
            name = member.name or f"<{self.type_text(member.type)}>"
            yield from self._part(name, part, level)
            end = max(end, at + self._size(part))
        variant = self._variant(value)
        if variant is not None:
            name, part = variant
            yield from self._part(name, part, level)
            end = start + (kind.size or 0)
        if end < start + (kind.size or 0):
            yield _hole(end, start + (kind.size or 0) - end, level)

    def _variant(self, value: TypedValue) -> tuple[str, TypedValue] | None:
        """The part that is there of a value with variants."""
        try:
            member = self._reach.variant(value)
        except (CommandError, GuestFaultError):
            return None
        if member is None:
            return None
        name = member.name or f"<{self.type_text(member.type)}>"
        return name, self._reach.part(value, member)

    def _part(self, name: str, value: TypedValue, level: int) -> Iterator[FieldView]:
        own = self._field(name, value, level)
        if not self._has_parts(value.type):
            yield own
            return
        # Members follow in rows of their own; a printer's text may stand beside the object.
        plain = own.value[:1] in ("{", "<")
        yield FieldView(own.offset, own.size, level, name, own.type, "" if plain else own.value)
        yield from self._parts(value, level + 1)

    def _field(self, name: str, value: TypedValue, level: int) -> FieldView:
        view = self._lines.view(name, value, self.type_text(value.type))
        place, bits = value.place, None
        if isinstance(place, MemoryPlace) and place.bits:
            bits = place.bit, place.bits
        return FieldView(
            (value.address or 0) - self._base,
            self._size(value),
            level,
            name,
            view.type,
            view.value,
            bits,
            is_number=bits is None and value.type.resolved.kind in _NUMBERS,
        )

    @staticmethod
    def _size(value: TypedValue) -> int:
        place = value.place
        if isinstance(place, MemoryPlace) and place.bits:
            return -(-(place.bit + place.bits) // 8)
        return value.type.size or 0


def _hole(offset: int, size: int, level: int) -> FieldView:
    return FieldView(offset, size, level, "", "", "")
