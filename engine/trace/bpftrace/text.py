"""The text of a script, positions in it, and the errors that point there.

An error is shown as bpftrace shows it (its src/log.cpp): where, what, the line and a mark under
the place:

    stdin:1:9-15: ERROR: Unknown identifier: 'fooo'
    begin { print(fooo); }
            ~~~~~~
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct, field

from engine.errors import SourceError

MAX_SCRIPT: Final = 4 << 20
"""Bytes of a script that is read."""


_TAB: Final = "\t"
_SPACES: Final = "    "
_MOST_CHARACTERS: Final = 500
"""Characters of a line, and of what is said, that are shown."""
_NEAR: Final = 60
"""Characters in front of a place that are shown of a very long line."""
_MOST_LINES: Final = 20
"""Lines of a place that are shown."""


class Span(Struct, frozen=True):
    """A part of a script's text.

    Attributes:
        start: the offset of its first character.
        end: that of the first character behind it.
    """

    start: int
    end: int

    def to(self, other: "Span") -> "Span":
        """The part from here to the end of another one."""
        return Span(self.start, other.end)


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


def _marked(line: str, start: int, end: int) -> Iterator[str]:
    """A line, and marks under a part of it; of a very long line only what is near that part."""
    first = max(start - _NEAR, 0) if len(line) > _MOST_CHARACTERS else 0
    text = line[first : first + _MOST_CHARACTERS]
    before, marked = text[: start - first], text[start - first : end - first]
    left = "..." if first else ""
    right = "..." if first + _MOST_CHARACTERS < len(line) else ""
    yield f"{left}{text.replace(_TAB, _SPACES)}{right}"
    width = max(len(marked.replace(_TAB, _SPACES)), 1)
    yield " " * (len(left) + len(before.replace(_TAB, _SPACES))) + "~" * width


class ImportedText(Struct, frozen=True):
    """A file that a script imports: a part of the text behind the script's own.

    Attributes:
        name: of the file.
        start: the offset of its first character.
        end: that of the first character behind it.
    """

    name: str
    start: int
    end: int


class ScriptText(Struct, frozen=True):
    """A script as it was written.

    Attributes:
        name: of its file; "stdin" for the text of -e, as bpftrace has it.
        text: all of it, and of the files that it imports.
        imported: those files; None if nobody has looked for them (`imports.with_imports` does).
    """

    name: str
    text: str
    imported: tuple[ImportedText, ...] | None = None

    @property
    def own_end(self) -> int:
        """The offset of the first character behind the script's own text."""
        return self.imported[0].start - 1 if self.imported else len(self.text)

    def file(self, span: Span) -> "tuple[ScriptText, Span]":
        """The file that a place is in, as a text of its own, and the place in it."""
        for one in self.imported or ():
            if one.start <= span.start <= one.end:
                text = ScriptText(one.name, self.text[one.start : one.end])
                return text, Span(span.start - one.start, span.end - one.start)
        return (
            (ScriptText(self.name, self.text[: self.own_end]), span)
            if self.imported
            else (
                self,
                span,
            )
        )

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """The line and the column of a character, both counted from 1."""
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def line(self, number: int) -> str:
        """The text of a line, counted from 1."""
        lines = self.text.split("\n")
        return lines[number - 1] if number <= len(lines) else ""


class ScriptRemark(Struct, frozen=True):
    """Something to be said about a place of a script.

    Attributes:
        severity: whether the script can run.
        text: in bpftrace's words.
        span: the place.
        script: the text that the place is in.
        hint: the way out; "" if the text says all.
        placed: the place is told; what is about the command line, or more than one place, has
            none.
    """

    severity: Literal["ERROR", "WARNING"]
    text: str
    span: Span
    script: ScriptText
    hint: str = ""
    placed: bool = True

    def lines(self) -> Iterator[str]:
        """The remark as bpftrace prints it, line by line (its src/ast/location.cpp)."""
        if self.placed:
            yield from self._placed_lines()
        elif self.text:
            yield f"{self.severity}: {_shortened(self.text)}"
        if self.hint:
            yield f"HINT: {self.hint}"

    def _placed_lines(self) -> Iterator[str]:
        script, span = self.script.file(self.span)
        line, column = script.line_and_column(span.start)
        last, end = script.line_and_column(span.end)
        said = _shortened(self.text)
        if last == line:
            yield f"{script.name}:{line}:{column}-{end}: {self.severity}: {said}"
            yield from _marked(script.line(line), column - 1, end - 1)
        else:
            yield f"{script.name}:{line}-{last}: {self.severity}: {said}"
            for number in range(line, min(last, line + _MOST_LINES) + 1):
                yield _shortened(script.line(number))
            if last > line + _MOST_LINES:
                yield "..."


class WrongScriptError(SourceError):
    """A script is wrong.

    Attributes:
        remarks: what is wrong, in the order of the text.
    """

    def __init__(self, *remarks: ScriptRemark) -> None:
        super().__init__("\n".join("\n".join(remark.lines()) for remark in remarks))
        self.remarks = remarks


class ScriptRemarks(Struct):
    """Errors and warnings about a script so far.

    Attributes:
        script: the text.
        found: in the order in which it was found.
    """

    script: ScriptText
    found: list[ScriptRemark] = field(default_factory=list)

    def error(self, text: str, span: Span, hint: str = "", *, placed: bool = True) -> None:
        """Note an error; checking goes on."""
        self.found.append(ScriptRemark("ERROR", text, span, self.script, hint, placed))

    def warning(self, text: str, span: Span, hint: str = "", *, placed: bool = True) -> None:
        """Note something odd that does not keep the script from running."""
        self.found.append(ScriptRemark("WARNING", text, span, self.script, hint, placed))

    def raise_errors(self) -> None:
        """End the work on a script that is wrong.

        Raises:
            WrongScriptError: there was an error.
        """
        errors = [remark for remark in self.found if remark.severity == "ERROR"]
        if errors:
            raise WrongScriptError(*errors)
