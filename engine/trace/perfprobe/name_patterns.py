"""Patterns of perf probe: globs of functions, lazy patterns of lines, filters of names.

tools/perf/util/string.c and strfilter.c of Linux 6.1.
"""

import re
from collections.abc import Callable
from typing import Final

from engine.errors import CommandError

_WILD: Final = frozenset("*?[")
_MAX_FILTER: Final = 4096
"""Characters of a filter; they also bound how deep it nests."""
_MAX_DEPTH: Final = 64

NameTest = Callable[[str], bool]


def is_glob(text: str) -> bool:
    """True if a name is a pattern (strisglob)."""
    return any(letter in _WILD for letter in text)


def same_tail(one: str, other: str) -> bool:
    """True if the shorter of two texts ends the longer one (strtailcmp)."""
    return one.endswith(other) or other.endswith(one)


class Glob:
    """A pattern with `*`, `?`, `[a-z]`, `[!a-z]` and escapes; a broken one matches nothing."""

    def __init__(self, pattern: str, *, lazy: bool = False) -> None:
        """Read the pattern.

        Args:
            pattern: as the user wrote it.
            lazy: blanks count neither in the pattern nor in the text (strlazymatch).
        """
        if lazy:
            pattern = "".join(pattern.split())
        self._lazy = lazy
        self._open = pattern.endswith("*") and not pattern.endswith("\\*")
        self._parts = _parts(pattern)

    def matches(self, text: str) -> bool:
        """True if the whole text matches."""
        parts = self._parts
        if parts is None:
            return False
        if self._lazy:
            if text[-1:].isspace() and not self._open:
                return False  # the blanks behind a line's end are not skipped
            text = "".join(text.split())
        at = here = 0
        star, resumed = -1, 0
        while at < len(text):
            if here < len(parts) and parts[here] is None:
                star, resumed = here, at
                here += 1
            elif here < len(parts) and _fits(parts[here], text[at]):
                at, here = at + 1, here + 1
            elif star >= 0:
                resumed += 1
                at, here = resumed, star + 1
            else:
                return False
        return all(part is None for part in parts[here:])


_Part = Callable[[str], bool] | None
"""The test of a letter; None for `*`."""


def _fits(part: _Part, letter: str) -> bool:
    return part is not None and part(letter)


def _parts(pattern: str) -> list[_Part] | None:
    """The pattern, letter by letter; None if a class has no end."""
    found: list[_Part] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "*":
            if not found or found[-1] is not None:
                found.append(None)
        elif letter == "?":
            found.append(lambda _: True)
        elif letter == "[":
            end = pattern.find("]", at + 1 + pattern.startswith("!", at))
            if end < 0:
                return None
            found.append(_class(pattern[at:end]))
            at = end + 1
        else:
            if letter == "\\" and at < len(pattern):
                letter = pattern[at]
                at += 1
            found.append(letter.__eq__)
    return found


def _class(inside: str) -> Callable[[str], bool]:
    inverse = inside.startswith("!")
    inside = inside[inverse:]
    ranges = re.findall(r"(.)-(.)|(.)", inside, re.DOTALL)
    pairs = [(low, high) if low else (one, one) for low, high, one in ranges]
    return lambda letter: any(low <= letter <= high for low, high in pairs) != inverse


class NameFilter:
    """A rule of names: `GLOB`, `!RULE`, `RULE & RULE`, `RULE | RULE`, `(RULE)`."""

    def __init__(self, text: str) -> None:
        """Read the rule.

        Raises:
            CommandError: it is none; the column is told as perf does.
        """
        self._text = text
        self._at = 0
        if len(text) > _MAX_FILTER:
            raise CommandError(f"a filter has at most {_MAX_FILTER} characters")
        self.accepts: NameTest = self._either(0)
        if self._at < len(text):
            raise self._error()

    def _error(self) -> CommandError:
        return CommandError(
            f'Filter parse error at {self._at + 1} of "{self._text}"; '
            "a rule is GLOB, !RULE, RULE & RULE, RULE | RULE or (RULE)"
        )

    def _next(self) -> str:
        text = self._text
        while self._at < len(text) and text[self._at].isspace():
            self._at += 1
        return text[self._at : self._at + 1]

    def _either(self, depth: int) -> NameTest:
        rules = [self._both(depth)]
        while self._next() == "|":
            self._at += 1
            rules.append(self._both(depth))
        return rules[0] if len(rules) == 1 else lambda name: any(rule(name) for rule in rules)

    def _both(self, depth: int) -> NameTest:
        rules = [self._one(depth)]
        while self._next() == "&":
            self._at += 1
            rules.append(self._one(depth))
        return rules[0] if len(rules) == 1 else lambda name: all(rule(name) for rule in rules)

    def _one(self, depth: int) -> NameTest:
        letter = self._next()
        if depth > _MAX_DEPTH:
            raise self._error()
        if letter == "!":
            self._at += 1
            rule = self._one(depth + 1)
            return lambda name: not rule(name)
        if letter == "(":
            self._at += 1
            rule = self._either(depth + 1)
            if self._next() != ")":
                raise self._error()
            self._at += 1
            return rule
        # "!" is a part of a class, and an escaped sign a part of a name.
        match = re.compile(r"(?:\\.|\[!|[^\s&|!()\\])+", re.DOTALL).match(self._text, self._at)
        if match is None:
            raise self._error()
        self._at = match.end()
        return Glob(match[0]).matches
