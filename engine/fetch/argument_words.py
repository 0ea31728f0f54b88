"""The words of a definition that are its arguments: names, `$arg*`, where errors point."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.program import Base
from engine.errors import ProbeSyntaxError
from engine.fetch.era import MEASURED, Era
from engine.fetch.variables import RecordScope, VariableError, VariableScope

MAX_ARGS: Final = 128
"""Arguments of an event (MAX_TRACE_ARGS)."""

FIRST_ARG: Final = 2
"""Index of the first argument among the words of a definition."""

PLACE: Final = 1
"""Index of the place."""

RESERVED: Final = (
    "common_type",
    "common_flags",
    "common_preempt_count",
    "common_pid",
    "common_tgid",
    "__probe_ip",
    "__probe_ret_ip",
    "__probe_func",
)
"""Names that no argument may have."""

_MAX_NAME = 32
_DIGITS = frozenset("0123456789")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


Fail = Callable[[str, int, int], ProbeSyntaxError]
"""Makes an error of the id of the kernel's error, the index of the word, and the offset in it."""


class ArgContext(Struct, frozen=True):
    """The names that the arguments of one definition may refer to.

    Attributes:
        arch: names of registers, width of an address.
        uprobe: uprobe rules instead of kprobe rules.
        is_return: the event is a function's return.
        at_entry: a kprobe at a function's first instruction ($argN).
        fail: makes the errors.
        symbol: where a data symbol is, for @SYM; None if there is none.
        variables: of the program at the place; None if they are not to be had.
        records: structures for casts, in a kernel that describes them; None without.
        extended: what the kernel does not have: `$duration`, `$entry(BODY)`, an immediate
            string of a uprobe that can be read.
        era: the rules of the kernel.
        kernel: the probe is in a kernel: `variables` are what BTF says there, and nothing is
            understood that the kernel does not.
        registers: whether registers can be named: not in `f:` and `t:` lines.
        fields: of the event that an event probe stands on, by name; None for all other probes.
        reworded: what `fail` is once the kernel has other argument words in its log.
    """

    arch: Arch
    uprobe: bool
    is_return: bool
    at_entry: bool
    fail: Fail
    symbol: Callable[[str], Base | None]
    variables: VariableScope | None = None
    records: RecordScope | None = None
    extended: bool = False
    era: Era = MEASURED
    kernel: bool = False
    registers: bool = True
    fields: Callable[[str], Base | None] | None = None
    reworded: Callable[[Sequence[str]], Fail] | None = None


def is_identifier(name: str) -> bool:
    """True if a name follows the rules of C."""
    return _IDENTIFIER.fullmatch(name) is not None


def check_unnamed(words: Sequence[str], context: ArgContext) -> None:
    """Refuse what the kernel refuses while it expands `$arg*`, before it reads any argument."""
    star = 0
    last = FIRST_ARG
    for index, word in enumerate(words, FIRST_ARG):
        if not word.startswith("$arg"):
            continue
        last = index
        if not context.at_entry and not context.is_return:
            raise context.fail("NOFENTRY_ARGS", index, 0)
        if word[4:5] in _DIGITS:
            continue
        if word[4:5] != "*":
            raise context.fail("BAD_VAR", index, 0)
        if star:
            raise context.fail("DOUBLE_ARGS", index, 0)
        star = index
    if star and context.variables is None:
        raise context.fail("NOSUP_BTFARG", last, 0)


def expanded(words: Sequence[str], context: ArgContext) -> list[tuple[int, str]]:
    """The words with their indexes; `$arg*` becomes the names of the function's parameters."""
    found: list[tuple[int, str]] = []
    for index, word in enumerate(words, FIRST_ARG):
        if word != "$arg*" or context.variables is None:
            found.append((index, word))
            continue
        try:
            found += [(index, name) for name in context.variables.parameters()]
        except VariableError as problem:
            raise explained(problem, context, index, 0) from problem
    return found


def explained(
    problem: VariableError, context: ArgContext, index: int, offset: int
) -> ProbeSyntaxError:
    """The error for a variable that cannot be had; `offset` is where it begins in its word."""
    where = (PLACE, 0) if problem.at_place else (index, offset + problem.offset)
    error = context.fail(problem.code, *where)
    if problem.why:
        error.explain(problem.why)
    return error


def read_name(
    word: str, index: int, number: int, used: set[str], context: ArgContext
) -> tuple[str, int]:
    """An argument's name and the offset of its body; `number` counts from 1."""
    name, equals, _ = word.partition("=")
    offset = 0
    if equals:
        if length(name) > _MAX_NAME:
            raise context.fail("ARG_NAME_TOO_LONG", index, 0)
        if not name:
            raise context.fail("NO_ARG_NAME", index, 0)
        if not is_identifier(name):
            raise context.fail("BAD_ARG_NAME", index, 0)
        offset = len(name) + 1
    else:
        variable = word.partition(":")[0]
        named = context.era.btf if context.kernel else context.variables is not None
        known = named and is_identifier(variable)
        name = variable if known else f"arg{number}"
    if name in used:
        raise context.fail("USED_ARG_NAME", index, 0)
    return name, offset


def length(text: str) -> int:
    """Length in bytes."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogateescape"))
