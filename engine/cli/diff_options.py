"""Options that say where the probes of a comparison stand."""

from typing import Any, Final

import click

from engine.cli.grouped import Group, option
from engine.cli.options import Command, lines_of
from engine.session.protocol.requests import ProbeRequest

_OPTIONS: Final = (
    ("-e", "definitions", "DEF", "Probe as `trace -e` does."),
    ("-f", "globs", "GLOB", "Probe the entry of matching functions."),
    ("-r", "returns", "GLOB", "Probe the return of matching functions."),
    ("--every-insn", "bodies", "GLOB", "Probe every instruction of matching functions."),
)


def place_options(command: Command) -> Command:
    """Add the options that say where probes are placed."""
    for name, variable, metavar, text in reversed(_OPTIONS):
        add = option(name, variable, multiple=True, metavar=metavar, help=text, group=Group.EVENTS)
        command = add(command)
    return command


def places_of(values: dict[str, Any]) -> ProbeRequest:
    """The probes that parsed options stand for, which are taken out.

    Args:
        values: of all options.

    Raises:
        UsageError: there are none.
        CommandError: a file of definitions cannot be read.
    """
    given = [values.pop(variable) for _, variable, _, _ in _OPTIONS]
    if not any(given):
        raise click.UsageError(
            "nothing to probe: give -e DEF, -f GLOB, -r GLOB or --every-insn GLOB"
        )
    definitions, globs, returns, bodies = given
    return ProbeRequest(tuple(lines_of(definitions)), globs, returns, bodies)
