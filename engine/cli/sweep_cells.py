"""Cells of a sweep: command lines, with what says which they are."""

from collections.abc import Callable
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

Label = str | int | tuple[str, ...] | None
"""A value of such a column."""


class SweepCell(Struct, frozen=True):
    """A cell: a command line.

    Attributes:
        id: hexadecimal digits that stand for all of it, contents of files included.
        mode: name of its subcommand.
        words: options and arguments of that.
        stdin: path of standard input, None for an empty one.
        labels: values of the columns that say which it is.
        files: (path, SHA-256) of the files that it reads.
        repeat: a line for a shell that does the same.
    """

    id: str
    mode: str
    words: tuple[str, ...]
    stdin: str | None
    labels: dict[str, Label]
    files: tuple[tuple[str, str], ...]
    repeat: str

    def request(self) -> CellRequest:
        """The request that its words stand for.

        Raises:
            ClickException: its options are none, or do not go together.
            CommandError: a file of definitions cannot be read.
        """
        command, request = MODES[self.mode]
        context = command.make_context(self.mode, list(self.words))
        if "jobs" in context.params and context.params["jobs"] is None:
            context.params["jobs"] = 1  # cells share the processors as it is
        return request(context)
