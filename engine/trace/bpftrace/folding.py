"""Expressions of literals, worked out before a script runs.

The rules are those of bpftrace 0.26 (src/ast/passes/fold_literals.cpp): numbers have 64 bits,
either sign, and what does not fit is an error; strings are compared, put together and cut.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from engine.errors import KprobeTuiError
from engine.trace.bpftrace.type_rules import smallest
from engine.trace.bpftrace.types import BOOL, Record, TextType, Tuple, Type

_OVERFLOW: Final = "unable to fold literals due to overflow or underflow"
_MOST: Final = (1 << 64) - 1
_MOST_SIGNED: Final = (1 << 63) - 1
_LONGEST: Final = 1 << 20
"""Bytes of a string that is put together; a macro could make one of any length."""


class KnownRecord(Struct):
    """A record of constants.

    Attributes:
        fields: its values by their names, in order.
    """

    fields: dict[str, "Constant"]


Constant = int | bool | bytes | tuple["Constant", ...] | KnownRecord
"""A value that can be known before a script runs."""


class FoldingError(KprobeTuiError):
    """An expression of literals has no value."""


_COMPARISONS: Final[Mapping[str, Callable[[object, object], bool]]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,  # type: ignore[operator]  # both are of one type
    ">": lambda a, b: a > b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
    "&&": lambda a, b: bool(a) and bool(b),
    "||": lambda a, b: bool(a) or bool(b),
}

_OF_TRUTHS: Final[Mapping[str, Callable[[bool, bool], bool]]] = {
    "+": lambda a, b: a or b,
    "-": lambda a, b: a != b,
    "*": lambda a, b: a and b,
    "&": lambda a, b: a and b,
    "|": lambda a, b: a or b,
    "^": lambda a, b: a != b,
    "<<": lambda a, b: a < b,
    ">>": lambda a, b: a > b,
}


def literal_type(value: Constant) -> Type:
    """The type of a literal of that value."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return smallest(value)
    if isinstance(value, bytes):
        return TextType(len(value) + 1)
    if isinstance(value, tuple):
        return Tuple(tuple([literal_type(each) for each in value]))
    return Record(tuple([(name, literal_type(each)) for name, each in value.fields.items()]))


def truth(value: Constant) -> bool:
    """A constant as a condition."""
    return bool(value) if isinstance(value, int | bytes) else True


def fold_unary(operator: str, value: Constant) -> Constant | None:
    """The value of `operator value`; None if that is for the script's run.

    Raises:
        FoldingError: it has none.
    """
    if operator == "!" and isinstance(value, int):
        return not value
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    if operator == "-":
        if value > _MOST_SIGNED + 1:
            raise FoldingError("negative value will underflow")
        return -value
    if operator == "~":
        return value ^ _MOST if value >= 0 else ~value
    return None


def fold_binary(operator: str, left: Constant, right: Constant) -> Constant | None:
    """The value of `left operator right`; None if that is for the script's run.

    Raises:
        FoldingError: it has none.
    """
    if isinstance(left, bytes) or isinstance(right, bytes):
        return _of_strings(operator, left, right)
    if isinstance(left, bool) or isinstance(right, bool):
        return _of_truths(operator, left, right)
    if isinstance(left, int) and isinstance(right, int):
        return _of_numbers(operator, left, right)
    if operator in ("==", "!=") and type(left) is type(right):
        return equal(left, right) == (operator == "==")
    return None


def equal(left: Constant, right: Constant) -> bool:
    """Two constants are one, records whatever the order of their fields."""
    if isinstance(left, KnownRecord) and isinstance(right, KnownRecord):
        return left.fields.keys() == right.fields.keys() and all(
            equal(value, right.fields[name]) for name, value in left.fields.items()
        )
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return type(left) is type(right) and left == right


def _of_strings(operator: str, left: Constant, right: Constant) -> Constant | None:
    if not isinstance(left, bytes):
        left, right = right, left
    if not isinstance(left, bytes):
        return None
    if isinstance(right, bool):
        return _COMPARISONS[operator](left, right) if operator in ("&&", "||") else None
    if isinstance(right, int):
        # "abc" + 1 cuts, as C's pointers do.
        return left[right:] if operator == "+" and right >= 0 else None
    if not isinstance(right, bytes):
        return None
    if operator in _COMPARISONS:
        return _COMPARISONS[operator](left, right)
    if operator == "+":
        if len(left) + len(right) > _LONGEST:
            raise FoldingError(f"a string of literals is too long (over {_LONGEST} bytes)")
        return left + right
    raise FoldingError("illegal literal operation with strings")


def _of_truths(operator: str, left: Constant, right: Constant) -> Constant | None:
    if isinstance(left, bool) and isinstance(right, bool):
        if operator in _COMPARISONS:
            return _COMPARISONS[operator](left, right)
        if operator in ("/", "%"):
            if not right:
                raise FoldingError(_OVERFLOW)
            return left if operator == "/" else False
        return _OF_TRUTHS[operator](left, right)
    if operator in ("&&", "||") and isinstance(left, int) and isinstance(right, int):
        return _COMPARISONS[operator](left, right)
    return None


def _of_numbers(operator: str, left: int, right: int) -> Constant:
    signed = left < 0 or right < 0
    if signed and max(left, right) > _MOST_SIGNED:
        raise FoldingError(_OVERFLOW)
    if operator in _COMPARISONS:
        return _COMPARISONS[operator](left, right)
    if operator in ("<<", ">>") and not 0 <= right < 64:
        raise FoldingError(_OVERFLOW)
    if operator in ("/", "%"):
        if not right:
            raise FoldingError(_OVERFLOW)
        whole = abs(left) // abs(right)
        quotient = -whole if (left < 0) != (right < 0) else whole
        return quotient if operator == "/" else left - quotient * right
    if operator == "<<":
        shifted = left << right & _MOST
        return shifted - (1 << 64) if signed and shifted > _MOST_SIGNED else shifted
    value = {
        "+": left + right,
        "-": left - right,
        "*": left * right,
        "&": left & right,
        "|": left | right,
        "^": left ^ right,
    }.get(operator)
    if value is None:
        value = left >> right
    if not -(1 << 63) <= value <= _MOST:
        raise FoldingError(_OVERFLOW)
    return value
