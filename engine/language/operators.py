"""C's arithmetic on the guest's machine, and conversions between types.

Integers wrap in the type that the usual conversions give (C11 6.3.1), division rounds to zero.
"""

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Final

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.reach import Reach
from engine.language.value_types import CType
from engine.language.values import TypedValue

_COMPARISONS: Final[dict[str, Callable[[Fraction | float, Fraction | float], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_WHOLE: Final[dict[str, Callable[[int, int], int]]] = {
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
}
_GREATEST: Final = 1 << 63


class Operators:
    """Operators between scalars, and casts."""

    def __init__(self, reach: Reach) -> None:
        """Pointers lead to what can be reached."""
        self._reach = reach

    @staticmethod
    def number_type(value: TypedValue) -> CType:
        """The type of a number.

        Raises:
            CommandError: it is none.
        """
        kind = value.type.resolved
        if kind.kind in ct.INTEGERS or kind.kind in (TypeKind.ENUM, TypeKind.FLOAT):
            return kind
        raise CommandError("Argument to arithmetic operation not a number or boolean.")

    def combined(self, word: str, left: TypedValue, right: TypedValue) -> TypedValue:
        """Two scalars and an operator between them.

        Raises:
            CommandError: it is not for their types, or divides by zero.
        """
        if left.type.resolved.owner is not None or right.type.resolved.owner is not None:
            return self._with_member_pointers(word, left, right)
        pointers = [value.type.kind is TypeKind.POINTER for value in (left, right)]
        if any(pointers):
            return self._with_pointers(word, left, right, pointers)
        kind = ct.common(self.number_type(left), self.number_type(right))
        if word in ("<<", ">>"):
            return self._shifted(word, left, right)
        if kind.kind is TypeKind.FLOAT:
            if (kind.size or 0) > 8:
                a, b = (one.exact or Fraction(0) for one in (left, right))
                return self._real(word, a, b, kind)
            return self._real(word, left.real, right.real, kind)
        a, b = (self._reach.made(kind, value.number).number for value in (left, right))
        if word in _COMPARISONS:
            return self._reach.made(ct.INT, int(_COMPARISONS[word](a, b)))
        if word in _WHOLE:
            return self._reach.made(kind, _WHOLE[word](a, b))
        if word in ("/", "%"):
            if b == 0:
                raise CommandError("Division by zero")
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return self._reach.made(kind, quotient if word == "/" else a - b * quotient)
        return self._reach.made(kind, {"+": a + b, "-": a - b, "*": a * b}[word])

    def _shifted(self, word: str, left: TypedValue, right: TypedValue) -> TypedValue:
        kind = ct.promoted(left.type.resolved)
        by, width = right.number, 8 * (kind.size or 4)
        if by < 0 or by >= width:
            number = 0 if word == "<<" or left.number >= 0 else -1
        else:
            number = left.number << by if word == "<<" else left.number >> by
        return self._reach.made(kind, number)

    def _real(
        self, word: str, a: Fraction | float, b: Fraction | float, kind: CType
    ) -> TypedValue:
        if word in _COMPARISONS:
            return self._reach.made(ct.INT, int(_COMPARISONS[word](a, b)))
        if word == "/":
            try:
                return self._reach.made(kind, a / b)
            except ZeroDivisionError:
                same = a == 0 or a != a
                return self._reach.made(
                    kind, float("nan") if same else float("inf") * (1 if a > 0 else -1)
                )
        if word not in ("+", "-", "*"):
            raise CommandError("Integer-only operation on floating point number.")
        return self._reach.made(kind, {"+": a + b, "-": a - b, "*": a * b}[word])

    def _with_member_pointers(self, word: str, left: TypedValue, right: TypedValue) -> TypedValue:
        """Pointers to members are compared with each other, and used for nothing else."""
        if word not in _COMPARISONS:
            raise CommandError("Argument to arithmetic operation not a number or boolean.")
        both = left.type.resolved.owner is not None and right.type.resolved.owner is not None
        if word not in ("==", "!=") or not both or left.type.size != right.type.size:
            what = "equality" if word in ("==", "!=") else "ordering"
            raise CommandError(f"Invalid type combination in {what} test.")
        return self._reach.made(ct.INT, int((left.raw == right.raw) == (word == "==")))

    def _with_pointers(
        self, word: str, left: TypedValue, right: TypedValue, which: list[bool]
    ) -> TypedValue:
        if word in _COMPARISONS:
            return self._reach.made(ct.INT, int(_COMPARISONS[word](left.number, right.number)))
        if all(which):
            if word == "-":
                size = left.type.target.size or 1
                apart = left.number - right.number
                steps = abs(apart) // size  # as a division of C, towards zero
                return self._reach.made(ct.LONG, steps if apart >= 0 else -steps)
        elif word == "+":
            pointer, other = (left, right) if which[0] else (right, left)
            return self._reach.moved(pointer, other.number)
        elif word == "-" and which[0]:
            return self._reach.moved(left, -right.number)
        elif word in _WHOLE or word in ("%", "/", "*", "<<", ">>"):
            whole = [
                self.cast(value, ct.LONG) if pointer else value
                for value, pointer in zip((left, right), which, strict=True)
            ]
            return self.combined(word, whole[0], whole[1])
        raise CommandError("Argument to arithmetic operation not a number or boolean.")

    def cast(self, value: TypedValue, kind: CType) -> TypedValue:
        """The value in another type.

        Raises:
            CommandError: it cannot be that.
        """
        to, was = kind.resolved.kind, value.type.resolved.kind
        if to is TypeKind.VOID:
            return TypedValue(kind, lambda: b"", order=self._reach.order)
        if was in (TypeKind.ARRAY, TypeKind.FUNCTION) and to is not was:
            value = self._reach.scalar(value)
            was = value.type.kind
        simple = (*ct.INTEGERS, TypeKind.ENUM, TypeKind.POINTER)
        if to is TypeKind.FLOAT and (was in simple or was is TypeKind.FLOAT):
            return self._reach.made(kind, value.exact)
        if to in simple and was is TypeKind.FLOAT:
            return self._reach.made(kind, whole_of(value.exact))
        if to in simple and was in simple:
            return self._reach.made(kind, value.number)
        if value.type.size == kind.size and value.address is not None:
            return self._reach.at(kind, value.address)
        untyped = to is TypeKind.ARRAY or value.type.text == ct.UNKNOWN_DATA
        if untyped and value.address is not None:
            return self._reach.at(kind, value.address)
        if kind.resolved.key == value.type.resolved.key:
            return value
        raise CommandError("Invalid cast.")


def whole_of(number: Fraction | float) -> int:
    """A floating-point number as a whole one: the nearest of 64 bits, as gdb's casts give it."""
    if number != number or number >= _GREATEST:
        return _GREATEST - 1
    return int(max(number, -_GREATEST))
