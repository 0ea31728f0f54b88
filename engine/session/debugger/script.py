"""Lines of gdb's words, and those that hold others up to their `end`."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from engine.errors import CommandError

_OPENING: Final = re.compile(r"(comm(a|an|and|ands)?|def(i|in|ine)?|document|if|while)\b")
_FOREIGN: Final = re.compile(r"(py(thon)?|guile|gu|compile)\s*$")
_COMPLETE: Final = "complete "
_DEEP: Final = 100


class ScriptLine(Struct, frozen=True):
    """A line, with those that it holds.

    Attributes:
        text: the line without its end.
        number: of the line in its file, from 1 on; 0 without a file.
        body: lines up to `end`, or to `else`.
        otherwise: lines behind `else`.
        raw: lines of the body as they stand, for a text that is no command.
    """

    text: str
    number: int = 0
    body: tuple["ScriptLine", ...] = ()
    otherwise: tuple["ScriptLine", ...] = ()
    raw: tuple[str, ...] = ()


def commands_of(lines: Iterable[tuple[int, str]]) -> Iterator[ScriptLine]:
    """The commands of numbered lines, each read when it is asked for.

    Raises:
        CommandError: an `else` or an `end` stands alone, or blocks are nested too deeply.
    """
    numbered = iter(lines)
    for number, line in numbered:
        command = command_of(line, number, numbered)
        if command is not None:
            yield command


def command_of(line: str, number: int, following: Iterator[tuple[int, str]]) -> ScriptLine | None:
    """The command of a line, with what it holds of those that follow; None for none.

    Raises:
        CommandError: an `else` or an `end` stands alone, or blocks are nested too deeply.
    """
    text = line.strip()
    if text.startswith(_COMPLETE):
        text = line.lstrip()  # a blank at the end asks for what may follow it
    return _command(text, number, following, 0) if text and text[0] != "#" else None


def _command(text: str, number: int, lines: Iterator[tuple[int, str]], depth: int) -> ScriptLine:
    if text in ("end", "else"):
        raise CommandError("This command cannot be used at the top level.")
    if depth > _DEEP:
        raise CommandError("Control nesting too deep!")
    if text.startswith("document") or _FOREIGN.match(text):
        return ScriptLine(text, number, raw=tuple(_raw(lines)))
    if not _OPENING.match(text):
        return ScriptLine(text, number)
    parts: list[list[ScriptLine]] = [[]]
    for at, line in lines:
        inner = line.strip()
        if inner == "end":
            break
        if inner == "else" and text.startswith("if") and len(parts) == 1:
            parts.append([])
        elif inner and not inner.startswith("#"):
            parts[-1].append(_command(inner, at, lines, depth + 1))
    otherwise = tuple(parts[1]) if len(parts) > 1 else ()
    return ScriptLine(text, number, tuple(parts[0]), otherwise)


def _raw(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, line in lines:
        if line.strip() == "end":
            return
        yield line


def lines_of(commands: Iterable[ScriptLine], indent: str = "") -> Iterator[str]:
    """Commands as they are listed, those inside others further to the right."""
    for command in commands:
        yield indent + command.text
        if command.body or command.otherwise:
            yield from lines_of(command.body, indent + "  ")
            if command.otherwise:
                yield indent + "else"
                yield from lines_of(command.otherwise, indent + "  ")
            yield indent + "end"
