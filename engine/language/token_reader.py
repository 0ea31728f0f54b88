"""The words of an expression, read one after the other: what parsers of all languages stand on."""

from collections.abc import Sequence
from typing import Generic, NoReturn, Protocol, TypeVar

from engine.errors import CommandError


class ReadToken(Protocol):
    """A word of an expression.

    Attributes:
        kind: "op" for operators and marks, "end" behind the last word.
        text: the word.
        at: its place in the expression.
    """

    @property
    def kind(self) -> str:
        """See the class."""

    @property
    def text(self) -> str:
        """See the class."""

    @property
    def at(self) -> int:
        """See the class."""


Word = TypeVar("Word", bound=ReadToken)


class TokenReader(Generic[Word]):
    """A parser's place among the words; a parser is such a reader with rules of a language.

    Attributes:
        trouble: words for a mistake in front of a text, which stands for `{}`.
        cut_off: the same for an expression that ends too early.
    """

    trouble = "Syntax error near '{}'"
    cut_off = "A syntax error: it ends."

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        """Stand in front of the first word.

        Args:
            text: the expression.
            words: of it, the last of which has the kind "end".
        """
        self._text, self._words = text, words
        self._at = self._depth = 0

    @property
    def peek(self) -> Word:
        """The next word."""
        return self._words[self._at]

    def _take(self) -> Word:
        word = self.peek
        self._at += word.kind != "end"
        return word

    def _is(self, *texts: str) -> bool:
        return self.peek.kind == "op" and self.peek.text in texts

    def _expect(self, text: str) -> None:
        if not self._is(text):
            self._wrong()
        self._take()

    def _wrong(self) -> NoReturn:
        rest = self._text[self.peek.at :].strip()
        raise CommandError(self.trouble.format(rest) if rest else self.cut_off)

    def end(self) -> None:
        """Refuse words that are left.

        Raises:
            CommandError: there are some.
        """
        if self.peek.kind != "end":
            self._wrong()
