"""Cells of a sweep: command lines, with what says which they are."""

from collections.abc import Callable
from copy import copy
from typing import Final

import click
from msgspec import Struct

from engine.cli.check import check, check_request
from engine.cli.diff import diff, diff_request
from engine.cli.explore import explore, explore_request
from engine.cli.trace import trace, trace_request
from engine.session.headless.sweep.cells import CellRequest

MODES: Final[dict[str, tuple[click.Command, Callable[[click.Context], CellRequest]]]] = {
    "trace": (trace, trace_request),
    "check": (check, check_request),
    "diff": (diff, diff_request),
    "explore": (explore, explore_request),
}
"""Subcommands that a cell can be, and the request that a parsed line of each stands for."""
KINDS: Final = {
    "mode": "string",
    "guest": "string",
    "guest_sha256": "string",
    "arch": "string",
    "args": "string[]",
    "input": "string",
    "seed": "int64",
    "definitions": "string",
    "repeat": "string",
}
"""Columns that say which cell it is, with their types; other dimensions are strings."""

_PARSED_MOST: Final = 256
"""Sets of options that are kept."""

Label = str | int | tuple[str, ...] | None
"""A value of such a column."""


class SweepCell(Struct, frozen=True):
    """A cell: a command line.

    Attributes:
        id: hexadecimal digits that stand for all of it, contents of files included.
        mode: name of its subcommand.
        words: options and arguments of that.
        program: the place of the guest's own word among them.
        seed_at: the place of the seed's number among them; None where it has none.
        stdin: path of standard input, None for an empty one.
        labels: values of the columns that say which it is.
        files: (path, SHA-256) of the files that it reads.
        repeat: a line for a shell that does the same.
    """

    id: str
    mode: str
    words: tuple[str, ...]
    program: int
    seed_at: int | None
    stdin: str | None
    labels: dict[str, Label]
    files: tuple[tuple[str, str], ...]
    repeat: str

    @property
    def options(self) -> tuple[str, ...]:
        """The words in front of the guest without the seed's number."""
        front = self.words[: self.program]
        if self.seed_at is None:
            return front
        return (*front[: self.seed_at], *front[self.seed_at + 1 :])


class CellRequests:
    """Parses the words of cells; options that many of them have are parsed once."""

    def __init__(self) -> None:
        """Start with no options parsed."""
        self._parsed: dict[tuple[str, tuple[str, ...], bool], click.Context] = {}

    def of(self, cell: SweepCell) -> CellRequest:
        """The request that the words of a cell stand for.

        Raises:
            ClickException: its options are none, or do not go together.
            CommandError: a file of definitions cannot be read.
        """
        return MODES[cell.mode][1](self._context(cell))

    def _context(self, cell: SweepCell) -> click.Context:
        """The cell's words, parsed."""
        guest, *args = cell.words[cell.program :]
        key = cell.mode, cell.options, cell.seed_at is None
        known = self._parsed.get(key)
        if known is None or guest.startswith("-"):
            command = MODES[cell.mode][0]
            context = command.make_context(cell.mode, list(cell.words))
            if "jobs" in context.params and context.params["jobs"] is None:
                context.params["jobs"] = 1  # cells share the processors as it is
            if len(self._parsed) >= _PARSED_MOST:
                self._parsed.clear()
            self._parsed[key] = context
            return context
        context = copy(known)
        context.params = {**known.params, "guest": guest}
        if "args" in known.params:
            context.params["args"] = tuple(args)
        if cell.seed_at is not None:
            context.params["seed"] = int(cell.words[cell.seed_at])
        return context
