"""Lines of Python that are being made of an action, and names for what they use."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

_MAX_DEPTH: Final = 60
"""Blocks in blocks: Python itself takes 100 levels of indentation."""


class SourceLines:
    """The body of one function.

    Attributes:
        names: objects that the lines use, by the names that they have there.
        depth: the blocks that the next line stands in.
    """

    def __init__(self) -> None:
        """Begin with no lines."""
        self.names: dict[str, Any] = {}
        self._lines: list[tuple[int, str]] = []
        self.depth = 1
        self._count = 0
        self._constants: dict[Any, str] = {}

    def add(self, text: str) -> None:
        """Add a line."""
        self._lines.append((self.depth, text))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a line with a colon at its end; what is added inside of it stands below."""
        if self.depth >= _MAX_DEPTH:
            raise TooDeepError
        self.add(head)
        self.depth += 1
        before = len(self._lines)
        try:
            yield
        finally:
            if len(self._lines) == before:
                self.add("pass")
            self.depth -= 1

    def temporary(self, code: str) -> str:
        """Keep a value: the name that it has from here on."""
        name = self.fresh()
        self.add(f"{name} = {code}")
        return name

    def fresh(self) -> str:
        """A name that nothing has yet."""
        self._count += 1
        return f"t{self._count}"

    def kept(self, code: str) -> str:
        """A name, or a literal, that has the value of an expression from here on."""
        return code if is_simple(code) else self.temporary(code)

    def constant(self, value: object, key: object = None) -> str:
        """The name of an object that is made once.

        Args:
            value: the object.
            key: objects of the same key are one; None = by the object itself.
        """
        key = value if key is None else key
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = f"c{len(self._constants)}"
            self.names[name] = value
        return name

    def evaluated(self, parts: "list[Callable[[], str]]") -> list[str]:
        """Values of several expressions, worked out from left to right.

        Where a later one needs lines of its own, which may change what an earlier one reads,
        the earlier ones are kept before those lines.

        Args:
            parts: each adds lines that it needs and gives its code.
        """
        codes: list[str] = []
        for part in parts:
            before = len(self._lines)
            code = part()
            if len(self._lines) > before:
                moved = [index for index, each in enumerate(codes) if not _is_literal(each)]
                kept = []
                for index in moved:
                    name = self.fresh()
                    kept.append((self.depth, f"{name} = {codes[index]}"))
                    codes[index] = name
                self._lines[before:before] = kept
            codes.append(code)
        return codes

    def aside(self, part: "Callable[[], str]") -> tuple[str, list[tuple[int, str]]]:
        """The code of an expression, and the lines that it needs, which are not added.

        Args:
            part: adds lines that it needs and gives its code.
        """
        before = len(self._lines)
        code = part()
        lines = self._lines[before:]
        del self._lines[before:]
        return code, lines

    def put(self, lines: list[tuple[int, str]]) -> None:
        """Add lines that were made aside, one level deeper than they were made."""
        self._lines += [(depth + 1, text) for depth, text in lines]

    def clear(self) -> None:
        """Begin with no lines again; names stay."""
        self._lines.clear()

    def text(self) -> str:
        """All lines."""
        return "\n".join(" " * depth + text for depth, text in self._lines)


class TooDeepError(Exception):
    """Blocks stand in more blocks than Python has room for."""


def is_simple(code: str) -> bool:
    """True for a name or a literal: reading it twice costs nothing and gives the same.

    A variable of the script (`v_x`) is none: it can be assigned in between.
    """
    return _is_literal(code) or re.fullmatch(r"t\d+|c\d+", code) is not None


def _is_literal(code: str) -> bool:
    return re.fullmatch(r"-?\d+|True|False|b'[^'\\]*'|c\d+", code) is not None
