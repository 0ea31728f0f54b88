"""Options of subcommands that place or judge probes."""

from typing import Final

import click

from engine.cli.options import Command
from engine.session.headless.choices import RETURNS, TECHNIQUE_NAMES, TECHNIQUES
from engine.session.protocol.config import Mode

_mode_option: Final = click.option(
    "--mode",
    "mode_name",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.STRICT.value,
    show_default=True,
    help="kernel: refuse what Linux refuses; strict: also what would corrupt the program.",
)


_technique_option: Final = click.option(
    "--technique",
    type=click.Choice(TECHNIQUE_NAMES),
    default=TECHNIQUE_NAMES[0],
    show_default=True,
    help="; ".join(
        (
            "auto: breakpoints that become jumps where they can",
            *(f"{kind.name}: {kind.help}" for kind in TECHNIQUES if kind.help),
        )
    )
    + ".",
)


_returns_option: Final = click.option(
    "--returns",
    "caught_by",
    type=click.Choice(RETURNS),
    default=RETURNS[0],
    show_default=True,
    help="How returns are caught: watched where they lead, by Linux's trampoline (mainline), or "
    "by Owens' with unwind data (IA-64); auto: watched in strict mode, mainline in kernel mode.",
)


def returns_option(command: Command) -> Command:
    """Add the option of every subcommand that runs a guest with return probes."""
    return _returns_option(command)


def probe_options(command: Command) -> Command:
    """Add the options of every subcommand that places or judges probes."""
    return _mode_option(_technique_option(command))
