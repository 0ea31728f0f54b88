"""Uses of C's macros in a script's expressions: each becomes the expression that it stands for."""

from typing import Final

from engine.trace.bpftrace.c_macros import CMacros, split_arguments
from engine.trace.bpftrace.expressions import ExpressionReader
from engine.trace.bpftrace.statements import StatementReader
from engine.trace.bpftrace.text import Span, WrongScriptError
from engine.trace.bpftrace.tokens import TokenStream
from engine.trace.bpftrace.tree import Expression

_SHOWN: Final = 80
"""Characters of a macro that an error shows."""


class CMacroUses:
    """Expands uses of macros.

    Args:
        macros: which ones there are.
    """

    def __init__(self, macros: CMacros) -> None:
        self._macros = macros

    def expression(self, reader: ExpressionReader, start: int, name: str) -> Expression | None:
        """The expression that a use of a macro stands for; None if the name is no macro.

        Args:
            reader: stands in front of the name.
            start: the name's place.
            name: the name.

        Raises:
            WrongScriptError: the macro is no expression.
        """
        macro = self._macros.macros.get(name)
        if macro is None:
            return None
        words = reader.words
        arguments: list[str] | None = None
        if macro.parameters is None:
            words.next()
        elif not words.follows("("):
            return None
        else:
            words.next()
            arguments, end = split_arguments(words.source, words.start)
            words.go(end)
        span = words.span(start)
        text = self._macros.use(name, arguments, span)
        inner = TokenStream(words.script, text, span)
        # All macros in the text are expanded already.
        statements = StatementReader(inner, lambda *_: None, reader.depth)
        try:
            found = statements.expressions.expression()
        except WrongScriptError as error:
            raise self._no_expression(macro.body, span) from error
        if not inner.is_at_end:
            raise self._no_expression(macro.body, span)
        reader.height = statements.expressions.height
        return found

    def _no_expression(self, body: str, span: Span) -> WrongScriptError:
        shown = body if len(body) <= _SHOWN else body[:_SHOWN] + "..."
        return self._macros.failure(f"unable to expand macro as an expression: {shown}", span)
