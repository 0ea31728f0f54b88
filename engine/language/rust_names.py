"""Meanings of Rust's names where the code stands: paths from the crate, modules and parents.

A name without a path is looked for in the module of the function and in those around, as gdb does;
`use` leaves no trace in the debug information, so a type is found by the end of its path, too.
"""

import re
from collections.abc import Iterator
from typing import Final

from engine.image.datatypes import TypeKind
from engine.language.surroundings import Surroundings
from engine.language.value_types import CType
from engine.language.values import TypedValue

_RELATIVE: Final = re.compile(r"(crate|self|(?:super::)*super)::(?=.)")


class RustNames:
    """Names in one place of a program."""

    def __init__(self, around: Surroundings) -> None:
        """Look up in these surroundings."""
        self._around = around

    def variable(self, name: str, scope: str = "") -> TypedValue | None:
        """A variable or a function; None where there is none.

        Args:
            name: of it, or a path.
            scope: the file or function that it is in, "" for what is in sight.
        """
        match = None if scope else _RELATIVE.match(name)
        if match is not None:
            paths = self._paths(match[1], name[match.end() :])
            return next(filter(None, map(self._around.variable, paths)), None)
        found = self._around.variable(name, scope)
        if found is None and "::" in name and not scope:
            paths = self._paths("self", name)
            return next(filter(None, map(self._around.variable, paths)), None)
        if found is None or "::" in name or found.type.resolved.kind is not TypeKind.FUNCTION:
            return found
        return found if self._is_in_sight(found, name) else None

    def type(self, name: str) -> CType | None:
        """A type by a path, or by its end; None where there is none."""
        match = _RELATIVE.match(name)
        paths = [name] if match is None else self._paths(match[1], name[match.end() :])
        return next(filter(None, (self._around.type((path,)) for path in paths)), None)

    def _paths(self, word: str, rest: str) -> Iterator[str]:
        """Full paths that a relative one may mean; a function in a type is in no module of it."""
        here = self._function()
        if word == "crate":
            yield "::".join([*here[:1], rest])
            return
        up = word.count("super") + 1
        for length in range(len(here) - up, 0, -1):
            yield "::".join([*here[:length], rest])

    def _function(self) -> list[str]:
        """The path of the function whose code runs; empty where no symbol tells."""
        pc = self._around.register("pc")
        return [] if pc is None else path_of(self._around.symbol(pc.number))

    def _is_in_sight(self, function: TypedValue, name: str) -> bool:
        here = self._function()
        if not here or function.address is None:
            return True
        path = path_of(self._around.symbol(function.address))
        if not path:  # the linker has dropped the function
            return False
        if path[-1].partition("<")[0] != name:
            return True
        return here[: len(path) - 1] == path[:-1]


def path_of(symbol: str) -> list[str]:
    """The parts of a path, "core::option::Option<i32>::map+4"; brackets stay together."""
    parts, depth, start = list[str](), 0, 0
    symbol = symbol.partition("+")[0]
    for at, letter in enumerate(symbol):
        depth += (letter in "<({[") - (
            letter in ")}]" or (letter == ">" and symbol[at - 1] != "-")
        )
        if not depth and letter == ":" and symbol[at : at + 2] == "::":
            parts.append(symbol[start:at])
            start = at + 2
    return [*parts, symbol[start:]] if symbol else []
