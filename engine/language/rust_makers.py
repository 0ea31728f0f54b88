"""Values that an expression of Rust makes: structures, tuples, ranges, slices, texts of bytes.

gdb: gdb/rust-lang.c (rust_aggregate_operation, rust_range, rust_subscript).
"""

from collections.abc import Iterable
from typing import Final

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.made_records import MadeRecord, struct_of
from engine.language.operators import Operators
from engine.language.reach import Reach
from engine.language.rust_types import rust_text
from engine.language.value_types import CType
from engine.language.values import TypedValue

_RANGES: Final = {
    (True, True, ".."): "Range",
    (True, True, "..="): "RangeInclusive",
    (True, False, ".."): "RangeFrom",
    (False, True, ".."): "RangeTo",
    (False, True, "..="): "RangeToInclusive",
    (False, False, ".."): "RangeFull",
}
"""Types of ranges: with a start, with an end, and the sign."""


class _RustRecord(MadeRecord, frozen=True):
    """A structure of Rust, which has no word in front of its name."""

    @property
    def text(self) -> str:
        """Return the name."""
        return self.name

    def declared(self, name: str) -> str:
        """A declaration of a thing of this type."""
        return f"{self.name} {name}" if name else self.name


class RustMakers:
    """Makes values that stand nowhere."""

    def __init__(self, reach: Reach, operators: Operators) -> None:
        """Set up.

        Args:
            reach: parts of values.
            operators: put a value into the type of a field.
        """
        self._reach, self._operators = reach, operators

    def record(
        self, kind: CType, fields: Iterable[tuple[str, TypedValue]], base: TypedValue | None = None
    ) -> TypedValue:
        """A structure of the program's with these fields; the others are those of a base, or 0.

        Raises:
            CommandError: there is no such field, or a value does not fit.
        """
        if base is not None and base.type.resolved.key != kind.resolved.key:
            raise CommandError("The value behind '..' is of another type.")
        raw = bytearray(base.raw if base is not None else bytes(kind.size or 0))
        for name, value in fields:
            member = kind.resolved.member(name)
            if member is None:
                raise CommandError(f"There is no member named {name}.")
            part = self._fitted(value, member.type)
            raw[member.offset : member.offset + len(part)] = part
        return self._of_bytes(kind, bytes(raw))

    def tuple_of(self, values: list[TypedValue]) -> TypedValue:
        """A tuple."""
        texts = ", ".join(rust_text(value.type) for value in values)
        fields = [(f"__{number}", value) for number, value in enumerate(values)]
        return self._fresh(f"({texts},)" if len(values) == 1 else f"({texts})", fields)

    def range(self, low: TypedValue | None, high: TypedValue | None, sign: str) -> TypedValue:
        """A range; None for an end that is open.

        Raises:
            CommandError: its ends have different types, or `..=` has no end.
        """
        name = _RANGES.get((low is not None, high is not None, sign))
        if name is None:
            raise CommandError("inclusive range with no end")
        if low is not None and high is not None and rust_text(low.type) != rust_text(high.type):
            raise CommandError("Range expression with different types")
        ends = (("start", low), ("end", high))
        fields = [(end, value) for end, value in ends if value is not None]
        return self._fresh(f"std::ops::{name}", fields)

    def slice(self, start: TypedValue, count: int, *, is_text: bool) -> TypedValue:
        """A slice: the pointer to its first element and the number of elements."""
        name = "&str" if is_text else f"&[{rust_text(start.type.resolved.target)}]"
        length = self._reach.made(ct.integer(self._reach.pointer, signed=False), count)
        return self._fresh(name, [("data_ptr", start), ("length", length)])

    def _fresh(self, name: str, fields: list[tuple[str, TypedValue]]) -> TypedValue:
        shape = struct_of(name, *((field, value.type) for field, value in fields))
        kind = _RustRecord(TypeKind.RECORD, shape.size, name, parts=shape.parts)
        return self.record(kind, fields)

    def _fitted(self, value: TypedValue, kind: CType) -> bytes:
        both = (value.type.resolved, kind.resolved)
        alike = both[0].text == both[1].text and value.type.size == kind.size
        return value.raw if alike else self._operators.cast(value, kind).raw

    def _of_bytes(self, kind: CType, raw: bytes) -> TypedValue:
        return TypedValue(kind, lambda: raw, order=self._reach.order)
