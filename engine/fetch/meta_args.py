"""Unnamed `$arg*` and `$argN` of kernel probes: the names of the function's parameters.

The kernel rewrites a definition's words before it reads them as arguments. From then on it counts
the new words, but shows the old ones in error_log: a caret behind `$arg*` stands further right.
"""

from collections.abc import Sequence

from engine.fetch.argument_words import FIRST_ARG, ArgContext
from engine.fetch.numbers import leading_decimal
from engine.fetch.variables import VariableError

_ROOM = 128
"""Bytes for all names, each with its end (MAX_BTF_ARGS_LEN)."""
_DIGITS = frozenset("0123456789")


def kernel_words(words: Sequence[str], context: ArgContext) -> tuple[list[tuple[int, str]], bool]:
    """The words that are read as arguments, each with the index that its errors get.

    Returns:
        the words, and whether they are a new list: what the kernel changes in that later is not
        seen in error_log.

    Raises:
        ProbeSyntaxError: with the kernel's error.
    """
    plain = list(enumerate(words, FIRST_ARG))
    if not context.era.btf or not _mentions(words, context):
        return plain, False
    star = "$arg*" in [word[:5] for word in words]
    try:
        names = context.variables.parameters() if context.variables is not None else ()
    except VariableError:
        names = ()
    if not names:
        if not star:
            return plain, False
        last = max(index for index, word in plain if word.startswith("$arg"))
        error = context.fail("NOSUP_BTFARG", last, 0)
        error.errno = "EOPNOTSUPP"
        raise error
    return list(enumerate(_Expansion(context, names).words(words), FIRST_ARG)), True


def _mentions(words: Sequence[str], context: ArgContext) -> bool:
    """True if a word is to be rewritten; refuses what the kernel refuses at first sight."""
    found = False
    star = False
    at_function = context.at_entry or (context.is_return and context.era.return_args)
    for index, word in enumerate(words, FIRST_ARG):
        if not word.startswith("$arg"):
            continue
        if not at_function:
            raise context.fail("NOFENTRY_ARGS", index, 0)
        found = True
        if word[4:5] in _DIGITS:
            continue
        if word[4:5] != "*":
            raise context.fail("BAD_VAR", index, 0)
        if star:
            raise context.fail("DOUBLE_ARGS", index, 0)
        star = True
    return found


class _Expansion:
    """The rewriting of one definition's words.

    Attributes:
        room: bytes that are left for names.
    """

    __slots__ = ("_context", "_names", "room")

    def __init__(self, context: ArgContext, names: Sequence[str]) -> None:
        self._context = context
        self._names = names
        self.room = _ROOM

    def words(self, words: Sequence[str]) -> list[str]:
        """All words."""
        found: list[str] = []
        for index, word in enumerate(words, FIRST_ARG):
            if word.startswith("$arg*"):
                found += [self._name(n, "", index) for n in range(len(self._names))]
            elif word.startswith("$arg"):
                number, suffix = leading_decimal(word[4:])
                if suffix and not suffix.startswith(":"):
                    error = self._context.fail("BAD_VAR", index, 0)
                    error.errno = "ENOENT"
                    raise error
                found.append(self._name(number - 1, suffix, index))
            else:
                found.append(word)
        return found

    def _name(self, number: int, suffix: str, index: int) -> str:
        if number < 0:  # $arg0 (measured on 6.12.117)
            raise self._context.fail("BAD_ARG_NUM", index, 0)
        if number >= len(self._names):
            raise self._context.fail("NO_BTFARG", index, 0)
        word = self._names[number] + suffix
        if len(word) >= self.room:
            raise self._context.fail("ARGS_2LONG", index, 0)
        self.room -= len(word) + 1
        return word
