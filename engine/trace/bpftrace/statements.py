"""Statements of a script and the blocks that they stand in (bpftrace's src/parser.cpp)."""

from collections.abc import Callable
from typing import Final, Literal, cast

from engine.trace.bpftrace.expressions import ExpressionReader
from engine.trace.bpftrace.text import Span
from engine.trace.bpftrace.tokens import MAP, NAME, OPERATOR, STRING, VARIABLE, TokenStream
from engine.trace.bpftrace.tree import (
    Assignment,
    BlockExpression,
    Conditional,
    Declaration,
    Discard,
    Expression,
    ExpressionStatement,
    FieldAccess,
    For,
    Jump,
    MapAccess,
    MapName,
    Range,
    ScratchName,
    Statement,
    StringLiteral,
    TypeOf,
    Unroll,
    While,
    WrittenType,
)

_COMPOUND: Final = frozenset(("+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))
_BLOCKS: Final = (Conditional, BlockExpression)


class StatementReader:
    """Reads statements.

    Args:
        words: where the script is read.
        expanded: see `ExpressionReader`.
        depth: levels around the statements.

    Attributes:
        expressions: reads expressions.
        imports: what `import` statements name.
    """

    __slots__ = ("_words", "expressions", "imports")

    def __init__(
        self,
        words: TokenStream,
        expanded: Callable[[ExpressionReader, int, str], Expression | None],
        depth: int = 0,
    ) -> None:
        self._words = words
        self.expressions = ExpressionReader(words, self.block, expanded, depth)
        self.imports: list[StringLiteral] = []

    def body(self) -> BlockExpression:
        """A block without a value: that of a probe or a loop.

        Raises:
            WrongScriptError: something in it is not understood.
        """
        return _valueless(self.block())

    def block(self) -> BlockExpression:
        """A block; its value is the last expression, if no semicolon follows that.

        Raises:
            WrongScriptError: something in it is not understood.
        """
        words = self._words
        start = words.start
        words.expect("{")
        self.expressions.enter()
        statements: list[Statement] = []
        value: Expression | None = None
        height = 0
        while words.word != "}" or words.kind == STRING:
            if words.is_at_end:
                words.expect("}")
            found = self._statement()
            height = max(height, self.expressions.height)
            if isinstance(found, Statement):
                statements.append(found)
            elif found is not None:
                value = found
        words.next()
        self.expressions.leave()
        self.expressions.height = height + 1
        return BlockExpression(words.span(start), tuple(statements), value)

    def _statement(self) -> Statement | Expression | None:
        """A statement; an expression if it is the value of the block; None for an import."""
        words = self._words
        kind = words.kind
        if kind == NAME:
            special = _STATEMENTS.get(words.word)
            if special is not None:
                return special(self, words.start)
            if words.word == "_" and words.follows("=") and not words.follows("=="):
                return self._discard(words.start)
        elif kind in (VARIABLE, MAP):
            return self._assignment_or_expression(words.start)
        return self._expression(words.start)

    def _expression(self, start: int) -> Statement | Expression:
        words = self._words
        if words.word == "{" or words.word == "if":
            # A block ends a statement; `++$x` behind it is the next one.
            found = self.expressions.primary()
            if words.word not in ("++", "--"):
                found = self.expressions.rest(self.expressions.behind(found))
        else:
            found = self.expressions.expression()
        return self._ended(start, found)

    def _ended(self, start: int, found: Expression) -> Statement | Expression:
        words = self._words
        if words.word == "}":
            return found
        if words.word == ";":
            words.next()
        elif not isinstance(found, _BLOCKS) or (
            isinstance(found, Conditional) and not found.is_statement
        ):
            raise words.failure("expected ';'")
        return ExpressionStatement(words.span(start), found)

    def _assignment_or_expression(self, start: int) -> Statement | Expression:
        words = self._words
        expressions = self.expressions
        target = expressions.primary()
        assert isinstance(target, ScratchName | MapName | MapAccess), "a sign begins no other"
        word = words.word
        if words.kind == OPERATOR and (word == "=" or word in _COMPOUND):
            height = expressions.height
            words.next()
            value = expressions.expression()
            expressions.height = max(height, expressions.height)
            span = words.span(start)
            self._end()
            return Assignment(span, target, "=" if word == "=" else word[:-1], value)
        left = expressions.behind(target)
        if words.word == "=":
            self._wrong_target(start, left)
        return self._ended(start, expressions.rest(left))

    def _wrong_target(self, start: int, target: Expression) -> None:
        words = self._words
        words.next()
        self.expressions.expression()
        if isinstance(target, FieldAccess):
            raise words.failure(
                "Tuples and records are immutable once created. Consider creating a new value"
                " and assigning it instead.",
                words.span(start),
            )
        raise words.failure("invalid assignment target", words.span(start))

    def _end(self) -> None:
        """The end of a statement."""
        if self._words.word == "}":
            return
        self._words.expect(";")

    def _discard(self, start: int) -> Statement:
        words = self._words
        words.next()
        words.next()
        value = self.expressions.expression()
        span = words.span(start)
        self._end()
        return Discard(span, value)

    def _variable(self, wanted: str) -> ScratchName:
        words = self._words
        if words.kind != VARIABLE:
            if words.begins("$"):
                raise words.failure("expected identifier after '$'")
            raise words.failure(wanted)
        start, name = words.start, words.word[1:]
        words.next()
        return ScratchName(words.span(start), name)

    def _let(self, start: int) -> Statement:
        words = self._words
        words.next()
        variable = self._variable("expected variable after 'let'")
        kind: WrittenType | TypeOf | None = None
        if words.taken(":"):
            kind = self.expressions.types.annotation()
        span = words.span(start)
        value: Expression | None = None
        self.expressions.height = 1
        if words.taken("="):
            value = self.expressions.expression()
            span = words.span(start)
        self._end()
        return Declaration(span, variable, kind, value)

    def _jump(self, start: int) -> Statement:
        words = self._words
        kind = cast("Literal['return', 'break', 'continue']", words.word)
        words.next()
        value: Expression | None = None
        self.expressions.height = 1
        if kind == "return" and words.word not in (";", "}"):
            value = self.expressions.expression()
        self._end()
        return Jump(words.span(start), kind, value)

    def _import(self, start: int) -> None:
        """An import inside a block."""
        self.imports.append(self.imported(start))

    def imported(self, start: int) -> StringLiteral:
        """An import, up to the semicolon behind it; the literal has the place of all of it.

        Raises:
            WrongScriptError: it is none.
        """
        words = self._words
        words.next()
        if words.kind != STRING and not words.begins('"'):
            raise words.failure("expected string after 'import'")
        path = words.string()
        span = words.span(start)
        if not words.taken(";"):
            raise words.failure("expected ';' after import")
        return StringLiteral(span, path)

    def _loop(self, start: int) -> Statement:
        words = self._words
        kind = words.word
        words.next()
        condition = self.expressions.condition()
        height = self.expressions.height
        body = self.body()
        self.expressions.height = max(height, self.expressions.height) + 1
        span = words.span(start)
        return (While if kind == "while" else Unroll)(span, condition, body)

    def _for(self, start: int) -> Statement:
        words = self._words
        words.next()
        is_bracketed = words.taken("(")
        variable = self._variable("expected variable in for loop")
        words.expect(":")
        first = self.expressions.primary()
        height = self.expressions.height
        over: MapName | Range | None = first if isinstance(first, MapName) else None
        if words.taken(".."):
            last = self.expressions.primary()
            height = max(height, self.expressions.height) + 1
            over = Range(words.span(start), first, last)
        if is_bracketed:
            words.expect(")")
        if over is None:
            raise words.failure("expected map or range in for loop")
        body = self.body()
        self.expressions.height = max(height, self.expressions.height) + 1
        return For(words.span(start), variable, over, body)


_STATEMENTS: Final[dict[str, Callable[[StatementReader, int], Statement | None]]] = {
    "let": StatementReader._let,
    "while": StatementReader._loop,
    "unroll": StatementReader._loop,
    "for": StatementReader._for,
    "import": StatementReader._import,
    "return": StatementReader._jump,
    "break": StatementReader._jump,
    "continue": StatementReader._jump,
}


def _valueless(block: BlockExpression) -> BlockExpression:
    """A block, its value made its last statement, in those that are its value, too."""
    value = block.value
    statements = tuple(_valueless_statement(one) for one in block.statements)
    if value is not None:
        statements += (ExpressionStatement(_place(value), _valueless_expression(value)),)
    return BlockExpression(block.span, statements)


def _place(value: Expression) -> Span:
    return value.span


def _valueless_statement(statement: Statement) -> Statement:
    if not isinstance(statement, ExpressionStatement) or not isinstance(
        statement.expression, _BLOCKS
    ):
        return statement
    return ExpressionStatement(statement.span, _valueless_expression(statement.expression))


def _valueless_expression(value: Expression) -> Expression:
    if isinstance(value, BlockExpression):
        return _valueless(value)
    if isinstance(value, Conditional) and value.is_statement:
        otherwise = value.otherwise
        return Conditional(
            value.span,
            value.condition,
            _valueless_expression(value.then),
            None if otherwise is None else _valueless_expression(otherwise),
            is_statement=True,
            comptime=value.comptime,
        )
    return value
