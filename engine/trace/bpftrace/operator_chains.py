"""Operands with operators between them, and the tree that the operators' ranks make of them."""

from typing import Final

from msgspec import Struct

from engine.trace.bpftrace.tokens import TokenStream
from engine.trace.bpftrace.tree import Binary, Expression

MAX_HEIGHT: Final = 120
"""Levels of an expression's tree: those who walk over it may recurse."""
RANKS: Final = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    ">": 7,
    "<=": 7,
    ">=": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
"""Operators with two operands; the higher the number, the more closely they bind."""
_LOGICAL: Final = frozenset(("&&", "||"))
_RUN: Final = 32
"""Operands of one operator that make a chain; of more, a flat tree is made where that may be."""


def grown(words: TokenStream, height: int) -> int:
    """The height of a tree over one of a height.

    Raises:
        WrongScriptError: it becomes too high.
    """
    if height >= MAX_HEIGHT:
        raise words.failure(f"expression too long: more than {MAX_HEIGHT} parts in a chain")
    return height + 1


class ChainOperand(Struct):
    """A part of an expression.

    Attributes:
        node: of the tree.
        height: of its tree.
        end: where it ends in the text.
    """

    node: Expression
    height: int
    end: int


class OperatorChain:
    """Operands that are read from left to right.

    Args:
        words: where the script is read.
        first: the first operand.
    """

    __slots__ = ("_operands", "_operators", "_words")

    def __init__(self, words: TokenStream, first: ChainOperand) -> None:
        self._words = words
        self._operands = [first]
        self._operators: list[str] = []

    def add(self, operator: str, operand: ChainOperand) -> None:
        """Take in an operator and the operand behind it."""
        # A run of `&&` or `||` waits until it has ended.
        least = RANKS[operator] + (operator in _LOGICAL)
        while self._operators and RANKS[self._operators[-1]] >= least:
            self._reduce()
        self._operators.append(operator)
        self._operands.append(operand)

    def whole(self) -> ChainOperand:
        """The tree of all of it."""
        while self._operators:
            self._reduce()
        return self._operands[0]

    def _reduce(self) -> None:
        """Make one operand of the last operator, or the run of it, and its operands."""
        operator = self._operators.pop()
        count = 2
        while operator in _LOGICAL and self._operators[-1:] == [operator]:
            self._operators.pop()
            count += 1
        parts = self._operands[-count:]
        del self._operands[-count:]
        self._operands.append(self._joined(operator, parts))

    def _joined(self, operator: str, parts: list[ChainOperand]) -> ChainOperand:
        """Operands with the same operator between them, taken from left to right.

        A long run of `&&` or `||`, which may be taken in any grouping, becomes a flat tree.
        """
        if len(parts) > _RUN:
            half = len(parts) // 2
            halves = parts[:half], parts[half:]
            parts = [self._joined(operator, half) for half in halves]
        left = parts[0]
        for right in parts[1:]:
            span = self._words.span(left.node.span.start, right.end)
            height = grown(self._words, max(left.height, right.height))
            left = ChainOperand(Binary(span, operator, left.node, right.node), height, right.end)
        return left
