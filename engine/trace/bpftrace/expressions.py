"""Expressions of a script, read by recursive descent (bpftrace's src/parser.cpp).

Operators of all ranks are taken in one loop, and how deep a tree becomes is bounded: those who
walk over it may recurse.
"""

import re
from collections.abc import Callable
from typing import Final, Literal, cast

from engine.trace.bpftrace.operator_chains import (
    MAX_HEIGHT,
    RANKS,
    ChainOperand,
    OperatorChain,
    grown,
)
from engine.trace.bpftrace.tokens import (
    END,
    MAP,
    NAME,
    NUMBER,
    OPERATOR,
    PARAMETER,
    STRING,
    VARIABLE,
    TokenStream,
)
from engine.trace.bpftrace.tree import (
    AddressOf,
    BlockExpression,
    BooleanLiteral,
    CallExpression,
    Cast,
    Comptime,
    Conditional,
    Expression,
    FieldAccess,
    Increment,
    Index,
    IntegerLiteral,
    MapAccess,
    MapName,
    Name,
    OffsetOf,
    PositionalParameter,
    RecordLiteral,
    ScratchName,
    SizeOf,
    StringLiteral,
    TupleLiteral,
    TypeInfoOf,
    TypeOf,
    Unary,
    WrittenType,
)
from engine.trace.bpftrace.type_names import TypeNameReader, is_type

MAX_NESTING: Final = 60
"""Brackets, blocks and calls in each other."""
_PREFIXES: Final = frozenset(("!", "-", "~", "*", "&", "&&", "++", "--"))
_TARGETS: Final = (ScratchName, MapName, MapAccess)
_BUILTIN: Final = re.compile(
    r"args|ctx|[ku]stack|nsecs|[pt]id|s?arg[0-9]+"
    r"|__builtin_(?:comm|cpid|cpu|dw_ustack|elapsed|func|ncpus|probe|retval|usermode)"
)
"""Names that bpftrace's parser knows as values."""
_VALUES: Final = frozenset(
    (
        *("comm", "cpid", "cpu", "elapsed", "func", "ncpus", "probe", "retval", "usermode"),
        *("uid", "gid", "username", "cgroup", "curtask", "numaid", "jiffies", "rand", "ppid"),
    )
)
"""Further names of values: `(retval) - 1` is no cast for anybody who writes it."""
_STARTS: Final = frozenset(("(", "-", "!", "~", "*", "&", "--", "&&", "++"))
"""Operators that may begin what is cast."""


def is_builtin(name: str) -> bool:
    """True for the name of a value, which cannot be that of a type or of a macro's argument."""
    return _BUILTIN.fullmatch(name) is not None


_HINTS: Final = {
    "'": "strings stand between double quotes",
    "#": "comments begin with //",
    "`": "strings stand between double quotes",
}
"""Ways out for characters that other languages have."""


class ExpressionReader:
    """Reads expressions.

    Args:
        words: where the script is read.
        block: reads a block, whose last expression is its value.
        expanded: the expression that a macro of C stands for; None if a name is none.
        depth: levels around the expressions.

    Attributes:
        types: reads types.
        known: names that are values here: arguments of the macro that is being read.
        height: of the tree that was read last.
    """

    __slots__ = ("_block", "_depth", "_expanded", "_words", "height", "known", "types")

    def __init__(
        self,
        words: TokenStream,
        block: Callable[[], BlockExpression],
        expanded: "Callable[[ExpressionReader, int, str], Expression | None]",
        depth: int = 0,
    ) -> None:
        self._words, self._block, self._expanded = words, block, expanded
        self._depth = depth
        self.known: frozenset[str] = frozenset()
        self.height = 0
        self.types = TypeNameReader(words, self.expression)

    def _is_value(self, name: str) -> bool:
        return name in _VALUES or name in self.known or is_builtin(name)

    def enter(self) -> None:
        """Go one level down; `leave` goes up again.

        Raises:
            WrongScriptError: it is too deep.
        """
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._words.failure(f"nested too deeply: more than {MAX_NESTING} levels")

    @property
    def depth(self) -> int:
        """The number of levels that were entered."""
        return self._depth

    @property
    def words(self) -> TokenStream:
        """The place where the script is read."""
        return self._words

    def leave(self) -> None:
        """Go one level up."""
        self._depth -= 1

    def _grown(self, height: int) -> int:
        return grown(self._words, height)

    def expression(self) -> Expression:
        """An expression of any kind.

        Raises:
            WrongScriptError: there is none.
        """
        return self.rest(self._unary())

    def rest(self, left: Expression) -> Expression:
        """The expression that begins with one that was read already."""
        found = self._operators(left)
        words = self._words
        if words.word != "?":
            return found
        height = self.height
        self.enter()
        start = found.span.start
        words.next()
        if words.taken(":"):
            then, then_height = found, height
        else:
            then = self.expression()
            then_height = self.height
            words.expect(":")
        otherwise = self.expression()
        self.leave()
        self.height = self._grown(max(height, then_height, self.height))
        return Conditional(words.span(start), found, then, otherwise)

    def _operators(self, left: Expression) -> Expression:
        """An expression of operators, the first operand of which was read already."""
        words = self._words
        if words.kind != OPERATOR or words.word not in RANKS:
            return left
        chain = OperatorChain(words, ChainOperand(left, self.height, words.end))
        while words.kind == OPERATOR and words.word in RANKS:
            if words.word == "/" and words.follows("{"):
                break  # a predicate ends here
            operator = words.word
            words.next()
            right = self._unary()
            chain.add(operator, ChainOperand(right, self.height, words.end))
        whole = chain.whole()
        self.height = whole.height
        return whole.node

    def _unary(self) -> Expression:
        """An operand with what stands before and behind it."""
        words = self._words
        if words.kind != OPERATOR or words.word not in _PREFIXES:
            return self.behind(self.primary())
        prefixes: list[tuple[str, int]] = []
        found: Expression | None = None
        while words.kind == OPERATOR and words.word in _PREFIXES:
            start, word = words.start, words.word
            words.next()
            if word == "&" or word == "&&":
                found = self._address(start, word)
                break
            prefixes.append((word, start))
            if len(prefixes) > MAX_HEIGHT:
                self._grown(MAX_HEIGHT)
        if found is None:
            found = self.behind(self.primary())
        for word, start in reversed(prefixes):
            if word == "++" or word == "--":
                if not isinstance(found, _TARGETS):
                    raise words.failure(
                        "increment/decrement requires a variable or map", found.span
                    )
                found = Increment(
                    words.span(start), cast("Literal['++', '--']", word), found, before=True
                )
            else:
                found = Unary(words.span(start), cast("Literal['!', '-', '~', '*']", word), found)
            self.height = self._grown(self.height)
        return found

    def _address(self, start: int, word: str) -> Expression:
        words = self._words
        self.height = 2
        if word == "&" and words.kind in (VARIABLE, MAP):
            at, name, kind = words.start, words.word[1:], words.kind
            words.next()
            place = words.span(at)
            return AddressOf(
                words.span(start),
                ScratchName(place, name) if kind == VARIABLE else MapName(place, name),
            )
        span = words.span(start + 1, start + 2) if word == "&&" else None
        raise words.failure("address-of operator (&) can only be used on a map or variable", span)

    def behind(self, found: Expression) -> Expression:
        """An operand and what stands behind it: fields, indexes, `++`."""
        words = self._words
        while words.kind == OPERATOR:
            word = words.word
            if word == "." or word == "->":
                words.next()
                if word == "." and words.kind == NUMBER:
                    name = str(words.number())
                else:
                    name = words.name(f"expected field name after '{word}'")
                found = FieldAccess(words.span(found.span.start), found, name)
                self.height = self._grown(self.height)
            elif word == "[":
                height = self.height
                self.enter()
                words.next()
                index = self.expression()
                words.expect("]")
                self.leave()
                found = Index(words.span(found.span.start), found, index)
                self.height = self._grown(max(height, self.height))
            elif word == "++" or word == "--":
                if not isinstance(found, _TARGETS):
                    raise words.failure(
                        "increment/decrement requires a variable or map",
                        words.span(words.start, words.stop),
                    )
                words.next()
                found = Increment(
                    words.span(found.span.start),
                    cast("Literal['++', '--']", word),
                    found,
                    before=False,
                )
                self.height = self._grown(self.height)
            else:
                break
        return found

    def primary(self) -> Expression:
        """An operand without what stands before and behind it.

        Raises:
            WrongScriptError: there is none.
        """
        words = self._words
        kind, start = words.kind, words.start
        self.height = 1
        if kind == NAME:
            return self._named(start, words.word)
        if kind == VARIABLE:
            name = words.word[1:]
            words.next()
            return ScratchName(words.span(start), name)
        if kind == MAP:
            return self.map()
        if kind == NUMBER:
            value = words.number()
            return IntegerLiteral(words.span(start), value)
        if kind == STRING:
            text = words.string()
            return StringLiteral(words.span(start), text)
        if kind == PARAMETER:
            return self._parameter(start, words.word[1:])
        if words.word == "(":
            self.enter()
            words.next()
            found = self._bracketed(start)
            self.leave()
            return found
        if words.word == "{":
            return self._block()
        if kind == END:
            self._wrong_character()
        raise words.failure("expected expression")

    def _wrong_character(self) -> None:
        words = self._words
        if words.begins('"'):
            words.string()
        if words.begins("$"):
            raise words.failure("expected identifier after '$'")
        for sign, hint in _HINTS.items():
            if words.begins(sign):
                raise words.failure("expected expression", hint=hint)

    def _parameter(self, start: int, digits: str) -> Expression:
        words = self._words
        words.next()
        span = words.span(start)
        if digits == "#":
            return PositionalParameter(span, 0)
        if len(digits) > 19 or not 0 < int(digits) < 1 << 63:
            raise words.failure(
                f"param ${digits} is out of integer range [1, {(1 << 63) - 1}]", span
            )
        return PositionalParameter(span, int(digits))

    def map(self) -> MapName | MapAccess:
        """A map, with the key if brackets follow."""
        words = self._words
        start, name = words.start, words.word[1:]
        words.next()
        found = MapName(words.span(start), name)
        self.height = 1
        words.settle()
        if words.word != "[":
            return found
        self.enter()
        words.next()
        keys = self._list("]")
        self.leave()
        span = words.span(start)
        self.height = self._grown(self.height)
        return MapAccess(span, found, keys[0] if len(keys) == 1 else TupleLiteral(span, keys))

    def _list(self, closing: str) -> tuple[Expression, ...]:
        """Expressions with commas between them, at least one, and the bracket behind them."""
        words = self._words
        found = [self.expression()]
        height = self.height
        while words.taken(","):
            found.append(self.expression())
            height = max(height, self.height)
        words.expect(closing)
        self.height = height
        return tuple(found)

    # -- what begins with a name --------------------------------------------------------------

    def _named(self, start: int, name: str) -> Expression:
        words = self._words
        special = _WORDS.get(name)
        if special is not None:
            self.enter()
            words.next()
            found = special(self, start)
            self.leave()
            return found
        expanded = self._expanded(self, start, name)
        if expanded is not None:
            return expanded
        words.next()
        if words.word == "(":
            return self._call(start, name)
        if words.word == "!" and words.follows("("):
            words.next()
            return self._call(start, name)
        span = words.span(start)
        words.settle()
        return Name(span, name)

    def _call(self, start: int, name: str) -> Expression:
        words = self._words
        self.enter()
        words.next()
        arguments: list[Expression | WrittenType] = []
        height = 0
        if words.word != ")":
            while True:
                if words.word == "typeof":
                    arguments.append(self.types.type_of())
                else:
                    arguments.append(self.expression())
                height = max(height, self.height)
                if not words.taken(","):
                    break
        words.expect(")")
        self.leave()
        self.height = self._grown(height)
        return CallExpression(words.span(start), name, tuple(arguments))

    def _true(self, start: int) -> Expression:
        return BooleanLiteral(self._words.span(start), value=True)

    def _false(self, start: int) -> Expression:
        return BooleanLiteral(self._words.span(start), value=False)

    def _if(self, start: int) -> Expression:
        words = self._words
        branches: list[tuple[int, Expression, BlockExpression]] = []
        otherwise: Expression | None = None
        height = 0
        while True:
            condition = self.condition()
            height = max(height, self.height)
            then = self._block()
            height = max(height, self.height)
            branches.append((start, condition, then))
            mark = words.mark()
            if not words.taken("else"):
                words.back(mark)
                break
            start = words.start
            if words.word == "{":
                otherwise = self._block()
                height = max(height, self.height)
                break
            if not words.taken("if"):
                raise words.failure("expected '{' or 'if' after 'else'")
        for at, condition, then in reversed(branches):
            comptime = isinstance(condition, Comptime)
            otherwise = Conditional(
                words.span(at),
                condition.operand if isinstance(condition, Comptime) else condition,
                then,
                otherwise,
                is_statement=True,
                comptime=comptime,
            )
            height = self._grown(height)
        self.height = height
        assert otherwise is not None, "there is a branch"
        return otherwise

    def condition(self) -> Expression:
        """The condition of `if`, `while` and `unroll`: in brackets, or one operand."""
        words = self._words
        if words.taken("("):
            found = self.expression()
            words.expect(")")
            return found
        return self._unary()

    def _size_of(self, start: int) -> Expression:
        of = self._type_in_brackets()
        return SizeOf(self._words.span(start), of)

    def _type_info(self, start: int) -> Expression:
        of = self._type_in_brackets()
        return TypeInfoOf(self._words.span(start), of)

    def _type_in_brackets(self) -> Expression | WrittenType:
        self._words.expect("(")
        of = self.types.operand()
        self._words.expect(")")
        return of

    def _offset_of(self, start: int) -> Expression:
        words = self._words
        words.expect("(")
        of = self.types.operand()
        words.expect(",")
        path = [words.name("expected identifier")]
        while words.taken("."):
            path.append(words.name("expected identifier"))
        words.expect(")")
        return OffsetOf(words.span(start), of, tuple(path))

    def _comptime(self, start: int) -> Expression:
        operand = self._unary()
        self.height = self._grown(self.height)
        return Comptime(self._words.span(start), operand)

    # -- what begins with a bracket -----------------------------------------------------------

    def _bracketed(self, start: int) -> Expression:
        """A tuple, a record, a cast or a group; the bracket is taken already."""
        words = self._words
        if words.taken(")"):
            self.height = 1
            return TupleLiteral(words.span(start), ())
        if words.word == "typeof":
            of = self.types.type_of()
            height = self.height
            found = self._cast_to(start, of, "typeof")
            if found is not None:
                return found
            self.height = self._grown(height)
            return self._group(start, self.rest(self.behind(of)))
        if words.kind == NAME and not is_builtin(words.word):
            if words.follows("=") and not words.follows("=="):
                return self._record(start)
            mark = words.mark()
            name = words.word
            kind = self.types.attempt()
            found = None if kind is None else self._cast_to(start, kind, name)
            if found is not None:
                return found
            words.back(mark)
        return self._group(start, self.expression())

    def _record(self, start: int) -> Expression:
        words = self._words
        fields: dict[str, Expression] = {}
        height = 0
        while True:
            at = words.start
            name = words.name("expected identifier")
            words.expect("=")
            value = self.expression()
            height = max(height, self.height)
            if name in fields:
                raise words.failure(
                    f"Named argument list already contains name: {name}", words.span(at)
                )
            fields[name] = value
            if not words.taken(","):
                break
        words.expect(")")
        self.height = self._grown(height)
        return RecordLiteral(words.span(start), tuple(fields.items()))

    def _cast_to(self, start: int, kind: WrittenType | TypeOf, name: str) -> Expression | None:
        """A cast to a type that was read; None if it is none.

        The place is in front of the bracket then where the type is `typeof`, else anywhere.
        """
        words = self._words
        mark = words.mark()
        if not words.taken(")"):
            return None
        if not self._begins_operand(kind, name):
            words.back(mark)
            return None
        words.settle()
        span = words.span(start)
        operand = self._unary()
        self.height = self._grown(self.height)
        return Cast(span, kind, operand)

    def _begins_operand(self, kind: WrittenType | TypeOf, name: str) -> bool:
        """True if what follows is cast to a type in brackets; the brackets hold a value else."""
        words = self._words
        if words.kind not in (END, OPERATOR):
            return True
        if words.word not in _STARTS:
            return False
        if isinstance(kind, TypeOf) or kind.suffixes:
            return True
        return not self._is_value(name) and (words.word not in ("--", "++") or is_type(name))

    def _group(self, start: int, first: Expression) -> Expression:
        words = self._words
        if words.word != ",":
            words.expect(")")
            return first
        elements = [first]
        height = self.height
        while words.taken(","):
            if words.word == ")":
                break
            elements.append(self.expression())
            height = max(height, self.height)
        words.expect(")")
        self.height = self._grown(height)
        return TupleLiteral(words.span(start), tuple(elements))


_WORDS: Final[dict[str, Callable[[ExpressionReader, int], Expression]]] = {
    "true": ExpressionReader._true,
    "false": ExpressionReader._false,
    "if": ExpressionReader._if,
    "sizeof": ExpressionReader._size_of,
    "offsetof": ExpressionReader._offset_of,
    "typeinfo": ExpressionReader._type_info,
    "comptime": ExpressionReader._comptime,
}
