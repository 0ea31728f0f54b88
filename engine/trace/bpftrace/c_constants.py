"""Constant expressions of C: sizes of arrays, values of enumerations, conditions of `#if`."""

import operator
from collections.abc import Callable
from typing import Final

from engine.trace.bpftrace.expressions import ExpressionReader
from engine.trace.bpftrace.text import ScriptRemark, ScriptText, Span, WrongScriptError
from engine.trace.bpftrace.tokens import TokenStream
from engine.trace.bpftrace.tree import (
    Binary,
    BlockExpression,
    BooleanLiteral,
    Cast,
    Conditional,
    Expression,
    IntegerLiteral,
    Name,
    SizeOf,
    Unary,
    WrittenType,
)

_OPERATORS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_BITS: Final = 64


def constant(
    expression: Expression,
    script: ScriptText,
    named: Callable[[str], int | None] = lambda name: None,
    size_of: Callable[[Expression | WrittenType], int | None] = lambda of: None,
) -> int:
    """The value of an expression, of 64 bits with a sign.

    Args:
        expression: the expression.
        script: the text that errors are about.
        named: gives the value of a name; None if it has none.
        size_of: gives the size of a type; None if it is not known.

    Raises:
        WrongScriptError: it is not constant.
    """

    def fault(text: str) -> WrongScriptError:
        return WrongScriptError(ScriptRemark("ERROR", text, expression.span, script))

    def value(of: Expression) -> int:
        return constant(of, script, named, size_of)

    found: int | None = None
    match expression:
        case IntegerLiteral() | BooleanLiteral():
            found = int(expression.value)
        case Name():
            found = named(expression.name)
        case SizeOf():
            found = size_of(expression.of)
        case Unary(operator="-" | "~" | "!"):
            inner = value(expression.operand)
            found = {"-": -inner, "~": ~inner, "!": int(not inner)}[expression.operator]
        case Cast():
            found = value(expression.operand)
        case Conditional(otherwise=otherwise) if otherwise is not None:
            found = value(expression.then if value(expression.condition) else otherwise)
        case Binary():
            found = _binary(expression, value, fault)
        case _:
            pass
    if found is None:
        raise fault("expression is not an integer constant expression")
    return _wrapped(found)


def expression_of(script: ScriptText, text: str, span: Span) -> Expression:
    """The expression that a text of C's preprocessor is.

    Args:
        script: the script that it belongs to.
        text: it; no macros are left in it.
        span: the place of all of it.

    Raises:
        WrongScriptError: it is none.
    """
    words = TokenStream(script, text, span)

    def no_block() -> BlockExpression:
        raise words.failure("expected expression")

    found = ExpressionReader(words, no_block, lambda *_: None).expression()
    if not words.is_at_end:
        raise words.failure("unexpected input")
    return found


def _binary(
    expression: Binary,
    value: Callable[[Expression], int],
    fault: Callable[[str], WrongScriptError],
) -> int:
    left = value(expression.left)
    sign = expression.operator
    if sign == "&&":
        return int(bool(left) and bool(value(expression.right)))
    if sign == "||":
        return int(bool(left) or bool(value(expression.right)))
    right = value(expression.right)
    if sign in ("<<", ">>"):
        if not 0 <= right < _BITS:
            raise fault("a shift by as many bits as there are, or more")
        return left << right if sign == "<<" else left >> right
    if sign in ("/", "%"):
        if not right:
            raise fault("division by zero")
        quotient = abs(left) // abs(right)
        quotient = quotient if (left < 0) == (right < 0) else -quotient
        return quotient if sign == "/" else left - quotient * right
    return int(_OPERATORS[sign](left, right))


def _wrapped(value: int) -> int:
    value &= (1 << _BITS) - 1
    return value - (1 << _BITS) if value >> (_BITS - 1) else value
