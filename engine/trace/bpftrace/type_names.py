"""Types as they are written in a script: `struct task_struct *`, `uint8[4]`, `typeof($x)`."""

from collections.abc import Callable
from typing import Final, Literal

from engine.trace.bpftrace.tokens import NAME, NUMBER, TokenStream
from engine.trace.bpftrace.tree import Expression, TypeOf, WrittenType

TAGS: Final = frozenset(("struct", "union", "enum"))
BUILTIN_TYPES: Final = frozenset(
    (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("void", "string", "buffer", "inet", "username_t", "timestamp", "macaddr_t"),
        *("cgroup_path_t", "count_t"),
        *("min_t", "max_t", "sum_t", "avg_t", "stats_t"),
        *("umin_t", "umax_t", "usum_t", "uavg_t", "ustats_t"),
    )
)
"""Types that bpftrace names itself (src/types.cpp)."""
C_WORDS: Final = frozenset(
    ("char", "short", "int", "long", "signed", "unsigned", "float", "double", "const", "volatile")
)
"""Words of C that make up a type, several of them one name: `unsigned long`."""
_SILENT: Final = frozenset(("const", "volatile"))
_SUFFIXES: Final = 32
"""Stars and brackets of one type."""

Suffix = Literal["*"] | int | None


class TypeNameReader:
    """Reads types.

    Args:
        words: where the script is read.
        expression: reads an expression, which may stand where a type does.
    """

    __slots__ = ("_expression", "_fault", "_words")

    def __init__(
        self,
        words: TokenStream,
        expression: Callable[[], Expression],
    ) -> None:
        self._words, self._expression = words, expression
        self._fault = ""

    def written(self) -> WrittenType:
        """A type that must be there.

        Raises:
            WrongScriptError: it is not.
        """
        found = self.attempt()
        if found is None:
            raise self._words.failure(self._fault)
        return found

    def attempt(self) -> WrittenType | None:
        """A type if one can be read; else None, and the place is where reading it ended."""
        words = self._words
        start = words.start
        self._fault = "expected type name"
        if words.kind != NAME:
            return None
        name = words.word
        words.next()
        if name in TAGS:
            self._fault = "expected identifier"
            if words.kind != NAME:
                return None
            name = f"{name} {words.word}"
            words.next()
        elif name in C_WORDS:
            name = self._c_name(name)
        suffixes: list[Suffix] = []
        words.settle()
        while words.word == "*" or words.word == "[":
            self._fault = "the type has too many parts"
            if len(suffixes) >= _SUFFIXES:
                return None
            if words.taken("*"):
                suffixes.append("*")
                while words.word in _SILENT:
                    words.next()
            else:
                words.next()
                suffixes.append(words.number() if words.kind == NUMBER else None)
                self._fault = "expected ']'"
                if not words.taken("]"):
                    return None
            words.settle()
        return WrittenType(words.span(start), name, tuple(suffixes))

    def _c_name(self, first: str) -> str:
        """A name that words of C make up, `const` left out."""
        words = self._words
        parts = [] if first in _SILENT else [first]
        while words.kind == NAME and len(parts) < _SUFFIXES:
            word = words.word
            if word in _SILENT:
                words.next()
                continue
            if word not in C_WORDS and parts:
                break
            words.next()
            if word in TAGS and words.kind == NAME:
                word = f"{word} {words.word}"
                words.next()
            parts.append(word)
        return " ".join(parts) or first

    def annotation(self) -> WrittenType | TypeOf:
        """A type or `typeof(...)`, as behind `let $x:`.

        Raises:
            WrongScriptError: there is none.
        """
        return self.type_of() if self._words.word == "typeof" else self.written()

    def type_of(self) -> TypeOf:
        """`typeof(...)`."""
        words = self._words
        start = words.start
        words.next()
        words.expect("(")
        of = self.of(")")
        words.expect(")")
        return TypeOf(words.span(start), of)

    def operand(self) -> Expression | WrittenType:
        """The operand of `sizeof` and the like: a type or an expression."""
        return self.type_of() if self._words.word == "typeof" else self.of(";,=){}")

    def of(self, ends: str) -> Expression | WrittenType:
        """A type if it reads as one up to one of some characters; else an expression.

        A name alone is an expression here, too: what it stands for is found out later.
        """
        words = self._words
        if words.kind != NAME:
            return self._expression()
        mark = words.mark()
        name = words.word
        found = self.attempt()
        if found is not None and (found.suffixes or is_type(name)):
            ending = words.word[:1]
            if ending and ending in ends and words.word != "==":
                return found
        words.back(mark)
        return self._expression()


def is_type(name: str) -> bool:
    """True if a name is always that of a type."""
    return name in BUILTIN_TYPES or name in TAGS or name in C_WORDS
