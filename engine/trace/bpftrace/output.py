"""The output of a running script: text as people read it, or lines of JSON.

`printing` and `json_lines` are the two outputs; both write bytes as they are. Keeping a terminal
safe from what a guest's strings hold is for who gives the functions to write with.
"""

from collections.abc import Callable, Iterable, Sequence
from errno import E2BIG, EFAULT, ENOENT
from os import strerror
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.maps import ScriptMap
from engine.trace.bpftrace.text import ScriptText, Span

Write = Callable[[bytes], object]
"""Takes bytes that were printed."""

TextKind = Literal["printf", "time", "cat", "join", "syscall"]
"""The function that a text is of: JSON names it."""


class ScriptPlace(Struct, frozen=True):
    """A place of a script that something happened at.

    Attributes:
        script: the text.
        span: the part of it.
    """

    script: ScriptText
    span: Span

    def where(self) -> str:
        """The place in one word: "stdin:1:9-15", "stdin:2-4"."""
        line, column = self.script.line_and_column(self.span.start)
        last, end = self.script.line_and_column(self.span.end)
        if last != line:
            return f"{self.script.name}:{line}-{last}"
        return f"{self.script.name}:{line}:{column}-{end}"

    def context(self) -> list[str]:
        """The lines of the script there, marked if it is one."""
        line, column = self.script.line_and_column(self.span.start)
        last, end = self.script.line_and_column(self.span.end)
        if last != line:
            return [self.script.line(number) for number in range(line, last + 1)]
        text = self.script.line(line)
        before, marked = text[: column - 1], text[column - 1 : end - 1]
        return [
            text.replace("\t", "    "),
            " " * len(before.replace("\t", "    ")) + "~" * len(marked.replace("\t", "    ")),
        ]


class Fault(Struct, frozen=True):
    """Something that went wrong in an action, and did not end it.

    Attributes:
        text: what is said.
        helper: the helper of BPF that failed, "" if none did.
        code: what it gave: a negative number of errno.h.
    """

    text: str
    helper: str = ""
    code: int = 0

    @property
    def message(self) -> str:
        """The text with the helper and the code behind it."""
        if not self.helper:
            return self.text
        return f"{self.text}\nAdditional Info - helper: {self.helper}, retcode: {self.code}"

    @property
    def plain(self) -> str:
        """The text that JSON has: the error of errno.h, if there is one."""
        return strerror(-self.code) if self.helper else self.text


DIVIDED_BY_ZERO: Final = Fault(
    "Divide or modulo by 0 detected. This can lead to unexpected results. "
    "1 is being used as the result."
)
OUT_OF_BOUNDS: Final = Fault("Array access out of bounds. This can lead to unexpected results.")
MAP_FULL: Final = Fault(
    "Map full; can't update element. Try increasing max_map_keys config or manually setting "
    "the max entries in a map declaration e.g. `let @a = hash(5000)`",
    "map_update_elem",
    -E2BIG,
)
NOTHING_TO_DELETE: Final = Fault(
    "Can't delete map element because it does not exist.", "map_delete_elem", -ENOENT
)
NOTHING_TO_LOOK_UP: Final = Fault(
    "Can't lookup map element because it does not exist.", "map_lookup_elem"
)


def unreadable(helper: str) -> Fault:
    """Memory could not be read; the helper is "probe_read_user" or another one."""
    return Fault(strerror(EFAULT), helper, -EFAULT)


class ScriptOutput(Protocol):
    """Takes the output of a script."""

    def map(self, of: ScriptMap, top: int = 0, div: int = 0) -> None:
        """`print(@x, top, div)`."""

    def final(self, maps: Iterable[ScriptMap]) -> None:
        """The end of the script: maps are printed, in the order of their names."""

    def value(self, kind: kinds.Type, value: Any) -> None:
        """`print()` of anything that is no map."""

    def text(self, kind: TextKind, data: bytes) -> None:
        """Print the text of a function: `printf()`, `time()`, `cat()`, `join()`."""

    def message(
        self, severity: Literal["ERROR", "WARNING"], data: bytes, places: Sequence[ScriptPlace]
    ) -> None:
        """`errorf()` and `warnf()`: at which place, and the macros that this was expanded from."""

    def fault(self, fault: Fault, places: Sequence[ScriptPlace]) -> None:
        """Something went wrong in an action."""

    def attached(self, probes: int) -> None:
        """The probes are there; how many."""

    def lost(self, events: int) -> None:
        """So many events were lost."""
